"""System tables of data files: only columns that are asked for are made, and each says what its file does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError
from lockgate.framework.store import Catalog, CommitMessage, DataFileMeta, Schema, Table
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeType, DropColumn, RenameColumn
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.system.file_sums import FileSums, shown_files, sums_by, total_of
from lockgate.framework.store.system.system_tables import METADATA_TABLES
from lockgate.framework.types import BIGINT, STRING
from lockgate.pushdown import col

MakeTable = Callable[..., Table]


def make_file(number: int, **more: Any) -> DataFileMeta:
    """Return the description of a file that is not there."""
    return DataFileMeta(f"data-{number:04}.orc", 10 * number, number, **more)


@pytest.fixture
def evolved(catalog: Catalog, make_table: MakeTable) -> Table:
    """A table whose files have statistics of several schemas, of some columns, and of none."""
    make_table()
    columns = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.int32()), ("d", pa.int32())])
    table = catalog.create_table("db.evolved", Schema.from_arrow(columns))
    whole = SimpleStats((1, "k", None, 7), (2, "z", None, 9), (0, 0, 1, None))
    files = [
        make_file(1, value_stats=whole, value_stats_cols=None),
        make_file(2, value_stats=SimpleStats(("k",), ("m",), (3,)), value_stats_cols=("b",)),
        make_file(3),
    ]
    table.commit([CommitMessage((), 0, -1, tuple(files), ())])
    changes = [
        ChangeType(("a",), BIGINT),
        RenameColumn(("b",), "z"),
        DropColumn(("c",)),
        AddColumn(("e",), STRING),
    ]
    table = catalog.alter_table("db.evolved", changes)
    late = SimpleStats((5, "x", 1, "q"), (6, "y", 2, "r"), (0, 0, 0, 4))
    table.commit(
        [CommitMessage((), 0, -1, (make_file(4, value_stats=late, value_stats_cols=None, schema_id=1),), ())]
    )
    return catalog.load_table("db.evolved")


@pytest.mark.parametrize("rows", [1, 2, 4096])
def test_statistics_are_those_of_the_present_columns(
    evolved: Table, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr("lockgate.framework.store.system.row_batches.BATCH_ROWS", rows)
    found = evolved.system("files")
    assert found["null_value_counts"].to_pylist() == [
        "{a=0, d=null, e=1, z=0}",
        "{a=null, d=null, e=2, z=3}",
        "{a=null, d=null, e=3, z=null}",
        "{a=0, d=0, e=4, z=0}",
    ]
    assert found["min_value_stats"].to_pylist() == [
        "{a=1, d=7, e=null, z=k}",
        "{a=null, d=null, e=null, z=k}",
        "{a=null, d=null, e=null, z=null}",
        "{a=5, d=1, e=q, z=x}",
    ]
    assert found["max_value_stats"].to_pylist() == [
        "{a=2, d=9, e=null, z=z}",
        "{a=null, d=null, e=null, z=m}",
        "{a=null, d=null, e=null, z=null}",
        "{a=6, d=2, e=r, z=y}",
    ]
    # Nothing that is decoded for this stays with the manifests.
    snapshot = evolved.latest_snapshot()
    kept = [entry.file.value_stats.__dict__ for entry in evolved.manifests.live_files(snapshot)]
    assert not any("min" in each for each in kept if "_encoded" in each)


def test_columns_that_nobody_asks_for_are_not_made(evolved: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    every = evolved.system("files")
    monkeypatch.delattr("lockgate.framework.store.system.file_columns.StatisticsTexts.texts")
    with pytest.raises(AttributeError):
        evolved.system("files")
    some = ["level", "file_path", "level"]
    assert evolved.system("files", columns=some).equals(every.select(["level", "file_path"]))
    assert evolved.system("files", columns=[]).num_rows == 4


@pytest.mark.parametrize("name", sorted(METADATA_TABLES))
def test_each_column_alone_is_that_of_all(evolved: Table, name: str) -> None:
    every = evolved.system(name)
    for column in every.column_names:
        assert evolved.system(name, columns=[column]).equals(every.select([column])), column
    assert evolved.system(name, columns=[]).num_rows == every.num_rows


def test_what_is_refused(evolved: Table) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"\$files of table db\.evolved.*mean 'file_path'"):
        evolved.system("files", columns=["file_paths"])
    for wishes in ({"predicate": col("level") == 0}, {"limit": 1}):
        with pytest.raises(InputError, match="name columns, and a snapshot or a tag alone"):
            evolved.system("files", ReadRequest(**wishes))  # type: ignore[arg-type]  # keywords of several types


def test_counts_are_those_of_each_file_by_itself(catalog: Catalog, make_table: MakeTable) -> None:
    make_table()
    chosen = random.Random(5)
    columns = pa.schema([("p", pa.string()), ("v", pa.int64())])
    table = catalog.create_table("db.parts", Schema.from_arrow(columns, partition_keys=("p",)))
    expected: dict[tuple[Any, ...], list[Any]] = {}
    for number in range(60):
        partition, bucket = chosen.choice([("a",), ("b",), (None,), ("",)]), chosen.choice([-2, 0, 1, 7])
        time = chosen.choice([None, 5, 10, 1_700_000_000_000 + number])
        file = make_file(number, creation_time_millis=time)
        table.commit([CommitMessage(partition, bucket, -1, (file,), ())])
        found = expected.setdefault((partition, bucket), [0, 0, 0, None])
        found[:3] = found[0] + number, found[1] + 10 * number, found[2] + 1
        found[3] = found[3] if time is None else max(time, found[3] or 0)
    snapshot = table.latest_snapshot()
    sums = {key: FileSums(*values) for key, values in expected.items()}
    assert sums_by(*shown_files(table, snapshot, waiting=True), bucket=True) == sums
    shown = [values for (_, bucket), values in expected.items() if bucket >= 0]
    total = FileSums(
        *(sum(each[at] for each in shown) for at in range(3)), max(each[3] or 0 for each in shown)
    )
    assert total_of(*shown_files(table, snapshot)) == total
    by_partition = sums_by(*shown_files(table, snapshot), bucket=False)
    assert sum(each.files for each in by_partition.values()) == total.files
    assert sums_by(*shown_files(table, None), bucket=False) == {}
    assert total_of(*shown_files(table, None)) == FileSums()
