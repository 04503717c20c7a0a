"""Tasks of Spark feed the index database while they write: segments are those that reading makes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as f
from task_events import ALL, OPTIONS, check_segments, create, events

from lockgate.framework.index.database.collected_keys import read_keys
from lockgate.framework.index.database.segment_kinds import Values
from lockgate.framework.plugins import plugins
from lockgate.framework.spark.bridge import dispatcher
from lockgate.framework.store import Schema
from lockgate.framework.store.schema.file_indexes import value_kind_of
from lockgate.framework.types import parse_type, to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_keys_of_values(spark: SparkSession) -> None:
    """The twin of `tests/framework/index/test_task_keys.py`."""
    cases = json.loads((FIXTURES / "index_keys.json").read_text())
    for case in cases:
        data_type = parse_type(case["type"])
        kind = value_kind_of(data_type)
        assert kind is not None
        case |= {"spark": to_spark_type(data_type), "values": kind.name}
    twins: Any = spark.sparkContext._jvm.io.lockgate.spark.index.KeyTwins
    for case, sent in zip(cases, json.loads(twins.keys(json.dumps(cases))), strict=True):
        about = (case["type"], case["kind"], case["block_rows"])
        (found,) = read_keys(base64.b64decode(sent), 1, len(case["rows"]), case["block_rows"])
        assert found is not None, about
        assert (list(found.nulls), list(found.values)) == (case["nulls"], case["valued"]), about
        blocks = list(zip(found.blocks.tolist(), found.keys.tolist(), strict=True))
        for number, wanted in enumerate(case["keys"]):
            assert [key for block, key in blocks if block == number] == wanted, about


KINDS_OF_TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "append": ("", {}),
    "small blocks": ("", {"index.block-rows": "7"}),
    "one block": ("", {"index.block-rows": "250000"}),
    "auto": (
        "",
        {
            "index.values.columns": "auto",
            "index.bloom.columns": "auto",
            "index.auto.max-distinct-share": "0.2",
        },
    ),
    "bucketed": ("", {"bucket": "3", "bucket-key": "host"}),
    "partitioned": ("PARTITIONED BY (day)", {"index.bloom.columns": "ratio"}),
    "key": ("", {"primary-key": "id", "bucket": "2"}),
    "key with changelog": ("", {"primary-key": "id", "bucket": "1", "changelog-producer": "input"}),
    "dynamic buckets": ("", {"primary-key": "id", "bucket": "-1", "dynamic-bucket.target-row-num": "400"}),
}


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
@pytest.mark.parametrize("kind", KINDS_OF_TABLES)
def test_segments_are_those_of_the_rows(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    kind: str,
    file_format: str,
) -> None:
    more, options = KINDS_OF_TABLES[kind]
    name = table("events")
    create(spark, name, ALL, {**OPTIONS, "file.format": file_format, **options}, more)
    events(spark, 0, 2000, 2).writeTo(name).append()
    check_segments(lake, name, made)
    if "key" in kind:
        spark.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
        spark.sql(f"UPDATE {name} SET host = 'host-new' WHERE id < 40")
        check_segments(lake, name, made)
    elif kind == "append":
        spark.sql(f"UPDATE {name} SET host = 'host-new' WHERE id < 40")
        events(spark, 500, 300, 1).writeTo(name).overwrite(f.lit(True))
        check_segments(lake, name, made)
    assert read_again == []
    conditions = (
        "host = 'host-7'",
        "id IN (510, 511, 9999)",
        "text LIKE '%Tool7%'",
        "isnan(ratio)",
        "size = 0",
        "raw IS NULL",
    )

    def answers() -> list[list[Any]]:
        return [spark.sql(f"SELECT id FROM {name} WHERE {each} ORDER BY id").collect() for each in conditions]

    found = answers()
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('index.read.enabled' = 'false')")
    assert found == answers()


def test_times_of_milliseconds(
    lake: Lake, spark: SparkSession, table: Named, made: dict[str, bytes], read_again: list[list[str]]
) -> None:
    """Spark's rows have microseconds: Parquet files lose them, and readers of ORC files take none."""
    for file_format, micros in (("orc", 0), ("parquet", 999)):
        name = table(f"times_{file_format}")
        times = {"at": pa.timestamp("ms"), "late": pa.timestamp("ms", "UTC")}
        columns = pa.schema([("id", pa.int64()), *times.items()])
        options = {"index.values.columns": "at,late", "index.bloom.columns": "at", "file.format": file_format}
        schema = Schema.from_arrow(columns, options=options)
        lake.catalog.create_table(name.removeprefix("lake."), schema)
        spark.range(1000).selectExpr(
            "id",
            f"CAST(timestamp_micros(-500000000000 + id * 1000001000 + {micros}) AS TIMESTAMP_NTZ) AS at",
            f"timestamp_micros(id * 2000 + {micros}) AS late",
        ).writeTo(name).append()
        check_segments(lake, name, made)
    assert read_again == []


