"""Tables with file indexes: what is written, what scans leave out, and that no row is lost."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import ColumnNotFoundError, CorruptFileError, OptionError
from lockgate.framework.index.rewrite_file_index import RewriteFileIndex
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, CommitMessage, Schema, Table
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
)
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Predicate, all_of, any_of, col
from lockgate.pushdown.index.container import read_container

ALL = {
    "file-index.bloom-filter.columns": "host",
    "file-index.bitmap.columns": "host,size",
    "file-index.range-bitmap.columns": "size,at",
}
EMBEDDED = {"file-index.in-manifest-threshold": "1 mb"}
BESIDE = {"file-index.in-manifest-threshold": "0"}
COLUMNS = [("id", pa.int64()), ("host", pa.string()), ("size", pa.float64()), ("at", pa.timestamp("us"))]
# Hosts in no order, so that statistics leave nothing out.
HOSTS = ["a", "m", "z"]


def make(catalog: Catalog, options: dict[str, str], columns: Any = None, **more: Any) -> Table:
    schema = pa.schema(columns or COLUMNS)
    return catalog.create_table("db.t", Schema.from_arrow(schema, options=options, **more))


def rows(number: int, count: int = 30) -> pa.Table:
    """Rows with a host of their own, between those that all files have."""
    numbers = range(number * count, (number + 1) * count)
    hosts = [*HOSTS, f"host-{number}"]
    return pa.table(
        {
            "id": list(numbers),
            "host": [None if n % 7 == 6 else hosts[n % 4] for n in numbers],
            "size": [float(n % 5) if n % 6 else math.nan for n in numbers],
            "at": pa.array([n * 1000 for n in numbers], pa.timestamp("us")),
        }
    )


def fill(table: Table, files: int = 5) -> None:
    for number in range(files):
        table.append(rows(number))


def plan(table: Table, predicate: Predicate) -> ScanPlan:
    return plan_scan(table, ReadRequest(predicate=predicate))


def files(table: Table) -> list[DataFileMeta]:
    return [entry.file for entry in table.manifests.live_files(table.latest_snapshot())]


def ids(table: Table, predicate: Predicate | None = None) -> list[int]:
    return sorted(table.read(predicate=predicate, columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("place", [EMBEDDED, BESIDE])
def test_file_indexes_skip_files(catalog: Catalog, place: dict[str, str]) -> None:
    table = make(catalog, ALL | place)
    fill(table)
    assert all((file.embedded_index is not None) is (place is EMBEDDED) for file in files(table))
    assert all(bool(file.extra_files) is (place is BESIDE) for file in files(table))
    found = plan(table, col("host") == "host-3")
    assert [step.name for step in found.report.steps] == ["snapshot", "statistics", "file_index"]
    assert [step.after.files for step in found.report.steps] == [5, 5, 1]
    assert ids(table, col("host") == "host-3") == [n for n in range(90, 120) if n % 4 == 3 and n % 7 != 6]
    absent = plan(table, col("host").isin(["hosts", "host-33"]))
    assert absent.splits == ()
    either = plan(table, (col("host") == "host-1") | (col("host") == "host-2"))
    assert sum(len(split.files) for split in either.splits) == 2
    table = catalog.alter_table("db.t", [SetOption("file-index.read.enabled", "false")])
    assert [step.name for step in plan(table, col("host") == "host-3").report.steps] == [
        "snapshot",
        "statistics",
    ]
    assert len(ids(table, col("host") == "host-3")) == 7


def test_only_rows_that_may_match_are_decoded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file with several stripes those without a row of the bitmap are not read."""
    from lockgate.framework.orc import EncryptedOrcFile

    table = make(catalog, ALL | EMBEDDED | {"target-file-size": "1 mb"})
    count = 400_000
    hosts = ["common"] * count
    hosts[5] = "rare"
    shuffled = random.Random(1).choices(range(10**9), k=count)
    table.append(
        pa.table(
            {"id": shuffled, "host": hosts, "size": [0.5] * count, "at": rows(0, 1)["at"].take([0] * count)}
        )
    )
    stripes = []
    original = EncryptedOrcFile.iter_batches

    def noted(self: EncryptedOrcFile, **asked: Any) -> Any:
        stripes.append((self.num_stripes, asked.get("stripes")))
        return original(self, **asked)

    monkeypatch.setattr(EncryptedOrcFile, "iter_batches", noted)
    assert ids(table, col("host") == "rare") == [shuffled[5]]
    ((held, read),) = stripes
    assert held > len(read) == 1


