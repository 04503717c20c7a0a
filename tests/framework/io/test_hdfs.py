"""Addresses of HDFS, required environment, and lost answers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hdfs_on_disk import OnDisk

from lockgate.errors import InputError
from lockgate.framework.io import hdfs, resolve
from lockgate.framework.io.hdfs import HdfsFileSystem
from lockgate.framework.store import Catalog, Schema


@pytest.mark.parametrize(
    ("address", "asked", "path", "uri"),
    [
        ("hdfs://node:9000/a/b c=1%3A", ("node", 9000), "/a/b c=1%3A", "hdfs://node:9000/a/b c=1%3A"),
        ("hdfs://service//a//b/", ("service", 0), "/a/b", "hdfs://service/a/b"),
        ("hdfs:///a", ("default", 0), "/a", "hdfs:///a"),
    ],
)
def test_an_address_and_options_make_a_client(
    monkeypatch: pytest.MonkeyPatch, address: str, asked: tuple[str, int], path: str, uri: str
) -> None:
    made: list[Any] = []

    def connect(*arguments: Any) -> OnDisk:
        made.append(arguments)
        return OnDisk()

    monkeypatch.setattr(hdfs, "HdfsClient", connect)
    options = {"spark.hadoop.dfs.replication": "2", "fs.s3a.secret.key": "no", "other": "no"}
    files, found = resolve(address, options)
    assert (found, files.uri(found)) == (path, uri)
    assert made == []
    assert not files.exists("/surely/not/there")
    assert not files.exists("/surely/not/there")
    assert made == [(*asked, {"dfs.replication": "2"})]


@pytest.mark.parametrize("address", ["hdfs://me@node/a", "hdfs://node:port/a", "hdfs://:8020/a"])
def test_malformed_addresses(address: str) -> None:
    with pytest.raises(InputError, match="address of HDFS"):
        resolve(address)


def test_a_missing_environment_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hadoop's library would crash the process without its classes."""
    files, path = resolve("hdfs://node/a")
    monkeypatch.delenv("CLASSPATH", raising=False)
    with pytest.raises(InputError, match=r"CLASSPATH is not set.*hadoop classpath --glob"):
        files.exists(path)
    monkeypatch.setenv("CLASSPATH", "somewhere")
    monkeypatch.setenv("ARROW_LIBHDFS_DIR", str(tmp_path))
    with pytest.raises(InputError, match=f"there is no {tmp_path}/libhdfs"):
        files.exists(path)


def test_a_rename_whose_answer_is_lost(tmp_path: Path) -> None:
    files = HdfsFileSystem("", {}, OnDisk(answers=False))
    files.write_new(f"{tmp_path}/new", b"1")
    with pytest.raises(FileExistsError):
        files.write_new(f"{tmp_path}/new", b"2")
    assert files.read_bytes(f"{tmp_path}/new") == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_rename_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = OnDisk()
    monkeypatch.setattr(client, "rename", lambda path, target: False)
    with pytest.raises(OSError, match="could not be renamed"):
        HdfsFileSystem("", {}, client).write_new(f"{tmp_path}/new", b"1")
    assert list(tmp_path.iterdir()) == []


def test_exactly_one_of_many_creators_wins(tmp_path: Path) -> None:
    files, winners = HdfsFileSystem("", {}, OnDisk()), []

    def create(number: int) -> None:
        try:
            files.write_new(f"{tmp_path}/prize", str(number).encode())
        except FileExistsError:
            return
        winners.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read_bytes(f"{tmp_path}/prize") == str(*winners).encode()


def test_a_reader_waits_for_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "hint"
    path.touch()
    timer = threading.Timer(0.05, path.write_bytes, (b"7",))
    timer.start()
    assert HdfsFileSystem("", {}, OnDisk()).read_bytes(str(path)) == b"7"
    timer.join()


def test_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "HdfsClient", lambda *_: OnDisk())
    catalog = Catalog(f"hdfs://node{tmp_path}/lake")
    catalog.create_namespace("db")
    schema = Schema.from_arrow(pa.schema([("id", pa.int64())]), primary_keys=["id"], options={"bucket": "1"})
    table = catalog.create_table("db.t", schema)
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [2, 3]}))
    table.create_tag("now")
    assert sorted(catalog.load_table("db.t").read()["id"].to_pylist()) == [1, 2, 3]
    catalog.drop_table("db.t")
    assert not (tmp_path / "lake/db.db/t").exists()
