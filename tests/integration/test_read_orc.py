"""`lake.read_orc`: folders of ORC files that Spark, Hive or Lockgate wrote, encrypted, as DataFrames."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lockgate.errors import (
    CorruptFileError,
    InputError,
    IntegrityError,
    MaskedDataWarning,
    NotFoundError,
    StorageDeniedError,
    WrongKeyError,
)
from lockgate.framework.keys import KeyProvider, MemoryKeyProvider, NoKeys, create_key_file
from lockgate.framework.orc import write_table
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.operations import key_operations

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

KEYS = MemoryKeyProvider({"pii@0": b"0123456789abcdef", "fin@0": bytes(range(32))})
ROWS = [(i, f"ssn-{i:04d}", i % 3, float(i)) for i in range(3000)]
COLUMNS = "id INT, ssn STRING, day INT, pay DOUBLE"


def _spark_writes(spark: SparkSession, path: Path, keys: KeyProvider = KEYS, mode: str = "error") -> None:
    """Write an encrypted, partitioned folder by Spark's own ORC source."""
    frame = spark.createDataFrame(ROWS, COLUMNS).repartition(2)
    (
        frame.write.mode(mode)
        .partitionBy("day")
        .option("orc.key.provider", f"lockgate:{dispatcher().scopes.register(keys)}")
        .option("orc.encrypt", "pii:ssn;fin:pay")
        .option("orc.mask", "sha256:ssn;nullify:pay")
        .orc(str(path))
    )


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that Spark wrote: six files in three partitions, under two keys."""
    path = tmp_path_factory.mktemp("folder") / "by spark=x"
    _spark_writes(spark, path)
    assert len(list(path.rglob("*.orc"))) == 6
    return path


def test_values_with_the_keys(lake: Lake, by_spark: Path) -> None:
    frame = lake.read_orc(by_spark, keys=KEYS)
    assert frame.columns == ["id", "ssn", "pay", "day"]
    assert all(field.metadata == {} for field in frame.schema)
    assert sorted((row.id, row.ssn, row.day, row.pay) for row in frame.collect()) == ROWS


def test_projection_and_filters_reach_the_files(lake: Lake, by_spark: Path) -> None:
    frame = lake.read_orc(by_spark, keys=KEYS).where("ssn = 'ssn-0007' AND day = 1").select("id")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(ssn,ssn-0007)" in plan
    assert "PartitionFilters: [isnotnull(day" in plan
    assert "ReadSchema: struct<id:int,ssn:string>" in plan
    assert frame.collect() == [(7,)]


def test_masks_without_a_key(lake: Lake, spark: SparkSession, by_spark: Path) -> None:
    only_fin = MemoryKeyProvider({"fin@0": bytes(range(32))})
    with pytest.warns(MaskedDataWarning, match=r"read as its mask: ssn \(key pii@0\)"):
        frame = lake.read_orc(by_spark, keys=only_fin)
    assert {field.name: field.metadata for field in frame.schema if field.metadata} == {
        "ssn": {"lockgate.masked": "pii@0"}
    }
    digest = spark.sql("SELECT upper(sha2('ssn-0007', 256))").collect()[0][0]
    assert frame.where(f"ssn = '{digest}'").select("id", "pay").collect() == [(7, 7.0)]
    with pytest.warns(MaskedDataWarning, match=r"pay \(key fin@0\), ssn"):
        masked = lake.read_orc(by_spark, keys=NoKeys())
    assert masked.where("pay IS NULL").count() == len(ROWS)
    # One folder, three sets of keys, one JVM.
    assert lake.read_orc(by_spark, keys=KEYS).where("pay IS NULL").count() == 0


def test_a_wrong_key_is_found_before_a_row_is_decoded(lake: Lake, by_spark: Path) -> None:
    wrong = MemoryKeyProvider({"pii@0": b"another key here", "fin@0": bytes(range(32))})
    with pytest.raises(WrongKeyError, match=r"pii@0.*ssn"):
        lake.read_orc(by_spark, keys=wrong)


def test_a_file_that_was_replaced_since_is_refused(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    """Its keys were not proven, and Spark's reader would take wrong ones for right."""
    path = tmp_path / "folder"
    _spark_writes(spark, path)
    frame = lake.read_orc(path, keys=KEYS)
    assert frame.where("ssn IS NOT NULL").count() == len(ROWS)
    old = sorted(path.rglob("*.orc"))
    _spark_writes(spark, tmp_path / "other", MemoryKeyProvider({"pii@0": bytes(16), "fin@0": bytes(32)}))
    for file, other in zip(old, sorted((tmp_path / "other").rglob("*.orc")), strict=True):
        shutil.copyfile(other, file)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises(Exception, match=r"WrongKeyError.*call read_orc again"):
        frame.where("ssn IS NOT NULL").count()