def test_files_of_other_writers_are_indexed(catalog: Catalog) -> None:
    """Files that come without an index, as Spark's tasks write them, get theirs in the commit."""
    table = make(catalog, ALL | EMBEDDED)
    (message,) = table.write(rows(0))
    bare = [dataclasses.replace(file, embedded_index=None) for file in message.added]
    indexed = message.added[0].embedded_index
    again = CommitMessage.from_json(message.to_json(table.schema), table.schema)
    assert again.added[0].embedded_index == indexed
    table.commit([dataclasses.replace(message, added=tuple(bare))])
    assert [file.embedded_index for file in files(table)] == [indexed]


def test_renamed_and_added_again(catalog: Catalog) -> None:
    """An index is found by the column's id, whatever it was called; a new column has none in old files."""
    table = make(catalog, ALL | EMBEDDED)
    fill(table, 3)
    changes = [*(RemoveOption(key) for key in ALL), RenameColumn(("host",), "name")]
    table = catalog.alter_table("db.t", [*changes, SetOption("file-index.bitmap.columns", "name")])
    table.append(rows(3).rename_columns(["id", "name", "size", "at"]))
    assert [step.after.files for step in plan(table, col("name") == "host-1").report.steps] == [4, 4, 1]
    assert len(ids(table, col("name") == "host-1")) > 0
    table = catalog.alter_table("db.t", [DropColumn(("name",)), AddColumn(("name",), STRING)])
    assert ids(table, col("name") == "host-1") == []
    assert len(ids(table, col("name").is_null())) == 120


def test_key_tables(catalog: Catalog) -> None:
    """A file that alone would be left out stays where it may hold the newest row of a key."""
    table = make(catalog, ALL | EMBEDDED, primary_keys=["id"])
    table.append(pa.table({"id": [1, 2], "host": ["old", "b"], "size": [1.0, 2.0], "at": rows(0, 2)["at"]}))
    table.append(pa.table({"id": [1], "host": ["new"], "size": [1.0], "at": rows(0, 1)["at"]}))
    assert ids(table, col("host") == "old") == []
    assert ids(table, col("host") == "new") == [1]


def test_keys_of_maps(catalog: Catalog) -> None:
    """An index of a map's key is written as one of the column `m[key]`."""
    columns = [("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int32()))]
    options = {"file-index.bitmap.columns": "m[a],m[b]", "file-index.bitmap.m.version": "1", **EMBEDDED}
    table = make(catalog, options, columns)
    table.append(
        pa.table({"id": [1, 2, 3], "m": [[("a", 1)], None, [("a", 2), ("c", 3)]]}, pa.schema(columns))
    )
    (file,) = files(table)
    assert file.embedded_index is not None
    assert sorted(read_container(file.embedded_index, "i")) == ["m[a]", "m[b]"]
    assert ids(table, col("id") > 1) == [2, 3]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"file-index.blom-filter.columns": "host"}, OptionError, "bloom-filter"),
        ({"file-index.bitmap.columns": "hots"}, ColumnNotFoundError, "host"),
        ({"file-index.bitmap.columns": "host[a]"}, OptionError, "not a MAP"),
        ({"file-index.bloom-filter.columns": "flag"}, OptionError, "BOOLEAN"),
        ({"file-index.bitmap.columns": "day"}, OptionError, "partition column"),
        ({"file-index.bitmap.host.version": "1"}, OptionError, "lacks 'host'"),
        (
            {"file-index.bitmap.columns": "host", "file-index.bitmap.host.versoin": "1"},
            OptionError,
            "version",
        ),
        ({"file-index.bitmap.columns": "host", "file-index.bitmap.host.version": "3"}, OptionError, "1 or 2"),
        (
            {"file-index.bloom-filter.columns": "host", "file-index.bloom-filter.host.fpp": "1"},
            OptionError,
            "0 and 1",
        ),
        ({"file-index.bitmap.columns": "host", "orc.encrypt": "pii:host"}, OptionError, "encrypted"),
        ({"file-index.in-manifest-threshhold": "1 kb"}, OptionError, "leave it out"),
    ],
)
def test_options_of_file_indexes_that_are_refused(
    catalog: Catalog, tmp_path: Any, options: dict[str, str], error: type[Exception], text: str
) -> None:
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    columns = [("host", pa.string()), ("flag", pa.bool_()), ("day", pa.date32())]
    with pytest.raises(error, match=text):
        make(catalog, options, columns, partition_keys=["day"])


