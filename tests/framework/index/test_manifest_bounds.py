"""Bounds of columns in whole manifests: scans open only those that may list a match."""

from __future__ import annotations

import datetime
import json
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_table import call

from lockgate.errors import OptionError
from lockgate.framework.index.database import manifest_bounds
from lockgate.framework.index.database.bounds import FILE_KIND, bounds_told
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.index.database.segments import KIND, segment_entries
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeType,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
)
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.store.scan.request import ReadRequest
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.framework.types import parse_type
from lockgate.procedures import ProcedureContext
from lockgate.procedures import call as call_procedure
from lockgate.pushdown import Predicate, all_of, any_of, col, to_arrow_expression

OPTIONS = {"index.bounds.columns": "at,size,name", "manifest.merge-min-count": "100"}
COLUMNS = pa.schema(
    [("at", pa.timestamp("us")), ("size", pa.int32()), ("name", pa.string()), ("day", pa.int32())]
)
START = datetime.datetime(2026, 1, 1)


def rows(number: int, count: int = 5) -> pa.Table:
    numbers = [number * count + each for each in range(count)]
    return pa.table(
        {
            "at": [START + datetime.timedelta(hours=each) for each in numbers],
            "size": pa.array([None if each % 4 == 3 else each for each in numbers], pa.int32()),
            "name": [f"name-{each:04}" for each in numbers],
            "day": pa.array([number % 3] * count, pa.int32()),
        },
        schema=COLUMNS,
    )


def make(catalog: Catalog, options: dict[str, str] | None = None, **more: Any) -> Table:
    given = OPTIONS if options is None else options
    return catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=given, **more))


def fill(table: Table, commits: int) -> None:
    for number in range(commits):
        table.append(rows(number))


def plan(table: Table, predicate: Predicate, **more: Any) -> ScanPlan:
    return plan_scan(table, ReadRequest(predicate=predicate, **more))


def opened(table: Table, predicate: Predicate, **more: Any) -> int:
    """The manifests that a plan opens, as its report says."""
    report = plan(table, predicate, **more).report
    if report.steps[0].name != "manifests":
        return report.manifests
    return int(report.steps[0].by.rpartition("(")[2].split()[0])


