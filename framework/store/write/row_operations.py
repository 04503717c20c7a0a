"""Marking of rows of an append table that meet a condition, by their positions in their files.

For tables with `deletion-vectors.enabled`: the rows are deleted where they lie, and no file is written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.commit.vector_changes import RowDeletions
from lockgate.framework.store.deletion_vectors.deletion_vector import DeletedRows
from lockgate.framework.store.deletion_vectors.snapshot_vectors import read_vector
from lockgate.framework.store.manifests.manifest import FileKind, ManifestEntry
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.schema.unsupported_features import check_unselected
from lockgate.framework.types import partition_key
from lockgate.pushdown import Predicate, columns_of, normalize, to_arrow_expression

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.pruning.split import Split

_POSITION = "\0position"


def find_rows(
    table: TableHandle, predicate: Predicate, snapshot: Snapshot
) -> tuple[list[RowDeletions], list[CommitMessage]]:
    """Return the rows of a snapshot that `predicate` is true of, and files of which no other row is left.

    Files are read strictly, so that a mask is never taken for a value. Raises what `plan_scan` raises,
    and UnsupportedError if options of the table select what is read.
    """
    check_unselected(table.schema)
    predicate = normalize(predicate)
    request = ReadRequest(predicate=predicate, snapshot_id=snapshot.id, strict=True, own_schema=False)
    plan = plan_scan(table, request)
    reader = FileReader(table, table.schema, strict=True)
    marked, gone = [], []
    for split in plan.splits:
        for entry, path in _entries(table, split):
            found = _matching(table, reader, predicate, split, entry, path)
            if len(found) == entry.live_rows:
                gone.append(CommitMessage.replacing([entry]))
            elif len(found):
                marked.append(RowDeletions(entry, found))
    return marked, gone


def _entries(table: TableHandle, split: Split) -> Iterator[tuple[ManifestEntry, str]]:
    partition = partition_key(split.partition.values())
    for file, path, vector in zip(split.files, split.paths, split.vectors, strict=True):
        count = table.schema.bucket_count
        yield ManifestEntry(FileKind.ADD, partition, split.bucket, count, file, vector), path


def _matching(
    table: TableHandle,
    reader: FileReader,
    predicate: Predicate,
    split: Split,
    entry: ManifestEntry,
    path: str,
) -> DeletedRows:
    names = sorted({each[0] for each in columns_of(predicate)})
    there = None if entry.vector is None else read_vector(table, entry.vector, entry.file.row_count)
    first, found = 0, [np.zeros(0, np.uint64)]
    for part in reader.parts(path, entry.file, names, split.partition):
        rows = part.num_rows
        positions = np.arange(first, first + rows, dtype=np.uint64)
        numbered = (
            part.append_column(_POSITION, pa.array(positions)) if names else pa.table({_POSITION: positions})
        )
        kept = None if there is None else there.kept(first, rows)
        numbered = numbered if kept is None else numbered.filter(pa.array(kept))
        matching = numbered.filter(to_arrow_expression(predicate, numbered.schema))
        found.append(matching[_POSITION].to_numpy())
        first += rows
    return DeletedRows.of(np.concatenate(found))
