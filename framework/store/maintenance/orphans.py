"""Orphans: files in a table's folder that nothing refers to, left by writers that were killed.

Source: Paimon's `OrphanFilesClean`. A file that is being written has no reference yet either, so only files
that are older than a given time go. In a table younger than that nothing goes: files older than their table
were linked into it by a migration, which may still run. If anything that refers to files cannot be read,
nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import InputError
from lockgate.framework.io import FileInfo
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.framework.store.metadata.clock import store_now
from lockgate.framework.store.metadata.data_folders import data_files_in, files_in
from lockgate.framework.store.metadata.paths import schema_folder, snapshot_folder
from lockgate.framework.store.schema.schema import now_millis

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


DAY_MILLIS = 24 * 60 * 60 * 1000
# Snapshots that are committed while files are deleted are looked at between two batches.
_BATCH = 1000
# Unfinished files of the store, and check sums that Hadoop keeps next to a file `x` as `.x.crc`.
_TEMPORARY = (".lockgate-", ".tmp")
_CHECK_SUM = (".", ".crc")


@dataclass(frozen=True)
class OrphanResult:
    """Numbers of deleted data files and other files that nothing referred to, and their bytes.

    `young_files` are those that stay because they are not old enough. After a dry run: what would go.
    """

    data_files: int = 0
    other_files: int = 0
    bytes: int = 0
    young_files: int = 0


def remove_orphan_files(
    table: TableHandle,
    *,
    older_than_millis: int | None = None,
    allow_recent: bool = False,
    parallelism: int = 1,
    dry_run: bool = False,
) -> OrphanResult:
    """Delete files that no snapshot, tag or branch needs and that are older than a day, or count them.

    `older_than_millis` (milliseconds since the epoch) may be an earlier time; a later one, which files that
    are being written may be older than, only with `allow_recent`, and none in the future. Looks at data
    files, manifests, index and statistics files, and at unfinished files of the store; not at branch folders
    and unknown ones. Raises InputError for a time that is not safe, and CorruptFileError, having deleted
    nothing, if metadata cannot be read.
    """
    older_than = _checked(table, older_than_millis, allow_recent)
    if parallelism < 1:
        raise InputError(f"parallelism must be 1 or more, not {parallelism}")
    # Listed before what is needed is known: a file that is committed in between is not an orphan.
    data, others = list(data_files_in(table)), list(other_files_in(table))
    needed = NeededFiles(table)
    if _created_millis(table) >= older_than:
        older_than = 0
    old_data, young_data = _orphans(data, needed, older_than)
    old_others, young_others = _orphans(others, needed, older_than)
    table.check_deletable(info.path for info in (*old_data, *old_others))
    if not dry_run:
        old_data = _delete(table, old_data, needed, parallelism)
        old_others = _delete(table, old_others, needed, parallelism)
    size = sum(info.size for info in (*old_data, *old_others))
    return OrphanResult(len(old_data), len(old_others), size, young_data + young_others)


def _checked(table: TableHandle, older_than_millis: int | None, allow_recent: bool) -> int:
    # Of two clocks the earlier: one that is ahead would make files old that are being written.
    now = store_now(table.file_system, snapshot_folder(table.location))
    safe = now - DAY_MILLIS
    if older_than_millis is None:
        return safe
    if older_than_millis > now:
        raise InputError(
            "older_than is in the future: files that are being written would be deleted; give a time a day "
            "ago or earlier"
        )
    if older_than_millis > safe and not allow_recent:
        raise InputError(
            "older_than is less than a day ago: files of a writer that has not committed yet could be "
            "deleted; give an earlier time, or allow_recent if nothing has written to the table since then"
        )
    return older_than_millis


def _created_millis(table: TableHandle) -> int:
    ids = table.schema_files.ids()
    if not ids:
        return now_millis()
    folder = schema_folder(table.branch_location)
    stored = {info.name: info.modified_millis for info in table.file_system.list(folder)}
    return max(table.schema_of(ids[0]).time_millis, stored.get(f"schema-{ids[0]}", 0))


def other_files_in(table: TableHandle) -> Iterator[FileInfo]:
    """Return metadata that snapshots refer to, and unfinished files of the store next to the rest."""
    for name in ("manifest", "index", "statistics"):
        yield from files_in(table, f"{table.location}/{name}")
    for name in ("snapshot", "changelog", "schema", "tag", "consumer"):
        for info in files_in(table, f"{table.location}/{name}"):
            if _between(info.name, _TEMPORARY) is not None:
                yield info


def _between(name: str, ends: tuple[str, str]) -> str | None:
    start, end = ends
    return name[len(start) : -len(end)] if name.startswith(start) and name.endswith(end) else None


def _is_needed(info: FileInfo, needed: NeededFiles) -> bool:
    return info.name in needed or (_between(info.name, _CHECK_SUM) or info.name) in needed


def _orphans(infos: Sequence[FileInfo], needed: NeededFiles, older_than: int) -> tuple[list[FileInfo], int]:
    found = [info for info in infos if not _is_needed(info, needed)]
    old = [info for info in found if info.modified_millis < older_than]
    return old, len(found) - len(old)


def _delete(
    table: TableHandle, orphans: Sequence[FileInfo], needed: NeededFiles, parallelism: int
) -> list[FileInfo]:
    deleted: list[FileInfo] = []
    with ThreadPoolExecutor(parallelism) as pool:
        for start in range(0, len(orphans), _BATCH):
            needed.catch_up()
            batch = [info for info in orphans[start : start + _BATCH] if not _is_needed(info, needed)]
            gone = pool.map(lambda info: table.file_system.delete(info.path), batch)
            deleted += [info for info, went in zip(batch, gone, strict=True) if went]
    return deleted
