"""Metadata that is small on disk and huge in memory: an error that names the file, in a bounded process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.errors import CorruptFileError, OptionError
from lockgate.framework.io.limits import LIMIT_VARIABLE, most_metadata, most_unpacked
from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.layout import Compression
from lockgate.framework.store import Table
from lockgate.framework.store.codec.avro import read_container
from lockgate.framework.store.manifests.metadata_records import read_records
from lockgate.framework.store.schema.schema import load_json

MakeTable = Callable[..., Table]
# What a bomb is to take at most, next to the interpreter and its libraries.
MEMORY = 1 << 30
BOMB = 4 << 30


def long(value: int) -> bytes:
    encoded, value = bytearray(), value << 1 ^ value >> 63
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def deflated_zeros(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * (size >> 20) + packer.flush()


def zstd_zeros(size: int) -> bytes:
    part = min(size, 64 << 20)
    return bytes(pa.Codec("zstd").compress(bytes(part), asbytes=True)) * (size // part)


def container(schema: Any, codec: str, count: int, block: bytes) -> bytes:
    sync = b"s" * 16
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    pairs = b"".join(long(len(key)) + key.encode() + long(len(value)) + value for key, value in meta.items())
    return (
        b"Obj\x01" + long(len(meta)) + pairs + b"\x00" + sync + long(count) + long(len(block)) + block + sync
    )


RECORD = {"type": "record", "name": "r", "fields": [{"name": "_FILE_NAME", "type": "bytes"}]}
CODECS: dict[str, Callable[[int], bytes]] = {"deflate": deflated_zeros, "zstandard": zstd_zeros}


def in_child(code: str, *arguments: str) -> str:
    """Run Python with little memory to spare, and return what it prints."""
    limit = (
        "import resource, sys; from pathlib import Path; import lockgate.framework.store\n"
        "from lockgate.framework.store.manifests.metadata_records import read_records\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        f"resource.setrlimit(resource.RLIMIT_AS, (used + {MEMORY}, used + {MEMORY}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", limit + code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


READ = """
from lockgate.errors import CorruptFileError
try:
    read_records(Path(sys.argv[1]).read_bytes(), sys.argv[1])
except CorruptFileError as error:
    print(error)
"""


@pytest.mark.parametrize("codec", CODECS)
def test_blocks_that_unpack_to_gigabytes(tmp_path: Path, codec: str) -> None:
    block = CODECS[codec](BOMB)
    bomb = tmp_path / "manifest-1"
    bomb.write_bytes(container(RECORD, codec, 1, block))
    assert bomb.stat().st_size < 8 << 20
    assert "manifest-1 unpacks to more than" in in_child(READ, str(bomb))


def test_a_snappy_block_that_claims_to_unpack_to_too_much() -> None:
    claims = container(RECORD, "snappy", 1, b"\xff\xff\xff\xff\x0f" + bytes(20))
    with pytest.raises(CorruptFileError, match="m unpacks to more than 33554432 bytes"):
        read_container(claims, "m")


def test_many_small_blocks_count_together() -> None:
    block = deflated_zeros(8 << 20)
    one = container(RECORD, "deflate", 1, block)
    sync, start = b"s" * 16, one.index(b"s" * 16) + 16
    with pytest.raises(CorruptFileError, match="unpacks to more than"):
        read_container(one[:start] + (long(1) + long(len(block)) + block + sync) * 5, "m")


@pytest.mark.parametrize(
    ("schema", "count", "block"),
    [
        ({"type": "record", "name": "r", "fields": []}, 2**50, b""),
        ({"type": "record", "name": "r", "fields": [{"name": "a", "type": "null"}]}, 2**50, b""),
        (RECORD, 2**50, bytes(100)),
        pytest.param(RECORD, 30 << 20, bytes(30 << 20), marks=pytest.mark.long),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
            },
            1,
            long(2**50) + bytes(20),
        ),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [
                    {"name": "e", "type": {"type": "record", "name": "n.Empty", "fields": []}},
                    {"name": "a", "type": {"type": "array", "items": "n.Empty"}},
                ],
            },
            1,
            long(2**50) + bytes(20),
        ),
        (
            {
                "type": "record",
                "name": "r",
                "fields": [{"name": "a", "type": {"type": "fixed", "name": "f", "size": 0}}],
            },
            2**50,
            b"",
        ),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]},
            1,
            b"\x02" * 10**6,
        ),
    ],
    ids=["empty", "null", "claimed", "tiny", "nulls", "named", "fixed", "nested"],
)
def test_counts_without_bytes(tmp_path: Path, schema: Any, count: int, block: bytes) -> None:
    bomb = tmp_path / "manifest-1"
    bomb.write_bytes(container(schema, "null", count, block))
    assert "manifest-1 is damaged" in in_child(READ, str(bomb))


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "snappy"])
def test_what_others_write_is_read(codec: str) -> None:
    records = [{"_FILE_NAME": f"data-{number}.orc".encode()} for number in range(1000)]
    plain = io.BytesIO()
    fastavro.writer(plain, fastavro.parse_schema(RECORD), records, codec="null", sync_interval=10**9)
    if codec == "snappy":
        body = b"".join(long(len(each["_FILE_NAME"])) + each["_FILE_NAME"] for each in records)
        packed = bytes(pa.Codec("snappy").compress(body, asbytes=True)) + zlib.crc32(body).to_bytes(4, "big")
        data = container(RECORD, codec, len(records), packed)
    elif codec == "zstandard":
        body = b"".join(long(len(each["_FILE_NAME"])) + each["_FILE_NAME"] for each in records)
        packed = bytes(pa.Codec("zstd").compress(body, asbytes=True))
        data = container(RECORD, codec, len(records), packed)
    else:
        sink = io.BytesIO()
        fastavro.writer(sink, fastavro.parse_schema(RECORD), records, codec=codec)
        data = sink.getvalue()
    assert read_container(data, "m") == records


def test_a_parquet_manifest_of_one_text_many_times() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"_FILE_NAME": ["x" * 4096] * 100_000}), sink)
    assert sink.tell() < 1 << 20
    with pytest.raises(CorruptFileError, match="m unpacks to more than"):
        read_records(sink.getvalue(), "m")


# --- JSON ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["snapshot/snapshot-1", "tag/tag-a"])
def test_files_of_absurd_size(make_table: MakeTable, name: str) -> None:
    table = make_table()
    table.append(pa.table({"id": [1], "v": ["a"]}))
    table.create_tag("a")
    table.record_consumer("a", 1)
    path = Path(table.location) / name
    with open(path, "r+b") as file:
        file.truncate(BOMB * 4)  # without taking room on the disk
    code = """
