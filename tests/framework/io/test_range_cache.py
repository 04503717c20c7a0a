"""Cached ranges of remote files: the same bytes, fewer requests, private and limited in size."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import random
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from s3_server import S3Server

from lockgate.errors import OptionError, UnsafePathError
from lockgate.framework.io import resolve
from lockgate.framework.io.cache.cached_files import NEVER_CHANGES, split_options
from lockgate.framework.io.cache.range_cache import BLOCK, RangeCache
from lockgate.framework.store import Catalog, Schema

FOLDER, SIZE = "fs.lockgate.cache.folder", "fs.lockgate.cache.size"
VECTORS = json.loads((Path(__file__).parents[2] / "fixtures" / "range_cache.json").read_text())


class Store:
    """A remote file that records the requested ranges."""

    def __init__(self, size: int, seed: int = 3) -> None:
        self.content = random.Random(seed).randbytes(1 << 16) * (size // (1 << 16) + 1)
        self.content = self.content[:size]
        self.asked: list[tuple[int, int]] = []

    def fetch(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.asked += ranges
        return [self.content[offset : offset + length] for offset, length in ranges]

    def read(self, cache: RangeCache, blocks: Sequence[int], address: str = "s3a://b/f") -> None:
        found = cache.blocks(address, len(self.content), blocks, self.fetch)
        assert found == {block: self.content[block * BLOCK : (block + 1) * BLOCK] for block in blocks}


@pytest.fixture
def cache(tmp_path: Path) -> RangeCache:
    return RangeCache(tmp_path / "cache", 1 << 30)


def test_adjacent_blocks_are_fetched_by_one_request_and_only_once(cache: RangeCache) -> None:
    store = Store(5 * BLOCK + 17)
    store.read(cache, [1])
    store.read(cache, [0, 1, 2, 3, 5])
    assert store.asked == [(BLOCK, BLOCK), (0, BLOCK), (2 * BLOCK, 2 * BLOCK), (5 * BLOCK, 17)]
    store.read(cache, [0, 1, 2, 3, 5])
    assert len(store.asked) == 4
    # A file of another length is another file, and so is one at another address.
    Store(5 * BLOCK + 18, seed=4).read(cache, [0, 5])
    Store(5 * BLOCK + 17, seed=5).read(cache, [0, 5], "s3a://b/g")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "append", "other"])
def test_a_damaged_block_is_read_again(
    cache: RangeCache, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(3 * BLOCK)
    store.read(cache, [0, 1])
    path = cache.path_of("s3a://b/f", 3 * BLOCK, 1)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[77] ^= 1
    elif damage == "other":  # a whole block, but not of this length
        data = bytearray(cache.path_of("s3a://b/f", None, "size").name.encode())
    path.write_bytes({"cut": data[:-9], "empty": b"", "append": data + b"x"}.get(damage, data))
    with caplog.at_level(logging.WARNING):
        store.read(cache, [0, 1])
    assert store.asked == [(0, 2 * BLOCK), (BLOCK, BLOCK)]
    assert "is damaged" in caplog.text
    store.read(cache, [0, 1])
    assert len(store.asked) == 2


def test_a_truncated_file_is_not_cached(cache: RangeCache) -> None:
    found = cache.blocks("s3a://b/f", 2 * BLOCK, [0, 1], lambda _: [b"x" * (BLOCK + 5)])
    assert len(found[1]) == 5
    assert cache.path_of("s3a://b/f", 2 * BLOCK, 0).exists()
    assert not cache.path_of("s3a://b/f", 2 * BLOCK, 1).exists()


def test_the_folder_is_closed_to_others(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 1 << 30)
    Store(BLOCK).read(cache, [0])
    assert {oct(path.stat().st_mode & 0o777) for path in (cache.folder, *cache.folder.glob("??"))} == {
        "0o700"
    }
    assert {oct(path.stat().st_mode & 0o777) for path in cache.folder.glob("??/*")} == {"0o600"}


def test_a_folder_that_may_be_another_users_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for name in ("open", "link"):
        with pytest.raises(UnsafePathError, match="other users can write to"):
            RangeCache(tmp_path / name, 1 << 20)
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, 12345, 12345)
        with pytest.raises(UnsafePathError, match="belongs to uid 12345"):
            RangeCache(theirs, 1 << 20)


def test_least_recently_read_blocks_are_deleted_first(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 8 * BLOCK)
    store = Store(40 * BLOCK)
    store.read(cache, [0])
    for block in range(1, 40):
        old = time.time() - 1000 + block
        store.read(cache, [block])
        os.utime(cache.path_of("s3a://b/f", 40 * BLOCK, block), (old, old))
        store.read(cache, [0])
    used = sum(path.stat().st_size for path in cache.folder.glob("??/*"))
    assert used <= 9 * BLOCK
    assert store.asked.count((0, BLOCK)) == 1
    assert not cache.path_of("s3a://b/f", 40 * BLOCK, 5).exists()


def test_files_of_a_killed_process_are_removed(cache: RangeCache) -> None:
    folder = cache.folder / "00"
    folder.mkdir(mode=0o700)
    for name, age in (("tmp-old", 7200), ("tmp-new", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    cache.shrink()
    assert [path.name for path in folder.iterdir()] == ["tmp-new"]


def test_a_full_disk_disables_only_the_cache(
    cache: RangeCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    store = Store(3 * BLOCK)
    monkeypatch.setattr(os, "open", full)
    for _ in range(2):
        store.read(cache, [0, 2])
    assert caplog.text.count("takes no more blocks") == 1
    monkeypatch.undo()
    store.read(cache, [0, 2])
    store.read(cache, [0, 2])
    assert len(store.asked) == 6


def hammer(folder: str, seed: int) -> None:
    store, chance = Store(30 * BLOCK), random.Random(seed)
    cache = RangeCache(Path(folder), 6 * BLOCK)
    for _ in range(15):
        first = chance.randrange(28)
        store.read(cache, range(first, first + chance.randrange(1, 3)))


def test_processes_share_a_folder_that_is_too_small(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=hammer, args=(str(tmp_path / "cache"), seed)) for seed in range(2)]
    for each in others:
        each.start()
    for each in others:
        each.join(120)
    assert [each.exitcode for each in others] == [0, 0]
    cache = RangeCache(tmp_path / "cache", 6 * BLOCK)
    cache.shrink()
    assert sum(path.stat().st_size for path in cache.folder.glob("??/*")) <= 6 * BLOCK


def test_names_and_checksums_equal_those_of_the_connector(tmp_path: Path) -> None:
    cache = RangeCache(tmp_path / "cache", 1 << 30)
    for case in VECTORS["blocks"]:
        path = cache.path_of(case["address"], case["size"], case["block"])
        assert str(path.relative_to(cache.folder)) == case["file"]
    for case in VECTORS["names"]:
        assert (NEVER_CHANGES.fullmatch(case["name"]) is not None) is case["never_changes"]


# --- tables in a store ---


def test_a_cached_table_is_read_without_its_store(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    rows = pa.table({"id": range(20_000), "v": [str(number) for number in range(20_000)]})
    Catalog(f"s3://{bucket}/w", options=s3.options()).create_namespace("db")
    options = s3.options(**{FOLDER: str(tmp_path / "cache"), SIZE: "1 gb"})

    def read() -> tuple[pa.Table, list[str]]:
        table = Catalog(f"s3://{bucket}/w", options=options).load_table("db.t")
        s3.requests.clear()
        found = table.read()
        return found, [path for _, path in s3.requests if NEVER_CHANGES.fullmatch(path.rpartition("/")[2])]

    made = Catalog(f"s3://{bucket}/w", options=options)
    table = made.create_table("db.t", Schema.from_arrow(rows.schema, primary_keys=["id"]))
    for part in (rows, rows.slice(0, 10)):
        table.append(part)
    first, cold = read()
    second, warm = read()
    assert cold
    assert warm == []
    assert first.equals(second)
    assert len(first) == 20_000
    # Another process commits: files that change are never cached.
    table.append(pa.table({"id": [20_001], "v": ["new"]}))
    assert len(read()[0]) == 20_001


def test_encrypted_columns_stay_encrypted_on_the_disk(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    from lockgate.framework.keys import create_key_file

    create_key_file(str(tmp_path / "keys.json"), ["pii"])
    options = s3.options(**{FOLDER: str(tmp_path / "cache")})
    catalog = Catalog(f"s3://{bucket}/w", keys=f"file:{tmp_path / 'keys.json'}", options=options)
    catalog.create_namespace("db")
    rows = pa.table({"id": range(100), "ssn": ["secret-" + str(number) for number in range(100)]})
    wanted = {"orc.encrypt": "pii:ssn", "orc.compress": "none"}
    table = catalog.create_table("db.t", Schema.from_arrow(rows.schema, options=wanted))
    table.append(rows)
    assert table.read().sort_by("id").equals(rows)
    blocks = b"".join(path.read_bytes() for path in (tmp_path / "cache").glob("??/*"))
    assert len(blocks) > 1000
    assert b"secret-" not in blocks


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({SIZE: "1 gb"}, "fs.lockgate.cache.size is set, fs.lockgate.cache.folder is not"),
        ({FOLDER: "here"}, "give an absolute path"),
        ({FOLDER: "/tmp/x", SIZE: "much"}, "fs.lockgate.cache.size is 'much'"),
        ({FOLDER: "/tmp/x", SIZE: "0"}, "fs.lockgate.cache.size is '0'"),
        ({"fs.lockgate.cache.sise": "1 gb"}, "the cache has the options"),
    ],
)
def test_malformed_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        split_options(options)


def test_spark_prefixes_and_other_options_are_separated(tmp_path: Path) -> None:
    given = {f"spark.hadoop.{FOLDER}": str(tmp_path / "c"), "fs.s3a.endpoint": "x"}
    cache, others = split_options(given)
    assert cache is not None
    assert others == {"fs.s3a.endpoint": "x"}
    # Files on this machine are not copied to it.
    assert "Cached" not in repr(resolve(tmp_path, given)[0])
    files, path = resolve(f"memory://{uuid.uuid4().hex}", {FOLDER: str(tmp_path / "c")})
    files.write_new(f"{path}/data-{uuid.uuid4()}-0.orc", b"1")
    assert "Cached" in repr(files)
