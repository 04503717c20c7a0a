"""Orphan cleaning: what nothing refers to goes when it is old, and nothing else ever does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Table
from lockgate.framework.store.ddl import validation
from lockgate.framework.store.history.reachable_files import NeededFiles, data_files_of, metadata_files_of
from lockgate.framework.store.maintenance import orphans
from lockgate.framework.store.maintenance.orphans import DAY_MILLIS, OrphanResult, remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

MakeTable = Callable[..., Table]
LATER = 3 * DAY_MILLIS
WORKER = Path(__file__).parents[1] / "commit_worker.py"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{number}" for number in ids]})


def ids(table: Table, **where: object) -> list[int]:
    return sorted(table.read(**where)["id"].to_pylist())  # type: ignore[arg-type]  # keywords of several types


def files(table: Table) -> dict[str, int]:
    """Every file below the table's folder with its bytes, except hints."""
    root = Path(table.location)
    found = (path for path in root.rglob("*") if path.is_file() and path.parent.name != "snapshot")
    return {str(path.relative_to(root)): path.stat().st_size for path in found}


def orphan(table: Table, where: str, size: int = 7) -> str:
    path = Path(table.location) / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return where


@pytest.fixture
def table(make_table: MakeTable) -> Table:
    """Snapshots 1 to 4; each replaces the row of the one before."""
    table = make_table()
    for number in range(1, 5):
        table.overwrite(rows(number))
    return table