def check(table: Table, predicate: Predicate) -> None:
    every = table.read()
    wanted = every.filter(to_arrow_expression(predicate, every.schema))
    found = table.read(predicate=predicate)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of manifests that are parsed, none of which is kept."""
    names: list[str] = []
    parsed = manifest_files.ManifestFiles._parsed

    def spied(self: Any, name: str, *more: Any) -> Any:
        names.append(name)
        return parsed(self, name, *more)

    monkeypatch.setattr(manifest_files.ManifestFiles, "_parsed", spied)
    for cache in ("_manifests", "_snapshots"):
        monkeypatch.setattr(manifest_files, cache, manifest_files.ParsedCache(0))
    return names


def test_only_manifests_that_may_match_are_opened(catalog: Catalog, reads: list[str]) -> None:
    table = make(catalog)
    fill(table, 12)
    for predicate in (
        col("at") == START + datetime.timedelta(hours=32),
        (col("size") >= 30) & (col("size") < 35),
        col("size").isin([31, 500]),
        col("name") == "name-0032",
        any_of(col("size") == 32, col("name") == "name-0034"),
    ):
        reads.clear()
        planned = plan(table, predicate)
        assert sum(name.startswith("manifest-") and "list" not in name for name in reads) == 1
        assert sum(len(split.files) for split in planned.splits) == 1
        assert opened(table, predicate) == 1
        check(table, predicate)
    assert opened(table, col("size") < 0) == 0
    assert opened(table, col("size").is_null()) == 12
    assert opened(table, any_of(col("size") == 1, col("day") == 1)) == 12
    assert opened(table, ~(col("size") == 1)) == 12
    assert table.read(predicate=col("size") < 0).num_rows == 0


def test_the_report_counts_what_was_not_opened(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    whole = plan(table, col("size").is_not_null()).report.total
    report = plan(table, col("size") == 11).report
    assert report.steps[0].name == "manifests"
    assert report.total == whole
    assert (report.total.files, report.total.partitions, report.total.rows) == (6, 3, 30)
    assert (report.steps[0].after.files, report.kept.files) == (1, 1)
    assert "(1 of 6 opened)" in str(report)


def test_partition_columns_are_judged_with_the_others(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    assert opened(table, col("day") == 1) == 2
    assert opened(table, all_of(col("day") == 1, col("size") < 15)) == 1
    assert opened(table, any_of(all_of(col("day") == 1, col("size") < 15), col("size") == 25)) == 2
    assert opened(table, col("day").is_null()) == 0
    check(table, all_of(col("day") == 1, col("size") < 15))


def test_merged_manifests_are_known_at_once(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "manifest.merge-min-count": "4"})
    fill(table, 12)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    told = bounds_told(table, snapshot.index_manifest)
    assert told is not None
    assert {each.name for each in told.manifests} == {
        meta.file_name for meta in table.manifests.manifests(snapshot)
    }
    call_procedure(ProcedureContext(catalog), "compact_manifest", table="db.t")
    assert opened(table, col("size") > 1000) == 0
    check(table, col("size") == 8)


def test_deletions_are_always_seen(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    table.overwrite(rows(9), partition={"day": 0})
    fill(table, 3)
    where = "day = 1"
    call_procedure(
        ProcedureContext(catalog), "compact", "db.t", order_strategy="order", order_by="at", where=where
    )
    table.append(rows(12))
    assert opened(table, col("size") == 6) < table_manifests(table)
    for value in (0, 2, 6, 12, 13, 46):
        check(table, col("size") == value)
        check(table, col("name") == f"name-{value:04}")
    whole, part = plan(table, col("at").is_not_null()).report, plan(table, col("size") == 6).report
    assert part.total == whole.total


def test_deletion_vectors(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "deletion-vectors.enabled": "true"})
    fill(table, 4)
    table.delete(col("size") == 12)
    assert opened(table, col("size") == 1) == 1
    for value in (1, 12, 13):
        check(table, col("size") == value)
    whole, part = plan(table, col("at").is_not_null()).report, plan(table, col("size") == 1).report
    assert part.total == whole.total


def table_manifests(table: Table) -> int:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return len(table.manifests.manifests(snapshot))


def test_tables_with_keys_open_all(catalog: Catalog) -> None:
    table = make(catalog, primary_keys=["name"])
    fill(table, 3)
    table.append(rows(0).set_column(1, "size", pa.array([900] * 5, pa.int32())))
    assert opened(table, col("size") == 1) == 4
    check(table, col("size") == 1)


def test_files_of_other_engines_are_read_until_they_are_known(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    plain = catalog.alter_table("db.t", [SetOption("index.write.enabled", "false")])
    plain.append(rows(3))
    plain.append(rows(4))
    assert opened(plain, col("size") == 1) == 3
    check(plain, col("size") == 16)
    table = catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    assert call(BuildIndex(), catalog) == (0, 5, 0, 0)
    assert opened(table, col("size") == 1) == 1
    assert call(BuildIndex(), catalog) == (0, 5, 0, 0)
    check(table, col("size") == 16)


def test_a_table_that_gets_the_option_later(catalog: Catalog) -> None:
    table = make(catalog, {"manifest.merge-min-count": "100"})
    fill(table, 4)
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "auto")])
    assert opened(table, col("size") == 1) == 4
    table.append(rows(4))
    assert opened(table, col("size") == 1) == 1
    assert opened(table, col("name") == "name-0001") == 5, "auto takes no texts"
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "auto,name")])
    call(BuildIndex(), catalog)
    assert opened(table, col("name") == "name-0001") == 1


def test_columns_are_found_by_their_ids(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    changes = [
        RenameColumn(("size",), "bytes"),
        ChangeType(("bytes",), parse_type("BIGINT")),
        DropColumn(("name",)),
        AddColumn(("size",), parse_type("INT")),
        AddColumn(("name",), parse_type("STRING")),
        SetOption("index.bounds.columns", "at,bytes,name,size"),
    ]
    table = catalog.alter_table("db.t", changes)
    assert opened(table, col("bytes") == 6) == 1
    assert opened(table, col("name") == "name-0001") == 3, "the old column's bounds are not the new one's"
    assert table.read(predicate=col("size").is_null()).num_rows == 15
    assert table.read(predicate=col("name").is_null()).num_rows == 15
    new = pa.table(
        {
            "at": [START],
            "bytes": pa.array([2**40], pa.int64()),
            "day": pa.array([0], pa.int32()),
            "size": pa.array([1], pa.int32()),
            "name": ["new"],
        },
        schema=table.schema.arrow_schema,
    )
    table.append(new)
    assert opened(table, col("bytes") == 2**40) == 1
    assert opened(table, col("name") == "new") == 1, "files without the column hold nulls alone"
    for predicate in (col("bytes") == 2**40, col("name") == "new", col("size").is_null(), col("bytes") == 6):
        check(table, predicate)
    assert plan(table, col("size") == 6, snapshot_id=3).report.kept.files == 1


def test_old_snapshots_and_branches_have_their_own(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 5)
    assert opened(table, col("size") == 1, snapshot_id=3) == 1
    assert plan(table, col("size") == 21, snapshot_id=3).report.kept.files == 0
    table.create_branch("b", 3)
    branch = catalog.load_table("db.t$branch_b")
    branch.append(rows(9))
    assert opened(branch, col("size") == 46) == 1
    check(branch, col("size") == 46)
    table.rollback(snapshot_id=4)
    assert opened(table, col("size") == 1) == 1
    table.append(rows(7))
    check(table, col("size") == 36)
    check(table, col("size") == 21)


def test_an_option_that_is_gone_takes_its_bounds_along(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "index.values.columns": "name"})
    fill(table, 3)
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "at")])
    call(DropIndex(), catalog, columns=["size"])
    table.append(rows(3))
    assert opened(table, col("size") == 1) == 4
    assert opened(table, col("at") == START) == 1
    table = catalog.alter_table("db.t", [RemoveOption("index.bounds.columns")])
    call(DropIndex(), catalog)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert not segment_entries(table, snapshot.index_manifest, FILE_KIND)
    check(table, col("size") == 1)


def test_what_cannot_have_bounds_is_refused(catalog: Catalog) -> None:
    for name, kind in (("f", pa.float64()), ("b", pa.bool_()), ("n", pa.list_(pa.int32()))):
        schema = Schema.from_arrow(pa.schema([(name, kind)]), options={"index.bounds.columns": name})
        with pytest.raises(OptionError, match=r"index\.bounds\.columns"):
            catalog.create_table("db.t", schema)


def test_no_bounds_of_encrypted_columns(tmp_path: Path) -> None:
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    catalog = Catalog(tmp_path / "lake", keys=f"file:{tmp_path}/keys.json")
    catalog.create_namespace("db")
    secret = {"orc.encrypt": "pii:name", "orc.mask": "nullify:name"}
    with pytest.raises(OptionError, match="encrypted"):
        make(catalog, {**OPTIONS, **secret})
    table = make(catalog)
    fill(table, 3)
    changes = [SetOption(key, value) for key, value in secret.items()]
    with pytest.raises(OptionError, match="encrypted"):
        catalog.alter_table("db.t", changes)
    table = catalog.alter_table("db.t", [*changes, SetOption("index.bounds.columns", "auto,at")])
    assert opened(table, col("name") == "name-0001") == 3, "not even the old bounds are used"
    table.append(rows(3))
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (entry,) = segment_entries(table, snapshot.index_manifest, FILE_KIND)
    text = zlib.decompress(table.file_system.read_bytes(index_path(table, entry))[12:]).decode()
    assert "name-0" not in text
    assert opened(table, col("size") == 1) == 1
    assert opened(table, col("name") == "name-0001") == 4


# --- damage and lies -----------------------------------------------------------------------------


def bounds_file(table: Table) -> Path:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (entry,) = segment_entries(table, snapshot.index_manifest, FILE_KIND)
    return Path(index_path(table, entry))


def reloaded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Table:
    """The table without what this process has kept of its index."""
    from lockgate.framework.index.database import bounds, segments

    monkeypatch.setattr(bounds, "_known", segments.ImmutableCache(100_000))
    return catalog.load_table("db.t")


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "missing", "longer", "bomb"])
def test_damaged_bounds_are_reported_and_say_nothing(
    how: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(catalog)
    fill(table, 4)
    file = bounds_file(table)
    data = file.read_bytes()
    if how == "missing":
        file.unlink()
    elif how == "bomb":
        packed = zlib.compress(b"[" * 2**22)
        file.write_bytes(sealed(packed) + b"")
        monkeypatch.setattr("lockgate.pushdown.index.inflate.MOST_BYTES", 2**20)
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        file.write_bytes({"cut": data[:-5], "flipped": flipped, "empty": b"", "longer": data + b"x"}[how])
    table = reloaded(catalog, monkeypatch)
    assert opened(table, col("size") == 1) == 4
    assert "missing or damaged" in caplog.text
    check(table, col("size") == 1)
    table.append(rows(4))
    assert opened(table, col("size") == 1) == 1, "the next commit writes them again"


def sealed(packed: bytes) -> bytes:
    return manifest_bounds._HEAD.pack(manifest_bounds.MAGIC, zlib.crc32(packed)) + packed


def rewritten(table: Table, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put other words with a right checksum into the file, of the size that the manifest tells."""
    file = bounds_file(table)
    listing = json.loads(zlib.decompress(file.read_bytes()[12:]))
    change(listing)
    data = sealed(zlib.compress(json.dumps(listing).encode()))
    file.write_bytes(data)
    monkeypatch.setattr(
        "lockgate.framework.index.database.bounds._read",
        lambda table, entry: _read_any(table, entry),
    )


