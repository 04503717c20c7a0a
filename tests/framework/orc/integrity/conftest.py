"""Tagged files for the tests of this folder."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pyarrow.orc
import pytest
from tagged_files import KEYS, write

from lockgate.framework.orc import (
    write_table,
)


@pytest.fixture(scope="session")
def large() -> bytes:
    """Two stripes with streams of several granules, uncompressed."""
    rng = random.Random(5)
    rows = 200_000
    table = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "name": [f"{rng.getrandbits(64):x}" for _ in range(rows)],
            "x": [rng.random() for _ in range(rows)],
            "y": [rng.random() for _ in range(rows)],
        }
    )
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:name,x", keys=KEYS, compression="none", stripe_size=4 << 20)
    return sink.getvalue()


@pytest.fixture(scope="session")
def small() -> bytes:
    return write(pa.table({"id": range(10), "ssn": [str(i) for i in range(10)], "pay": range(10)}))