LETTER = "decode(unhex(lpad(hex(id), 8, '0')), 'UTF-32')"


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        # All letters that this JVM knows.
        ("java_method('java.lang.Character', 'getType', CAST(id AS INT)) != '0'", []),
        ("id IN (2160, 65)", [["text"]]),
    ],
)
def test_every_letter_of_words(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    condition: str,
    read: list[list[str]],
) -> None:
    name = table("letters")
    create(spark, name, "text STRING", {"index.words.columns": "text", "index.ngrams.columns": "text"})
    letters = spark.range(1, 0x110000, 1, 1).where(f"(id < 55296 OR id > 57343) AND {condition}")
    letters.selectExpr(f"concat('a', {LETTER}, 'b ', {LETTER}) AS text").writeTo(name).append()
    assert read_again == read
    check_segments(lake, name, made)


@pytest.mark.usefixtures("by_files")
@pytest.mark.parametrize("kind", ["append", "key", "partitioned"])
def test_many_keys_come_in_files(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    kind: str,
) -> None:
    more, options = KINDS_OF_TABLES[kind]
    name = table("events")
    create(spark, name, ALL, {**OPTIONS, **options}, more)
    events(spark, 0, 500, 3).writeTo(name).append()
    check_segments(lake, name, made)
    assert read_again == []


def test_a_column_with_an_index_of_python_alone_is_read(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    made: dict[str, bytes],
    read_again: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Others(Values):
        """A kind of a plugin, which the connector does not know."""

    kinds = plugins().index_kinds()
    monkeypatch.setattr(type(plugins()), "index_kinds", lambda self: {**kinds, "others": Others()})
    name = table("mixed")
    create(spark, name, ALL, {**OPTIONS, "index.others.columns": "day"})
    events(spark, 0, 1000, 1).writeTo(name).append()
    assert read_again == [["day"]]
    check_segments(lake, name, made)


def test_tables_without_such_indexes_ask_tasks_for_nothing(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    asked: list[Any] = []
    begin = dispatcher._OWN["write.begin"]

    def noted(context: Any, request: Any) -> Any:
        asked.append(begin(context, request))  # type: ignore[arg-type]  # any operation is in that map
        return asked[-1]

    name, off = table("plain"), table("off")
    create(spark, name, "id BIGINT, v STRING", {"file.format": "orc"})
    create(spark, off, "id BIGINT, v STRING", {"index.values.columns": "id", "index.write.enabled": "false"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatcher._OWN, "write.begin", noted)
        for each in (name, off):
            spark.sql(f"INSERT INTO {each} VALUES (1, 'a')")
    assert [each["index_keys"] for each in asked] == [None, None]


def test_a_batch_of_a_stream_adds_a_small_segment(
    lake: Lake,
    spark: SparkSession,
    table: Named,
    tmp_path: Path,
    made: dict[str, bytes],
    read_again: list[list[str]],
) -> None:
    name = table("streamed")
    create(spark, name, ALL, OPTIONS)
    for number in range(2):
        events(spark, number * 50, 50, 1).write.mode("append").parquet(str(tmp_path / "in"))
    rows = (
        spark.readStream.schema(spark.table(name).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / "in"))
    )
    query = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).toTable(name).awaitTermination()
    check_segments(lake, name, made)
    assert len(made) == 2
    assert read_again == []
