"""Changelogs that outlive their snapshots: what stays for them, what reads past them, and their expiry."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance.changelog_expiry import expire_changelogs
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.parsed_cache import ParsedCache
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.schema.schema import now_millis

MakeTable = Callable[..., Table]


def make(make_table: MakeTable, producer: str = "input", **options: str) -> Table:
    given = {"changelog__producer": producer, "changelog.num-retained.max": "5", **options}
    given = {"snapshot.num-retained.max": "3", **given}
    table = make_table(primary_keys=("id",), bucket="1", **given)
    for number in range(6):
        write(table, number)
    return table


def write(table: Table, number: int) -> None:
    data = pa.table({"id": pa.array([1, number + 2], pa.int64()), "v": [f"v{number}", "w"]})
    table.commit(table.write(data, kinds=pa.array([2, 0], pa.int8())))


def call(table: Table, name: str, **arguments: Any) -> dict[str, Any]:
    catalog = Catalog(str(Path(table.location).parents[1]))
    return procedures.call(procedures.ProcedureContext(catalog), name, table="db.t", **arguments).to_dicts()[
        0
    ]


def folder(table: Table) -> list[str]:
    found = Path(table.location, "changelog").glob("*")
    return sorted(path.name for path in found)


def recorded(table: Table, changelog: Snapshot) -> list[str]:
    """The names of the changelog's data files, all of which are there."""
    metas = table.manifests.changelog_manifests(changelog)
    entries = [entry for meta in metas for entry in table.manifests.read_manifest(meta)]
    paths = [table.paths.data_file(each.partition, each.bucket, each.file) for each in entries]
    assert all(Path(path).exists() for path in paths)
    return [Path(path).name for path in paths]


def orphans(table: Table) -> int:
    found = remove_orphan_files(table, older_than_millis=now_millis() - 1, allow_recent=True)
    return found.data_files + found.other_files


def test_snapshots_become_changelogs(make_table: MakeTable) -> None:
    table = make(make_table)
    call(table, "compact")
    snapshots = table.snapshots()
    done = expire_snapshots(table, retain_max=1, retain_min=1)
    assert done.snapshots == 6
    assert folder(table) == ["EARLIEST", "LATEST", *(f"changelog-{number}" for number in range(1, 7))]
    assert Path(table.location, "changelog", "LATEST").read_text() == "6"
    assert table.changelog_files.load_all() == snapshots[:6]
    assert all(len(recorded(table, each)) == 1 for each in snapshots[:6])
    assert orphans(table) == 0
    # Their data went with the snapshots: only the compacted file is left of it.
    assert len(list(Path(table.location).rglob("data-*"))) == 1
    assert table.read().num_rows == 7


def test_without_options_changelogs_go_with_their_snapshots(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1", changelog__producer="input")
    for number in range(6):
        write(table, number)
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert folder(table) == []
    assert len(list(Path(table.location).rglob("changelog-*"))) == 1


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"changelog.num-retained.max": "100"}, True),
        ({"changelog.num-retained.min": "20"}, True),
        ({"changelog.time-retained": "1 d"}, True),
        ({"changelog.time-retained": "1 min", "changelog.num-retained.max": "1"}, False),
    ],
)
def test_each_option_lets_changes_outlive(make_table: MakeTable, options: dict[str, str], kept: bool) -> None:
    table = make_table(primary_keys=("id",), bucket="1", **{"snapshot.num-retained.max": "10", **options})
    for number in range(12):
        write(table, number)
    assert expire_snapshots(table).snapshots == 2
    assert bool(folder(table)) == kept


def test_of_a_table_without_a_producer_the_writes_stay(make_table: MakeTable) -> None:
    """As in Paimon: the files of level 0 are the changes, also after a compaction replaced them."""
    table = make(make_table, "none")
    before = {path.name for path in Path(table.location).rglob("data-*")}
    call(table, "compact")
    expire_snapshots(table, retain_max=1, retain_min=1)
    after = {path.name for path in Path(table.location).rglob("data-*")}
    assert before < after
    assert len(after) == 7
    assert orphans(table) == 0
    done = call(table, "expire_changelogs", delete_all=True)
    assert done["deleted_changelogs_count"] == 6
    assert done["deleted_data_files_count"] == 6
    assert {path.name for path in Path(table.location).rglob("data-*")} == after - before
    assert orphans(table) == 0


