"""`inspect_sql`: what a statement is about, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lockgate.errors import InputError

if TYPE_CHECKING:
    from lockgate import Lake

# statement, kind, tables, target, columns, options
CASES = [
    (
        "SELECT a, t.b, count(*) FROM lake.db.t t WHERE c > (SELECT max(x) FROM lake.db.u) GROUP BY a",
        "SELECT",
        ("lake.db.t", "lake.db.u"),
        None,
        ("a", "t.b", "c", "x"),
        {},
    ),
    (
        "WITH q AS (SELECT * FROM lake.db.t) SELECT * FROM q JOIN lake.db.u USING (id)",
        "SELECT",
        ("lake.db.u", "lake.db.t"),
        None,
        ("*",),
        {},
    ),
    ("VALUES (1), (2)", "SELECT", (), None, (), {}),
    (
        "SELECT * FROM lake.db.t WITH (`scan.snapshot-id` = '5')",
        "SELECT",
        ("lake.db.t",),
        None,
        ("*",),
        {"scan.snapshot-id": "5"},
    ),
    (
        "SELECT * FROM lake.db.t VERSION AS OF 3",
        "SELECT",
        ("lake.db.t",),
        None,
        ("*",),
        {"VERSION AS OF": "3"},
    ),
    (
        "INSERT INTO lake.db.t (a, b) SELECT x, y FROM lake.db.s",
        "INSERT",
        ("lake.db.s",),
        "lake.db.t",
        ("a", "b", "x", "y"),
        {},
    ),
    (
        "INSERT OVERWRITE lake.db.t SELECT x FROM lake.db.s",
        "INSERT OVERWRITE",
        ("lake.db.s",),
        "lake.db.t",
        ("x",),
        {},
    ),
    ("DELETE FROM lake.db.t WHERE id = 3", "DELETE", (), "lake.db.t", ("id",), {}),
    ("UPDATE lake.db.t SET a = 1 WHERE id = 3", "UPDATE", (), "lake.db.t", ("a", "id"), {}),
    (
        "MERGE INTO lake.db.t t USING lake.db.s s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE",
        ("lake.db.s",),
        "lake.db.t",
        ("t.id", "s.id"),
        {},
    ),
    (
        "CREATE TABLE lake.db.t (id INT, name STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '4')",
        "CREATE TABLE",
        (),
        "lake.db.t",
        ("id", "name"),
        {"primary-key": "id", "bucket": "4"},
    ),
    (
        "CREATE TABLE lake.db.u AS SELECT * FROM lake.db.t",
        "CREATE TABLE AS SELECT",
        ("lake.db.t",),
        "lake.db.u",
        ("*",),
        {},
    ),
    (
        "CALL lake.sys.compact(table => 'db.t', n => 1 + 2)",
        "CALL",
        (),
        "lake.sys.compact",
        (),
        {"table": "db.t", "n": "3"},
    ),
    ("DROP TABLE IF EXISTS lake.db.t", "DROP TABLE", (), "lake.db.t", (), {}),
    ("SHOW PROCEDURES IN lake.sys", "SHOW PROCEDURES", (), "lake.sys", (), {}),
    ("REFRESH TABLE lake.db.t", "REFRESH TABLE", (), "lake.db.t", (), {}),
]


@pytest.mark.parametrize(("text", "kind", "tables", "target", "columns", "options"), CASES)
def test_a_statement_shows_its_kind_target_and_tables(
    lake: Lake,
    text: str,
    kind: str,
    tables: tuple[str, ...],
    target: str | None,
    columns: tuple[str, ...],
    options: dict[str, str],
) -> None:
    found = lake.inspect_sql(text)
    assert (found.kind, found.target, found.columns) == (kind, target, columns)
    assert found.options == options
    assert sorted(found.tables) == sorted(tables)


def test_nothing_is_run(lake: Lake, database: str) -> None:
    lake.inspect_sql(f"CREATE TABLE lake.{database}.t (id INT)")
    lake.inspect_sql(f"DROP DATABASE lake.{database}")
    assert lake.catalog.list_tables(database) == []


def test_text_that_is_not_sql(lake: Lake) -> None:
    with pytest.raises(InputError, match="selec"):
        lake.inspect_sql("selec 1")
