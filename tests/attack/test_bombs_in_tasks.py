"""ORC files that are small on the disk and huge in memory, read by Spark's tasks: refused by name."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from orc_bombs import DICTIONARY_V2, LENGTH, ROW_INDEX, Parts, field_of, rebuilt
from pyspark.errors import PySparkException

from lockgate.framework.io.limits import LIMIT_VARIABLE, most_unpacked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# Protobuf itself stops at a gigabyte.
HUGE = 768 << 20
LIMITS = json.loads((Path(__file__).parents[1] / "fixtures" / "limits.json").read_text())


def footer_bomb(parts: Parts) -> None:
    # An item of user metadata, whose value is all zeros.
    head = field_of(2, HUGE)
    parts.behind_footer = parts.zeros(field_of(5, HUGE + len(head)) + head, HUGE)


def stripe_footer_bomb(parts: Parts) -> None:
    parts.behind_stripe = parts.zeros(field_of(100, HUGE), HUGE)


def index_bomb(parts: Parts) -> None:
    at = [stream.kind for stream in parts.stripe.streams].index(ROW_INDEX, 1)
    parts.streams[at] = parts.zeros(field_of(100, HUGE), HUGE)


def index_bomb_called_data(parts: Parts) -> None:
    index_bomb(parts)
    parts.streams.reverse()
    streams = list(reversed(list(parts.stripe.streams)))
    del parts.stripe.streams[:]
    parts.stripe.streams.extend(streams)


def block_claim(parts: Parts) -> None:
    parts.postscript.compression_block_size = (1 << 31) - 1


def dictionary_claim(parts: Parts) -> None:
    parts.stripe.columns[-1].kind = DICTIONARY_V2
    parts.stripe.columns[-1].dictionary_size = (1 << 31) - 1


def value_claim(parts: Parts) -> None:
    # Three texts of 700 million bytes each, in a run of six bytes.
    at = [stream.kind for stream in parts.stripe.streams].index(LENGTH)
    parts.streams[at] = parts.framed(bytes([3 << 3]) + (700_000_000).to_bytes(4, "big"))


BOMBS = {
    footer_bomb: r"its footer: its \d+ bytes unpack to more than",
    stripe_footer_bomb: r"the footer of stripe 0: its \d+ bytes unpack to more than",
    index_bomb: r"the indexes of a stripe: its \d+ bytes unpack to more than",
    index_bomb_called_data: r"CorruptFileError",
    block_claim: "a compression block cannot have 2147483647 bytes",
    dictionary_claim: "claims a dictionary of 2147483647 entries",
    value_claim: "CorruptFileError: reading data file .* takes more memory than this process has",
}


def with_file(lake: Lake, name: str, change: Callable[[Parts], None], **options: str) -> str:
    """Make a table whose one data file was changed, in a manifest that fits it; return the file's name."""
    lake.spark.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    for option, value in options.items():
        lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{option.replace('_', '.')}' = '{value}')")
    table = lake.catalog.load_table(name.partition(".")[2])
    texts = [f"text {number}" for number in range(3)]
    (message,) = table.write(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": texts}))
    (file,) = message.added
    path = Path(table.paths.data_file((), 0, file))
    path.write_bytes(rebuilt(path.read_bytes(), change))
    changed = dataclasses.replace(file, file_size=path.stat().st_size)
    assert changed.file_size < 2 << 20
    table.commit([dataclasses.replace(message, added=(changed,))])
    return path.name


def error_of(spark: SparkSession, statement: str) -> str:
    with pytest.raises(PySparkException) as raised:
        spark.sql(statement).collect()
    return str(raised.value)


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_bomb_is_named(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], bomb: Callable[[Parts], None]
) -> None:
    name = table("t")
    file = with_file(lake, name, bomb)
    jvm: Any = spark._jvm
    before = jvm.java.lang.Runtime.getRuntime().totalMemory()
    # The index is read for a filter alone, and left out where the driver knows that all rows match.
    said = error_of(spark, f"SELECT sum(id), max(v) FROM {name} WHERE v LIKE '%2' AND v >= 'text 2'")
    assert file in said
    assert name in said
    assert re.search(BOMBS[bomb], said), said
    # What values claim is met by the heap's own limit.
    assert bomb is value_claim or jvm.java.lang.Runtime.getRuntime().totalMemory() < before + (512 << 20)


def test_a_whole_file_is_read(spark: SparkSession, lake: Lake, table: Callable[[str], str]) -> None:
    for number, change in enumerate((lambda parts: None, small_surplus)):
        name = table(f"whole{number}")
        with_file(lake, name, change)
        assert spark.sql(f"SELECT count(v), max(v) FROM {name} WHERE v >= 'text 1'").collect() == [
            (2, "text 2")
        ]


def small_surplus(parts: Parts) -> None:
    size = 16 << 20
    parts.behind_stripe = parts.zeros(field_of(100, size), size)


def test_a_table_that_ignores_tags_is_bounded_too(
    spark: SparkSession, lake: Lake, table: Callable[[str], str]
) -> None:
    name = table("t")
    file = with_file(lake, name, footer_bomb, orc_integrity="ignore")
    assert file in (said := error_of(spark, f"SELECT sum(id) FROM {name}"))
    assert "unpack to more than" in said


@pytest.mark.parametrize("case", LIMITS)
def test_limits_are_python_s(
    spark: SparkSession, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm: Any = spark._jvm
    if case["given"] is not None:
        monkeypatch.setenv(LIMIT_VARIABLE, case["given"])
    assert most_unpacked(case["stored"]) == case["most"]
    limits = jvm.io.lockgate.spark.files.io.MetadataLimits
    assert limits.mostUnpacked(case["stored"], case["given"]) == case["most"]
