"""Avro container files, checked block by block.

Source: the Avro specification, "Object Container Files". Blocks are decompressed here: within limits, and
so that reading needs no package beyond pyarrow, for Paimon writes its metadata with Zstandard.
"""

from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import fastavro
import pyarrow as pa

from lockgate.errors import CorruptFileError, OptionError, UnsupportedFormatError
from lockgate.framework.io import most_unpacked, snappy_size, too_large, unpack_deflate, unpack_zstandard

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
# A record takes much more memory than its few bytes: at most one record per this many bytes of the file.
_BYTES_OF_RECORD = 8
# The memory that unpacking a block of xz may take in addition: the largest preset takes 65 MiB.
_MOST_DICTIONARY = 128 * 2**20
_LEAST = {"null": 0, "float": 4, "double": 8}
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
    """Return the records of a container file; raises as `read_with_schema`."""
    return read_with_schema(data, path)[1]


def read_with_schema(data: bytes, path: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return the schema in the head of a container file, as Avro's JSON, and its records.

    Raises CorruptFileError if it is truncated or damaged, or unpacks to more than metadata may
    (`io.limits`), and UnsupportedFormatError if its codec is not available, both naming `path`.
    """
    if not data.startswith(_MAGIC):
        state = "is empty" if not data else "is not an Avro, ORC or Parquet file"
        raise CorruptFileError(f"{path} {state}")
    try:
        data = _plain_container(data, path)
        reader = fastavro.reader(io.BytesIO(data))
        return reader.writer_schema, cast("list[dict[str, Any]]", list(reader))
    except (CorruptFileError, UnsupportedFormatError, OptionError):
        raise
    except Exception as error:  # the decoder meets damage in as many ways as there are bytes
        raise CorruptFileError(f"{path} is damaged: {type(error).__name__} {error}") from None


def _plain_container(data: bytes, path: str) -> bytes:
    """Walk over the blocks to check them; return the container with its blocks decompressed."""
    source = io.BytesIO(data)
    header = cast("dict[str, Any]", fastavro.schemaless_reader(source, _HEADER, None))
    codec = header["meta"].get("avro.codec", b"null").decode("utf-8", "replace")
    unpack = _UNPACKERS.get(codec)
    if unpack is None:
        raise UnsupportedFormatError(
            f"{path}: the codec {codec!r} is not supported; there are {', '.join(_UNPACKERS)}"
        )
    least = max(1, _least_bytes(json.loads(header["meta"]["avro.schema"]), {}))
    header["meta"]["avro.codec"] = b"null"
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, _HEADER, header)
    left = most_unpacked(len(data))
    records_left = left // _BYTES_OF_RECORD
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
        block = unpack(block, left)
        left -= len(block)
        if left < 0:
            raise too_large(path, most_unpacked(len(data)), "unpacks to")
        records_left -= count
        if count < 0 or records_left < 0 or count * least > len(block):
            raise CorruptFileError(f"{path} is damaged: {len(block)} bytes cannot hold {count} records")
        plain.write(b"".join((_long(count), _long(len(block)), block, mark)))
    return plain.getvalue()


def _unpack_snappy(block: bytes, most: int) -> bytes:
    size = snappy_size(block)
    if size > most:
        return bytes(most + 1)  # as much as is too much
    # The last four bytes are a check sum.
    content = bytes(pa.Codec("snappy").decompress(block[:-4], decompressed_size=size, asbytes=True))
    if zlib.crc32(content) != int.from_bytes(block[-4:], "big"):
        raise ValueError("a block has a wrong check sum")
    return content


def _unpack_xz(block: bytes, most: int) -> bytes:
    return lzma.LZMADecompressor(memlimit=_MOST_DICTIONARY).decompress(block, most + 1)


def _unpack_bzip2(block: bytes, most: int) -> bytes:
    return bz2.BZ2Decompressor().decompress(block, most + 1)


_UNPACKERS: dict[str, Callable[[bytes, int], bytes]] = {
    "null": lambda block, most: block,
    "deflate": unpack_deflate,
    "zstandard": unpack_zstandard,
    "snappy": _unpack_snappy,
    "xz": _unpack_xz,
    "bzip2": _unpack_bzip2,
}


def _least_bytes(schema: Any, named: dict[str, int | None]) -> int:
    """Return how many bytes a value takes at least; `named` has the named types, None for one that is open.

    Raises ValueError for a list of what takes no bytes, which can be endless in a few, and for a type that
    holds itself, whose values may be nested without end.
    """
    if isinstance(schema, list):
        return 1 + min((_least_bytes(each, named) for each in schema), default=0)
    if isinstance(schema, str):
        least = named.get(schema.rpartition(".")[2], _LEAST.get(schema, 1))
        if least is None:
            raise ValueError("metadata has no type that holds itself")
        return least
    kind = schema["type"]
    if kind in ("record", "error"):
        name = schema["name"].rpartition(".")[2]
        named[name] = None
        named[name] = least = sum(_least_bytes(each["type"], named) for each in schema["fields"])
        return least
    if kind in ("array", "map"):
        if _least_bytes(schema["items" if kind == "array" else "values"], named) == 0 and kind == "array":
            raise ValueError("metadata has no list of values without bytes")
        return 1
    if kind == "fixed":
        named[schema["name"].rpartition(".")[2]] = int(schema["size"])
        return int(schema["size"])
    return 1 if kind == "enum" else _least_bytes(kind, named)


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
