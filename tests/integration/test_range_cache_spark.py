"""The cache of ranges that Spark's tasks and Python share."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import orc

from lockgate.framework.io.cache.range_cache import BLOCK, RangeCache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = json.loads((Path(__file__).parents[1] / "fixtures" / "range_cache.json").read_text())
SIZE = 5 * BLOCK + 17


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "stored"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    return path


def check(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.io.lockgate.spark.files.io.CachedFilesCheck


def read(spark: SparkSession, stored: Path, address: str, folder: Path, size: str = "1 gb") -> int:
    """Read by the JVM, and return how often it asked the store."""
    opened, found = check(spark).read(str(stored), address, str(folder), size).split()
    assert found == hashlib.sha256(stored.read_bytes()).hexdigest()
    return int(opened)


def test_each_side_reads_the_blocks_of_the_other(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    folder, content = tmp_path / "cache", stored.read_bytes()
    first, second = (f"s3a://b/ü %20/data-{uuid.uuid4()}-0.orc" for _ in range(2))
    cache = RangeCache(folder, 1 << 30)
    cache.blocks(first, SIZE, range(6), lambda spans: [content[at : at + length] for at, length in spans])
    assert read(spark, stored, first, folder) == 0
    assert read(spark, stored, second, folder) == 1
    assert read(spark, stored, second, folder) == 0
    found = cache.blocks(second, SIZE, range(6), lambda _: pytest.fail("Python asks the store"))
    assert b"".join(found[block] for block in range(6)) == content
    # A damaged block is read again; names that may change are not kept.
    path = cache.path_of(second, SIZE, 3)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert read(spark, stored, second, folder) == 1
    assert [read(spark, stored, "s3a://b/snapshot-1", folder) for _ in range(2)] == [2, 2]
    assert {each.stat().st_mode & 0o777 for each in folder.glob("??/*")} == {0o600}


def test_a_cache_that_is_too_small_stays_small(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for _ in range(2):
        read(spark, stored, f"s3a://b/data-{uuid.uuid4()}-0.orc", folder, "2 mb")
    assert sum(each.stat().st_size for each in folder.glob("??/*")) <= 3 * BLOCK


def test_the_second_read_of_an_orc_file_asks_the_store_nothing(spark: SparkSession, tmp_path: Path) -> None:
    values = random.Random(2).choices(range(10**12), k=300_000)
    orc.write_table(pa.table({"id": range(300_000), "v": values}), tmp_path / "stored")
    address = f"s3a://b/data-{uuid.uuid4()}-0.orc"
    found = [check(spark).rows(str(tmp_path / "stored"), address, str(tmp_path / "cache")) for _ in range(2)]
    assert found[0].split()[0] == "300000"
    assert int(found[0].split()[1]) > 0
    assert found[1] == "300000 0"


def test_unsafe_folders_and_malformed_sizes_are_refused(
    spark: SparkSession, stored: Path, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    address = f"s3a://b/data-{uuid.uuid4()}-0.orc"
    with pytest.raises(Exception, match="other users can write to"):
        read(spark, stored, address, tmp_path / "open")
    with pytest.raises(Exception, match=r"cache\.size is 'much': give a size such as 10 gb"):
        read(spark, stored, address, tmp_path / "cache", "much")


def test_names_are_those_of_python(spark: SparkSession, tmp_path: Path) -> None:
    for case in VECTORS["blocks"]:
        folder = str(tmp_path / "cache")
        assert check(spark).name(folder, case["address"], case["size"], case["block"]) == case["file"]
    names: Any = spark.sparkContext._jvm
    for case in VECTORS["names"]:
        kept = names.io.lockgate.spark.files.io.CachedFiles.neverChanges(case["name"])
        assert kept is case["never_changes"]
