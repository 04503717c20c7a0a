"""Keys, rows and files for the tests of the ORC codec."""

from __future__ import annotations

import datetime
import io
import os
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import write_table

ENCRYPT = "pii:ssn,email;fin:salary"


@pytest.fixture(scope="session")
def keys() -> MemoryKeyProvider:
    """A 128-bit key `pii` and a 256-bit key `fin`."""
    return MemoryKeyProvider({"pii@0": os.urandom(16), "fin@0": os.urandom(32)})


@pytest.fixture(scope="session")
def people() -> pa.Table:
    """1000 rows of all flat types and some nested ones, with nulls."""
    rows = range(1000)
    day = datetime.date(2020, 1, 1)
    moment = datetime.datetime(2020, 1, 1, 12, 30, 15, 123456)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "ssn": [f"{i * 7919 % 10**9:09d}" for i in rows],
            "email": [None if i % 7 == 0 else f"person{i}@example.org" for i in rows],
            "salary": pa.array([Decimal(i * 991).scaleb(-2) for i in rows], pa.decimal128(12, 2)),
            "small": pa.array([i % 100 for i in rows], pa.int8()),
            "active": [None if i % 11 == 0 else i % 3 == 0 for i in rows],
            "score": [i / 3 for i in rows],
            "born": [day + datetime.timedelta(days=i) for i in rows],
            "seen": pa.array([moment + datetime.timedelta(seconds=i) for i in rows], pa.timestamp("us")),
            "raw": [bytes([i % 256]) * (i % 5) for i in rows],
            "tags": [[f"t{j}" for j in range(i % 4)] for i in rows],
            "address": [{"street": f"street {i}", "number": i} for i in rows],
        }
    )


@pytest.fixture(scope="session")
def written(people: pa.Table, keys: MemoryKeyProvider) -> Callable[..., bytes]:
    """A function that writes `people` (or `table=`) encrypted, in several stripes, and returns the file."""

    def write(table: pa.Table = people, **options: Any) -> bytes:
        sink = io.BytesIO()
        settings = {
            "encrypt": ENCRYPT,
            "mask": "sha256:email",
            "keys": keys,
            "stripe_size": 8000,
            "row_index_stride": 100,
            **options,
        }
        write_table(table, sink, **settings)
        return sink.getvalue()

    return write


@pytest.fixture(scope="session")
def encrypted(written: Callable[..., bytes]) -> bytes:
    """The rows of `people`, encrypted with ZSTD."""
    return written()
