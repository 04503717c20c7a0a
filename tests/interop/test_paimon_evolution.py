"""Schemas that Paimon's Java core changes are read here, and the reverse; comments and defaults too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from both_engines import Both
from exact_rows import Rows
from paimon_java import structure

pytestmark = pytest.mark.interop

COLUMNS = [
    ("id", "BIGINT NOT NULL"),
    ("a", "INT"),
    ("s", structure(("x", "INT"), ("y", "STRING"), ("w", "STRING"))),
    ("items", {"type": "ARRAY", "element": structure(("p", "INT"))}),
    ("m", {"type": "MAP", "key": "STRING NOT NULL", "value": structure(("q", "INT"))}),
    ("gone", "STRING"),
    ("f", "FLOAT"),
    ("d", "DECIMAL(8, 2)"),
]
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2"}},
}


def old(number: int) -> list[Any]:
    return [number, number, [number, "y", "w"], [[1], None], [["k", [7]]], "gone", 0.5, "1.50"]


def old_now(number: int) -> list[Any]:
    return [number, None, [None, number, "w"], number, [[1, None], None], [["k", [7]]], 0.5, "1.50"]


def new(number: int) -> list[Any]:
    return [
        number,
        "new",
        [True, 2**40, "w2"],
        2**41,
        [[2, "two"]],
        [["k", [2**33]]],
        1e300,
        "123456789012.25",
    ]


def by_paimon(both: Both) -> None:
    both.theirs.alter(
        {"change": "add", "name": ["added"], "type": "STRING", "comment": "new", "after": "id"},
        {"change": "drop", "name": ["gone"]},
        {"change": "rename", "name": ["a"], "to": "b"},
        {"change": "type", "name": ["b"], "type": "BIGINT"},
        {"change": "type", "name": ["f"], "type": "DOUBLE"},
        {"change": "type", "name": ["d"], "type": "DECIMAL(20, 2)"},
        {"change": "move", "name": ["b"], "after": "s"},
        {"change": "add", "name": ["s", "z"], "type": "BOOLEAN", "first": True},
        {"change": "drop", "name": ["s", "y"]},
        {"change": "rename", "name": ["s", "x"], "to": "xx"},
        {"change": "type", "name": ["s", "xx"], "type": "BIGINT"},
        {"change": "add", "name": ["items", "element", "t"], "type": "STRING"},
        {"change": "type", "name": ["m", "value", "q"], "type": "BIGINT"},
    )


def by_spark(both: Both) -> None:
    for change in (
        "ADD COLUMN added STRING COMMENT 'new' AFTER id",
        "DROP COLUMN gone",
        "RENAME COLUMN a TO b",
        "ALTER COLUMN b TYPE BIGINT",
        "ALTER COLUMN f TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(20, 2)",
        "ALTER COLUMN b AFTER s",
        "ADD COLUMN s.z BOOLEAN FIRST",
        "DROP COLUMN s.y",
        "RENAME COLUMN s.x TO xx",
        "ALTER COLUMN s.xx TYPE BIGINT",
        "ADD COLUMN items.element.t STRING",
        "ALTER COLUMN m.value.q TYPE BIGINT",
    ):
        both.sql(f"ALTER TABLE {{t}} {change}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("evolve", [by_paimon, by_spark])
def test_an_evolved_table(both: Both, kind: str, evolve: Callable[[Both], None]) -> None:
    both.theirs.create(COLUMNS, **KINDS[kind])
    both.theirs.write([old(1), old(2)])
    both.sql(
        "INSERT INTO {t} SELECT id + 10, a + 10, struct(s.x + 10, s.y, s.w), items, m, gone, f, d FROM {t}"
    )
    evolve(both)
    assert both.theirs.schema()["fields"] == both.ours.schema.to_json()["fields"]
    both.theirs.write([new(3)])
    both.sql("INSERT INTO {t} SELECT id + 10, added, s, b, items, m, f, d FROM {t} WHERE id = 3")
    rows = [old_now(n) for n in (1, 2, 11, 12)] + [new(3), new(13)]
    both.agree(rows)
    both.theirs.compact()
    both.agree(rows)


def test_a_filter_after_a_type_change(both: Both) -> None:
    both.theirs.create([("id", "INT"), ("v", "STRING")])
    for number, text in enumerate(("9", "10", "11")):
        both.theirs.write([[number, text]])
    both.theirs.alter({"change": "type", "name": ["v"], "type": "INT"})
    both.agree([[0, 9], [1, 10], [2, 11]])
    assert both.spark_rows(rest="WHERE v > 9") == [[1, 10], [2, 11]]
    assert both.theirs.read(where=[">", "v", 9]).rows == [[1, 10], [2, 11]]


def test_both_change_one_schema_in_turn(both: Both) -> None:
    both.sql("CREATE TABLE {t} (id INT, v INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    both.sql("INSERT INTO {t} VALUES (1, 1)")
    both.theirs.alter({"change": "add", "name": ["w"], "type": "INT"})
    both.sql("INSERT INTO {t} VALUES (2, 2, 2)")
    both.sql("ALTER TABLE {t} DROP COLUMN v")
    both.theirs.write([[3, 3]])
    both.theirs.alter({"change": "add", "name": ["v"], "type": "STRING"})
    both.theirs.write([[1, None, "one"]])
    both.sql("ALTER TABLE {t} RENAME COLUMN w TO x")
    both.sql("INSERT INTO {t} (id, v) VALUES (4, 'four')")
    both.agree([[1, None, "one"], [2, 2, None], [3, 3, None], [4, None, "four"]])
    assert both.theirs.schema()["id"] == 4


def test_comments_and_defaults_made_here(both: Both) -> None:
    both.sql(
        "CREATE TABLE {t} (id INT COMMENT 'the key', n INT DEFAULT 7, s STRING DEFAULT 'it''s', "
        "d DATE DEFAULT DATE '2024-02-29', q DECIMAL(5, 2) DEFAULT 1.25 COMMENT 'amount') COMMENT 'a table'"
    )
    both.sql("INSERT INTO {t} (id) VALUES (1)")
    both.theirs.write([[2, None, None, None, None]])
    same: list[Any] = [7, "it's", 19782, "1.25"]
    both.agree([[1, *same], [2, *same]])
    schema = both.theirs.schema()
    assert schema["comment"] == "a table"
    assert [field.get("description") for field in schema["fields"]] == ["the key", None, None, None, "amount"]


def test_comments_and_defaults_made_by_paimon(both: Both) -> None:
    both.theirs.create(
        [
            {"name": "id", "type": "INT NOT NULL", "description": "the key"},
            {"name": "n", "type": "BIGINT", "defaultValue": "7"},
            {"name": "s", "type": "STRING", "defaultValue": "it's", "description": "text"},
            {"name": "at", "type": "TIMESTAMP(6)", "defaultValue": "2024-02-29 01:02:03"},
        ],
        comment="a table",
        primary_keys=["id"],
        options={"bucket": "1"},
    )
    both.theirs.alter({"change": "default", "name": ["n"], "to": "8"})
    both.sql("INSERT INTO {t} (id) VALUES (1)")
    both.theirs.write([[2, None, None, None]])
    same: list[Any] = [8, "it's", 1_709_168_523 * 10**9]
    both.agree([[1, *same], [2, *same]])
    described = {row[0]: (row[1], row[2]) for row in both.sql("DESCRIBE {t}")}
    assert described["id"] == ("int", "the key")
    assert described["s"] == ("string", "text")
    shown = both.sql("SHOW CREATE TABLE {t}")[0][0]
    assert "a table" in shown
    rows: Rows = both.spark_rows("id")
    assert rows == [[1], [2]]
