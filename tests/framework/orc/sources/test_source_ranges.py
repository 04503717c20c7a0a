"""Remote files: only the needed bytes are read, with few requests."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from lockgate.errors import CorruptFileError, InputError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format.tail import TAIL_LENGTH
from lockgate.framework.orc.sources.file_source import MemorySource, open_source
from lockgate.framework.orc.sources.range_source import GAP, FsspecSource, RangeSource
from lockgate.pushdown import col

ROWS = 60_000


class Counting(AbstractFileSystem):
    """An fsspec file system with one file that records every requested range."""

    protocol = "counting"
    cachable = False

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data
        self.ranges: list[tuple[int, int]] = []
        self._lock = threading.Lock()

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path != "wide.orc":
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.data), "type": "file"}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        assert start is not None
        assert end is not None
        with self._lock:
            self.ranges.append((start, end - start))
        return self.data[start:end]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> AbstractBufferedFile:
        return CountedFile(self, path, mode, **options)

    def take(self) -> list[tuple[int, int]]:
        taken, self.ranges = self.ranges, []
        return taken


class CountedFile(AbstractBufferedFile):
    """A file object of it, which reads ahead as fsspec's do."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(self.fs.cat_file(self.path, start, end))


class Positioned:
    """A minimal source: `read_at` and `size`."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.ranges: list[tuple[int, int]] = []

    def read_at(self, offset: int, length: int) -> bytes:
        self.ranges.append((offset, length))
        return self.data[offset : offset + length]

    def take(self) -> list[tuple[int, int]]:
        taken, self.ranges = self.ranges, []
        return taken


@pytest.fixture(scope="module")
def wide_table() -> pa.Table:
    """Three columns whose streams are hundreds of kilobytes each, and one that is small."""
    text = [os.urandom(12).hex() for _ in range(ROWS)]
    return pa.table(
        {"id": range(ROWS), "secret": text, "other": text[::-1], "raw": [os.urandom(24) for _ in range(ROWS)]}
    )


@pytest.fixture(scope="module")
def wide(wide_table: pa.Table, keys: MemoryKeyProvider) -> bytes:
    """The rows, `secret` and `id` encrypted, in three stripes or so."""
    sink = io.BytesIO()
    options = {"encrypt": "pii:secret,id", "keys": keys, "compression": "zstd", "row_index_stride": 1000}
    write_table(wide_table, sink, stripe_size=1_000_000, **options)
    with EncryptedOrcFile(sink) as file:
        assert file.num_stripes >= 3
    return sink.getvalue()


def opened_sources(data: bytes) -> dict[str, tuple[Any, Any]]:
    """Each kind of remote source, and what counts its reads."""
    fsspec_system, wrapped, of_file, positioned = (
        Counting(data),
        Counting(data),
        Counting(data),
        Positioned(data),
    )
    arrow = pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(wrapped))
    return {
        "fsspec": ((fsspec_system, "wide.orc"), fsspec_system),
        "fsspec in Arrow": ((arrow, "wide.orc"), wrapped),
        "fsspec file": (of_file.open("wide.orc"), of_file),
        "positioned": (positioned, positioned),
    }


KINDS = ["fsspec", "fsspec in Arrow", "fsspec file", "positioned"]


@pytest.mark.parametrize("kind", KINDS)
def test_opening_is_one_read(wide: bytes, keys: MemoryKeyProvider, kind: str) -> None:
    source, counter = opened_sources(wide)[kind]
    with EncryptedOrcFile(source, keys, strict=True) as file:
        assert counter.take() == [(len(wide) - TAIL_LENGTH, TAIL_LENGTH)]
        assert file.integrity == "verified"
        assert file.statistics["id"].maximum == ROWS - 1
        assert file.stripe_statistics[0]["id"].minimum == 0
        assert file.schema.names == ["id", "secret", "other", "raw"]
        assert counter.take() == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integrity", ["verify", "ignore"])
def test_a_projection_reads_its_streams_only(
    wide: bytes, wide_table: pa.Table, keys: MemoryKeyProvider, kind: str, integrity: Any
) -> None:
    source, counter = opened_sources(wide)[kind]
    with EncryptedOrcFile(source, keys, integrity=integrity, threads=1) as file:
        counter.take()
        assert file.read(["other"]).equals(wide_table.select(["other"]))
        ranges = counter.take()
        stripes = file._tail.footer.stripes
        # The stripe's footer, and the one stretch in which the column's streams lie.
        assert len(ranges) <= 2 * len(stripes)
        column = sum(len(text) for text in wide_table["other"].to_pylist()) // 2
        assert column * 0.9 < sum(length for _, length in ranges) < column * 1.2 + 2 * GAP * len(stripes)
        assert file.read(["id", "raw", "secret", "other"]).num_rows == ROWS
        whole = counter.take()
        assert sum(length for _, length in whole) < len(wide)
        assert len(whole) <= 2 * len(stripes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_lookup_reads_its_row_group_only(
    wide: bytes, wide_table: pa.Table, keys: MemoryKeyProvider, kind: str
) -> None:
    source, counter = opened_sources(wide)[kind]
    with EncryptedOrcFile(source, keys, integrity="ignore") as file:
        counter.take()
        found = file.read(["secret", "raw"], predicate=col("id") == 31_234)
        assert found.equals(wide_table.select(["secret", "raw"]).slice(31_234, 1))
        ranges = counter.take()
        # One of sixty row groups: its bytes, whole chunks, the index, and gaps not worth a read.
        assert sum(length for _, length in ranges) < len(wide) / 8
        report = file.last_read
        assert (report.stripes_read, report.row_groups_read) == (1, 1)
        assert report.row_groups_total >= ROWS // 1000
        assert file.read(["raw"], predicate=col("id") == -1).num_rows == 0
        assert counter.take() == []


def test_a_small_file_is_one_read(keys: MemoryKeyProvider) -> None:
    table = pa.table({"a": range(100)})
    sink = io.BytesIO()
    write_table(table, sink, encrypt="pii:a", keys=keys)
    source = Positioned(sink.getvalue())
    with EncryptedOrcFile(source, keys) as file:
        assert file.read().equals(table)
    assert source.take() == [(0, source.size)]
    damaged = Positioned(b"PAR" + sink.getvalue()[3:])
    with pytest.raises(CorruptFileError, match="does not start with the letters ORC"):
        EncryptedOrcFile(damaged, keys)


def test_a_tail_that_is_longer_than_the_first_read(
    wide: bytes, wide_table: pa.Table, keys: MemoryKeyProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockgate.framework.orc.format.tail.TAIL_LENGTH", 300)
    source = Positioned(wide)
    with EncryptedOrcFile(source, keys) as file:
        assert len(source.take()) <= 4
        assert file.read(["id"]).equals(wide_table.select(["id"]))


def test_every_file_system(
    encrypted: bytes, people: pa.Table, keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    memory = MemoryFileSystem()
    memory.pipe("/people.orc", encrypted)
    local = pyarrow.fs.LocalFileSystem()
    sources: list[Any] = [
        (local, str(path)),
        (pyarrow.fs.SubTreeFileSystem(str(tmp_path), local), "people.orc"),
        (pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(memory)), "/people.orc"),
        (memory, "/people.orc"),
        (fsspec.filesystem("file"), str(path)),
        local.open_input_file(str(path)),
        memory.open("/people.orc"),
        fsspec.filesystem("file").open(str(path)),
    ]
    for source in sources:
        with EncryptedOrcFile(source, keys, timestamp_unit="us", threads=3) as file:
            assert file.read().equals(people), source
            assert file.read(["email"], predicate=col("id") == 5).num_rows == 1
    memory.rm("/people.orc")
    with pytest.raises(FileNotFoundError):
        EncryptedOrcFile((memory, "/people.orc"))
    with pytest.raises(FileNotFoundError):
        EncryptedOrcFile((local, str(tmp_path / "absent.orc")))


def test_kinds_of_sources(encrypted: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.orc"
    path.write_bytes(encrypted)
    memory = MemoryFileSystem()
    memory.pipe("/kinds.orc", encrypted)
    with open(path, "rb") as file:
        kinds: list[tuple[Any, type]] = [
            (path, MemorySource),
            (file, MemorySource),
            ((pyarrow.fs.LocalFileSystem(), str(path)), MemorySource),
            ((memory, "/kinds.orc"), FsspecSource),
            (io.BytesIO(encrypted), RangeSource),
        ]
        for source, kind in kinds:
            opened = open_source(source)
            assert isinstance(opened, kind), source
            opened.close()
        assert not file.closed
    memory.rm("/kinds.orc")


def test_near_ranges_are_read_together() -> None:
    source = Positioned(bytes(range(256)) * 4000)
    opened = open_source(source)
    wanted = [(10, 20), (500_000, 7), (0, 5), (200_000, 0), (25, 30), (40 + GAP, 8), (500_003, 100)]
    views = opened.read_ranges(wanted)
    assert [bytes(view) for view in views] == [source.data[at : at + length] for at, length in wanted]
    assert source.take() == [(0, 48 + GAP), (500_000, 103)]
    with pytest.raises(CorruptFileError, match="is cut off"):
        opened.read_at(source.size - 1, 2)
    assert source.take() == []


def test_a_source_that_returns_too_few_bytes(wide: bytes, keys: MemoryKeyProvider) -> None:
    source = Positioned(wide)
    with EncryptedOrcFile(source, keys) as file:
        source.data = wide[: len(wide) // 3]
        with pytest.raises(CorruptFileError, match="is cut off"):
            file.read()


def test_reads_of_a_plain_file_object_do_not_mix(
    wide: bytes, wide_table: pa.Table, keys: MemoryKeyProvider
) -> None:
    """It has one position, which several threads move."""
    with EncryptedOrcFile(io.BytesIO(wide), keys, threads=4) as file:
        for _ in range(3):
            assert file.read().equals(wide_table)


def test_mapped_pages_are_released(
    wide: bytes,
    wide_table: pa.Table,
    keys: MemoryKeyProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They can be read again, and the file need not change for it."""
    monkeypatch.setattr("lockgate.framework.orc.sources.random_access.LARGE", 1)
    forgotten: list[tuple[int, int]] = []
    original: Callable[..., None] = MemorySource.forget

    def spy(source: MemorySource, offset: int, length: int) -> None:
        forgotten.append((offset, length))
        original(source, offset, length)

    monkeypatch.setattr(MemorySource, "forget", spy)
    path = tmp_path / "wide.orc"
    path.write_bytes(wide)
    with EncryptedOrcFile(path, keys) as file:
        for _ in range(2):
            assert file.read().equals(wide_table)
        assert len(forgotten) == 2 * file.num_stripes
        assert sum(length for _, length in forgotten[: file.num_stripes]) > len(wide) * 0.9


