"""The contract of file systems, tested with the local disk, an fsspec implementation and S3."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import fsspec
import pyarrow.fs
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from hdfs_on_disk import OnDisk

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.io import FileSystem, LocalFileSystem, join, resolve
from lockgate.framework.io.hdfs import HdfsFileSystem


@pytest.fixture(params=["local", "memory", "s3", "hdfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileSystem, str]:
    if request.param == "s3":
        server, bucket = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
        return resolve(f"s3a://{bucket}/root", server.options())
    if request.param == "hdfs":
        return HdfsFileSystem("", {}, OnDisk()), str(tmp_path / "root")
    return resolve(tmp_path if request.param == "local" else f"memory://{uuid.uuid4()}")


def test_a_new_file_is_complete_and_never_replaced(place: tuple[FileSystem, str]) -> None:
    files, root = place
    path = join(root, "a/b/new")
    files.write_new(path, b"first")
    with pytest.raises(FileExistsError):
        files.write_new(path, b"second")
    assert files.read_bytes(path) == b"first"
    assert files.size(path) == 5
    assert [info.name for info in files.list(join(root, "a/b"))] == ["new"]


def test_replacing_reading_deleting(place: tuple[FileSystem, str]) -> None:
    files, root = place
    path = join(root, "hint")
    files.write_atomic(path, b"1")
    files.write_atomic(path, b"23")
    with files.open_input(path) as file:
        file.seek(1)
        assert file.read() == b"3"
    assert files.delete(path)
    assert not files.delete(path)
    assert not files.exists(path)
    with pytest.raises(FileNotFoundError):
        files.read_bytes(path)


def test_a_stream_appears_only_when_it_is_complete(place: tuple[FileSystem, str]) -> None:
    files, root = place
    path = join(root, "d/stream")

    def fail_half_way() -> None:
        with files.create(path) as file:
            file.write(b"half")
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        fail_half_way()
    assert not files.exists(path)
    assert [info for info in files.list(join(root, "d")) if not info.is_directory] == []
    with files.create(path) as file:
        file.write(b"whole")
    assert files.read_bytes(path) == b"whole"


def test_listing_and_trees(place: tuple[FileSystem, str]) -> None:
    files, root = place
    assert files.list(join(root, "none")) == []
    files.make_directory(join(root, "t"))
    files.write_new(join(root, "t/x"), b"123")
    (info,) = (info for info in files.list(root) if info.name == "t")
    assert info.is_directory
    (info,) = files.list(join(root, "t"))
    assert (info.name, info.size, info.is_directory) == ("x", 3, False)
    assert info.modified_millis > 1_600_000_000_000
    files.delete_tree(join(root, "t"))
    files.delete_tree(join(root, "t"))
    assert not files.exists(join(root, "t"))


def test_exactly_one_of_many_creators_wins(tmp_path: Path) -> None:
    files, path = LocalFileSystem(), str(tmp_path / "prize")
    winners: list[int] = []

    def create(number: int) -> None:
        try:
            files.write_new(path, str(number).encode() * 1000)
        except FileExistsError:
            return
        winners.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert files.read_bytes(path) == str(winners[0]).encode() * 1000
    assert [info.name for info in files.list(str(tmp_path))] == ["prize"]


def test_addresses_of_local_files_are_read_and_written(tmp_path: Path) -> None:
    plain = resolve(str(tmp_path))[1]
    assert plain == str(tmp_path)
    assert resolve(f"file://{tmp_path}")[1] == plain
    assert resolve(f"file:{tmp_path}")[1] == plain
    assert resolve("file:///a%20b")[1] == "/a b"
    assert LocalFileSystem().uri("/a b/c=1%3A") == "file:///a%20b/c=1%253A"


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InputError, match="nowhere://x"):
        resolve("nowhere://x/y")


def test_a_file_system_without_exclusive_creation_is_refused(tmp_path: Path) -> None:
    """Arrow's file system has no exclusive creation."""

    class OverArrow(ArrowFSWrapper):
        protocol = "over-arrow"

        def __init__(self) -> None:
            super().__init__(pyarrow.fs.LocalFileSystem())

    fsspec.register_implementation("over-arrow", OverArrow, clobber=True)
    files, path = resolve(f"over-arrow://{tmp_path}/x")
    with pytest.raises(UnsupportedError, match="cannot create a file exclusively"):
        files.write_new(path, b"1")
    assert not (tmp_path / "x").exists()
