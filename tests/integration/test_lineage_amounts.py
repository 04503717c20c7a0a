"""Rows and bytes that runs have read and written: those that Spark and the commits count, and no others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from lineage_asked import REASON

from lockgate.framework.lineage.export.graph_page import page
from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.warehouse_lineage import lineage_of

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("own_index")


class Amounts(NamedTuple):
    """Amounts of a run; for bytes, whether they are a number above zero."""

    rows_read: int | None
    bytes_read: bool
    rows_written: int | None
    bytes_written: bool


NOTHING = Amounts(None, False, None, False)


@pytest.fixture
def source(lake: Lake, table: Callable[[str], str]) -> str:
    """A table with three rows."""
    lake.sql(f"CREATE TABLE {table('source')} (id INT, name STRING)")
    lake.sql(f"INSERT INTO {table('source')} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return table("source")


def amounts(lake: Lake, reason: str) -> dict[str, Amounts]:
    """Those of all runs for a reason, by the kind of their process."""
    wait_for_records(lake.spark)
    with lineage_of(lake.catalog).reading() as index:
        rows = index.execute(
            "SELECT p.kind, r.run FROM run r JOIN process p ON p.id = r.process "
            "WHERE json_extract(r.run, '$.why.reason') = ?",
            (reason,),
        ).fetchall()
    runs = [(kind, json.loads(run)) for kind, run in rows]
    return {
        kind: Amounts(
            *(run.get("rows_read"), (run.get("bytes_read") or 0) > 0),
            *(run.get("rows"), (run.get("bytes") or 0) > 0),
        )
        for kind, run in runs
    }


def test_statements_count_rows_and_bytes(
    lake: Lake, source: str, table: Callable[[str], str], tmp_path: Path
) -> None:
    target, out = table("target"), tmp_path / "out"
    lake.spark.conf.set(REASON, f"{target} counts")
    try:
        lake.sql(
            f"CREATE TABLE {target} TBLPROPERTIES ('primary-key' = 'id') "
            f"AS SELECT * FROM {source} WHERE id > 1"
        )
        lake.sql(f"INSERT INTO {target} SELECT id + 10, name FROM {source}")
        lake.sql(f"MERGE INTO {target} t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE")
        lake.table(source).write.json(str(out))
        lake.sql(f"INSERT OVERWRITE {target} SELECT id, name FROM json.`{out}` WHERE id = 2")
        lake.sql(f"TRUNCATE TABLE {target}")
    finally:
        lake.spark.conf.unset(REASON)
    found = amounts(lake, f"{target} counts")
    merge = found.pop("MERGE")
    assert found == {
        "CREATE_TABLE_AS_SELECT": Amounts(2, True, 2, True),
        "INSERT": Amounts(3, True, 3, True),
        "EXPORT": Amounts(3, True, 3, True),
        "INSERT_OVERWRITE": Amounts(1, True, 1, True),  # the reader of JSON filters
        "TRUNCATE": NOTHING,
    }
    assert merge.rows_read is not None
    assert merge.rows_read >= 8  # three rows of one table, five of the other
    text = page("x", lake.lineage(f"{target}.id", depth=1).found, [])
    assert "how much" in text
    assert "rows read 3" in text


def test_unknown_amounts_are_null(lake: Lake, source: str, table: Callable[[str], str]) -> None:
    """Several statements share one plan, and rows of a checkpoint were read before."""
    first, second = table("first"), table("second")
    for name in (first, second):
        lake.sql(f"CREATE TABLE {name} (id INT)")
    kept = lake.table(source).select("id").localCheckpoint()
    try:
        lake.spark.conf.set(REASON, f"{first} both")
        lake.sql(f"FROM {source} INSERT INTO {first} SELECT id INSERT OVERWRITE {second} SELECT id")
        lake.spark.conf.set(REASON, f"{first} kept")
        kept.writeTo(first).append()
    finally:
        lake.spark.conf.unset(REASON)
    assert amounts(lake, f"{first} both") == {"INSERT": NOTHING, "INSERT_OVERWRITE": NOTHING}
    assert amounts(lake, f"{first} kept") == {"INSERT": Amounts(None, False, 3, True)}


def test_batches_of_a_stream_add_up(lake: Lake, table: Callable[[str], str], tmp_path: Path) -> None:
    target, folder = table("target"), tmp_path / "in"
    lake.sql(f"CREATE TABLE {target} (id INT)")
    for number in range(3):
        lake.sql(f"SELECT id FROM range({number + 1})").write.mode("append").json(str(folder))
    rows = lake.spark.readStream.schema("id INT").option("maxFilesPerTrigger", 1).json(str(folder))
    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    lake.spark.conf.set(REASON, f"{target} stream")
    try:
        query.toTable(target).awaitTermination()
    finally:
        lake.spark.conf.unset(REASON)
    wait_for_records(lake.spark)
    short = target.removeprefix("lake.")
    processes = lake.catalog.system("lineage_processes").to_pylist()
    [process] = [each for each in processes if (each["kind"], each["target"]) == ("STREAM", short)]
    everything = lake.catalog.system("lineage_runs").to_pylist()
    runs = [each for each in everything if each["process_guid"] == process["guid"]]
    assert sum(each["rows_written"] for each in runs) == process["rows_written"] == 6
    assert sum(each["rows_read"] for each in runs) == 6
