"""Rewriting the files of one bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lockgate.framework.store import CommitMessage, FileSource, ManifestEntry, Table
from lockgate.framework.store.merge.merge import MergePlan, merge_plan, merge_tables
from lockgate.framework.store.pruning.split import Section
from lockgate.framework.store.rows.rows import file_schema
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.write.bucket_writer import BucketWriter


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


def rewrite(table: Table, job: BucketJob) -> CommitMessage:
    """Write the new files of a job and return what to commit; on an error they are deleted.

    In memory at a time: one stripe, or the files of one section whose rows must be merged.
    """
    old = job.entries
    writer = BucketWriter(
        table,
        job.partition,
        job.bucket,
        level=job.level,
        file_source=FileSource.COMPACT,
        first_sequence=min(entry.file.min_sequence_number for entry in old),
    )
    with writer:
        for part in _rows(table, job):
            writer.write(part)
        added = writer.close()
    return CommitMessage.replacing(old, added, writer.collected)


def _rows(table: Table, job: BucketJob) -> Iterator[pa.Table]:
    reader = FileReader(table, table.schema, strict=True)
    plan = merge_plan(table.schema)
    names = file_schema(table.schema).names
    for section in job.sections:
        if section.merge:
            assert plan is not None, "only key tables have files that overlap"
            yield _merged(table, reader, section, plan, names)
            continue
        for entry in section.entries:
            yield from reader.parts(
                _path(table, entry), entry.file, names, _values(table, entry), entry.vector
            )


def _merged(
    table: Table, reader: FileReader, section: Section, plan: MergePlan, names: list[str]
) -> pa.Table:
    """Merge a section; deletions can go, because the job holds every file with older rows of their keys."""
    parts = [
        reader.whole(_path(table, entry), entry.file, names, _values(table, entry), entry.vector)
        for entry in section.entries
    ]
    return merge_tables(plan, parts, ordered=True).select(names)


def _path(table: Table, entry: ManifestEntry) -> str:
    return table.paths.data_file(entry.partition, entry.bucket, entry.file)


def _values(table: Table, entry: ManifestEntry) -> dict[str, Any]:
    return dict(zip(table.schema.partition_keys, entry.partition, strict=True))
