"""The index database: segments in commits, what scans leave out by them, and that no row is lost."""

from __future__ import annotations

import struct
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from indexed_table import OPTIONS, call, check, fill, found, kept, make, plan, rows, segments

from lockgate.errors import ColumnNotFoundError, InputError, OptionError
from lockgate.framework.index.database import maintenance
from lockgate.framework.index.database.advice import IndexAdvice
from lockgate.framework.index.database.index_segments import opened
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.keys import create_key_file
from lockgate.framework.options.index_options import AUTO_SHARE
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    DropColumn,
    RemoveOption,
    RenameColumn,
    SetOption,
)
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.store.scan.matching_rows import MatchingRows
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import col
from lockgate.pushdown.index.merged_segments import merge_segments
from lockgate.pushdown.index.segment import segment_of

TEXT_KINDS = {("ngrams", "host"), ("words", "host")}
NAMES = ("id", "host", "size", "day")


def test_values_are_looked_up(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table)
    assert len(segments(table)) == 5
    assert kept(table, col("host") == "host-3") == 1
    assert kept(table, col("host").isin([f"nothing-{n}" for n in range(2000)])) == 0
    assert kept(table, col("host").isin([*(f"nothing-{n}" for n in range(2000)), "host-1", "host-2"])) == 2
    assert kept(table, (col("host") == "host-3") | (col("id") == 7919 % 1009)) == 2
    assert kept(table, ~(col("host") == "a")) == 5
    assert kept(table, ~(col("host") != "host-1") | ~(col("host") != "host-3")) == 2
    assert kept(table, col("host") == "host-3", snapshot_id=3) == 0
    (step,) = [each for each in plan(table, col("host") == "host-3").report.steps if each.name == "index"]
    assert (step.before.files, step.after.files) == (5, 1)
    assert step.by == "host = 'host-3' (5 segments)"


def test_an_overwrite_starts_new_segments_and_old_snapshots_keep_theirs(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    table.create_tag("old")
    table.overwrite(rows(8))
    assert len(segments(table)) == 1
    assert kept(table, col("host") == "host-8") == 1
    assert kept(table, col("host") == "host-1") == 0
    assert kept(table, col("host") == "host-1", tag="old") == 1
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=2**60)
    assert kept(table, col("host") == "host-1", tag="old") == 1
    table.delete_tag("old")
    there = list(Path(table.location, "index").iterdir())
    assert [each.name for each in there] == [entry.file_name for entry in segments(table)]


def test_a_commit_merges_many_small_segments(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "index.merge-at": "4"})
    fill(table, 9)
    assert [entry.row_count for entry in segments(table)] == [9] or len(segments(table)) <= 4
    assert sum(entry.row_count for entry in segments(table)) == 9
    for number in range(9):
        assert kept(table, col("host") == f"host-{number}") == 1


def test_tables_of_partitions(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    table.append(pa.concat_tables([rows(n) for n in range(3)]))
    table.append(rows(4))
    assert kept(table, col("host") == "host-2") == 1
    table.overwrite(rows(7), partition={"day": 1})
    assert kept(table, col("host") == "host-4") == 0
    assert kept(table, col("host") == "host-7") == 1
    assert len(segments(table)) == 2  # the one of both partitions stays
    check(table, col("host") == "a")


def test_files_without_a_segment_are_read_until_the_index_is_built(catalog: Catalog) -> None:
    table = make(catalog, {})
    fill(table, 3)
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "host")])
    table.append(rows(3))
    assert kept(table, col("host") == "host-1") == 4 - 1
    lacking, there, no_segments, expected = call(BuildIndex(), catalog, dry_run=True)
    assert (lacking, there, no_segments) == (3, 1, None)
    before = found(table)
    indexed, covered, added, size = call(BuildIndex(), catalog)
    assert (indexed, covered, added) == (3, 1, 1)
    assert size == expected  # all files were read for that
    assert kept(table, col("host") == "host-1") == 1
    assert found(table) == before
    assert call(BuildIndex(), catalog)[0] == 0
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "host,id")])
    assert call(BuildIndex(), catalog)[:2] == (4, 0)
    assert kept(table, col("id") == 7919 % 1009) == 1


