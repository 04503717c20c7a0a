"""Rewriting the files of one bucket."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import CorruptFileError
from lockgate.framework.store import CommitMessage, FileSource, ManifestEntry, Table
from lockgate.framework.store.merge.merge import MergePlan, keys_ascend, merge_plan, merge_tables
from lockgate.framework.store.pruning.split import Section
from lockgate.framework.store.rows.row_conversion import file_schema
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.changelog import changed_rows, inserted_rows, is_unrecorded

_log = logging.getLogger("lockgate.store")


@dataclass(frozen=True)
class BucketJob:
    """Files of one bucket that are rewritten together, to files of `level`."""

    sections: tuple[Section, ...]
    level: int

    @property
    def entries(self) -> list[ManifestEntry]:
        """The files that the job replaces."""
        return [entry for section in self.sections for entry in section.entries]

    @property
    def partition(self) -> tuple[Any, ...]:
        """The values of the bucket's partition."""
        return self.sections[0].entries[0].partition

    @property
    def bucket(self) -> int:
        """The bucket's number."""
        return self.sections[0].entries[0].bucket


def rewrite(table: Table, job: BucketJob, ordered: Iterable[pa.Table] | None = None) -> CommitMessage:
    """Write the new files of a job and return what to commit; on an error they are deleted.

    `ordered` are the rows of the job in another order, if they are to get one. In memory at a time: one
    stripe, or the files of one section whose rows must be merged. If keys do not ascend from section to
    section, because a writer gave files other bounds than their keys', all files are merged.
    """
    try:
        return _rewritten(table, job, ordered)
    except _UnorderedKeysError:
        _log.warning(
            "bucket %d of partition %s of table %s has data files whose key ranges are not those of their "
            "rows: all of its files in this compaction are merged",
            *(job.bucket, job.partition, table.identifier),
        )
    entries = sorted(job.entries, key=lambda entry: (-entry.file.level, entry.file.max_sequence_number))
    return _rewritten(table, BucketJob((Section(tuple(entries), merge=True),), job.level))


class _UnorderedKeysError(CorruptFileError):
    """Raised where the rows of a key table's new files would not be sorted by key, or have a key twice."""


def _rewritten(table: Table, job: BucketJob, ordered: Iterable[pa.Table] | None = None) -> CommitMessage:
    old = job.entries
    changelog = BucketWriter(
        table, job.partition, job.bucket, level=job.level, file_source=FileSource.APPEND, changelog=True
    )
    writer = BucketWriter(
        table,
        job.partition,
        job.bucket,
        level=job.level,
        file_source=FileSource.COMPACT,
        first_sequence=min(entry.file.min_sequence_number for entry in old),
    )
    with writer, changelog:
        rows = job_rows(table, job) if ordered is None else ((part, part.slice(0, 0)) for part in ordered)
        last: pa.Table | None = None
        for part, changes in rows:
            last = _checked(table, job, last, part)
            writer.write(part)
            changelog.write(changes)
        added = writer.close()
        recorded = changelog.close()
    return CommitMessage.replacing(old, added, writer.collected, recorded)


def _checked(table: Table, job: BucketJob, last: pa.Table | None, part: pa.Table) -> pa.Table | None:
    """Return the key of the last row; _UnorderedKeysError if keys do not ascend after the last one."""
    plan = merge_plan(table.schema)
    if plan is None or not part.num_rows:
        return last
    keys = part.select(plan.key)
    if not keys_ascend(keys if last is None else pa.concat_tables([last, keys]), plan.key):
        raise _UnorderedKeysError(
            f"the rows of bucket {job.bucket} of partition {job.partition} of table {table.identifier} "
            "cannot be sorted by key: read the table's rows and write them into a new table"
        )
    return keys.slice(keys.num_rows - 1)


def job_rows(table: Table, job: BucketJob) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows that stay, and what became of the keys that the table's changelog is to tell of."""
    reader = FileReader(table, table.schema, strict=True)
    plan = merge_plan(table.schema)
    names = file_schema(table.schema).names
    for section in job.sections:
        if section.merge:
            assert plan is not None, "only key tables have files that overlap"
            yield _merged(table, reader, section, plan, names)
            continue
        for entry in section.entries:
            for part in _parts(table, reader, entry, names):
                if plan is not None and is_unrecorded(table.schema, entry):
                    yield part, inserted_rows(part, plan)
                else:
                    yield part, part.slice(0, 0)


def parts_of(table: Table, job: BucketJob, names: Sequence[str]) -> Iterator[pa.Table]:
    """Yield columns of the rows of a job whose files share no keys, file by file, without deleted rows."""
    reader = FileReader(table, table.schema, strict=True)
    for entry in job.entries:
        yield from _parts(table, reader, entry, names)


def _parts(
    table: Table, reader: FileReader, entry: ManifestEntry, names: Sequence[str]
) -> Iterator[pa.Table]:
    return reader.parts(_path(table, entry), entry.file, names, _values(table, entry), entry.vector)


def _merged(
    table: Table, reader: FileReader, section: Section, plan: MergePlan, names: list[str]
) -> tuple[pa.Table, pa.Table]:
    """Merge a section; deletions can go, because the job holds every file with older rows of their keys."""
    parts = [
        reader.whole(_path(table, entry), entry.file, names, _values(table, entry), entry.vector)
        for entry in section.entries
    ]
    after = merge_tables(plan, parts, ordered=True).select(names)
    recorded = [is_unrecorded(table.schema, entry) for entry in section.entries]
    if not any(recorded):
        return after, after.slice(0, 0)
    none = after.schema.empty_table()
    new = [part for part, is_new in zip(parts, recorded, strict=True) if is_new]
    old = [part for part, is_new in zip(parts, recorded, strict=True) if not is_new]
    unrecorded = pa.concat_tables(new)
    older = [_near(plan, part, unrecorded) for part in old]
    before = merge_tables(plan, older).select(names) if old else none
    return after, changed_rows(table.schema, plan, before, _near(plan, after, unrecorded), unrecorded)


def _near(plan: MergePlan, rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return all rows that share their key with others, and few that do not: mostly, few keys change."""
    kind = rows[plan.key[0]].type
    if kind != others[plan.key[0]].type or not (pa.types.is_integer(kind) or pa.types.is_string(kind)):
        return rows  # zeros of both signs are one key
    wanted = others[plan.key[0]].combine_chunks()
    return rows.filter(pc.is_in(rows[plan.key[0]], value_set=wanted))


def _path(table: Table, entry: ManifestEntry) -> str:
    return table.paths.data_file(entry.partition, entry.bucket, entry.file)


def _values(table: Table, entry: ManifestEntry) -> dict[str, Any]:
    return dict(zip(table.schema.partition_keys, entry.partition, strict=True))