def test_keys_by_a_text_and_the_lakes_own(
    lake: Lake, spark: SparkSession, tmp_path: Path, key_file: Path
) -> None:
    create_key_file(tmp_path / "keys.json", ["pii", "fin"])
    from lockgate.framework.keys import KeyFileProvider

    _spark_writes(spark, tmp_path / "folder", KeyFileProvider(tmp_path / "keys.json"))
    frame = lake.read_orc(tmp_path / "folder", keys=f"file:{tmp_path / 'keys.json'}")
    assert frame.agg({"ssn": "max"}).collect() == [("ssn-2999",)]
    # ORC keeps what it makes of a scope, so the same keys must be the same scope each time.
    scopes = dispatcher().scopes
    known = len(scopes._plans)
    lake.read_orc(tmp_path / "folder", keys=f"file:{tmp_path / 'keys.json'}")
    assert len(scopes._plans) == known
    table = pa.table({"id": [1, 2], "ssn": ["a", "b"]})
    (tmp_path / "own").mkdir()
    write_table(table, tmp_path / "own" / "a.orc", encrypt="pii:ssn", keys=f"file:{key_file}")
    assert sorted(map(tuple, lake.read_orc(tmp_path / "own").collect())) == [(1, "a"), (2, "b")]


def test_files_of_hive_without_names(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "hive"
    scope = dispatcher().scopes.register(KEYS)
    (
        spark.createDataFrame([(i, f"ssn-{i}") for i in range(100)], "_col0 INT, _col1 STRING")
        .write.option("orc.key.provider", f"lockgate:{scope}")
        .option("orc.encrypt", "pii:_col1")
        .orc(str(path))
    )
    with pytest.raises(InputError, match=r"without the names of its 2 columns \(_col0, _col1\).*schema="):
        lake.read_orc(path, keys=KEYS)
    with pytest.raises(InputError, match="the schema names 1 columns"):
        lake.read_orc(path, keys=KEYS, schema="id INT")
    frame = lake.read_orc(path, keys=KEYS, schema="id INT, ssn STRING")
    assert frame.where("ssn = 'ssn-42'").collect() == [(42, "ssn-42")]
    with pytest.warns(MaskedDataWarning, match=r"ssn \(key pii@0\)"):
        masked = lake.read_orc(path, keys=NoKeys(), schema="id INT, ssn STRING")
    assert masked.schema["ssn"].metadata == {"lockgate.masked": "pii@0"}
    assert masked.where("ssn IS NULL").count() == 100


def test_tags_are_checked(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "tagged" / "a.orc"
    path.parent.mkdir()
    table = pa.table({"id": range(1000), "ssn": [f"s{i}" for i in range(1000)]})
    write_table(table, path, encrypt="pii:ssn", keys=KEYS, compression="none")
    assert lake.read_orc(path.parent, keys=KEYS, integrity="require").count() == 1000
    damaged = bytearray(path.read_bytes())
    damaged[200] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(IntegrityError):
        lake.read_orc(path.parent, keys=KEYS)
    assert lake.read_orc(path.parent, keys=KEYS, integrity="ignore").columns == ["id", "ssn"]


def test_require_refuses_files_without_tags(lake: Lake, by_spark: Path) -> None:
    with pytest.raises(IntegrityError, match="has no tags"):
        lake.read_orc(by_spark, keys=KEYS, integrity="require")


def test_what_is_no_folder_of_orc_files(lake: Lake, tmp_path: Path, by_spark: Path) -> None:
    with pytest.raises(NotFoundError, match="does not exist or holds no ORC files"):
        lake.read_orc(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="holds no ORC files"):
        lake.read_orc(tmp_path / "empty")
    with pytest.raises(InputError, match="name the keys by keys="):
        lake.read_orc(by_spark, **{"orc.key.provider": "hadoop"})
    with pytest.raises(AnalysisException):
        lake.read_orc(by_spark, keys=KEYS).select("nothing")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _garbled(path: Path) -> None:
    path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))


HARMS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "cut": _cut,
    "garbled": _garbled,
    "another file": lambda path: path.write_text("id,ssn\n1,none\n" * 100),
}


