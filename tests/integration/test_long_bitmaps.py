"""Roaring bitmaps of 64 bits, compared with Java's own class in both directions."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.store.codec.roaring64 import Roaring64

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

FIXTURES = Path(__file__).parents[1] / "fixtures"
VECTORS = json.loads((FIXTURES / "roaring64.json").read_text(encoding="utf-8"))["vectors"]


class JavaBitmaps:
    """Bitmaps of Spark's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm

    def make(self, ranges: list[list[int]]) -> Any:
        """Return a bitmap to which the numbers were added one range behind the other."""
        found = self._jvm.org.roaringbitmap.longlong.Roaring64Bitmap()
        for start, *rest in ranges:
            stop, step = (*rest, 1)[:2]
            if step == 1 and stop - start > 100:
                # A range goes upward without a sign: the numbers below 0 are the largest.
                for low, high in ((start, min(stop, 0)), (max(start, 0), stop)):
                    if low < high - 1:
                        found.addRange(low, high - 1)
                    if low < high:
                        found.addLong(high - 1)
                continue
            for number in range(start, stop, step):
                found.addLong(number)
        found.runOptimize()
        return found

    def bytes_of(self, bitmap: Any) -> bytes:
        sink = self._jvm.java.io.ByteArrayOutputStream()
        bitmap.serialize(self._jvm.java.io.DataOutputStream(sink))
        return bytes(sink.toByteArray())

    def read(self, stored: bytes) -> Any:
        found = self._jvm.org.roaringbitmap.longlong.Roaring64Bitmap()
        source = self._jvm.java.io.ByteArrayInputStream(bytearray(stored))
        found.deserialize(self._jvm.java.io.DataInputStream(source))
        return found


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> JavaBitmaps:
    return JavaBitmaps(spark)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_vectors_are_javas(java: JavaBitmaps, vector: dict[str, Any]) -> None:
    stored = base64.b64decode(vector["java"])
    if vector["ascending"]:
        assert java.bytes_of(java.make(vector["numbers"])) == stored
    assert java.read(Roaring64.deserialize(stored).serialize()).equals(java.read(stored))


@pytest.mark.parametrize("seed", range(12))
def test_random_sets_are_read_in_both_directions(java: JavaBitmaps, seed: int) -> None:
    chosen = Random(seed)
    spread = chosen.choice([2**18, 2**24, 2**36, 2**63])
    ranges = []
    for _ in range(chosen.choice([0, 1, 5, 60, 300])):
        start = chosen.randrange(-spread, spread)
        ranges.append([start, min(start + chosen.choice([1, 1, 1, 40, 70_000]), 2**63 - 1)])
    theirs = java.make(ranges)
    # In any order of additions, and with some taken back: no tree or list is then as it would be otherwise.
    gone = [start for start, stop in ranges if stop - start == 1][::3]
    for number in gone:
        theirs.removeLong(number)
    ours = Roaring64.deserialize(java.bytes_of(theirs))
    left = {number for each in ranges for number in range(*each)} - {*gone}
    assert set(ours) == left
    assert java.read(ours.serialize()).equals(theirs)


def test_the_merge_unites_as_java_does(java: JavaBitmaps, spark: SparkSession) -> None:
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance  # type: ignore[union-attr]  # the JVM runs
    case = json.loads((FIXTURES / "merge" / "engine_bitmaps64.json").read_text())
    names = [column["name"] for column in case["columns"]]
    at = names.index("u")
    for row in json.loads(conformance.merge(json.dumps(case), 1, 1)):
        parts = [each[at] for run in case["inputs"] for each in run if each[0] == row[0] and each[at]]
        both = java.make([])
        for part in parts:
            getattr(both, "or")(java.read(base64.b64decode(part)))
        assert java.read(base64.b64decode(row[at])).equals(both)


def test_damaged_bitmaps_are_named(spark: SparkSession) -> None:
    conformance: Any = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance  # type: ignore[union-attr]  # the JVM runs
    case = json.loads((FIXTURES / "merge" / "engine_bitmaps64.json").read_text())
    at = [column["name"] for column in case["columns"]].index("u")
    row = next(row for run in case["inputs"] for row in run if row[at])
    whole = Roaring64.of([1, 5, 1 << 40]).serialize()
    # Lengths of lists, of arrays and of prefixes that say more than there is.
    large = [
        whole.replace(b"\xfe\2\0\0\0", b"\xfe\xff\xff\xff\x7f"),
        whole.replace(b"\2\2\0\0\0", b"\2\xff\xff\xff\x7f"),
    ]
    deep = b"\1" + bytes(8) + b"\0\1\0\0" * 1 + b"\0\0\0\0" + (b"\0\1\0\0" + bytes(4)) * 100_000
    for damaged in (b"", whole[:7], whole[:40], whole[:-30], *large, deep):
        later = list(row)
        later[at], later[1] = base64.b64encode(damaged).decode(), row[1] + 1
        given = json.dumps(case | {"inputs": [[row], [later]]})
        with pytest.raises(Exception, match=f"column 'u': a value of {len(damaged)} bytes is not a Roaring"):
            conformance.merge(given, 1, 1)


def test_a_table_unites_them(lake: Lake) -> None:
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.long_bitmaps")
    name = "lake.long_bitmaps.seen"
    lake.sql(
        f"CREATE TABLE {name} (k INT NOT NULL, u BINARY) TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1', "
        "'merge-engine' = 'aggregation', 'fields.u.aggregate-function' = 'rbm64')"
    )
    parts: list[list[int]] = [[1, 2**40], [-5, 7], []]
    for part in parts:
        lake.sql(f"INSERT INTO {name} VALUES (1, X'{Roaring64.of(part).serialize().hex()}')")
    expected = Roaring64.of(number for part in parts for number in part)
    (row,) = lake.sql(f"SELECT u FROM {name}").collect()
    assert bytes(row.u) == expected.serialize()
    python = lake.catalog.load_table("long_bitmaps.seen").read()
    assert python["u"].to_pylist() == [expected.serialize()]
    lake.sql("CALL lake.sys.compact('long_bitmaps.seen')")
    (row,) = lake.sql(f"SELECT u FROM {name}").collect()
    assert bytes(row.u) == expected.serialize()
    lake.sql("DROP NAMESPACE lake.long_bitmaps CASCADE")
