"""Bounds of manifests that are damaged, or that no writer wrote, cost reads and no row."""

from __future__ import annotations

import datetime
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from bounded_table import START, check, fill, make, opened, rows

from lockgate.errors import CorruptFileError
from lockgate.framework.index.database import manifest_bounds
from lockgate.framework.index.database.bounds import FILE_KIND
from lockgate.framework.index.database.index_segments import segment_entries
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.pushdown import col
from lockgate.pushdown.index.segment import MAGIC, segment_of


def bounds_file(table: Table) -> Path:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (entry,) = segment_entries(table, snapshot.index_manifest, FILE_KIND)
    return Path(index_path(table, entry))


def reloaded(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Table:
    """The table without what this process has kept of its index."""
    from lockgate.framework.index.database import bounds, index_segments

    monkeypatch.setattr(bounds, "_cache", index_segments.ImmutableCache(100_000))
    return catalog.load_table("db.t")


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "missing", "longer"])
def test_damaged_bounds_are_reported_and_ignored(
    how: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = make(catalog)
    fill(table, 4)
    file = bounds_file(table)
    data = file.read_bytes()
    if how == "missing":
        file.unlink()
    else:
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        file.write_bytes({"cut": data[:-5], "flipped": flipped, "empty": b"", "longer": data + b"x"}[how])
    table = reloaded(catalog, monkeypatch)
    assert opened(table, col("size") == 1) == 4
    assert "missing or damaged" in caplog.text
    check(table, col("size") == 1)
    table.append(rows(4))
    assert opened(table, col("size") == 1) == 1, "the next commit writes them again"


def test_decompression_bombs_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockgate.pushdown.index.inflate.MOST_BYTES", 2**20)
    packed = zlib.compress(b"[" * 2**22)
    with pytest.raises(CorruptFileError, match="holds more than"):
        manifest_bounds.read_bounds(sealed(packed), "bounds")
    footer = struct.pack("<QII8s", 8, len(packed), zlib.crc32(packed), MAGIC)
    with pytest.raises(CorruptFileError, match="holds more than"):
        segment_of(MAGIC + packed + footer, "a segment")


def sealed(packed: bytes) -> bytes:
    return manifest_bounds._HEAD.pack(manifest_bounds.MAGIC, zlib.crc32(packed)) + packed


def rewritten(table: Table, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put other words with a right checksum into the file, of the size that the manifest tells."""
    file = bounds_file(table)
    listing = json.loads(zlib.decompress(file.read_bytes()[12:]))
    change(listing)
    data = sealed(zlib.compress(json.dumps(listing).encode()))
    file.write_bytes(data)
    monkeypatch.setattr(
        "lockgate.framework.index.database.bounds._read",
        lambda table, entry: _read_any(table, entry),
    )


def _read_any(table: Table, entry: Any) -> Any:
    path = index_path(table, entry)
    try:
        return manifest_bounds.read_bounds(table.file_system.read_bytes(path), path)
    except manifest_bounds.CorruptFileError:
        return None


LIES: list[Any] = [
    lambda listing: listing["manifests"][0].__setitem__(0, "../../other/manifest-0"),
    lambda listing: listing["manifests"][0].__setitem__(1, 7),
    lambda listing: listing["manifests"][0].__setitem__(2, 5),
    lambda listing: listing["manifests"][0].__setitem__(5, [99]),
    lambda listing: listing["manifests"][0].__setitem__(5, [-1]),
    lambda listing: listing["manifests"][0].__setitem__(3, -4),
    lambda listing: listing["columns"][0]["extents"].pop(),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, ["a", "b", 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [2**70, 2**71, 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [5, 4, 1]),
    lambda listing: listing["columns"][0]["extents"].__setitem__(0, [True, True, 1]),
    lambda listing: listing["columns"][0].__setitem__("type", "NO TYPE"),
    lambda listing: listing["columns"][0].__setitem__("type", {"type": "ARRAY", "element": "INT"}),
    lambda listing: listing["columns"][0].__setitem__("field", "x"),
    lambda listing: listing.pop("places"),
    lambda listing: listing.__setitem__("manifests", {"a": 1}),
]


@pytest.mark.parametrize("lie", range(len(LIES)))
def test_forged_bounds_lose_no_rows(lie: int, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog)
    fill(table, 4)
    rewritten(table, LIES[lie], monkeypatch)
    for value in (1, 6, 12, 16):
        check(table, col("size") == value)
        check(table, col("at") == START + datetime.timedelta(hours=value))
