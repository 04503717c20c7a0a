"""Comparison of the rows of a source with those of a table's new files, before the source is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lockgate.errors import ProcedureError
from lockgate.framework.store import CommitMessage, DataFileMeta, FileReader, Table
from lockgate.framework.types import MAX_LENGTH, DataField, convert_losslessly
from lockgate.procedures.builtin.migrate.value_hashes import hash_values

_WRAP = 2**64


@dataclass
class RowsDigest:
    """What rows are, whatever their order: how many, and of each column the nulls and a sum of hashes."""

    fields: Sequence[DataField]
    rows: int = 0
    nulls: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Count the rows of a batch, which has the columns by name."""
        self.rows += batch.num_rows
        for each in self.fields:
            column = batch[each.name]
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            values = pa.chunked_array(chunks, type=column.type)
            values = convert_losslessly(values, each.type.with_nullable(True), each.name)
            hashes = [
                int(hash_values(chunk, is_padded(each)).sum(dtype=np.uint64)) for chunk in values.chunks
            ]
            self.merge(each.name, values.null_count, sum(hashes))

    def merge(self, name: str, nulls: int, total: int) -> None:
        """Count the values of one column."""
        self.nulls[name] = self.nulls.get(name, 0) + nulls
        self.sums[name] = (self.sums.get(name, 0) + total) % _WRAP

    def add_all(self, others: Iterable[RowsDigest]) -> None:
        """Count the rows of others, which have the same columns."""
        for other in others:
            self.rows += other.rows
            for name, nulls in other.nulls.items():
                self.merge(name, nulls, other.sums[name])

    def difference(self, other: RowsDigest) -> str:
        """Return how the rows differ from others, empty if they are the same."""
        if self.rows != other.rows:
            return f"{self.rows} rows, not {other.rows}"
        for each in self.fields:
            mine, theirs = self.nulls.get(each.name, 0), other.nulls.get(each.name, 0)
            if mine != theirs:
                return f"{mine} nulls in column {each.name!r}, not {theirs}"
            if self.sums.get(each.name, 0) != other.sums.get(each.name, 0):
                return f"other values in column {each.name!r}"
        return ""


def check_copied(
    name: str, source: RowsDigest, table: Table, messages: Sequence[CommitMessage], threads: int
) -> None:
    """Read the files that a commit added, so many at a time; ProcedureError if they do not hold the rows of
    the source.
    """

    def digest(item: tuple[CommitMessage, DataFileMeta]) -> RowsDigest:
        message, file = item
        part = RowsDigest(source.fields)
        partition = dict(zip(table.schema.partition_keys, message.partition, strict=True))
        path = table.paths.data_file(message.partition, message.bucket, file)
        reader = FileReader(table, table.schema, strict=True, threads=1)
        for rows in reader.parts(path, file, [each.name for each in source.fields], partition):
            part.add(rows)
        return part

    found = RowsDigest(source.fields)
    with ThreadPoolExecutor(threads) as pool:
        found.add_all(pool.map(digest, [(each, file) for each in messages for file in each.added]))
    difference = found.difference(source)
    if difference:
        merged = table.schema.has_primary_key and found.rows < source.rows
        why = " (rows with the same key are one row there)" if merged else ""
        raise ProcedureError(
            f"{name} was migrated but not deleted, because not all of its rows are in the new files of "
            f"{table.identifier}: these have {difference}{why}; compare them, and delete the source yourself "
            "if it is not needed"
        )


def is_padded(each: DataField) -> bool:
    """Return whether texts of a column may differ in blanks at the end: CHAR is filled up with them."""
    return each.type.is_string and each.type.length != MAX_LENGTH