from lockgate.framework.store import Catalog
from lockgate.errors import CorruptFileError
try:
    table = Catalog(sys.argv[1]).load_table("db.t")
    table.read(), table.tags(), table.consumers()
except CorruptFileError as error:
    print(error)
"""
    said = in_child(code, str(Path(table.location).parents[1]))
    assert f"{name} has more than 268435456 bytes" in said


def test_json_that_is_nested_without_end(make_table: MakeTable) -> None:
    table = make_table()
    path = Path(table.location) / "consumer" / "consumer-a"
    path.parent.mkdir()
    path.write_text('{"nextSnapshot":' + "[" * 100_000)
    with pytest.raises(CorruptFileError, match="consumer-a has more levels"):
        table.consumers()
    path.write_bytes(b" " * (33 << 20))
    with pytest.raises(CorruptFileError, match="consumer-a has more than 33554432 bytes"):
        table.consumers()


# --- ORC -----------------------------------------------------------------------------------------


def chunks(codec: Compression, size: int, block: int) -> bytes:
    packed = deflated_zeros(block) if codec is Compression.ZLIB else zstd_zeros(block)
    return ((len(packed) << 1).to_bytes(3, "little") + packed) * (size // block)


@pytest.mark.parametrize("codec", [Compression.ZLIB, Compression.ZSTD])
def test_footers_that_unpack_to_gigabytes(codec: Compression) -> None:
    block = 4 << 20
    data = chunks(codec, BOMB, block)
    assert len(data) < 6 << 20
    with pytest.raises(ValueError, match=f"unpack to more than .*{LIMIT_VARIABLE}"):
        unframe(codec, data, block)
    few = chunks(codec, 16 << 20, block)
    assert len(unframe(codec, few, block)) == 16 << 20


# --- the limit -----------------------------------------------------------------------------------


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (most_metadata(), most_unpacked(1), most_unpacked(1 << 20)) == (256 << 20, 32 << 20, 64 << 20)
    assert most_unpacked(1 << 30) == 256 << 20
    bomb = container(RECORD, "deflate", 1, deflated_zeros(40 << 20))
    monkeypatch.setenv(LIMIT_VARIABLE, str(50 << 20))
    assert (most_metadata(), most_unpacked(1)) == (50 << 20, 50 << 20)
    assert len(read_container(bomb, "m")) == 1
    for wrong in ("much", "0", "-1"):
        monkeypatch.setenv(LIMIT_VARIABLE, wrong)
        with pytest.raises(OptionError, match=LIMIT_VARIABLE):
            read_container(bomb, "m")


def test_the_limit_of_json_can_be_lifted(monkeypatch: pytest.MonkeyPatch) -> None:
    large = json.dumps({"comment": "x" * (33 << 20)}).encode()
    with pytest.raises(CorruptFileError, match=rf"schema-0 has more than .*{LIMIT_VARIABLE}"):
        load_json(large, "schema-0")
    monkeypatch.setenv(LIMIT_VARIABLE, str(40 << 20))
    assert len(load_json(large, "schema-0")["comment"]) == 33 << 20
