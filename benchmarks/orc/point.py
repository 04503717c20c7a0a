"""What a point lookup on an encrypted column has to decode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from harness import emit, note

from lockgate.framework.orc import EncryptedOrcFile, write_batches
from lockgate.pushdown import col
from orc.data import ENCRYPT, new_keys, people

BENCH = "orc"
_LOOKUPS = 20
_BATCH = 500_000


def point_row_groups(folder: Path, rows: int) -> None:
    """The metrics `point_row_groups_share` and `point_row_groups_share_bloom`: row groups decoded, of all.

    Half of the lookups find a row, half look for a value that is not there. The file of the first is sorted
    by the encrypted column that is looked up, as a table keeps its files by their key; in that of the second
    it is in random order, and only Bloom filters (which err once in twenty times) can tell.
    """
    for metric, bloom in (("point_row_groups_share", False), ("point_row_groups_share_bloom", True)):
        note(f"looking up {_LOOKUPS} of {rows:,} rows by {'Bloom filters' if bloom else 'their order'}")
        share = _share(folder / "point.orc", rows, bloom=bloom)
        emit(BENCH, metric, share, "ratio", "a full scan decodes all row groups: 1.0")


def _share(path: Path, rows: int, *, bloom: bool) -> float:
    keys = new_keys()
    batches = _batches(rows, ordered=not bloom)
    filters = ["ssn"] if bloom else []
    schema = people(0, 1).schema
    write_batches(batches, path, schema=schema, encrypt=ENCRYPT, keys=keys, bloom_filter_columns=filters)
    decoded = total = 0
    with EncryptedOrcFile(path, keys) as file:
        for number in range(_LOOKUPS):
            present = number % 2 == 0
            at = rows // _LOOKUPS * number
            wanted = people(at, 1)["ssn"][0].as_py() if bloom else _ordered(at)
            found = file.read(predicate=col("ssn") == (wanted if present else f"{wanted}0"))
            if (found.num_rows > 0) is not present:
                raise AssertionError(f"{found.num_rows} rows found for a value that is in row {at}")
            decoded += file.last_read.row_groups_read
            total += file.last_read.row_groups_total
    path.unlink()
    return decoded / total


def _batches(rows: int, *, ordered: bool) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH):
        table = people(start, min(_BATCH, rows - start))
        if ordered:
            numbers = pa.array(np.arange(start, start + table.num_rows, dtype=np.int64) * 113)
            text = pc.utf8_lpad(pc.cast(numbers, pa.string()), 9, "0")
            table = table.set_column(table.schema.get_field_index("ssn"), "ssn", text)
        yield from table.to_batches()


def _ordered(row: int) -> str:
    return f"{row * 113:09d}"