@pytest.fixture
def days_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cleaning runs three days after everything else."""
    monkeypatch.setattr(orphans, "store_now", lambda *_: now_millis() + LATER)


@pytest.mark.usefixtures("days_later")
def test_what_an_aborted_writer_left_goes(table: Table) -> None:
    table.write(rows(7, 8))  # never committed
    orphan(table, "bucket-0/.lockgate-data-x.orc.abc.tmp")
    orphan(table, "manifest/manifest-lost-0")
    orphan(table, "manifest/manifest-list-lost-0")
    orphan(table, "index/index-lost")
    orphan(table, "statistics/stats-lost")
    orphan(table, "snapshot/.lockgate-snapshot-9.abc.tmp")
    orphan(table, "tag/.lockgate-tag-t.abc.tmp")
    before = files(table)
    planned = remove_orphan_files(table, dry_run=True)
    assert files(table) == before
    result = remove_orphan_files(table)
    assert result == planned
    assert (result.data_files, result.other_files, result.young_files) == (2, 6, 0)
    gone = before.keys() - files(table).keys()
    assert result.bytes == sum(before[name] for name in gone) + 7  # one lay among the snapshots
    assert not any("lost" in name or ".tmp" in name for name in files(table))
    assert [ids(table, snapshot_id=number) for number in (1, 2, 3, 4)] == [[1], [2], [3], [4]]
    assert remove_orphan_files(table) == OrphanResult()


def test_files_of_a_writer_within_the_safe_interval_stay(table: Table) -> None:
    messages = table.write(rows(7, 8))
    result = remove_orphan_files(table)
    assert (result.data_files, result.other_files, result.young_files) == (0, 0, 1)
    table.commit(messages)
    assert ids(table) == [4, 7, 8]


def test_age_is_that_of_each_file(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    old = table.write(rows(7))
    young = table.write(rows(8))
    later = now_millis() + LATER
    monkeypatch.setattr(orphans, "store_now", lambda *_: later)
    path = table.paths.data_file(young[0].partition, young[0].bucket, young[0].added[0])
    os.utime(path, (later / 1000 - 3600, later / 1000 - 3600))
    result = remove_orphan_files(table)
    assert (result.data_files, result.young_files) == (1, 1)
    assert not Path(table.paths.data_file(old[0].partition, old[0].bucket, old[0].added[0])).exists()
    table.commit(young)
    assert ids(table) == [4, 8]


@pytest.mark.usefixtures("days_later")
def test_nothing_live_goes(table: Table) -> None:
    table.create_tag("first", 1)
    table.create_tag("second", 2)
    folder = Path(table.location) / "branch" / "branch-b"
    (folder / "tag").mkdir(parents=True)
    (folder / "snapshot").mkdir()
    (folder / "schema").mkdir()
    schema = Path(table.location) / "schema" / "schema-0"
    (folder / "schema" / "schema-0").write_bytes(schema.read_bytes())
    (Path(table.location) / "tag" / "tag-second").rename(folder / "tag" / "tag-second")
    (folder / "snapshot" / "snapshot-3").write_bytes(table.snapshot(3).to_bytes())
    table.record_consumer("dim", 4)
    orphan(table, "unknown/file")
    orphan(table, "bucket-0/.lockgate")
    expire_snapshots(table, retain_max=1)
    before = files(table)
    result = remove_orphan_files(table)
    assert (result.data_files, result.other_files) == (1, 0)
    assert before.keys() - files(table).keys() == {"bucket-0/.lockgate"}
    assert ids(table, tag="first") == [1]
    assert ids(table) == [4]
    assert table.consumers() == {"dim": 4}
    for name, number in (("tag/tag-second", 2), ("snapshot/snapshot-3", 3)):
        (folder / name).rename(Path(table.location) / "tag" / f"tag-b{number}")
        assert ids(table, tag=f"b{number}") == [number]


@pytest.mark.usefixtures("days_later")
def test_what_a_killed_deletion_of_a_tag_left_goes(table: Table) -> None:
    table.create_tag("t", 1)
    expire_snapshots(table, retain_max=1)
    (Path(table.location) / "tag" / "tag-t").unlink()
    result = remove_orphan_files(table)
    assert result.data_files == 1
    assert result.other_files >= 2
    needed = NeededFiles(table)
    left = [name for name in files(table) if name.startswith(("bucket-", "manifest/"))]
    assert all(name.rpartition("/")[2] in needed for name in left)
    assert ids(table) == [4]


@pytest.mark.usefixtures("days_later")
def test_files_of_odd_partitions_are_no_orphans(make_table: MakeTable) -> None:
    table = make_table(
        columns={"p": pa.string(), "q": pa.int32(), "id": pa.int64()},
        partition_keys=("p", "q"),
    )
    data = {"p": ["a/b", None], "q": pa.array([1, 2], pa.int32()), "id": [1, 2]}
    table.append(pa.table(data))
    entry = table.manifests.live_files(table.latest_snapshot())[0]
    folder = Path(table.paths.bucket_path(entry.partition, entry.bucket))
    lost = folder / "data-lost.orc"
    lost.write_bytes(b"x")
    check_sum = folder / f".{entry.file.file_name}.crc"
    check_sum.write_bytes(b"x")
    # Of a replacement by a table partitioned otherwise that was killed.
    orphan(table, "p=z/bucket-0/data-at-another-depth.orc")
    result = remove_orphan_files(table, parallelism=4)
    assert (result.data_files, result.bytes) == (2, 8)
    assert not lost.exists()
    assert check_sum.exists()
    assert ids(table) == [1, 2]


@pytest.mark.usefixtures("days_later")
def test_merged_manifests(make_table: MakeTable) -> None:
    table = make_table(manifest_merge__min__count="3")
    for number in range(8):
        table.append(rows(number))
        if number == 4:
            table.create_tag("five")
    expire_snapshots(table, retain_max=3)
    assert remove_orphan_files(table) == OrphanResult()
    assert ids(table, tag="five") == [0, 1, 2, 3, 4]
    for snapshot in table.snapshots():
        assert ids(table, snapshot_id=snapshot.id) == list(range(snapshot.id))


@pytest.mark.usefixtures("days_later")
def test_a_commit_in_the_middle_keeps_its_files(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = table.write(rows(7))
    orphan(table, "bucket-0/data-lost.orc")
    catch_up = NeededFiles.catch_up

    def commit_first(self: NeededFiles) -> None:
        if messages:
            table.commit(messages)
            messages.clear()
        catch_up(self)

    monkeypatch.setattr(NeededFiles, "catch_up", commit_first)
    result = remove_orphan_files(table)
    assert result.data_files == 1
    assert ids(table) == [4, 7]


@pytest.mark.usefixtures("days_later")
def test_an_expiry_in_the_middle(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    orphan(table, "bucket-0/data-lost.orc")
    load_all = type(table.snapshot_files).load_all

    def expire_after(self: object) -> object:
        found = load_all(self)  # type: ignore[arg-type]  # a method without its class
        monkeypatch.undo()
        expire_snapshots(table, retain_max=2)
        monkeypatch.setattr(orphans, "store_now", lambda *_: now_millis() + LATER)
        return found

    monkeypatch.setattr(orphans, "store_now", lambda *_: now_millis() + LATER)
    monkeypatch.setattr(type(table.snapshot_files), "load_all", expire_after)
    assert remove_orphan_files(table).data_files == 1
    assert [ids(table, snapshot_id=number) for number in (3, 4)] == [[3], [4]]


@pytest.mark.parametrize("key", [(), pytest.param(("id",), marks=pytest.mark.long)])
def test_while_writers_commit(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, key: tuple[str]
) -> None:
    """Committed files look old, as in a table of years, and each commit makes more of them."""
    minute = 60_000
    with monkeypatch.context() as patch:
        patch.setattr(validation, "now_millis", lambda: now_millis() - 120 * minute)
        options = {"bucket": "1"} if key else {}
        table = make_table(primary_keys=key, manifest_merge__min__count="4", **options)
    assert table.schema.time_millis < now_millis() - 60 * minute
    made = time.time() - 120 * 60
    os.utime(table.schema_files.path(0), (made, made))
    writers = [
        subprocess.Popen([sys.executable, str(WORKER), "append", table.location, name, "15"])
        for name in ("a", "b")
    ]
    rounds = 0
    while any(writer.poll() is None for writer in writers) or rounds < 3:
        rounds += 1
        old = time.time() - 90 * 60
        snapshot = table.latest_snapshot()
        entries = table.manifests.live_files(snapshot)
        paths = data_files_of(table, entries) | (metadata_files_of(table, snapshot) if snapshot else {})
        lost = [orphan(table, f"bucket-0/data-lost-{rounds}.orc"), orphan(table, f"manifest/lost-{rounds}")]
        for path in [*paths, *(f"{table.location}/{name}" for name in lost)]:
            os.utime(path, (old, old))
        # The shortest time that files of these writers are never older than: they commit within a second.
        safe = {"older_than_millis": now_millis() - minute, "allow_recent": True}
        planned = remove_orphan_files(table, **safe, dry_run=True)
        assert all(Path(table.location, name).exists() for name in lost)
        done = remove_orphan_files(table, **safe)
        assert (planned.data_files, planned.other_files) == (done.data_files, done.other_files) == (1, 1)
        assert not any(Path(table.location, name).exists() for name in lost)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [each.id for each in table.snapshots()] == list(range(1, 31))
    for each in table.snapshots():
        assert table.read(snapshot_id=each.id).num_rows > 0
    expected = sorted([*range(15)] if key else [*range(15), *range(15)])
    assert ids(table) == expected
    rest = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    assert rest.data_files == rest.other_files == 0


def test_times_that_are_not_safe(table: Table) -> None:
    table.write(rows(7))
    now = now_millis()
    with pytest.raises(InputError, match=r"less than a day ago.*allow_recent"):
        remove_orphan_files(table, older_than_millis=now - DAY_MILLIS // 2)
    for allowed in (False, True):
        with pytest.raises(InputError, match="in the future"):
            remove_orphan_files(table, older_than_millis=now + DAY_MILLIS, allow_recent=allowed)
    with pytest.raises(InputError, match="parallelism"):
        remove_orphan_files(table, parallelism=0)
    assert remove_orphan_files(table, older_than_millis=now - 2 * DAY_MILLIS).young_files == 1
    while now_millis() == now:
        pass
    result = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    assert (result.data_files, result.young_files) == (1, 0)
    assert ids(table) == [4]


def test_nothing_goes_in_a_table_that_is_younger(make_table: MakeTable) -> None:
    """A migration gives old files a second name in a new table before it commits them."""
    table = make_table()
    path = Path(table.location) / orphan(table, "bucket-0/data-adopted.orc")
    os.utime(path, (1, 1))
    result = remove_orphan_files(table)
    assert (result.data_files, result.young_files) == (0, 1)
    assert path.exists()


@pytest.mark.usefixtures("days_later")
def test_a_table_without_snapshots(make_table: MakeTable) -> None:
    table = make_table()
    assert remove_orphan_files(table) == OrphanResult()
    table.write(rows(1))
    assert remove_orphan_files(table).data_files == 1
    table.append(rows(2))
    assert ids(table) == [2]


@pytest.mark.usefixtures("days_later")
@pytest.mark.parametrize(
    "damaged", ["tag/tag-t", "snapshot/snapshot-2", "branch/branch-b/snapshot/snapshot-1"]
)
def test_what_cannot_be_read_stops_it(table: Table, damaged: str) -> None:
    orphan(table, "bucket-0/data-lost.orc")
    orphan(table, damaged)
    before = files(table)
    with pytest.raises(CorruptFileError, match=damaged):
        remove_orphan_files(table)
    assert files(table) == before


@pytest.mark.usefixtures("days_later")
def test_a_missing_manifest_stops_it(make_table: MakeTable) -> None:
    table = make_table()
    table.append(rows(1))
    orphan(table, "bucket-0/data-lost.orc")
    snapshot = table.snapshot(1)
    elsewhere = Path(table.location) / "manifest" / snapshot.delta_manifest_list
    elsewhere.unlink()
    with pytest.raises(CorruptFileError, match="missing"):
        remove_orphan_files(table)
    assert "bucket-0/data-lost.orc" in files(table)


@pytest.mark.usefixtures("days_later")
def test_killed_in_the_middle_it_can_be_called_again(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        orphan(table, f"bucket-0/data-lost{number}.orc")
    delete, calls = LocalFileSystem.delete, [0]

    def dying(self: LocalFileSystem, path: str) -> bool:
        calls[0] += 1
        if calls[0] > 2:
            raise OSError("gone")
        return delete(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "delete", dying)
        with pytest.raises(OSError, match="gone"):
            remove_orphan_files(table)
    assert ids(table) == [4]
    assert remove_orphan_files(table).data_files == 2
