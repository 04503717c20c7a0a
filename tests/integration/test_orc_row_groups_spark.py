"""Skipping in files that Spark (ORC's Java writer) wrote: the result is full scan, then filter."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orc_random_rows as random_rows
import pyarrow as pa
import pytest
from orc_random_rows import FLAT, plain

from lockgate.errors import MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.read import row_groups
from lockgate.pushdown import col, filter_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The name is this module's own: the JVM keeps one keystore for all tests.
KEY = "orc_row_groups_spark"
KEYS = MemoryKeyProvider({f"{KEY}@0": bytes(range(16))})
ROWS, STRIDE = 12_000, 1000
# The times of Spark's TIMESTAMP are instants; its TIMESTAMP_NTZ is stored as a number.
NAMES = [name for name in FLAT if name not in ("moment", "early")]

# codec, encrypted, more of ORC's own options: small chunks, several stripes, dictionaries or none
FILES: dict[str, tuple[str, bool, dict[str, str]]] = {
    "none": ("none", True, {"orc.stripe.row.count": "5000"}),
    "zlib": ("zlib", False, {"orc.compress.size": "4096", "orc.stripe.row.count": "5000"}),
    "snappy": ("snappy", True, {"orc.compress.size": "4096", "orc.dictionary.key.threshold": "0"}),
    "zstd": ("zstd", True, {"orc.row.index.stride": "1003"}),
    "lz4": ("lz4", False, {"orc.dictionary.key.threshold": "0"}),
}


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = random.Random(11)
    table = pa.table({"id": range(ROWS), **{name: random_rows.column(rng, name, ROWS) for name in NAMES}})
    early = [None if rng.random() < 0.1 else rng.randrange(-15 * 10**14, -(10**6)) for _ in range(ROWS)]
    table = table.append_column("early", pa.array(early, pa.timestamp("us", "UTC")))
    return table.append_column("nothing", pa.nulls(ROWS, pa.string()))


@pytest.fixture(scope="module")
def files(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("orc.key.provider", "memory")
    keystore = jvm.org.apache.orc.impl.CryptoUtils.getKeyProvider(conf, jvm.java.security.SecureRandom())
    keystore.addKey(KEY, jvm.org.apache.orc.EncryptionAlgorithm.AES_CTR_128, bytearray(range(16)))
    folder = tmp_path_factory.mktemp("java")
    frame = spark.createDataFrame(rows).coalesce(1).cache()
    found: dict[str, str] = {}
    for name, (codec, encrypted, more) in FILES.items():
        options = {
            "compression": codec,
            "orc.row.index.stride": str(STRIDE),
            "orc.bloom.filter.columns": ",".join(rows.schema.names),
            "orc.key.provider": "memory",
            **more,
        }
        if encrypted:
            options["orc.encrypt"] = f"{KEY}:{','.join(rows.schema.names[2:])}"
        frame.write.options(**options).orc(str(folder / name))
        (found[name],) = map(str, (folder / name).glob("*.orc"))
    frame.unpersist()
    yield found
    # An empty cache makes the next user of the JVM start afresh.
    field = jvm.java.lang.Class.forName("org.apache.orc.impl.CryptoUtils").getDeclaredField(
        "keyProviderCache"
    )
    field.setAccessible(True)
    field.get(None).clear()


@pytest.fixture(autouse=True)
def no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "GAP_ROWS", 0)


@pytest.mark.parametrize("name", FILES)
def test_skipping_equals_a_full_scan(name: str, files: dict[str, str], rows: pa.Table) -> None:
    rng = random.Random(name)
    with EncryptedOrcFile(Path(files[name]), KEYS, timestamp_unit="us", threads=1) as file:
        everything = file.read()
        assert plain(everything) == plain(with_local_times(rows))
        skipped = 0
        for _ in range(40):
            predicate = random_rows.predicate(rng, everything.drop_columns(["early", "nothing"]))
            found = file.read(predicate=predicate)
            assert plain(found) == plain(filter_table(everything, predicate)), predicate
            skipped += file.last_read.row_groups_read < file.last_read.row_groups_total
        assert skipped > 10


@pytest.mark.parametrize("name", FILES)
def test_every_column_is_sliced_alone(name: str, files: dict[str, str], rows: pa.Table) -> None:
    expected = with_local_times(rows)
    with EncryptedOrcFile(Path(files[name]), KEYS, timestamp_unit="us", threads=1) as file:
        for column in rows.schema.names[1:]:
            for start in (0, 3456, 7999, 11_950):
                wanted = (col("id") >= start) & (col("id") < start + 50)
                found = file.read(["id", column], wanted)
                assert plain(found) == plain(expected.slice(start, 50).select(["id", column])), column
                assert file.last_read.row_groups_read <= 2, column


@pytest.mark.parametrize("name", [name for name, (_, encrypted, _) in FILES.items() if encrypted])
def test_without_the_key_the_mask_is_compared(name: str, files: dict[str, str]) -> None:
    rng = random.Random(name)
    with warnings.catch_warnings(), EncryptedOrcFile(files[name], timestamp_unit="us", threads=1) as file:
        warnings.simplefilter("ignore", MaskedDataWarning)
        everything = file.read()
        for _ in range(20):
            predicate = random_rows.predicate(rng, everything.drop_columns(["early", "nothing"]))
            assert plain(file.read(predicate=predicate)) == plain(filter_table(everything, predicate))


@pytest.mark.parametrize("name", FILES)
def test_bloom_filters_and_dictionaries_of_java(name: str, files: dict[str, str]) -> None:
    """Values that occur once are found, and most row groups without them are skipped."""
    with EncryptedOrcFile(files[name], KEYS, timestamp_unit="us", threads=1) as file:
        everything = file.read()
        for column in ["big", "double", "text", "raw", "day", "instant", "early", "amount", "huge"]:
            counted = everything[column].drop_null().value_counts()
            unique = counted.filter(pa.compute.equal(counted.field("counts"), 1)).field("values")
            skipped = 0
            for at in (1, len(unique) // 2, len(unique) - 2):
                predicate = col(column) == unique[at]
                assert plain(file.read(predicate=predicate)) == plain(filter_table(everything, predicate))
                skipped += file.last_read.bloom_skips
            # Of encrypted columns ORC's Java writer has no filters but those that it leaves in the clear.
            assert skipped == 0 if FILES[name][1] else skipped >= 3, column
        found = file.read(predicate=col("word").contains("no such") | col("word").isin(["b", "c"]))
        report = file.last_read
        assert found.num_rows == 0
        with_dictionary = "orc.dictionary.key.threshold" not in FILES[name][2]
        assert (report.dictionary_skips == report.stripes_total) is with_dictionary
        assert (report.stripes_read == 0) is with_dictionary


def with_local_times(rows: pa.Table) -> pa.Table:
    """Spark's TIMESTAMP is read back without its zone, which is UTC here."""
    for name in ("instant", "early"):
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, name, rows[name].cast(pa.timestamp("us")))
    return rows