def test_changelogs_expire_by_number(make_table: MakeTable) -> None:
    table = make(make_table)
    expire_snapshots(table, retain_max=1, retain_min=1)
    dry = call(table, "expire_changelogs", retain_max=3, dry_run=True)
    assert len(table.changelog_files.ids()) == 5
    done = call(table, "expire_changelogs", retainMax=3)
    assert done == dry
    assert done["deleted_changelogs_count"] == 3
    assert done["earliest_changelog_id"] == 4
    assert done["deleted_data_files_count"] == 3
    assert done["deleted_bytes"] > 0
    assert table.changelog_files.ids() == [4, 5]
    assert Path(table.location, "changelog", "EARLIEST").read_text() == "4"
    assert all(recorded(table, each) for each in table.changelog_files.load_all())
    assert orphans(table) == 0
    # By the option, the newest five commits stay: one snapshot, and the changes of four.
    assert call(table, "expire_changelogs")["deleted_changelogs_count"] == 0


def test_changelogs_expire_by_age(make_table: MakeTable) -> None:
    table = make(make_table, **{"changelog.time-retained": "1 d"})
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert call(table, "expire_changelogs", retain_min=1)["deleted_changelogs_count"] == 1
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=5)
    done = call(table, "expire_changelogs", retain_min=2, older_than=soon, max_deletes=2)
    assert done["deleted_changelogs_count"] == 2
    done = call(table, "expire_changelogs", retain_min=2, older_than=soon)
    assert table.changelog_files.ids() == [5]


def test_what_a_consumer_needs_stays(make_table: MakeTable) -> None:
    table = make(make_table)
    expire_snapshots(table, retain_max=1, retain_min=1)
    table.record_consumer("stream", 3)
    assert call(table, "expire_changelogs", retain_max=1)["earliest_changelog_id"] == 3
    done = call(table, "expire_changelogs", delete_all=True)
    assert done["earliest_changelog_id"] is None
    assert folder(table) == []
    with pytest.raises(InputError, match="delete_all and retain_max"):
        call(table, "expire_changelogs", delete_all=True, retain_max=1)


def test_tags_keep_what_they_hold(make_table: MakeTable) -> None:
    table = make(make_table, "none")
    table.create_tag("kept", 2)
    call(table, "compact")
    expire_snapshots(table, retain_max=1, retain_min=1)
    call(table, "expire_changelogs", delete_all=True)
    assert table.read(tag="kept").num_rows == 3
    assert orphans(table) == 0
    table.delete_tag("kept")
    assert len(list(Path(table.location).rglob("data-*"))) == 1
    assert orphans(table) == 0


def test_a_rollback_to_a_tag_takes_changelogs_back(make_table: MakeTable) -> None:
    table = make(make_table)
    table.create_tag("kept", 2)
    expire_snapshots(table, retain_max=1, retain_min=1)
    table.rollback(tag="kept")
    assert table.changelog_files.ids() == [1]
    assert [each.id for each in table.snapshots()] == [2]
    assert table.read().num_rows == 3
    assert orphans(table) == 0
    # A later expiry puts the changelog of another snapshot with that number in its place.
    write(table, 7)
    write(table, 8)
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert table.changelog_files.ids() == [1, 2, 3]


def test_branches_have_changelogs_of_their_own(make_table: MakeTable) -> None:
    table = make(make_table)
    table.create_branch("b", 2)
    branch = Catalog(str(Path(table.location).parents[1])).load_table("db.t$branch_b")
    write(branch, 9)
    expire_snapshots(branch, retain_max=1, retain_min=1)
    assert branch.changelog_files.ids() == [2]
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert orphans(table) == 0
    call(table, "expire_changelogs", delete_all=True)
    assert recorded(branch, branch.changelog_files.load(2))
    table.rename_branch("b", "c")
    renamed = Catalog(str(Path(table.location).parents[1])).load_table("db.t$branch_c")
    assert recorded(renamed, renamed.changelog_files.load(2))
    assert orphans(table) == 0
    table.delete_branch("c")
    assert orphans(table) == 0


