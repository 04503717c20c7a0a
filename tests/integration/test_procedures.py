"""Procedures through Spark: CALL, SHOW PROCEDURES, `lake.call`, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Names = Callable[[str], str]


@pytest.fixture
def filled(lake: Lake, database: str, table: Names) -> str:
    """`<database>.t`, an append table of three snapshots."""
    lake.sql(f"CREATE TABLE {table('t')} (id BIGINT, name STRING)")
    for number in range(3):
        lake.sql(f"INSERT INTO {table('t')} VALUES ({number}, 'n{number}')")
    return f"{database}.t"


def rows(lake: Lake, name: str) -> list[tuple[int, str]]:
    return sorted((row.id, row.name) for row in lake.table(name).collect())


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_argument_is_never_cut_to_its_type(lake: Lake, filled: str, ansi: str) -> None:
    def call(arguments: str) -> int:
        lake.sql(f"SET spark.sql.ansi.enabled = {ansi}")
        try:
            query = f"CALL lake.sys.expire_snapshots('{filled}', {arguments}, dry_run => true)"
            return int(lake.sql(query).collect()[0].deleted_snapshots_count)
        finally:
            lake.sql("RESET spark.sql.ansi.enabled")

    for wrong in ("5.5", "5.5D", "'5.5'", "true", "'five'", "cast(5 AS DOUBLE)", "3000000000"):
        with pytest.raises(Exception, match=r"(?i)retain_max.*(is not an INT|out of the range of INT)"):
            call(f"retain_max => {wrong}")
    with pytest.raises(Exception, match=r"(?i)older_than|CAST_INVALID_INPUT"):
        call("older_than => 'yesterday evening'")
    assert call("retain_max => 2") == call("retain_max => '2'") == call("retainMax => 2L") == 1


def test_show_procedures(spark: SparkSession) -> None:
    shown = spark.sql("SHOW PROCEDURES IN lake.sys").collect()
    assert {"compact", "expire_snapshots", "migrate_table"} <= {row.procedure_name for row in shown}
    assert {tuple(row.namespace) for row in shown} == {("sys",)}


def test_describe_procedure(spark: SparkSession) -> None:
    text = " ".join(str(row) for row in spark.sql("DESCRIBE PROCEDURE lake.sys.compact").collect())
    assert "table STRING" in text
    assert "dry_run BOOLEAN DEFAULT false" in text


@pytest.mark.parametrize(
    "call",
    [
        "CALL lake.sys.compact(table => '{t}')",
        "CALL lake.sys.compact('{t}')",
        "CALL lake.sys.compact('{t}', NULL, 'full')",
        "CALL lake.sys.compact('{t}', compact_strategy => 'full')",
        "CALL lake.sys.compact(compactStrategy => 'full', dryRun => false, table => 'lake.{t}')",
        "CALL lake.sys.compact(table => concat('{t}', ''))",
    ],
)
def test_arguments_by_name_by_position_and_by_default(lake: Lake, filled: str, call: str) -> None:
    before = rows(lake, filled)
    (row,) = lake.sql(call.format(t=filled)).collect()
    assert (row.files_before, row.files_after, row.rows_after, row.snapshot_id) == (3, 1, 3, 4)
    assert rows(lake, filled) == before


def test_call_runs_once(lake: Lake, filled: str) -> None:
    result = lake.sql(f"CALL lake.sys.compact(table => '{filled}')")
    assert result.count() == 1
    result.show()
    assert lake.catalog.load_table(filled).snapshots()[-1].id == 4


def test_from_python(lake: Lake, filled: str) -> None:
    (row,) = lake.call("compact", table=filled)
    assert row.files_written == 1
    (row,) = lake.call("expire_snapshots", table=filled, retain_max=1)
    assert (row.deleted_snapshots_count, row.deleted_data_files_count) == (3, 3)
    assert len(rows(lake, filled)) == 3


def test_current_namespace(lake: Lake, filled: str) -> None:
    session = lake.spark.newSession()
    session.sql("USE lake.sys")
    assert session.sql(f"CALL compact('{filled}', dry_run => true)").first().files_rewritten == 3


def test_timestamps_as_text_and_as_literal(lake: Lake, filled: str) -> None:
    for older_than in ("'2100-01-01 00:00:00'", "TIMESTAMP '2100-01-01 00:00:00'"):
        arguments = f"'{filled}', older_than => {older_than}, retain_min => 1, dry_run => true"
        assert lake.sql(f"CALL lake.sys.expire_snapshots({arguments})").first().deleted_snapshots_count == 2
    call = f"CALL lake.sys.expire_snapshots('{filled}', older_than => '2000-01-01', retain_min => 1)"
    assert lake.sql(call).first().deleted_snapshots_count == 0


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("compct('{t}')", "did you mean 'compact'"),
        ("compact('{t}t')", "did you mean"),
        ("compact()", "table"),
        ("compact('{t}', no_such => 1)", "no_such"),
        ("compact('{t}', compact_strategy => 'ful')", "did you mean 'full'"),
        ("compact('{t}', dry_run => 'perhaps')", "perhaps"),
        ("migrate_table(table => 'a.b')", "needs the argument 'source_type'"),
        ("migrate_table('spark', 'default.no_such')", "no table 'default.no_such'"),
    ],
)
def test_errors_are_clear(lake: Lake, filled: str, call: str, complaint: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=complaint) as caught:
        lake.sql("CALL lake.sys." + call.format(t=filled))
    assert "Traceback" not in str(caught.value)
    assert "py4j" not in str(caught.value)
