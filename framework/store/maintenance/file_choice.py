"""Choice of the files in a bucket that a compaction rewrites together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lockgate.framework.store import ManifestEntry
from lockgate.framework.store.maintenance.compaction import BucketJob
from lockgate.framework.store.pruning.split import Section, key_sections

# As Paimon's `num-sorted-run.compaction-trigger` and `compaction.min.file-num`.
MINOR_TRIGGER = 5
# A file of at least this share of the target size is left alone, as in Paimon.
LARGE_ENOUGH = 0.7


def pick_keyed(
    entries: Sequence[ManifestEntry],
    stale: Collection[str] = (),
    *,
    top_level: int,
    target_size: int,
    full: bool,
) -> list[BucketJob]:
    """Return jobs that turn a bucket of a key table into one run of sorted files at `top_level`.

    Files in the right form stay: large ones at the top level whose keys no other file has. They
    divide the bucket into jobs, because no new file may span them. Files named in `stale` are rewritten in
    any case.
    """

    def is_settled(section: Section) -> bool:
        return len(section.entries) == 1 and settled(section.entries[0])

    def settled(entry: ManifestEntry) -> bool:
        file = entry.file
        return file.level == top_level and file.delete_row_count == 0 and file.file_name not in stale

    unsettled = sum(not settled(entry) for entry in entries)
    runs = unsettled + (unsettled < len(entries))
    if not full and runs < MINOR_TRIGGER and not _any_stale(entries, stale):
        return []
    jobs: list[list[Section]] = [[]]
    for section in key_sections(entries):
        if is_settled(section) and section.entries[0].file.file_size >= target_size * LARGE_ENOUGH:
            jobs.append([])
        else:
            jobs[-1].append(section)
    worth_it = (job for job in jobs if len(job) > 1 or (job and not is_settled(job[0])))
    return [BucketJob(tuple(job), top_level) for job in worth_it]


def pick_append(
    entries: Sequence[ManifestEntry], stale: Collection[str] = (), *, target_size: int, full: bool
) -> list[BucketJob]:
    """Return jobs that each combine neighbouring small files of an append table, in the order of writing.

    Files named in `stale` are rewritten in any case.
    """
    jobs = []
    for group in _groups(entries, stale, target_size):
        if len(group) >= (2 if full else MINOR_TRIGGER) or _any_stale(group, stale):
            jobs.append(BucketJob(tuple(Section((entry,), merge=False) for entry in group), 0))
    return jobs


def pick_ordered(entries: Sequence[ManifestEntry]) -> list[BucketJob]:
    """Return one job of all files of a bucket of an append table, which are to be ordered together."""
    return [BucketJob(tuple(Section((entry,), merge=False) for entry in entries), 0)] if entries else []


def _groups(
    entries: Sequence[ManifestEntry], stale: Collection[str], target_size: int
) -> Iterator[list[ManifestEntry]]:
    group: list[ManifestEntry] = []
    size = 0
    for entry in entries:
        if entry.file.file_size >= target_size * LARGE_ENOUGH and entry.file.file_name not in stale:
            yield group
            group, size = [], 0
            continue
        if group and size + entry.file.file_size > target_size:
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.file.file_size
    yield group


def _any_stale(entries: Sequence[ManifestEntry], stale: Collection[str]) -> bool:
    return any(entry.file.file_name in stale for entry in entries)
