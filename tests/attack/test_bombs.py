"""Metadata that is small on the disk and would be huge in memory: it is refused before it is unpacked."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema, Table

ROWS = pa.table({"id": [1, 2]})


def make(folder: Path) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema))
    table.append(ROWS)
    return table


# Reading a table of two rows takes about 150 MB, most of it for libraries. Unpacked, the file has 512 MB.
MOST_MEGABYTES = 300
BOMB = """
import sys
from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog
try:
    Catalog(sys.argv[1]).load_table("db.t").read()
except LockgateError:
    # Not `ru_maxrss`: a program begins with the peak of the process that started it.
    status = open("/proc/self/status").read()
    print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.parametrize("codec", ["zstandard", "deflate"])
def test_a_manifest_list_of_half_a_gigabyte(tmp_path: Path, codec: str) -> None:
    table = make(tmp_path)

    newest = Catalog(str(tmp_path)).load_table("db.t").latest_snapshot()
    assert newest is not None
    path = Path(table.location) / "manifest" / newest.delta_manifest_list
    path.write_bytes(_bomb(codec, 512 << 20))
    snapshot = Path(table.location) / "snapshot" / f"snapshot-{newest.id}"
    content = json.loads(snapshot.read_text()) | {"deltaManifestListSize": path.stat().st_size}
    snapshot.write_text(json.dumps(content))
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip().isdigit(), done.stderr[-2000:] or "not refused"
    assert int(done.stdout) < MOST_MEGABYTES


def _bomb(codec: str, size: int) -> bytes:
    """An Avro container of one block of zeros."""
    schema = json.dumps({"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}).encode()
    block = _packed_zeros(codec, size)
    meta = {"avro.codec": codec.encode(), "avro.schema": schema}
    header = b"Obj\x01" + _long(len(meta)) + b"".join(_text(k.encode()) + _text(v) for k, v in meta.items())
    return header + b"\x00" + b"S" * 16 + _long(1) + _long(len(block)) + block + b"S" * 16


def _packed_zeros(codec: str, size: int) -> bytes:
    piece = b"\0" * (1 << 20)
    if codec == "deflate":
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        return b"".join(packer.compress(piece) for _ in range(size >> 20)) + packer.flush()
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for _ in range(size >> 20):
            stream.write(piece)
    return sink.getvalue().to_pybytes()


def _long(value: int) -> bytes:
    value <<= 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _text(value: bytes) -> bytes:
    return _long(len(value)) + value


@pytest.mark.parametrize("name", ["schema/schema-0", "snapshot/snapshot-1"])
def test_a_json_file_of_a_gigabyte_that_is_a_hole(tmp_path: Path, name: str) -> None:
    """A file with a hole takes no room on the disk."""
    path = Path(make(tmp_path).location) / name
    with path.open("wb") as file:
        file.truncate(1 << 30)
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.strip().isdigit(), done.stderr[-2000:] or "not refused"
    assert int(done.stdout) < MOST_MEGABYTES + 256  # a file may have 256 MB