def test_a_build_continues_after_a_killed_call(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, {**OPTIONS, "index.write.enabled": "false"})
    fill(table, 4)
    assert segments(table) == []
    monkeypatch.setattr(maintenance, "_BATCH_FILES", 1)
    commits = iter([None, None])
    commit = maintenance._commit

    def dies(*arguments: Any) -> Any:
        next(commits)
        return commit(*arguments)

    monkeypatch.setattr(maintenance, "_commit", dies)
    with pytest.raises((StopIteration, RuntimeError)):
        call(BuildIndex(), catalog)
    monkeypatch.setattr(maintenance, "_commit", commit)
    assert call(BuildIndex(), catalog)[:3] == (2, 2, 2)


def test_merging_drops_removed_files_and_columns(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    for number in range(6):
        table.append(rows(number))
    table.overwrite(rows(9), partition={"day": 0})
    table = catalog.alter_table("db.t", [RemoveOption("index.values.columns"), DropColumn(("size",))])
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "host,id")])
    before = found(table)
    removed, added, size, smaller, snapshot = call(MergeIndex(), catalog)
    assert (removed, added, snapshot) == (len(segments(table)) + removed - 1, 1, table.latest_snapshot().id)
    assert smaller < size
    (entry,) = segments(table)
    segment = opened(table, entry)
    assert segment is not None
    assert entry.row_count == len(segment.files.names) == 5
    assert {part.field for part in segment.parts} == {0, 1}
    assert found(table) == before
    assert kept(table, col("host") == "host-4") == 1
    assert call(MergeIndex(), catalog)[-1] is None


