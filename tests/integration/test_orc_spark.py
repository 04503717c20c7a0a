"""Spark's own ORC reader and writer are the oracle: what one side encrypts, the other must read."""

from __future__ import annotations

import datetime
import os
import random
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import IntegrityError, MaskedDataWarning, WrongKeyError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, decrypt_file, rekey, write_table
from lockgate.framework.orc.write import assembled_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 3000
# The names are this module's own: the JVM keeps one keystore for all tests.
PII, FIN = "orc_spark_pii", "orc_spark_fin"
ENCRYPT = f"{PII}:ssn,email,born,raw,score;{FIN}:salary,counter,small,active,seen"
MASK = "sha256:email"


@pytest.fixture(scope="module")
def keys() -> MemoryKeyProvider:
    return MemoryKeyProvider({f"{PII}@0": os.urandom(16), f"{FIN}@0": os.urandom(32)})


@pytest.fixture(scope="module")
def spark_keys(spark: SparkSession, keys: MemoryKeyProvider) -> Iterator[dict[str, str]]:
    """Read and write options under which Spark holds the same keys, in ORC's in-memory keystore."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("orc.key.provider", "memory")
    keystore = jvm.org.apache.orc.impl.CryptoUtils.getKeyProvider(conf, jvm.java.security.SecureRandom())
    algorithms = jvm.org.apache.orc.EncryptionAlgorithm
    held = keys._keys._keys
    keystore.addKey(PII, algorithms.AES_CTR_128, bytearray(held[PII, 0]))
    keystore.addKey(FIN, algorithms.AES_CTR_256, bytearray(held[FIN, 0]))
    yield {"orc.key.provider": "memory"}
    # An empty cache makes the next user of the JVM start afresh.
    field = jvm.java.lang.Class.forName("org.apache.orc.impl.CryptoUtils").getDeclaredField(
        "keyProviderCache"
    )
    field.setAccessible(True)
    field.get(None).clear()


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = random.Random(7)
    rows = range(ROWS)
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "ssn": [f"{rng.randrange(10**9):09d}" for _ in rows],
            "email": [None if i % 7 == 0 else f"person{i}@example.org" for i in rows],
            "born": [datetime.date(1930, 1, 1) + datetime.timedelta(days=rng.randrange(30000)) for _ in rows],
            "raw": [rng.randbytes(i % 9) for i in rows],
            "score": [rng.gauss(0, 1) for _ in rows],
            "salary": pa.array(
                [Decimal(rng.randrange(10**9)).scaleb(-2) for _ in rows], pa.decimal128(12, 2)
            ),
            "counter": pa.array([rng.randrange(-(2**31), 2**31) for _ in rows], pa.int32()),
            "small": pa.array([None if i % 5 == 0 else i % 100 for i in rows], pa.int8()),
            "active": [i % 3 == 0 for i in rows],
            "seen": pa.array(
                [moment + datetime.timedelta(seconds=i, microseconds=i) for i in rows], pa.timestamp("us")
            ),
            "name": [f"name {i}" for i in rows],
            "tags": [["a"] * (i % 3) for i in rows],
        }
    )


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows from either side in one form: bytes for binaries, times without zone."""
    return [
        {
            name: bytes(value)
            if isinstance(value, bytearray)
            else value.replace(tzinfo=None)
            if isinstance(value, datetime.datetime)
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


@pytest.mark.parametrize("compression", ["zstd", "snappy", "zlib", "lz4", "none"])
def test_spark_reads_what_we_encrypt(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    people: pa.Table,
    tmp_path: Path,
    compression: str,
) -> None:
    path = str(tmp_path / "people.orc")
    write_table(
        people,
        path,
        encrypt=ENCRYPT,
        mask=MASK,
        keys=keys,
        compression=compression,
        stripe_size=20_000,
        row_index_stride=500,
        field_ids={name: index for index, name in enumerate(people.schema.names)},
    )
    with EncryptedOrcFile(path) as file:
        assert file.num_stripes > 1

    expected = plain(people.to_pylist())
    with_key = plain(rows_of(spark.read.options(**spark_keys).orc(path)))
    assert with_key == expected

    without = plain(rows_of(spark.read.orc(path)))
    assert [row["id"] for row in without] == [row["id"] for row in expected]
    assert [row["tags"] for row in without] == [row["tags"] for row in expected]
    masked = pyarrow.orc.read_table(path)
    for name in ("ssn", "born", "raw", "score", "salary", "counter", "small", "active", "seen"):
        assert all(row[name] is None for row in without)
    assert [row["email"] for row in without] == masked["email"].to_pylist()


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
def test_spark_reads_files_that_were_rekeyed_or_decrypted(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    people: pa.Table,
    tmp_path: Path,
    compression: str,
) -> None:
    """Streams, indexes and statistics that were moved without being decoded are right to Java's reader."""
    written, new, clear = (str(tmp_path / f"{name}.orc") for name in ("written", "new", "clear"))
    write_table(
        people,
        written,
        encrypt=ENCRYPT,
        mask=MASK,
        keys=keys,
        compression=compression,
        stripe_size=20_000,
        row_index_stride=500,
        bloom_filter_columns=["ssn"],
    )
    # The names of the keys change places, so the order of the variants in the file does, too.
    rekey(written, new, keys, rename={PII: FIN, FIN: PII})
    decrypt_file(written, clear, keys)
    expected = plain(people.to_pylist())
    assert plain(rows_of(spark.read.options(**spark_keys).orc(new))) == expected
    assert plain(rows_of(spark.read.orc(clear))) == expected
    assert all(row["ssn"] is None for row in plain(rows_of(spark.read.orc(new))))
    wanted = expected[ROWS // 2]
    for path in (new, clear):
        found = spark.read.options(**spark_keys).orc(path).where(f"ssn = '{wanted['ssn']}'")
        assert wanted in plain(rows_of(found))
        assert spark.read.options(**spark_keys).orc(path).where("ssn = '5x'").count() == 0


def test_spark_filters_by_the_encrypted_statistics(
    spark: SparkSession, spark_keys: dict[str, str], keys: MemoryKeyProvider, people: pa.Table, tmp_path: Path
) -> None:
    """Spark pushes these filters into its ORC reader, which skips by our encrypted statistics and filters."""
    path = str(tmp_path / "people.orc")
    write_table(
        people,
        path,
        encrypt=ENCRYPT,
        keys=keys,
        stripe_size=20_000,
        row_index_stride=500,
        bloom_filter_columns=["ssn"],
    )
    frame = spark.read.options(**spark_keys).orc(path)
    wanted = people["ssn"][1234].as_py()
    assert [row.id for row in frame.where(frame.ssn == wanted).collect()] == [1234]
    assert frame.where(frame.ssn == "absent").count() == 0
    expected = sum(value.as_py() > 1_000_000_000 for value in people["counter"])
    assert frame.where("counter > 1000000000").count() == expected
    assert frame.where("seen >= timestamp '2024-02-29 12:40:00'").count() == sum(
        value.as_py() >= datetime.datetime(2024, 2, 29, 12, 40) for value in people["seen"]
    )


def test_spark_finds_rows_by_our_bloom_filters(
    spark: SparkSession, spark_keys: dict[str, str], keys: MemoryKeyProvider, tmp_path: Path
) -> None:
    """No row group that holds the value is skipped, whatever its type."""
    rng = random.Random(17)
    numbers = [rng.randrange(-30_000, 30_000) for _ in range(ROWS)]
    columns = {
        "short": pa.array(numbers, pa.int16()),
        "long": pa.array([number * 10**12 for number in numbers], pa.int64()),
        "float": pa.array([number / 8 for number in numbers], pa.float32()),
        "double": pa.array([number / 7 for number in numbers]),
        "text": pa.array([f"é{number}" for number in numbers]),
        "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "amount": pa.array([Decimal(number).scaleb(-2) for number in numbers], pa.decimal128(12, 2)),
        "huge": pa.array([Decimal(number * 10**13).scaleb(-10) for number in numbers]),
        "moment": pa.array([number * 10**6 for number in numbers], pa.timestamp("us")),
        "early": pa.array([number * 10**6 - 10**12 - 1 for number in numbers], pa.timestamp("us")),
    }
    table = pa.table({"id": pa.array(range(ROWS), pa.int64())} | columns)
    path = str(tmp_path / "rows.orc")
    write_table(
        table,
        path,
        encrypt=f"{PII}:{','.join(columns)}",
        keys=keys,
        row_index_stride=500,
        bloom_filter_columns=list(columns),
    )
    frame = spark.read.options(**spark_keys).orc(path)
    wanted = [1, ROWS - 2]
    rows = {row.id: row for row in frame.where(frame.id.isin(wanted)).collect()}
    for name in columns:
        for number in wanted:
            found = frame.where(frame[name] == rows[number][name]).select("id").collect()
            same = [row for row, other in enumerate(numbers) if other == numbers[number]]
            assert sorted(row.id for row in found) == same, name


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("encrypt", [None, f"{PII}:t"])
def test_spark_reads_early_times(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    tmp_path: Path,
    compression: str,
    encrypt: str | None,
) -> None:
    """Fractions of seconds before 1970, which pyarrow alone writes so that Spark fails on them."""
    rng = random.Random(13)
    micros = sorted(rng.randrange(-(10**15), 10**15) for _ in range(ROWS))
    table = pa.table({"id": pa.array(range(ROWS), pa.int64()), "t": pa.array(micros, pa.timestamp("us"))})
    path = str(tmp_path / "early.orc")
    write_table(
        table,
        path,
        encrypt=encrypt,
        keys=keys,
        compression=compression,
        stripe_size=8000,
        row_index_stride=500,
    )
    frame = spark.read.options(**spark_keys).orc(path).selectExpr("id", "unix_micros(t) as micros", "t")
    assert [row.micros for row in frame.orderBy("id").collect()] == micros
    # The filter makes Spark skip row groups by our statistics, and seek to the others by our positions.
    for number in (777, ROWS - 1):
        found = frame.where(f"t >= timestamp_micros({micros[number]})").count()
        assert found == ROWS - number
        found = frame.where(f"t = timestamp_micros({micros[number]})").collect()
        assert [row.id for row in found] == [number]


@pytest.mark.parametrize("compression", ["zstd", "snappy", "zlib", "lz4", "none"])
def test_we_read_what_spark_encrypts(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    people: pa.Table,
    tmp_path: Path,
    compression: str,
) -> None:
    # A struct's field is encrypted too, which only the reader knows.
    frame = spark.createDataFrame(spark_rows(people), spark_schema()).selectExpr(
        "*", "named_struct('street', ssn, 'number', counter) as address"
    )
    folder = tmp_path / "people"
    frame.coalesce(1).write.options(**spark_keys).option("orc.encrypt", f"{ENCRYPT},address.street").option(
        "orc.mask", MASK
    ).option("orc.stripe.size", "20000").option("orc.row.index.stride", "1000").orc(
        str(folder), compression=compression
    )
    (path,) = folder.glob("*.orc")

    with EncryptedOrcFile(path, keys, strict=True) as file:
        assert file.masked_columns == []
        read = file.read()
    expected = plain(rows_of(frame))
    assert plain(read.to_pylist()) == expected

    with EncryptedOrcFile(path) as file, pytest.warns(MaskedDataWarning, match="ssn"):
        masked = file.read()
    assert masked["ssn"].null_count == ROWS
    assert all(address["street"] is None for address in masked["address"].to_pylist())
    assert masked["name"].to_pylist() == read["name"].to_pylist()
    assert masked["email"].to_pylist() == pyarrow.orc.read_table(path)["email"].to_pylist()

    only_pii = MemoryKeyProvider({f"{PII}@0": keys._keys._keys[PII, 0]})
    with EncryptedOrcFile(path, only_pii) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        partly = file.read()
    assert partly["ssn"].to_pylist() == read["ssn"].to_pylist()
    assert partly["salary"].null_count == ROWS


def merge(spark: SparkSession, provider: str, paths: list[Path], merged: Path) -> int:
    """Merge files by Apache ORC; returns how many it took."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("orc.key.provider", provider)
    inputs = jvm.java.util.ArrayList([jvm.org.apache.hadoop.fs.Path(str(path)) for path in paths])
    orc = jvm.org.apache.orc.OrcFile
    return len(orc.mergeFiles(jvm.org.apache.hadoop.fs.Path(str(merged)), orc.writerOptions(conf), inputs))


def halves(people: pa.Table, folder: Path, keys: MemoryKeyProvider) -> list[Path]:
    paths = [folder / f"part{number}.orc" for number in range(2)]
    for number, path in enumerate(paths):
        half = people.slice(number * ROWS // 2, ROWS // 2)
        write_table(half, path, encrypt=ENCRYPT, mask=MASK, keys=keys, stripe_size=40_000)
    return paths


def test_files_merged_by_apache_orc(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    people: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Merging copies stripes with their keys and numbers: both change in the middle of the file."""
    monkeypatch.setattr(assembled_file, "TagMaker", lambda: None)  # Java does not merge files with tags.
    paths, merged = halves(people, tmp_path, keys), tmp_path / "merged.orc"
    assert merge(spark, spark_keys["orc.key.provider"], paths, merged) == 2
    with EncryptedOrcFile(merged, keys, strict=True, timestamp_unit="us") as file:
        assert file.integrity == "absent"
        assert file.read().equals(people)
        assert file.statistics["ssn"].maximum == max(people["ssn"].to_pylist())
    wrong = MemoryKeyProvider({f"{PII}@0": bytes(16), f"{FIN}@0": bytes(32)})
    with pytest.raises(WrongKeyError):
        EncryptedOrcFile(merged, wrong)


def test_apache_orc_does_not_merge_files_with_tags(
    spark: SparkSession,
    spark_keys: dict[str, str],
    keys: MemoryKeyProvider,
    people: pa.Table,
    tmp_path: Path,
) -> None:
    """It takes the first: the user metadata of the second differ. The tail it writes has no fitting tag."""
    paths, merged = halves(people, tmp_path, keys), tmp_path / "merged.orc"
    assert merge(spark, spark_keys["orc.key.provider"], paths, merged) == 1
    with pytest.raises(IntegrityError):
        EncryptedOrcFile(merged, keys)
    with EncryptedOrcFile(merged, keys, integrity="ignore", timestamp_unit="us") as file:
        assert file.read().equals(people.slice(0, ROWS // 2))


def spark_schema() -> str:
    return (
        "id bigint, ssn string, email string, born date, raw binary, score double, salary decimal(12,2), "
        "counter int, small tinyint, active boolean, seen timestamp, name string, tags array<string>"
    )


def spark_rows(people: pa.Table) -> list[tuple[Any, ...]]:
    return [
        tuple(
            value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) else value
            for value in row.values()
        )
        for row in people.to_pylist()
    ]
