"""Streams that read tables: the rows of each kind of table, over batches and restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException
from stream_queries import Reader, view_of

from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


@pytest.fixture
def reader(spark: SparkSession, tmp_path: Path) -> Reader:
    return Reader(spark, tmp_path / "checkpoint")


def test_an_append_table(spark: SparkSession, table: Named, reader: Reader, lake: Lake) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    reader.run(name)
    assert reader.taken() == [[(1, "a"), (2, "b")]]
    for number in (3, 4):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'c')")
    reader.run(name, maxFilesPerTrigger="1")
    assert reader.taken() == [[(3, "c")], [(4, "c")]]
    for number, limit in ((5, "maxBytesPerTrigger"), (7, "read.stream.maxBytesPerTrigger")):
        for one in (number, number + 1):
            spark.sql(f"INSERT INTO {name} VALUES ({one}, 'd')")
        reader.run(name, **{limit: "1"})
        assert reader.taken() == [[(number, "d")], [(number + 1, "d")]], "a file, however large it is"
    query = reader.run(name)
    assert reader.taken() == []
    (consumer,) = lake.catalog.load_table(name.removeprefix("lake.")).consumers().items()
    assert consumer == (f"stream-{query.id}-0", 8)


def test_a_key_table_with_kinds_and_without(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    kinds = Reader(spark, tmp_path / "kinds")
    reader.run(name)
    kinds.run(name, read_changelog="true")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'c')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    query = reader.run(name)
    kinds.run(name, read_changelog="true")
    assert reader.taken() == [[(1, "a"), (2, "b")], [(1, "c")]]
    assert kinds.taken() == [[("+I", 1, "a"), ("+I", 2, "b")], [("+I", 1, "c"), ("-D", 2, "b")]]
    assert query.lastProgress["sources"][0]["metrics"]["retractsLeftOut"] == "1"


MAKE = "CREATE TABLE {} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ({})"


@pytest.mark.parametrize("kind", ["lookup", "parquet lookup", "encrypted lookup"])
def test_a_changelog_with_kinds_and_without(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path, lake: Lake, kind: str
) -> None:
    name = table("t")
    options = "'primary-key' = 'id', 'bucket' = '2', 'changelog-producer' = 'lookup'"
    options += ", 'file.format' = 'parquet'" if kind.startswith("parquet") else ""
    options += ", 'orc.encrypt' = 'pii:v'" if kind.startswith("encrypted") else ""
    spark.sql(MAKE.format(name, options))
    kinds = Reader(spark, tmp_path / "kinds")
    by_python = lake.catalog.load_table(name.removeprefix("lake."))
    reader.run(name)
    kinds.run(view_of(name, "audit_log"))
    for rows in ([(1, "a"), (2, "b")], [(1, "c"), (3, "d")]):
        data = spark.createDataFrame(rows, "id BIGINT, v STRING").toArrow()
        by_python.append(data.cast(by_python.schema.arrow_schema))
        lake.call("compact", table=name.removeprefix("lake."))
    by_python.delete(spark.sql("SELECT 2L AS id").toArrow())
    lake.call("compact", table=name.removeprefix("lake."))
    query = reader.run(name)
    kinds.run(view_of(name, "audit_log"))
    assert reader.taken() == [[(1, "a"), (1, "c"), (2, "b"), (3, "d")]]
    assert query.lastProgress["sources"][0]["metrics"]["retractsLeftOut"] == "2"
    assert kinds.taken() == [
        [
            *[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "d")],
            *[("+U", 1, "c"), ("-D", 2, "b"), ("-U", 1, "a")],
        ]
    ]


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_updates_as_pairs(
    spark: SparkSession, table: Named, reader: Reader, lake: Lake, file_format: str
) -> None:
    """`t$binlog` shows the old and the new row of an update together; files of several batches of rows."""
    name = table("t")
    options = f"'primary-key' = 'id', 'changelog-producer' = 'lookup', 'file.format' = '{file_format}'"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING, tags ARRAY<INT>) TBLPROPERTIES ({options})"
    )
    reader.run(view_of(name, "binlog"))
    rows = 10_000
    for turn in range(2):
        spark.sql(
            f"INSERT INTO {name} SELECT id, concat('v', {turn}, id), array(INT(id), {turn}) "
            f"FROM range({turn}, {rows})"
        )
        spark.sql(f"DELETE FROM {name} WHERE id = 7 AND {turn} = 1")
        lake.call("compact", table=name.removeprefix("lake."))
        reader.run(view_of(name, "binlog"), source_split_target__size="1 kb")
    first, second = reader.taken()
    inserted = [("+I", [i], [f"v0{i}"], [[i, 0]]) for i in range(rows)]
    assert first == sorted(inserted, key=repr)
    changed = [("+U", [i, i], [f"v0{i}", f"v1{i}"], [[i, 0], [i, 1]]) for i in range(1, rows) if i != 7]
    assert second == sorted([*changed, ("-D", [7], ["v07"], [[7, 0]])], key=repr)
    # A query of some columns pairs rows as well.
    changes = spark.readStream.option("scan.snapshot-id", "1").table(view_of(name, "binlog")).select("id")
    query = changes.writeStream.format("memory").queryName("paired").trigger(availableNow=True).start()
    query.awaitTermination()
    counted = spark.sql("SELECT size(id) n, count(*) FROM paired GROUP BY n ORDER BY n").collect()
    assert [tuple(row) for row in counted] == [(1, rows + 1), (2, rows - 2)]


def test_deletion_vectors_branches_and_new_columns(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path, lake: Lake
) -> None:
    name = table("t")
    spark.sql(MAKE.format(name, "'deletion-vectors.enabled' = 'true'"))
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    kinds = Reader(spark, tmp_path / "kinds")
    reader.run(name)
    kinds.run(name, read_changelog="true", scan_snapshot__id="1")
    assert reader.taken() == [[(1, "a"), (3, "c")]]
    inserted, changed = kinds.taken()
    assert inserted == [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]
    # Rows of a file that stayed come with those that went.
    went = Counter(row[1:] for row in changed if row[0] == "-D")
    assert went - Counter(row[1:] for row in changed if row[0] == "+I") == Counter([(2, "b")])
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN n INT")
    spark.sql(f"INSERT INTO {name} VALUES (4, 'd', 7)")
    query = reader.run(name)
    assert reader.taken() == [[(4, "d", 7)]]
    assert query.lastProgress["sources"][0]["metrics"]["retractsLeftOut"] == "1"
    spark.sql(f"UPDATE {name} SET v = 'x' WHERE id = 4")
    with pytest.raises(StreamingQueryException, match="is an OVERWRITE"):
        reader.run(name)
    reader.run(name, **{"streaming-read-overwrite": "true"})
    assert reader.taken() == [[(4, "x", 7)]]
    lake.catalog.load_table(name.removeprefix("lake.")).create_branch("b", 1)
    spark.sql(f"INSERT INTO {view_of(name, 'branch_b')} VALUES (9, 'z')")
    branch = Reader(spark, tmp_path / "branch")
    branch.run(view_of(name, "branch_b"))
    assert branch.taken() == [[(1, "a"), (2, "b"), (3, "c"), (9, "z")]]


def test_a_query_that_runs_keeps_what_it_has_not_read(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path, lake: Lake
) -> None:
    name = table("t")
    short = name.removeprefix("lake.")
    spark.sql(MAKE.format(name, "'file.format' = 'orc'"))
    other = Reader(spark, tmp_path / "other")
    for each in (reader, other):
        each.run(name)  # two queries of one table, each with a place of its own
    for number in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ({number}, 'a')")
    for _ in range(2):  # Spark says what was committed when it begins again
        other.run(name, consumer__id="mine")
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    opened = lake.catalog.load_table(short)
    assert opened.snapshot_files.ids() == [1, 2, 3]
    assert sorted(opened.consumers().values()) == [1, 4, 4]
    assert opened.consumers()["mine"] == 4
    reader.run(name)
    assert reader.taken() == other.taken() == [[(0, "a"), (1, "a"), (2, "a")]]
    reader.run(name)  # says that the batch before was committed
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    assert opened.snapshot_files.ids() == [3]
    # A new query goes on where its consumer is; one that was forgotten finds its rows expired, and says so.
    spark.sql(f"INSERT INTO {name} VALUES (3, 'b')")
    fresh = Reader(spark, tmp_path / "fresh")
    fresh.run(name, consumer__id="mine")
    assert fresh.taken() == [[(3, "b")]]
    lake.call("clear_consumers", table=short)
    spark.sql(f"INSERT INTO {name} VALUES (4, 'b')")
    lake.call("expire_snapshots", table=short, retain_max=1, retain_min=1)
    with pytest.raises(StreamingQueryException, match=r"must read snapshot 4 of table .* which has expired"):
        reader.run(name)


def test_a_renamed_table_is_followed_from_its_checkpoint(
    spark: SparkSession, table: Named, reader: Reader, tmp_path: Path
) -> None:
    """Its own stream, and one that looks up in it: the next start calls it by its new name."""
    name, events, target = table("t"), table("events"), table("target")
    spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"CREATE TABLE {events} (id BIGINT)")
    spark.sql(f"CREATE TABLE {target} (id BIGINT, v STRING)")
    lookups = tmp_path / "lookups"

    def look_up(dimension: str) -> Any:
        joined = lookup_join(
            spark.readStream.table(events), dimension, on="id", options={"lookup.cache-dir": str(lookups)}
        )
        writer = joined.writeStream.option("checkpointLocation", str(tmp_path / "joined"))
        writer.trigger(availableNow=True).toTable(target).awaitTermination()
        return sorted(map(tuple, spark.table(target).collect()))

    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    spark.sql(f"INSERT INTO {events} VALUES (1)")
    reader.run(name)
    assert look_up(name) == [(1, "a")]
    spark.sql(f"ALTER TABLE {name} RENAME TO {name.removeprefix('lake.')}_moved")
    spark.sql(f"INSERT INTO {name}_moved VALUES (2, 'b')")
    spark.sql(f"INSERT INTO {events} VALUES (2)")
    reader.run(f"{name}_moved")
    assert reader.taken() == [[(1, "a")], [(2, "b")]]
    assert look_up(f"{name}_moved") == [(1, "a"), (2, "b")]


def test_a_table_made_again_is_not_followed_from_the_old_ones_checkpoint(
    spark: SparkSession, table: Named, reader: Reader
) -> None:
    name = table("t")
    spark.sql(MAKE.format(name, "'file.format' = 'orc'"))
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    reader.run(name)
    spark.sql(f"DROP TABLE {name}")
    spark.sql(MAKE.format(name, "'file.format' = 'orc'"))
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b')")
    with pytest.raises(StreamingQueryException, match="of another table than"):
        reader.run(name)


def test_a_stream_may_join_a_table_with_itself_and_sinks_use_a_batch_twice(
    spark: SparkSession, table: Named, tmp_path: Path
) -> None:
    name, target = table("t"), table("copies")
    spark.sql(MAKE.format(name, "'primary-key' = 'id', 'bucket' = '2'"))
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(MAKE.format(target, "'file.format' = 'orc'"))
    counts = []

    def sink(frame: Any, number: int) -> None:
        counts.append((frame.count(), frame.count()))
        frame.writeTo(target).append()

    both = spark.readStream.table(name).union(spark.readStream.table(name).where("id > 1"))
    query = (
        both.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(tmp_path / "both"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert counts == [(3, 3)]
    assert [row[0] for row in spark.table(target).sort("id").collect()] == [1, 2, 2]