def _read_any(table: Table, entry: Any) -> Any:
    path = index_path(table, entry)
    try:
        return manifest_bounds.read_bounds(table.file_system.read_bytes(path), path)
    except manifest_bounds.CorruptFileError:
        return None


LIES: list[Any] = [
    lambda listing: listing["manifests"][0].__setitem__(0, "../../other/manifest-0"),
    lambda listing: listing["manifests"][0].__setitem__(1, 7),
    lambda listing: listing["manifests"][0].__setitem__(2, 5),
    lambda listing: listing["manifests"][0].__setitem__(5, [99]),
    lambda listing: listing["manifests"][0].__setitem__(5, [-1]),
    lambda listing: listing["manifests"][0].__setitem__(3, -4),
    lambda listing: listing["columns"][0]["extents"].pop(),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, ["a", "b", 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [2**70, 2**71, 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [5, 4, 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [True, True, 1]),
    lambda listing: listing["columns"][0].__setitem__("type", "NO TYPE"),
    lambda listing: listing["columns"][0].__setitem__("type", {"type": "ARRAY", "element": "INT"}),
    lambda listing: listing["columns"][0].__setitem__("field", "x"),
    lambda listing: listing.pop("places"),
    lambda listing: listing.__setitem__("manifests", {"a": 1}),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_words_that_no_writer_wrote_cost_nothing_but_reads(
    lie: int, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog)
    fill(table, 4)
    rewritten(table, LIES[lie], monkeypatch)
    for value in (1, 6, 12, 16):
        check(table, col("size") == value)
        check(table, col("at") == START + datetime.timedelta(hours=value))


# --- the property --------------------------------------------------------------------------------

VALUES = {
    "at": st.integers(-5, 80).map(lambda hours: START + datetime.timedelta(hours=hours)),
    "size": st.one_of(st.none(), st.integers(-3, 80)),
    "name": st.one_of(st.none(), st.integers(-3, 80).map(lambda n: f"name-{n:04}"), st.just("")),
    "day": st.one_of(st.none(), st.integers(-1, 4)),
}
LEAVES = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.one_of(
        VALUES[name].map(lambda value: col(name) == value),
        VALUES[name].map(lambda value: col(name).eq_null_safe(value)),
        VALUES[name].map(lambda value: col(name) != value),
        VALUES[name].map(lambda value: col(name) < value),
        VALUES[name].map(lambda value: col(name) >= value),
        st.lists(VALUES[name], max_size=4).map(lambda values: col(name).isin(values)),
        st.sampled_from([col(name).is_null(), col(name).is_not_null()]),
    )
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: all_of(*each)),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: any_of(*each)),
        inner.map(lambda each: ~each),
    ),
    max_leaves=4,
)
STEPS = (
    *("append", "append", "overwrite", "partition", "foreign", "rollback", "delete", "compact", "order"),
    *("build", "merge", "drop", "merge manifests", "again", "wider", "tag", "nulls", "damage"),
)