@pytest.mark.parametrize("mode", ["text", "closed", "address", "one name"])
def test_other_arguments_are_refused_with_the_reason(
    mode: str, wide: bytes, keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    path = tmp_path / "wide.orc"
    path.write_bytes(wide)
    with open(path, encoding="latin-1") as text, open(path, "rb") as closed:
        closed.close()
        source, message = {
            "text": (text, "is open for text; open it again with mode 'rb'"),
            "closed": (closed, "is closed; open it again with mode 'rb'"),
            "address": ("memory://bucket/wide.orc", r"is an address, not a path: pass \(file system, path\)"),
            "one name": (path, r"columns must be a list of names: \['id'\]"),
        }[mode]
        with pytest.raises(InputError, match=message):
            EncryptedOrcFile(source, keys).read("id")


@pytest.mark.parametrize("ranges", [False, True])
def test_a_closed_file_is_not_read(ranges: bool, wide: bytes, keys: MemoryKeyProvider) -> None:
    file = EncryptedOrcFile(io.BytesIO(wide) if ranges else wide, keys, threads=1)
    batches = file.iter_batches()
    next(batches)
    file.close()
    with pytest.raises(InputError, match="is closed; open it again"):
        list(batches)
    with pytest.raises(InputError, match="is closed; open it again"):
        file.read()
