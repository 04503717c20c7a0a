"""Which files of a bucket a compaction rewrites together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lockgate.framework.store import ManifestEntry
from lockgate.framework.store.split import Section, key_sections
from lockgate.procedures.builtin.compaction import BucketJob

# As Paimon's `num-sorted-run.compaction-trigger` and `compaction.min.file-num`.
MINOR_TRIGGER = 5
# A file of at least this share of the target size is left alone, as in Paimon.
LARGE_ENOUGH = 0.7


def pick_keyed(
    entries: Sequence[ManifestEntry], *, top_level: int, target_size: int, full: bool
) -> list[BucketJob]:
    """Return jobs that turn a bucket of a key table into one run of sorted files at `top_level`.

    Files that are as they should be stay: large ones at the top level whose keys no other file has. They
    divide the bucket into jobs, because no new file may span them.
    """
    settled = [entry for entry in entries if _is_settled(entry, top_level)]
    runs = len(entries) - len(settled) + bool(settled)
    if not full and runs < MINOR_TRIGGER:
        return []
    jobs: list[list[Section]] = [[]]
    for section in key_sections(entries):
        if (
            _stands_alone(section, top_level)
            and section.entries[0].file.file_size >= target_size * LARGE_ENOUGH
        ):
            jobs.append([])
        else:
            jobs[-1].append(section)
    return [BucketJob(tuple(job), top_level) for job in jobs if _is_worth_it(job, top_level)]


def pick_append(entries: Sequence[ManifestEntry], *, target_size: int, full: bool) -> list[BucketJob]:
    """Return jobs that each combine neighbouring small files of an append table, in the order of writing."""
    jobs = []
    for group in _groups_of_small(entries, target_size):
        if len(group) >= (2 if full else MINOR_TRIGGER):
            jobs.append(BucketJob(tuple(Section((entry,), merge=False) for entry in group), 0))
    return jobs


def _groups_of_small(entries: Sequence[ManifestEntry], target_size: int) -> Iterator[list[ManifestEntry]]:
    group: list[ManifestEntry] = []
    size = 0
    for entry in entries:
        if entry.file.file_size >= target_size * LARGE_ENOUGH:
            yield group
            group, size = [], 0
            continue
        if group and size + entry.file.file_size > target_size:
            yield group
            group, size = [], 0
        group.append(entry)
        size += entry.file.file_size
    yield group


def _is_settled(entry: ManifestEntry, top_level: int) -> bool:
    return entry.file.level == top_level and entry.file.delete_row_count == 0


def _stands_alone(section: Section, top_level: int) -> bool:
    return len(section.entries) == 1 and _is_settled(section.entries[0], top_level)


def _is_worth_it(job: Sequence[Section], top_level: int) -> bool:
    return len(job) > 1 or (len(job) == 1 and not _stands_alone(job[0], top_level))