def step(catalog: Catalog, table: Table, name: str, number: int, rng: random.Random) -> Table:
    context = ProcedureContext(catalog)
    new = fitting(table, rows(number))
    if name == "append":
        table.append(new)
    elif name == "overwrite":
        table.overwrite(new)
    elif name == "partition" and table.schema.partition_keys:
        table.overwrite(new, partition={"day": number % 3})
    elif name == "foreign":
        plain = catalog.alter_table("db.t", [SetOption("index.write.enabled", "false")])
        plain.append(new)
        return catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    elif name == "rollback" and table.latest_snapshot() is not None:
        table.rollback(snapshot_id=rng.choice([each.id for each in table.snapshots()]))
    elif name == "delete" and table.schema.has_vectors:
        table.delete(col("size") < rng.randrange(60))
    elif name == "compact":
        call_procedure(context, "compact", table="db.t")
    elif name == "order":
        call_procedure(context, "compact", "db.t", order_strategy="order", order_by="name")
    elif name == "build":
        call(BuildIndex(), catalog)
    elif name == "merge":
        call(MergeIndex(), catalog)
    elif name == "drop":
        call(DropIndex(), catalog)
    elif name == "merge manifests":
        call_procedure(context, "compact_manifest", table="db.t")
    elif name == "again":
        return catalog.alter_table("db.t", [DropColumn(("size",)), AddColumn(("size",), parse_type("INT"))])
    elif name == "wider" and table.schema.field("size").type.kind.name == "INT":
        return catalog.alter_table("db.t", [ChangeType(("size",), parse_type("BIGINT"))])
    elif name == "tag" and table.latest_snapshot() is not None:
        table.create_tag(f"tag-{number}")
        table.overwrite(new)
        call_procedure(context, "rollback_to_as_latest", "db.t", tag=f"tag-{number}")
    elif name == "nulls":
        days = pa.array([1, 1, None], pa.int32())
        empty = {each.name: pa.nulls(3, each.type) for each in table.schema.arrow_schema}
        table.append(pa.table({**empty, "day": days}, schema=table.schema.arrow_schema))
    elif name == "damage" and (snapshot := table.latest_snapshot()) is not None:
        for kind in (FILE_KIND, KIND):
            for entry in segment_entries(table, snapshot.index_manifest, kind):
                file = Path(index_path(table, entry))
                if rng.random() < 0.3:
                    file.write_bytes(file.read_bytes()[:-1])
    return table


def fitting(table: Table, data: pa.Table) -> pa.Table:
    return data.select(table.schema.field_names).cast(table.schema.arrow_schema)


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), max_size=8), st.lists(PREDICATES, min_size=4, max_size=8), st.integers()
)
def test_what_is_read_is_full_scan_then_filter(
    steps: list[str], predicates: list[Predicate], seed: int
) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        options = {**OPTIONS, "manifest.merge-min-count": str(rng.choice([2, 3, 100]))}
        if rng.random() < 0.5:
            options["deletion-vectors.enabled"] = "true"
        if rng.random() < 0.5:
            options["index.values.columns"] = "size,name"
        table = make(catalog, options, **({"partition_keys": ["day"]} if rng.random() < 0.5 else {}))
        for number, name in enumerate(["append", "append", *steps]):
            table = step(catalog, table, name, number, rng)
        for predicate in predicates:
            check(table, predicate)
            total = plan(table, predicate).report.total
            whole = plan_scan(table, ReadRequest()).report.total
            assert (total.files, total.rows, total.bytes) == (whole.files, whole.rows, whole.bytes)