@pytest.mark.parametrize("what", ["snapshots", "changelogs"])
@pytest.mark.parametrize("point", range(0, 24, 3))
def test_killed_at_any_step_it_is_called_again(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, what: str, point: int
) -> None:
    table = make(make_table)
    if what == "changelogs":
        expire_snapshots(table, retain_max=1, retain_min=1)
    calls = [0]
    with monkeypatch.context() as patched:
        for name in ("delete", "write_atomic"):
            patched.setattr(LocalFileSystem, name, dying(getattr(LocalFileSystem, name), calls, point))
        with suppress(KeyboardInterrupt):
            run(table, what)
    assert table.read().num_rows == 7
    for changelog in table.changelog_files.load_all() if what == "snapshots" else ():
        assert recorded(table, changelog)
    run(table, what)
    assert table.changelog_files.ids() == ([1, 2, 3, 4, 5] if what == "snapshots" else [4, 5])
    assert orphans(table) == 0
    assert all(recorded(table, each) for each in table.changelog_files.load_all())


def run(table: Table, what: str) -> None:
    if what == "snapshots":
        expire_snapshots(table, retain_max=1, retain_min=1)
    else:
        expire_changelogs(table, retain_max=3, retain_min=1)


def dying(done: Callable[..., Any], calls: list[int], point: int) -> Callable[..., Any]:
    def step(*given: Any) -> Any:
        calls[0] += 1
        if calls[0] > point:
            raise KeyboardInterrupt
        return done(*given)

    return step


@pytest.mark.parametrize("damage", [b"", b"{", b'{"version": 3}', b"\x00" * 40])
def test_a_damaged_changelog_is_named_and_nothing_goes(make_table: MakeTable, damage: bytes) -> None:
    table = make(make_table)
    expire_snapshots(table, retain_max=1, retain_min=1)
    Path(table.location, "changelog", "changelog-3").write_bytes(damage)
    before = sorted(Path(table.location).rglob("*"))
    for attempt in (expire_changelogs, orphans, lambda each: expire_changelogs(each, delete_all=True)):
        with pytest.raises(CorruptFileError, match="changelog-3"):
            attempt(table)
    assert sorted(Path(table.location).rglob("*")) == before


def test_a_damaged_manifest_of_changes_is_named_and_nothing_goes(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(make_table)
    expire_snapshots(table, retain_max=1, retain_min=1)
    changelog = table.changelog_files.load(2)
    (meta,) = table.manifests.changelog_manifests(changelog)
    path = Path(table.paths.manifest(meta.file_name))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(manifest_files, "_manifests", ParsedCache(100))
    before = sorted(Path(table.location).rglob("*"))
    with pytest.raises(CorruptFileError, match=path.name):
        orphans(table)
    with pytest.raises(CorruptFileError, match=path.name):
        expire_changelogs(table, retain_max=1, retain_min=1)
    assert sorted(Path(table.location).rglob("*")) == before


def test_purged_nothing_is_left_but_the_schema(make_table: MakeTable) -> None:
    table = make(make_table)
    table.create_tag("kept", 2)
    table.create_branch("b", 2)
    table.record_consumer("stream", 3)
    expire_snapshots(table, retain_max=3, retain_min=1)
    with pytest.raises(InputError, match="confirm"):
        call(table, "purge_files")
    dry = call(table, "purge_files", dry_run=True)
    assert table.read().num_rows == 7
    done = call(table, "purge_files", confirm=True)
    assert {**done, "snapshot_id": None} == dry
    assert done["snapshot_id"] == 7
    assert (done["deleted_branches_count"], done["deleted_tags_count"]) == (1, 1)
    assert (done["deleted_consumers_count"], done["deleted_snapshots_count"]) == (1, 4)
    assert done["deleted_changelogs_count"] == 2
    assert done["deleted_bytes"] > 0
    assert table.read().num_rows == 0
    assert table.tags() == []
    assert table.branches() == []
    assert not [path for path in Path(table.location).rglob("bucket-*/*") if path.is_file()]
    assert folder(table) == []
    assert orphans(table) == 0
    write(table, 1)
    assert table.read().num_rows == 2


def test_options_of_changelogs_are_checked(make_table: MakeTable) -> None:
    table = make(make_table)
    catalog = Catalog(str(Path(table.location).parents[1]))
    catalog.alter_table("db.t", [SetOption("changelog.num-retained.min", "9")])
    with pytest.raises(InputError, match="retain_min"):
        expire_changelogs(catalog.load_table("db.t"), retain_max=3, retain_min=9)
