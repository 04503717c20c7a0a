"""Masks against those of Apache's Java writer, and Spark as the reader of all that Python masks."""

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

from lockgate.errors import MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, parse_encryption, write_table
from lockgate.framework.orc.format.column_paths import ColumnTree
from lockgate.framework.orc.masks.masks import ColumnMasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 3000
# The names are this module's own: the JVM keeps one keystore for all tests.
PII, FIN = "orc_masks_pii", "orc_masks_fin"


@pytest.fixture(scope="module")
def keys() -> MemoryKeyProvider:
    return MemoryKeyProvider({f"{PII}@0": os.urandom(16), f"{FIN}@0": os.urandom(32)})


@pytest.fixture(scope="module")
def held(spark: SparkSession, keys: MemoryKeyProvider) -> Iterator[dict[str, str]]:
    """Read and write options under which Spark holds the same keys, in ORC's in-memory keystore."""
    jvm: Any = spark.sparkContext._jvm
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set("orc.key.provider", "memory")
    keystore = jvm.org.apache.orc.impl.CryptoUtils.getKeyProvider(conf, jvm.java.security.SecureRandom())
    algorithms = jvm.org.apache.orc.EncryptionAlgorithm
    keystore.addKey(PII, algorithms.AES_CTR_128, bytearray(keys._keys._keys[PII, 0]))
    keystore.addKey(FIN, algorithms.AES_CTR_256, bytearray(keys._keys._keys[FIN, 0]))
    yield {"orc.key.provider": "memory"}
    # An empty cache makes the next user of the JVM start afresh.
    cache = jvm.java.lang.Class.forName("org.apache.orc.impl.CryptoUtils").getDeclaredField(
        "keyProviderCache"
    )
    cache.setAccessible(True)
    cache.get(None).clear()


def rows() -> dict[str, tuple[pa.DataType, list[Any]]]:
    rng = random.Random(5)
    day, moment = datetime.date(1950, 1, 1), datetime.datetime(1999, 12, 31, 23, 59, 58)

    def some(make: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else make(index) for index in range(ROWS)]

    def whole(bits: int) -> Any:
        return lambda _: rng.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)) >> rng.randrange(bits)

    return {
        "byte": (pa.int8(), some(whole(8))),
        "short": (pa.int16(), some(whole(16))),
        "int": (pa.int32(), some(whole(32))),
        "long": (pa.int64(), some(whole(64))),
        "float": (pa.float32(), some(lambda _: rng.gauss(0, 10.0 ** rng.randrange(-5, 20)))),
        "double": (pa.float64(), some(lambda _: rng.gauss(0, 10.0 ** rng.randrange(-200, 200)))),
        "eighths": (pa.float64(), some(lambda _: (rng.randrange(-(2**40), 2**40) >> rng.randrange(40)) / 8)),
        "wide": (
            pa.decimal128(30, 6),
            some(lambda _: Decimal(rng.randrange(-(10**20), 10**20) >> rng.randrange(64)).scaleb(-6)),
        ),
        "flag": (pa.bool_(), some(lambda index: index % 3 == 0)),
        "day": (pa.date32(), some(lambda index: day + datetime.timedelta(days=index * 11))),
        "moment": (
            pa.timestamp("us"),
            some(lambda index: moment + datetime.timedelta(hours=index * 7, microseconds=index)),
        ),
    }


@pytest.fixture(scope="module")
def flat() -> pa.Table:
    """What Java redacts without an error, flat and as parts of a struct that is never null."""
    columns = {name: pa.array(values, type_) for name, (type_, values) in rows().items()}
    names = ["long", "eighths", "day"]
    inner = pa.StructArray.from_arrays([columns[name] for name in names], names)
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns, "inner": inner})


def masked_here(table: pa.Table, encrypt: str, mask: str | None) -> pa.Table:
    tree = ColumnTree(table.schema)
    masks = ColumnMasks(parse_encryption(encrypt, mask, table.schema), tree)
    columns = [
        masks.mask_column(top, column) if any(number in masks.by_number for number in top.numbers) else column
        for top, column in zip(tree.top, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def masked_by_java(
    spark: SparkSession, held: dict[str, str], table: pa.Table, folder: Path, encrypt: str, mask: str | None
) -> pa.Table:
    plain, encrypted = str(folder / "plain.orc"), str(folder / "encrypted")
    write_table(table, plain)
    options = {**held, "orc.encrypt": encrypt} | ({"orc.mask": mask} if mask else {})
    spark.read.orc(plain).coalesce(1).write.options(**options).mode("overwrite").orc(encrypted)
    [part] = Path(encrypted).glob("*.orc")
    # pyarrow knows nothing of encryption, so that it reads the masks.
    return pyarrow.orc.read_table(str(part)).sort_by("id")


@pytest.mark.parametrize(
    "mask",
    [
        None,
        "redact",
        "redact,Xx7",
        "redact,Xx0",
        "redact,Xx_",
        "redact,Xx3,`2000 _ _ 15 0 _`",
        "redact,Xx8,`_ 2 31 _ 7`",
        "redact,Xx5,`_ _ _ _ _ _`,`0:1,-2:-1`",
        "redact,Xx9,`_ 1`,`2:3`",
    ],
)
def test_java_redacts_alike(
    spark: SparkSession, held: dict[str, str], flat: pa.Table, tmp_path: Path, mask: str | None
) -> None:
    # Before version 19, Java writes doubles as text with more digits than they need, and masks those.
    left = ("id", "inner", "float", "double") if mask and mask.count("`") > 2 else ("id", "inner")
    whole = ",".join(name for name in flat.schema.names if name not in left)
    parts = "inner.long,inner.eighths,inner.day"
    encrypt = f"{PII}:{whole};{FIN}:{parts}"
    masks = mask and f"{mask}:{whole},{parts}"
    theirs = masked_by_java(spark, held, flat, tmp_path, encrypt, masks)
    ours = masked_here(flat, encrypt, masks)
    differing = {name: first_difference(flat[name], theirs[name], ours[name]) for name in flat.schema.names}
    assert {name: found for name, found in differing.items() if found} == {}


def first_difference(values: pa.ChunkedArray, theirs: pa.ChunkedArray, ours: pa.ChunkedArray) -> Any:
    # Spark's times are in nanoseconds when pyarrow reads them.
    found = zip(values.to_pylist(), theirs.cast(ours.type).to_pylist(), ours.to_pylist(), strict=True)
    return next(
        (f"{value!r}: {their!r} by Java, {our!r} here" for value, their, our in found if their != our), None
    )


def test_java_hashes_alike(spark: SparkSession, held: dict[str, str], tmp_path: Path) -> None:
    texts = [None if index % 9 == 0 else f"Größe {index % 700}" * (index % 4) for index in range(ROWS)]
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "text": texts,
            "inner": pa.StructArray.from_arrays(
                [pa.array(texts), pa.array(range(ROWS), pa.int32())], ["t", "n"]
            ),
        }
    )
    encrypt, mask = f"{PII}:text;{FIN}:inner", "sha256:text,inner"
    theirs = masked_by_java(spark, held, table, tmp_path, encrypt, mask)
    assert theirs.to_pylist() == masked_here(table, encrypt, mask).to_pylist()