def test_a_truncated_index_is_reported_as_damage(catalog: Catalog) -> None:
    table = make(catalog, ALL | EMBEDDED)
    (message,) = table.write(rows(0))
    (file,) = message.added
    cut = dataclasses.replace(file, embedded_index=(file.embedded_index or b"")[:40])
    table.commit([dataclasses.replace(message, added=(cut,))])
    with pytest.raises(CorruptFileError, match=file.file_name):
        ids(table, col("host") == "a")
    assert len(ids(table)) == 30, "without a filter nobody asks"


def test_a_rewrite_gives_old_files_their_indexes(catalog: Catalog) -> None:
    table = make(catalog, {})
    fill(table, 3)
    call = RewriteFileIndex()
    context = ProcedureContext(catalog=catalog)
    wanted = {"file-index.bitmap.columns": "host", **BESIDE}
    table = catalog.alter_table("db.t", [SetOption(key, value) for key, value in wanted.items()])
    assert call.call(context, table="db.t", where=None, dry_run=True) == [(3, 3, 0)]
    assert not any(file.extra_files for file in files(table))
    assert call.call(context, table="db.t", where=None, dry_run=False) == [(3, 3, 0)]
    before = [file.extra_files for file in files(table)]
    assert all(len(names) == 1 for names in before)
    assert [step.after.files for step in plan(table, col("host") == "host-1").report.steps] == [3, 3, 1]
    assert call.call(context, table="db.t", where=None, dry_run=False) == [(0, 0, 0)]
    table = catalog.alter_table("db.t", [SetOption("file-index.bloom-filter.columns", "host")])
    assert call.call(context, table="db.t", where=None, dry_run=False) == [(3, 6, 0)]
    assert all(names[0].endswith("-1.index") for names in (file.extra_files for file in files(table)))
    assert len(ids(table)) == 90


def test_system_table(catalog: Catalog) -> None:
    from lockgate.framework.index.file_indexes_table import FileIndexTable

    table = make(catalog, ALL | BESIDE)
    fill(table, 2)
    found = FileIndexTable().rows(None, table, {}, {}).to_pylist()  # type: ignore[arg-type]  # it asks nothing of its context
    assert len(found) == 10
    assert {row["index_file"] for row in found} == {
        name for file in files(table) for name in file.extra_files
    }
    assert {(row["column_name"], row["index_type"]) for row in found} == {
        ("host", "bloom-filter"),
        ("host", "bitmap"),
        ("size", "bitmap"),
        ("size", "range-bitmap"),
        ("at", "range-bitmap"),
    }


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    hosts = st.sampled_from([*HOSTS, "host-0", "host-1", "none", "", None])
    sizes = st.sampled_from([0.0, -0.0, 1.0, 2.5, math.nan, math.inf, None, 3])
    leaf = st.builds(lambda value: col("host") == value, hosts)
    leaf |= st.builds(lambda values: col("host").isin(values), st.lists(hosts, max_size=3))
    leaf |= st.builds(lambda value: col("size") < value, sizes) | st.builds(
        lambda value: col("size") >= value, sizes
    )
    leaf |= st.builds(lambda value: col("size") != value, sizes) | st.builds(
        lambda value: col("id") > value, st.integers(0, 90)
    )
    leaf |= st.sampled_from(
        [col("host").is_null(), col("size").is_not_null(), col("host").starts_with("host-")]
    )
    tree = st.recursive(
        leaf,
        lambda inner: (
            st.builds(lambda one: ~one, inner)
            | st.builds(all_of, inner, inner)
            | st.builds(any_of, inner, inner)
        ),
        max_leaves=4,
    )
    return draw(tree)


@pytest.fixture(scope="module")
def two_tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Table]:
    """The same rows with indexes and without; some rows deleted, one file of a schema before a rename."""
    made = []
    for options in (ALL | EMBEDDED, {}):
        catalog = Catalog(tmp_path_factory.mktemp("lake"))
        catalog.create_namespace("db")
        table = make(catalog, options | {"deletion-vectors.enabled": "true"})
        fill(table, 3)
        table.delete(col("id").isin([3, 7, 50]))
        made.append(table)
    return made[0], made[1]


@settings(max_examples=examples(60), deadline=None)
@given(predicates())
def test_an_indexed_scan_equals_a_full_scan(two_tables: tuple[Table, Table], predicate: Predicate) -> None:
    indexed, bare = two_tables
    assert ids(indexed, predicate) == ids(bare, predicate)
