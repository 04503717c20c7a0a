"""Settings of a session: which statements are recorded, texts, reasons; and questions about snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.lineage.pending_statements import wait_for_records
from lockgate.framework.lineage.questions.vertices import processes
from lockgate.framework.lineage.warehouse_lineage import lineage_of

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("own_index")


@contextmanager
def setting(lake: Lake, **values: str) -> Iterator[None]:
    prefix = "spark.lockgate.lineage"
    names = {f"{prefix}.{name}" if name != "mode" else prefix: value for name, value in values.items()}
    for name, value in names.items():
        lake.spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            lake.spark.conf.unset(name)


def made(lake: Lake, table: str) -> dict[str, Any] | None:
    """The process that wrote a table."""
    wait_for_records(lake.spark)
    with lineage_of(lake.catalog).reading() as index:
        row = index.execute(
            "SELECT p.id FROM process p JOIN dataset d ON d.id = p.target WHERE d.name = ?",
            (table.removeprefix("lake."),),
        ).fetchone()
        return None if row is None else processes(index, [row[0]])[row[0]]


def test_what_a_session_lets_be_recorded(lake: Lake, table: Callable[[str], str]) -> None:
    with setting(lake, mode="off"):
        lake.sql(f"CREATE TABLE {table('off')} AS SELECT 'hidden' AS a")
    with setting(lake, literals="keep", reason="nightly 7"):
        lake.sql(f"CREATE TABLE {table('kept')} AS SELECT 'shown' AS a")
    lake.spark.sparkContext.setJobDescription("load of 'someone'")
    try:
        lake.sql(f"CREATE TABLE {table('masked')} AS SELECT 'hidden' AS a")
    finally:
        lake.spark.sparkContext.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]  # unsets it
    assert made(lake, table("off")) is None
    kept, masked = made(lake, table("kept")), made(lake, table("masked"))
    assert kept is not None
    assert masked is not None
    assert kept["run"]["how"].endswith("AS SELECT 'shown' AS a")
    assert kept["run"]["why"]["reason"] == "nightly 7"
    assert masked["run"]["how"].endswith("AS SELECT ? AS a")
    assert masked["run"]["why"] == {"job": "load of ?"}
    assert "hidden" not in str(masked)
    assert {"application", "host"} <= masked["run"]["where"].keys()
    assert {"spark", "lockgate"} <= masked["run"]["which"].keys()


def test_a_snapshot_comes_from_what_had_written_it(lake: Lake, table: Callable[[str], str]) -> None:
    first, second, target = table("first"), table("second"), table("target")
    for name in (first, second):
        lake.sql(f"CREATE TABLE {name} AS SELECT 1 AS a")
    lake.sql(f"CREATE TABLE {target} AS SELECT a FROM {first}")
    lake.sql(f"INSERT INTO {target} SELECT a FROM {second}")

    def sources(name: str) -> set[str]:
        found = lake.sql(f"CALL lake.sys.lineage(name => '{name}')").collect()
        return {row.source.rpartition(".")[0].rpartition(".")[2] for row in found}

    name = target.removeprefix("lake.")
    assert sources(f"{name}@1.a") == {"first"}
    assert sources(f"{name}@2.a") == sources(f"{name}.a") == {"first", "second"}
