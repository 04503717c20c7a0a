"""A data file that is replaced by itself with an index of its own, as Paimon's `rewrite_file_index` does."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError
from lockgate.framework.store import (
    Catalog,
    CommitKind,
    CommitMessage,
    FileKind,
    ManifestEntry,
    Schema,
    Table,
)
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests.manifest import live_entries, merge_entries
from lockgate.framework.store.schema.schema import now_millis

OPTIONS = {"bucket": "-1", "manifest.merge-min-count": "3", "manifest.target-file-size": "4 kb"}


def make(folder: Path, **options: str) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db", ignore_if_exists=True)
    given = Schema.from_arrow(pa.schema([("id", pa.int64())]), options={**OPTIONS, **options})
    return catalog.create_table("db.t", given)


def live(table: Table) -> list[ManifestEntry]:
    return table.manifests.live_files(table.latest_snapshot())


def with_index(entry: ManifestEntry, index: bytes | None) -> CommitMessage:
    indexed = dataclasses.replace(entry.file, embedded_index=index)
    return CommitMessage(
        entry.partition, entry.bucket, entry.total_buckets, added=(indexed,), deleted=(entry.file,)
    )


def replace_index(table: Table, entry: ManifestEntry, index: bytes | None) -> None:
    table.commit([with_index(entry, index)], kind=CommitKind.COMPACT)


def read(table: Table) -> list[int]:
    return sorted(table.read()["id"].to_pylist())


def test_rows_are_read_once_after_manifests_merge(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.commit([message for n in range(60) for message in table.write(pa.table({"id": [n]}))])
    replace_index(table, live(table)[0], bytes(30))
    for n in range(5):
        table.append(pa.table({"id": [100 + n]}))
        assert read(table) == [*range(60), *range(100, 101 + n)]
    replace_index(table, next(entry for entry in live(table) if entry.file.embedded_index), None)
    for n in range(5):
        table.append(pa.table({"id": [200 + n]}))
    assert read(table) == [*range(60), *range(100, 105), *range(200, 205)]


def test_another_index_makes_another_entry(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(pa.table({"id": [1]}))
    (added,) = live(table)
    indexed = dataclasses.replace(added, file=dataclasses.replace(added.file, embedded_index=b"i"))
    gone = dataclasses.replace(added, kind=FileKind.DELETE)
    assert merge_entries([gone, indexed]) == [gone, indexed], "the deletion awaits its addition"
    assert live_entries([added, gone, indexed]) == [indexed]
    again = dataclasses.replace(indexed, kind=FileKind.DELETE)
    assert live_entries([added, gone, indexed, again]) == []


def test_a_reader_of_the_old_file_cannot_replace_it(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(pa.table({"id": [1]}))
    (entry,) = live(table)
    replace_index(table, entry, b"first")
    with pytest.raises(CommitConflictError, match="is gone"):
        replace_index(table, entry, b"second")
    assert read(table) == [1]


@pytest.mark.parametrize("steps", ["expire", "rollback", "orphans"])
def test_the_file_stays_as_long_as_one_of_its_entries(tmp_path: Path, steps: str) -> None:
    table = make(tmp_path)
    table.append(pa.table({"id": [1]}))
    replace_index(table, live(table)[0], b"index")
    table.append(pa.table({"id": [2]}))
    if steps == "expire":
        expire_snapshots(table, retain_max=1, retain_min=1)
        assert len(table.snapshots()) == 1
    elif steps == "rollback":
        table.rollback(1)
        assert read(table) == [1]
        return
    else:
        remove_orphan_files(table, older_than_millis=now_millis() - 1, allow_recent=True)
    assert read(table) == [1, 2]


def test_a_write_that_failed_leaves_the_file(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(pa.table({"id": [1]}))
    message = with_index(live(table)[0], b"index")
    table.abort([message])
    assert read(table) == [1]
