"""`compact` through Spark while others commit, and where it fails: no row is lost, no file is left."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ordered_table import COUNT, Make, compact, content, entries_of, files_in, maker, rows

from lockgate.framework.spark.operations.plans.file_rewrites import FileRewrite
from lockgate.framework.store.ddl.schema_changes import AddColumn
from lockgate.framework.store.maintenance import order_ranges as ranges_module
from lockgate.framework.store.maintenance.order_ranges import Sample
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext, call
from lockgate.procedures.builtin.compact import order_engine as engine_module
from lockgate.pushdown import col

if TYPE_CHECKING:
    from lockgate import Lake


@pytest.fixture
def make(lake: Lake, database: str) -> Make:
    return maker(lake, database)


def test_rows_appended_at_the_same_time_stay(lake: Lake, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(options={"deletion-vectors.enabled": "true"})
    rewrite = engine_module.rewrite_by_spark

    def while_others(act: Callable[[], object]) -> None:
        def rewritten(*arguments: Any) -> Any:
            made = rewrite(*arguments)
            act()
            return made

        monkeypatch.setattr(engine_module, "rewrite_by_spark", rewritten)

    while_others(lambda: table.append(rows(9_000, 10)))
    compact(lake, table)
    assert content(table).num_rows == COUNT + 10
    before = content(table)
    for act in (
        lambda: table.delete(col("id") == 5),
        lambda: call(ProcedureContext(lake.catalog), "compact", table=str(table.identifier)),
        lambda: call(
            ProcedureContext(lake.catalog),
            "compact",
            table=str(table.identifier),
            order_strategy="order",
            order_by="b",
        ),
    ):
        while_others(act)
        names = files_in(table)
        with pytest.raises(Exception, match="read the table again and repeat the change"):
            compact(lake, table, "zorder", "a,b")
        assert content(table) == before.filter(pc.not_equal(before["id"], 5))
        live = {entry.file.file_name for entry in entries_of(table)}
        new = {name for name in files_in(table) - names if name.startswith("data-")}
        assert new <= live


def test_a_failed_job_leaves_nothing(lake: Lake, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(partition_keys=["day"])
    names, snapshot, driver, keys = files_in(table), table.latest_snapshot(), os.getpid(), Sample.keys

    def breaks(self: Sample, part: pa.Table) -> Any:
        if os.getpid() != driver:
            raise OSError("the disk of an executor is gone")
        return keys(self, part)

    monkeypatch.setattr(ranges_module.Sample, "keys", breaks)
    with pytest.raises(Exception, match="and nothing has changed: OSError: the disk of"):
        compact(lake, table)
    monkeypatch.undo()
    assert (files_in(table), table.latest_snapshot()) == (names, snapshot)

    def lost(self: FileRewrite, messages: Any) -> None:
        assert len(messages) >= 6
        raise OSError("no memory for messages")

    monkeypatch.setattr(FileRewrite, "hold", lost)
    with pytest.raises(Exception, match="no memory for messages"):
        compact(lake, table)
    monkeypatch.undo()
    assert (files_in(table), table.latest_snapshot()) == (names, snapshot)
    assert lake.spark.sparkContext.getLocalProperty("spark.job.description") is None

    def fewer(self: FileRewrite, messages: Any) -> None:
        self.messages += messages[1:]

    monkeypatch.setattr(FileRewrite, "hold", fewer)
    with pytest.raises(Exception, match=r"Spark wrote \d+ rows for the 3000 rows of bucket 0"):
        compact(lake, table)
    assert table.latest_snapshot() == snapshot


def test_a_table_that_is_altered_in_between_is_left(
    lake: Lake, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, rewrite = make(), engine_module.rewrite_by_spark
    names = files_in(table)

    def altered(*arguments: Any) -> Any:
        lake.catalog.alter_table(str(table.identifier), [AddColumn(("more",), STRING)])
        return rewrite(*arguments)

    monkeypatch.setattr(engine_module, "rewrite_by_spark", altered)
    with pytest.raises(Exception, match="was altered while its files were written again; repeat the call"):
        compact(lake, table)
    assert {name for name in files_in(table) - names if name.startswith("data-")} == set()
    monkeypatch.undo()
    compact(lake, table)
    assert lake.table(str(table.identifier)).where("more IS NULL").count() == COUNT


def test_settings_of_the_session_change_no_row(lake: Lake, database: str) -> None:
    name = f"{database}.odd"
    lake.sql(f"CREATE TABLE lake.{name} (id BIGINT, v STRING, t TIMESTAMP, n TIMESTAMP_NTZ, `A b` STRING)")
    table = lake.catalog.load_table(name)
    values = {
        "id": list(range(500)),
        "v": [f"{n % 9}" for n in range(500)],
        "t": [dt.datetime(1883, 11, 18, tzinfo=dt.UTC) + dt.timedelta(minutes=n) for n in range(500)],
        "n": [dt.datetime(2026, 3, 29, 1) + dt.timedelta(minutes=n) for n in range(500)],
        "A b": [None if n % 3 else "x" for n in range(500)],
    }
    table.append(pa.table(values, schema=table.schema.arrow_schema))
    before = content(table)
    odd = {
        "spark.sql.session.timeZone": "America/Los_Angeles",
        "spark.sql.caseSensitive": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.storeAssignmentPolicy": "STRICT",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
        "spark.lockgate.result.cache": "true",
    }
    for key, value in odd.items():
        lake.spark.conf.set(key, value)
    try:
        lake.sql(f"CACHE TABLE lake.{name}")
        for by in ("t,n,v", "A b,t"):
            compact(lake, table, "hilbert", by)
            assert content(table) == before
        assert lake.table(name).count() == 500
    finally:
        lake.sql(f"UNCACHE TABLE IF EXISTS lake.{name}")
        for key in odd:
            lake.spark.conf.unset(key)
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