def test_dropping_columns_and_everything(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    assert call(DropIndex(), catalog, columns=["host"])[:2] == (3, 3)
    assert kept(table, col("host") == "host-1") == 3
    assert kept(table, col("id") == 7919 % 1009) == 1
    assert call(DropIndex(), catalog, dry_run=True)[:2] == (3, 0)
    assert call(DropIndex(), catalog)[:2] == (3, 0)
    assert segments(table) == []
    with pytest.raises(InputError, match="did you mean 'host'"):
        call(DropIndex(), catalog, columns=["hots"])


def test_concurrent_merges(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two merges of the same segments the later one is done again, and nothing is lost."""
    table = make(catalog)
    fill(table, 3)
    commit = maintenance._commit
    calls: list[Any] = []

    def late(*arguments: Any) -> Any:
        if not calls:
            calls.append(1)
            table.append(rows(3))
            call(MergeIndex(), catalog)
        return commit(*arguments)

    monkeypatch.setattr(maintenance, "_commit", late)
    call(MergeIndex(), catalog)
    assert sum(entry.row_count for entry in segments(table)) == 4
    for number in range(4):
        assert kept(table, col("host") == f"host-{number}") == 1


@pytest.mark.parametrize("harm", ["flipped", "cut", "missing", "body"])
def test_a_damaged_segment_is_reported_and_ignored(
    catalog: Catalog, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(catalog)
    fill(table, 2)
    path = Path(index_path(table, segments(table)[0]))
    data = bytearray(path.read_bytes())
    if harm == "missing":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(data[:-5])
    else:
        (directory,) = struct.unpack("<Q", data[-24:-16])
        first, end = (8, directory) if harm == "body" else (directory, len(data) - 24)
        data[first:end] = bytes(each ^ 255 for each in data[first:end])
        path.write_bytes(data)
    assert kept(table, col("host") == "host-1") == 2
    assert "scans ignore a missing or damaged segment of an index" in caplog.text
    check(table, col("host") == "a")
    (step,) = [each for each in plan(table, col("host") == "host-1").report.steps if each.name == "index"]
    assert step.by.endswith("(2 segments, 1 of them damaged)")
    table.append(rows(2))
    assert call(MergeIndex(), catalog)[:2] == (3, 1)
    assert call(BuildIndex(), catalog)[0] == 1
    assert kept(table, col("host") == "host-1") == 1


def test_columns_are_found_by_their_ids(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 3)
    table = catalog.alter_table(
        "db.t", [RemoveOption("index.values.columns"), RenameColumn(("host",), "machine")]
    )
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "machine")])
    assert kept(table, col("machine") == "host-1") == 1
    table = catalog.alter_table("db.t", [RemoveOption("index.values.columns"), DropColumn(("machine",))])
    table = catalog.alter_table("db.t", [AddColumn(("machine",), STRING)])
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "machine")])
    assert kept(table, col("machine") == "host-1") <= 3
    assert found(table, col("machine") == "host-1") == []
    assert call(BuildIndex(), catalog)[0] == 3
    assert kept(table, col("machine") == "host-1") == 0


def test_blocks_of_a_file(catalog: Catalog) -> None:
    """A large file is several places: rows of others are not read."""
    table = make(catalog, {**OPTIONS, "index.block-rows": "100"})
    numbers = list(range(1000))
    table.append(
        pa.table(
            {
                "id": pa.array([n * 7919 % 1009 for n in numbers], pa.int64()),
                "host": [f"h{n // 10}" for n in numbers],
                "size": [0.0] * 1000,
                "day": pa.array([0] * 1000, pa.int32()),
            }
        )
    )
    (split,) = plan(table, col("host") == "h55").splits
    (file,) = split.files
    chosen = MatchingRows(table, plan(table, col("host") == "h55")).of(split, file)
    assert chosen is not None
    assert list(chosen) == list(range(500, 600))
    check(table, col("host") == "h55")


def test_unsupported_columns_are_refused_for_indexes(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(ColumnNotFoundError, match="did you mean 'host'"):
        make(catalog, {"index.values.columns": "hots"})
    with pytest.raises(OptionError, match="did you mean 'values'"):
        make(catalog, {"index.value.columns": "host"})
    with pytest.raises(OptionError, match="partition column"):
        make(catalog, {"index.values.columns": "day"}, partition_keys=["day"])
    create_key_file(tmp_path / "keys.json", ["k"])
    secret = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    secret.create_namespace("db")
    with pytest.raises(OptionError, match="encrypted"):
        make(secret, {"index.values.columns": "host", "orc.encrypt": "k:host"})


def test_a_column_that_is_encrypted_later_leaves_the_segments(catalog: Catalog, tmp_path: Path) -> None:
    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    catalog = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    catalog.create_namespace("db")
    table = make(catalog, {"index.values.columns": "host"})
    fill(table, 2)
    assert len(segments(table)) == 2
    changes = [RemoveOption("index.values.columns"), SetOption("orc.encrypt", "pii:host")]
    table = catalog.alter_table("db.t", changes)
    table.append(rows(2))
    found = [opened(table, entry) for entry in segments(table)]
    assert not [part for segment in found if segment is not None for part in segment.parts]
    check(table, col("host") == "host-1")


def test_auto_drops_unselective_columns(catalog: Catalog) -> None:
    table = make(catalog, {"index.values.columns": "auto"})
    fill(table, 2)
    for entry in segments(table):
        segment = opened(table, entry)
        assert segment is not None
        fields = {part.field for part in segment.parts}
        assert 1 in fields  # host
        assert 0 not in fields  # id: every value another
        assert 2 not in fields  # size: no column that is searched by single values
    assert kept(table, col("host") == "host-1") == 1
    assert call(BuildIndex(), catalog)[0] == 0


def advice(catalog: Catalog, **arguments: Any) -> dict[tuple[str, str], tuple[Any, ...]]:
    given = {each.name: each.default for each in IndexAdvice.parameters} | {"table": "db.t"} | arguments
    found = IndexAdvice().call(ProcedureContext(catalog), **given)
    return {(kind, column): (*row,) for kind, column, *row in found}


@pytest.mark.parametrize(("share", "left"), [("0.5", {"host", "id"}), ("0.05", {"host"}), ("0.001", set())])
def test_auto_indexes_columns_up_to_a_share_of_distinct_values(
    catalog: Catalog, share: str, left: set[str]
) -> None:
    options = {"index.values.columns": "auto", "index.auto.max-distinct-share": share}
    table = make(catalog, options)
    many = rows(0, 300)
    table.append(many.set_column(0, "id", pa.array([n // 3 for n in range(300)], pa.int64())))
    (entry,) = segments(table)
    segment = opened(table, entry)
    assert segment is not None
    names = {each.id: each.name for each in table.schema.fields}
    assert {names[part.field] for part in segment.parts} - {"day"} == left
    with pytest.raises(OptionError, match=r"index\.auto\.max-distinct-share"):
        catalog.create_table(
            "db.bad", Schema.from_arrow(many.schema, options={**options, AUTO_SHARE.key: "2"})
        )


def test_advice_equals_the_measured_cost_and_pruning(catalog: Catalog) -> None:
    table = make(catalog, {"index.values.columns": "size"})
    fill(table, 10)
    before = table.latest_snapshot()
    found = advice(catalog, files=10)
    assert table.latest_snapshot() == before
    assert set(found) == {*((kind, name) for kind in ("bloom", "values") for name in NAMES), *TEXT_KINDS}
    indexed, distinct, pruned, expected, share, advised, reason, *_ = found["values", "host"]
    assert (indexed, advised, reason) == (False, True, "few blocks have a value")
    assert distinct == round(4 / 30, 6)
    assert pruned == round(1 - 40 / (13 * 10), 6)
    data = sum(entry.file.file_size for entry in table.manifests.live_files(before))
    assert share == pytest.approx(expected / data, rel=0.01)
    assert found["values", "size"][0]
    assert found["values", "size"][5:7] == (False, "most blocks have most values")
    assert found["values", "id"][5:7] == (False, "too many values come once")
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "host")])
    call(BuildIndex(), catalog)
    call(DropIndex(), catalog, columns=["size"])
    call(MergeIndex(), catalog)
    (entry,) = segments(table)
    segment = opened(table, entry)
    assert segment is not None
    assert [part.size for part in segment.parts.values()] == [expected]


def test_advice_about_some_columns_and_files(catalog: Catalog, tmp_path: Path) -> None:
    table = make(catalog, {})
    assert advice(catalog) == {}
    fill(table, 6)
    part = advice(catalog, columns=["host"], files=2)
    whole = advice(catalog, columns=["host"], files=100)
    assert set(part) == {("bloom", "host"), ("values", "host"), *TEXT_KINDS}
    assert (
        part["values", "host"][3] > whole["values", "host"][3] > 0
    )  # what each segment has once counts more
    with pytest.raises(ColumnNotFoundError, match="did you mean 'host'"):
        advice(catalog, columns=["hots"])
    with pytest.raises(InputError, match="at least 1"):
        advice(catalog, files=0)
    create_key_file(tmp_path / "keys.json", ["k"])
    secret = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    secret.create_namespace("db")
    fill(make(secret, {"orc.encrypt": "k:host"}, partition_keys=["day"]), 1)
    assert {column for _, column in advice(secret)} == {"id", "size"}


def test_a_segment_of_one_file_equals_its_merge(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 1)
    (entry,) = segments(table)
    copied = opened(table, entry)
    assert copied is not None
    merged = segment_of(merge_segments([copied]) or b"", "merged")
    assert merged.files.names == copied.files.names != ("",)
    assert merged.files.rows.tolist() == copied.files.rows.tolist() == [30]
    for name, part in copied.parts.items():
        for own, other in zip(astuple(part.content()), astuple(merged.parts[name].content()), strict=True):
            assert np.array_equal(own, other), name
