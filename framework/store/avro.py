"""Avro container files, checked block by block.

Source: the Avro specification, "Object Container Files". Blocks compressed by Zstandard, which is how Paimon
writes its metadata, are decompressed here, so that reading needs no package beyond pyarrow.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, cast

import fastavro
import pyarrow as pa

from lockgate.errors import CorruptFileError, UnsupportedFormatError

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "org.apache.avro.file.Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": _SYNC_SIZE}},
        ],
    }
)

# Every Avro library has it.
_WRITE_CODEC = "deflate"


def write_container(schema: Any, records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return a container file of `records`; `schema` comes from `fastavro.parse_schema`."""
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records, codec=_WRITE_CODEC)
    return sink.getvalue()


def read_container(data: bytes, path: str) -> list[dict[str, Any]]:
    """Return the records of a container file.

    Raises CorruptFileError if it is truncated or damaged and UnsupportedFormatError if its codec is not
    available, both naming `path`.
    """
    if not data.startswith(_MAGIC):
        state = "is empty" if not data else "is not an Avro, ORC or Parquet file"
        raise CorruptFileError(f"{path} {state}")
    try:
        data = _plain_container(data, path)
        return cast("list[dict[str, Any]]", list(fastavro.reader(io.BytesIO(data))))
    except CorruptFileError:
        raise
    except ValueError as error:
        if "codec" in str(error):
            raise UnsupportedFormatError(f"{path}: {error}") from None
        raise CorruptFileError(f"{path} is damaged: {error}") from None
    except Exception as error:  # the decoder meets damage in as many ways as there are bytes
        raise CorruptFileError(f"{path} is damaged: {type(error).__name__} {error}") from None


def _plain_container(data: bytes, path: str) -> bytes:
    """Walk over the blocks to check them; return the container with its blocks decompressed."""
    source = io.BytesIO(data)
    header = cast("dict[str, Any]", fastavro.schemaless_reader(source, _HEADER, None))
    packed = header["meta"].get("avro.codec", b"null") == b"zstandard"
    plain = io.BytesIO()
    if packed:
        header["meta"]["avro.codec"] = b"null"
        fastavro.schemaless_writer(plain, _HEADER, header)
    while source.tell() < len(data):
        count, size = _read_long(source, path), _read_long(source, path)
        block = source.read(size) if size >= 0 else b""
        mark = source.read(_SYNC_SIZE)
        if len(block) != size or len(mark) != _SYNC_SIZE:
            raise CorruptFileError(f"{path} is truncated: it ends within a block, after {len(data)} bytes")
        if mark != header["sync"]:
            raise CorruptFileError(
                f"{path} is damaged: the block before byte {source.tell()} has a wrong mark"
            )
        if packed:
            block = pa.input_stream(pa.py_buffer(block), compression="zstd").read()
            plain.write(b"".join((_long(count), _long(len(block)), block, mark)))
    return plain.getvalue() if packed else data


def _read_long(source: io.BytesIO, path: str) -> int:
    value = shift = 0
    while True:
        byte = source.read(1)
        if not byte:
            raise CorruptFileError(f"{path} is truncated: it ends within the head of a block")
        value |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return value >> 1 ^ -(value & 1)


def _long(value: int) -> bytes:
    encoded = bytearray()
    value = value << 1 ^ value >> 63
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
