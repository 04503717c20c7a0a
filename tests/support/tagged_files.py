"""ORC files with integrity tags, and their parts."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.orc

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import (
    write_table,
)
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.integrity.authenticate import authenticate
from lockgate.framework.orc.integrity.verified_source import VerifyingSource
from lockgate.framework.orc.sources.file_source import open_source

KEYS = MemoryKeyProvider({"pii@0": b"p" * 16, "fin@2": b"f" * 32})


def write(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    write_table(table, sink, **{"encrypt": "pii:ssn", "keys": KEYS, **options})
    return sink.getvalue()


def opened(data: bytes | VerifyingSource, keys: object = KEYS) -> tuple[VerifyingSource, Tail]:
    source = open_source(data)
    tail = read_tail(source)
    checking, status = authenticate(source, tail, Variants(tail, keys))
    assert status == "verified"
    assert isinstance(checking, VerifyingSource)
    return checking, tail


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 16]) + data[position + 1 :]
