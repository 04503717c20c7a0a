"""`compact` with an order through Spark's tasks: the same rows, in files whose ranges are apart."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from ordered_table import COUNT, Make, compact, content, entries_of, maker, rows

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import ordered_compaction as order_module
from lockgate.framework.store.maintenance import table_compaction as compact_module
from lockgate.framework.store.maintenance.compaction import parts_of
from lockgate.framework.store.maintenance.curves import hilbert, zorder
from lockgate.framework.store.maintenance.file_choice import pick_ordered
from lockgate.framework.store.maintenance.order_ranges import Sample
from lockgate.framework.store.manifests.manifest import FileSource
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.framework.store.write.write import write_files
from lockgate.framework.types import BIGINT, DataField, parse_type
from lockgate.procedures import ProcedureContext, call
from lockgate.procedures.builtin.compact import order_engine
from lockgate.pushdown import col

if TYPE_CHECKING:
    from lockgate import Lake

CURVES = {"order": None, "zorder": zorder, "hilbert": hilbert}


@pytest.fixture
def make(lake: Lake, database: str) -> Make:
    return maker(lake, database)


def ranges_of(table: Table, columns: list[str], strategy: str) -> list[tuple[int, int]]:
    """Return the least and the largest key of each file, in order."""
    parts = [
        pa.concat_tables(parts_of(table, pick_ordered([entry])[0], columns)) for entry in entries_of(table)
    ]
    sample = Sample(pa.concat_tables(parts), CURVES[strategy])
    keys = [sample.keys(part) for part in parts]
    return sorted((int(each.min()), int(each.max())) for each in keys)


@pytest.mark.parametrize(
    ("strategy", "by", "form"),
    [("hilbert", "a,b", "orc"), ("zorder", "b,a", "parquet"), ("order", "b,a", "orc")],
)
def test_rows_stay_in_files_whose_ranges_are_apart(
    lake: Lake, make: Make, strategy: str, by: str, form: str
) -> None:
    table = make(options={"file.format": form})
    before, old = content(table), {entry.file.file_name for entry in entries_of(table)}
    row = compact(lake, table, strategy, by)
    assert content(table) == before
    found = entries_of(table)
    assert len(found) >= 6
    assert not old & {entry.file.file_name for entry in found}
    assert (row.files_rewritten, row.files_written, row.rows_after) == (4, len(found), COUNT)
    assert {(entry.file.file_source, entry.file.level) for entry in found} == {(FileSource.COMPACT, 0)}
    assert table.latest_snapshot().commit_kind is CommitKind.COMPACT  # type: ignore[union-attr]  # there is one
    for (_, last), (first, _) in itertools.pairwise(ranges_of(table, by.split(","), strategy)):
        assert last <= first
    assert row.pruned_share_after > row.pruned_share_before + 0.2
    assert lake.table(str(table.identifier)).where("a = 500").count() == sum(
        each == 500 for each in before["a"].to_pylist()
    )


def test_files_are_left_out_as_well_as_by_one_process(lake: Lake, make: Make) -> None:
    left: dict[str, int] = {}
    for engine in ("python", "spark"):
        table = make(f"by_{engine}", options={"target-file-size": "2 kb"})
        compact(lake, table, order_engine=engine)
        chance = random.Random(5)
        questions = [
            (col("a") == chance.randrange(1000))
            if n % 2
            else (col("b") == f"C:\\Files\\{chance.randrange(200):03}")
            for n in range(100)
        ]
        plans = [table.scan(question) for question in questions]
        kept = sum(len(split.files) for plan in plans for split in plan.splits)
        left[engine] = kept / len(entries_of(table))
    assert left["spark"] <= left["python"] * 1.1, left


def test_a_session_of_spark_orders_what_memory_does_not_hold(
    lake: Lake, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [rows(0, 900), rows(2000, 90, "tue")]
    table = make(parts=parts, partition_keys=["day"])
    seen: list[Any] = []
    rewrite = order_engine.rewrite_by_spark

    def noted(context: Any, table: Table, snapshot_id: int, job: Any, order: Any) -> Any:
        seen.append(job.partition)
        return rewrite(context, table, snapshot_id, job, order)

    monkeypatch.setattr(order_engine, "rewrite_by_spark", noted)
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 500)
    before = content(table)
    compact(lake, table, order_engine=None)
    assert seen == [("mon",)]
    call(
        ProcedureContext(lake.catalog),
        "compact",
        table=str(table.identifier),
        order_strategy="order",
        order_by="a",
    )
    compact(lake, table, order_engine="python")
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 5_000)
    compact(lake, table, order_engine="auto")
    assert len(seen) == 1
    assert content(table) == before


def test_partitions_are_ordered_each_by_itself(lake: Lake, make: Make) -> None:
    days = ["mon", None, "a=b/c"]
    parts = [rows(n * 500, 500, day) for n, day in enumerate(days)]
    options = {
        "clustering.columns": "a,b",
        "clustering.incremental": "true",
        "clustering.strategy": "hilbert",
    }
    table = make(parts=parts, partition_keys=["day"], options=options)
    before = content(table)
    name = str(table.identifier)
    (dry,) = lake.call("compact", table=name, order_engine="spark", dry_run=True)
    assert (dry.files_rewritten, dry.files_written, dry.snapshot_id) == (3, None, None)
    (row,) = lake.call("compact", table=name, order_engine="spark", where="day = 'mon'")
    assert row.files_rewritten == 1
    (row,) = lake.call("compact", table=name, order_engine="spark")
    assert (row.buckets, row.files_rewritten) == (2, 2)
    assert content(table) == before
    of_mon = {entry.file.file_name for entry in entries_of(table) if entry.partition == ("mon",)}
    table.append(rows(5_000, 100))
    (row,) = lake.call("compact", table=name, order_engine="spark")
    assert (row.buckets, row.files_rewritten) == (1, 1)
    assert of_mon < {entry.file.file_name for entry in entries_of(table)}
    assert content(table).num_rows == 1600


def test_rows_of_buckets_stay_in_them(lake: Lake, make: Make) -> None:
    table = make(options={"bucket": "3", "bucket-key": "id"})
    before = content(table)
    row = compact(lake, table)
    assert row.buckets == 3
    assert content(table) == before
    assert {entry.bucket for entry in entries_of(table)} == {0, 1, 2}
    assert lake.table(str(table.identifier)).where("id = 77").count() == 1


def test_rows_that_vectors_delete_go(lake: Lake, make: Make) -> None:
    table = make(options={"deletion-vectors.enabled": "true"})
    table.delete(col("id").isin([3, 2500, 2999]))
    before = content(table)
    row = compact(lake, table)
    assert row.rows_after == row.rows_before == COUNT - 3
    assert content(table) == before
    assert all(entry.vector is None for entry in entries_of(table))


def test_an_encrypted_table_stays_encrypted(lake: Lake, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.errors import KeyMissingError

    table = make(options={"orc.encrypt": "pii:b"})
    before = content(table)
    compact(lake, table, "zorder", "a,id")
    assert content(table) == before
    files = [Path(table.location, "bucket-0", entry.file.file_name) for entry in entries_of(table)]
    assert not any(b"C:\\Files" in path.read_bytes() for path in files)
    with pytest.raises(KeyMissingError, match="pii"):
        Catalog(lake.catalog.warehouse).load_table(str(table.identifier)).read(strict=True)
    # Shuffle files of this session are not encrypted.
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 500)
    rewrite = order_engine.rewrite_by_spark
    monkeypatch.setattr(order_engine, "rewrite_by_spark", None)
    compact(lake, table, "zorder", "a,id", order_engine="auto")
    assert content(table) == before
    monkeypatch.setattr(order_engine, "rewrite_by_spark", rewrite)
    monkeypatch.setattr(compact_module, "ordered_rows", None)
    monkeypatch.setattr(order_engine, "_encrypts_shuffles", lambda context: True)
    compact(lake, table, "zorder", "a,id", order_engine="auto")
    assert content(table) == before


def test_values_of_all_types_stay(lake: Lake, database: str) -> None:
    name = f"{database}.types"
    lake.sql(
        f"""CREATE TABLE lake.{name} (id BIGINT, v STRING, d DECIMAL(20, 3), f FLOAT, g DOUBLE,
        bin BINARY, day DATE, t TIMESTAMP, n TIMESTAMP_NTZ, s STRUCT<x: INT, `y z`: ARRAY<STRING>>,
        m MAP<STRING, DATE>, `lockgate_order` INT, `w.x` BOOLEAN)"""
    )
    table = lake.catalog.load_table(name)
    nan = float("nan")
    for first in (0, 100):
        values = [
            {
                "id": n,
                "v": "é" * (n % 9),
                "d": Decimal(n) / 8,
                "f": -0.0 if n % 3 else nan,
                "g": nan if n % 3 else -0.0,
                "bin": bytes([n, 255, 0]),
                "day": dt.date(1500, 1, 1) + dt.timedelta(days=n * 999),
                "t": dt.datetime(1900, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=n * 10**11 + 1),
                "n": dt.datetime(2026, 1, 1, 0, 0, 0, n),
                "s": None if n % 7 == 0 else {"x": n, "y z": None if n % 5 == 0 else ["a", None]},
                "m": [("k", dt.date(2026, 1, 1))] if n % 2 else [],
                "lockgate_order": n,
                "w.x": n % 2 == 0,
            }
            for n in range(first, first + 100)
        ]
        table.append(pa.Table.from_pylist(values, schema=table.schema.arrow_schema))
    before = str(content(table).to_pylist())
    for by in ("t,day,d", "w.x,bin,n", "f,g,v"):
        compact(lake, table, "hilbert", by)
        assert str(content(table).to_pylist()) == before
    compact(lake, table, "order", "w.x,t")
    assert str(content(table).to_pylist()) == before
    found = [(row["w.x"], row["t"]) for row in table.read().to_pylist()]
    assert found == sorted(found)


def test_the_ui_names_the_table_and_the_step(lake: Lake, make: Make) -> None:
    table = make()
    compact(lake, table)
    context: Any = lake.spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    described = [jobs.apply(n).description() for n in range(jobs.size())]
    found = {each.get() for each in described if each.isDefined()}
    prefix = f"compact {table.identifier}: order of a, b, "
    assert f"{prefix}sample of the rows" in found
    assert any(each.startswith(f"{prefix}{COUNT} rows in ") for each in found)


def test_tasks_make_the_segments_of_the_index(
    lake: Lake, make: Make, made: dict[str, bytes], read_again: list[list[str]]
) -> None:
    table = make(options={"index.values.columns": "b"})
    made.clear()
    read_again.clear()
    compact(lake, table, "order", "a")
    assert set(made) == {entry.file.file_name for entry in entries_of(table)}
    assert not any(read_again)
    found = table.scan(col("b") == "C:\\Files\\044")
    assert sum(len(split.files) for split in found.splits) < len(entries_of(table))
    assert found.report.steps[-1].after.rows < COUNT


@pytest.mark.parametrize(("kind", "value"), [("TIMESTAMP(9)", 1), ("CHAR(4)", "ab"), ("VARCHAR(2)", "abc")])
def test_what_spark_does_not_hold_is_refused(lake: Lake, database: str, kind: str, value: Any) -> None:
    fields = (DataField(0, "id", BIGINT), DataField(1, "v", parse_type(kind)))
    table = lake.catalog.create_table(f"{database}.kept", Schema(fields))
    values = pa.table({"id": [1], "v": [value]}, schema=table.schema.arrow_schema)
    # Other engines store texts of any length.
    table.commit(write_files(table, values, stored=True))
    with pytest.raises(Exception, match=f"Spark cannot order the rows .* column 'v' is {re.escape(kind)}"):
        compact(lake, table, "order", "id")
    assert compact(lake, table, "order", "id", order_engine="auto").snapshot_id == 2
    assert table.read() == values


def test_nobody_else_has_a_handle(lake: Lake, make: Make) -> None:
    table = make(parts=[rows(0, 10)])
    name = f"lake.{table.identifier}"
    with pytest.raises(Exception, match=r"lockgate\.rewrite.* names no rewrite"):
        lake.spark.read.option("lockgate.rewrite", "x").table(name).collect()
    with pytest.raises(Exception, match=r"lockgate\.rewrite.* names no rewrite"):
        lake.spark.table(name).writeTo(name).option("lockgate.rewrite", "x").append()


def test_executors_need_no_lockgate() -> None:
    from pyspark import cloudpickle

    from lockgate.procedures.builtin.compact import ordered_by_spark

    found = pa.table({"a": np.arange(100), "b": np.arange(100)[::-1]})
    order = order_module.RowOrder("hilbert", ("a", "b"))
    starts = Sample(found, hilbert).starts(4)
    place = ordered_by_spark.placement(found, order, starts)
    code = (
        "import sys, pickle, pyarrow as pa\n"
        "sys.modules['lockgate'] = None\n"
        "place = pickle.load(sys.stdin.buffer)\n"
        "struct = pa.StructArray.from_arrays([pa.array([1, 99]), pa.array([1, 99])], ['a', 'b'])\n"
        "print([each.to_pylist() for each in place(iter([struct]))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=cloudpickle.dumps(place), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"'range': " in done.stdout
