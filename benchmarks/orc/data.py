"""The rows and files that the figures for ORC are measured on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import write_batches

# Eight columns, five of them encrypted, with a key of each length.
ENCRYPT = "pii:ssn,email,born;fin:salary,score"
CODECS = ("zstd", "snappy")
_BATCH = 500_000


@dataclass(frozen=True)
class Files:
    """The same rows in a plain file and in an encrypted one, compressed with `codec`."""

    codec: str
    plain: Path
    encrypted: Path
    keys: MemoryKeyProvider
    rows: int

    def delete(self) -> None:
        """Remove both."""
        self.plain.unlink()
        self.encrypted.unlink()

    def metric(self, name: str) -> str:
        """The name of a figure; what is not said of another codec is of ZSTD, the default."""
        return name if self.codec == "zstd" else f"{name}_{self.codec}"


def new_keys() -> MemoryKeyProvider:
    """A fresh 128-bit and a fresh 256-bit key."""
    return MemoryKeyProvider({"pii@0": os.urandom(16), "fin@0": os.urandom(32)})


def people(start: int, rows: int) -> pa.Table:
    """Rows `start` up to `start + rows`, of the kind that is protected: numbers, names, dates, amounts.

    `id` rises by one; all else comes from numbers that look random and are found by their row.
    """
    ids = np.arange(start, start + rows, dtype=np.int64)
    numbers, amounts = mixed(ids), mixed(ids + 2**40)
    text = pc.cast(pa.array(numbers), pa.string())
    join = pc.binary_join_element_wise
    return pa.table(
        {
            "id": ids,
            "ssn": pc.utf8_lpad(text, 9, "0"),
            "email": join("person", text, "@example.org", ""),
            "born": pa.array((numbers * 7 % 30_000).astype(np.int32)).cast(pa.date32()),
            "salary": amounts,
            "score": mixed(ids + 2**41) / 7.0,
            "city": join("city ", pc.cast(pa.array(numbers % 500), pa.string()), ""),
            "hits": (amounts % 1000).astype(np.int32),
        }
    )


def mixed(ids: np.ndarray) -> np.ndarray:
    """A number below 10**9 for each row (the finaliser of splitmix64, cut down)."""
    mixed = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(10**9)).astype(np.int64)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """`rows` rows of `people`, some at a time."""
    for start in range(0, rows, _BATCH):
        yield from people(start, min(_BATCH, rows - start)).to_batches()


def make_files(folder: Path, rows: int, codec: str) -> Files:
    """Write the rows twice, with and without encryption."""
    files = Files(codec, folder / f"plain-{codec}.orc", folder / f"encrypted-{codec}.orc", new_keys(), rows)
    schema = people(0, 1).schema
    write_batches(batches(rows), files.plain, schema=schema, compression=codec)
    write_batches(
        batches(rows), files.encrypted, schema=schema, compression=codec, encrypt=ENCRYPT, keys=files.keys
    )
    return files