@pytest.fixture(scope="module")
def everything(flat: pa.Table) -> pa.Table:
    """Columns of every type, with nested ones in which there are nulls at every level."""
    texts = [None if index % 7 == 0 else f"Text {index % 900} ä" for index in range(ROWS)]
    return pa.table(
        {
            **{name: flat[name] for name in flat.schema.names if name != "inner"},
            "narrow": pa.array(
                [Decimal(index - 900).scaleb(-2) for index in range(ROWS)], pa.decimal128(9, 2)
            ),
            "text": texts,
            "raw": [text and text.encode() for text in texts],
            "address": [
                {"zip": f"{index:05d}", "street": texts[index], "geo": {"lat": index / 7}}
                if index % 5
                else None
                for index in range(ROWS)
            ],
            "lst": [
                [{"q": index + at, "r": texts[index]} for at in range(index % 3)] if index % 4 else None
                for index in range(ROWS)
            ],
            "mp": pa.array(
                [[(f"k{index}", index), (f"j{index}", None)][: index % 3] for index in range(ROWS)],
                pa.map_(pa.string(), pa.int64()),
            ),
        }
    )


NAMES = "byte,short,int,long,float,double,eighths,wide,flag,day,moment,narrow,text,raw"


@pytest.mark.parametrize(
    ("encrypt", "mask", "codec"),
    [
        (f"{PII}:{NAMES};{FIN}:address,lst,mp", None, "zstd"),
        pytest.param(
            f"{PII}:{NAMES};{FIN}:address,lst,mp",
            f"redact,Xx9:{NAMES};redact:address,lst,mp",
            "snappy",
            marks=pytest.mark.long,
        ),
        pytest.param(
            f"{PII}:text,raw;{FIN}:address,lst,mp",
            "sha256:text,raw,address,lst,mp",
            "none",
            marks=pytest.mark.long,
        ),
        (
            f"{PII}:address.zip,lst._elem.q,mp._key,mp._value;{FIN}:address.geo",
            "sha256:address.zip;redact:mp._key,address.geo",
            "zstd",
        ),
    ],
    ids=["nullify", "redact", "sha256", "parts"],
)
def test_spark_reads_what_python_masks(
    spark: SparkSession,
    held: dict[str, str],
    keys: MemoryKeyProvider,
    everything: pa.Table,
    tmp_path: Path,
    encrypt: str,
    mask: str | None,
    codec: str,
) -> None:
    paths = {name: str(tmp_path / f"{name}.orc") for name in ("encrypted", "plain", "masked")}
    options = {"compression": codec, "stripe_size": 100_000, "row_index_stride": 500}
    if mask and "sha256:text,raw,address" in mask:
        # The keys of this map are texts, and so have a digest; its values are null.
        assert everything.schema.field("mp").type.key_type == pa.string()
    write_table(
        everything,
        paths["encrypted"],
        encrypt=encrypt,
        mask=mask,
        keys=keys,
        bloom_filter_columns=["text"],
        **options,
    )
    write_table(everything, paths["plain"], **options)
    write_table(masked_here(everything, encrypt, mask), paths["masked"], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        with EncryptedOrcFile(paths["encrypted"]) as file:
            assert file.num_stripes > 1
    frames = {name: comparable(spark.read.orc(path)) for name, path in paths.items()}
    with_key = comparable(spark.read.options(**held).orc(paths["encrypted"]))
    assert differences(with_key, frames["plain"]) == (0, 0)
    assert differences(frames["encrypted"], frames["masked"]) == (0, 0)
    assert differences(frames["encrypted"], frames["plain"]) != (0, 0)


def comparable(frame: DataFrame) -> DataFrame:
    """Maps as lists of their entries, since Spark compares no maps."""
    from pyspark.sql import functions

    return frame.withColumn("mp", functions.map_entries("mp"))


def differences(left: DataFrame, right: DataFrame) -> tuple[int, int]:
    return left.exceptAll(right).count(), right.exceptAll(left).count()