@pytest.fixture
def two_files(tmp_path: Path) -> list[Path]:
    """A folder with two encrypted files of a row each."""
    folder = tmp_path / "two"
    folder.mkdir()
    paths = [folder / f"{number}.orc" for number in range(2)]
    for number, path in enumerate(paths):
        table = pa.table({"id": [number], "ssn": [f"ssn-{number}"]})
        write_table(table, path, encrypt="pii:ssn", keys=KEYS)
    return paths


@pytest.mark.parametrize("harm", ["cut", "garbled", "another file"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_harmed_file_is_named_before_a_row_is_read(
    lake: Lake, two_files: list[Path], harm: str, which: int
) -> None:
    """Also where Spark fails first, which looks for the schema in one of the files."""
    HARMS[harm](two_files[which])
    for schema in (None, "id BIGINT, ssn STRING"):
        with pytest.raises(CorruptFileError, match=rf"two/{which}\.orc"):
            lake.read_orc(two_files[0].parent, keys=KEYS, schema=schema)


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_is_harmed_later_is_named_by_spark(lake: Lake, two_files: list[Path], harm: str) -> None:
    frame = lake.read_orc(two_files[0].parent, keys=KEYS)
    HARMS[harm](two_files[1])
    with pytest.raises(Exception, match=r"FAILED_READ_FILE[^\n]*two/1\.orc"):
        frame.collect()


def test_a_closed_file_is_named(lake: Lake, two_files: list[Path]) -> None:
    """As one of another user is: in a process without the rights of root, which see every file."""
    frame = lake.read_orc(two_files[0].parent, keys=KEYS)
    two_files[1].chmod(0)
    if os.access(two_files[1], os.R_OK):
        pytest.skip("root may read every file")
    with pytest.raises(StorageDeniedError, match=r"two/1\.orc"):
        lake.read_orc(two_files[0].parent, keys=KEYS)
    with pytest.raises(Exception, match=r"FAILED_READ_FILE[^\n]*two/1\.orc"):
        frame.collect()


def test_a_file_without_a_byte_has_no_rows(lake: Lake, two_files: list[Path]) -> None:
    """As Hive's writers leave one where there was nothing to write."""
    frame = lake.read_orc(two_files[0].parent, keys=KEYS)
    two_files[1].write_bytes(b"")
    assert frame.collect() == [(0, "ssn-0")]
    assert lake.read_orc(two_files[0].parent, keys=KEYS).collect() == [(0, "ssn-0")]


def test_no_secret_in_confs_plans_or_event_log(
    lake: Lake,
    spark: SparkSession,
    by_spark: Path,
    event_log: Callable[[], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unwrapped: list[bytes] = []

    def unwrap(context: Any, request: dict[str, Any]) -> Any:
        reply = key_operations.OPERATIONS["keys.unwrap"](context, request)
        unwrapped.append(base64.b64decode(reply["plain"]))
        return reply

    from lockgate.framework.spark.bridge import dispatcher as module

    monkeypatch.setitem(module._OWN, "keys.unwrap", unwrap)
    fresh = MemoryKeyProvider({"pii@0": b"0123456789abcdef", "fin@0": bytes(range(32))})
    frame = lake.read_orc(by_spark, keys=fresh).where("ssn > 'ssn-0500'").groupBy("day").max("pay")
    # Else Spark shortens the folder's name in plans, and what stands behind it.
    spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
    try:
        frame.collect()
        plan = frame._jdf.queryExecution().toString()
    finally:
        spark.conf.unset("spark.sql.maxMetadataStringLength")
    assert unwrapped, "executors ask the driver"
    _assert_nowhere(
        [b"0123456789abcdef", bytes(range(32)), *unwrapped],
        {
            "confs": json.dumps(
                [*spark.sparkContext.getConf().getAll(), *map(tuple, spark.sql("SET -v").collect())]
            ).encode(),
            "plan": plan.encode(),
            "event log": event_log(),
            "repr": repr((fresh, dispatcher().scopes.provider(dispatcher().scopes.register(fresh)))).encode(),
        },
        seen=b"by spark",
    )


def _assert_nowhere(keys: list[bytes], texts: dict[str, bytes], seen: bytes) -> None:
    assert seen in texts["plan"]
    assert seen in texts["event log"]
    for key in keys:
        encoded = base64.b64encode(key).rstrip(b"=")
        for spelling in (key, key.hex().encode(), key.hex().upper().encode(), encoded):
            assert [where for where, text in texts.items() if spelling in text] == []
