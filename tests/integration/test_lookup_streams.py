"""lookup_join in streams: each micro-batch uses one snapshot, with the table changing concurrently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flight_tables import flights, planes
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import expr
from same_frames import same

from lockgate import lookup
from lockgate.framework.spark.bridge import dispatcher
from lockgate.framework.spark.operations import system_operations
from lockgate.lookup import lookup_join
from lockgate.lookup.join.pin_table import PinTable
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake


MakeName = Callable[[str], str]
pytestmark = pytest.mark.usefixtures("lookups_end")


# --- streams -----------------------------------------------------------------------------------------


class Source:
    """A stream of files: each `add` is one micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        folder.mkdir()
        self.schema = "flight BIGINT, tailnum STRING, gate SMALLINT"

    def add(self, frame: DataFrame) -> None:
        frame.coalesce(1).write.mode("append").parquet(str(self.folder))

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.folder))


def start(joined: DataFrame, checkpoint: Path, sink: Callable[[DataFrame, int], None]) -> Any:
    writer = joined.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(sink)
    return writer.trigger(processingTime="0 seconds").start()


@pytest.mark.parametrize("in_jvm", ["true", "false"])
def test_each_micro_batch_is_the_join_as_of_its_snapshot(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path, in_jvm: str
) -> None:
    name = table("planes")
    planes(spark, name)
    source = Source(spark, tmp_path / "in")
    joined = lookup_join(
        source.stream(),
        name,
        on="tailnum",
        select=["model", "seats"],
        snapshot_column="snap",
        options={**options, "lookup.in-jvm": in_jvm},
    )
    batches: dict[int, list[tuple[Any, ...]]] = {}

    def sink(frame: DataFrame, number: int) -> None:
        batches[number] = [tuple(row) for row in frame.collect()]

    source.add(flights(spark))
    query = start(joined, tmp_path / "checkpoint", sink)
    try:
        query.processAllAvailable()
        spark.sql(
            f"INSERT INTO {name} SELECT concat('N', id), 2024, 'new model', -id, 0 FROM range(0, 300, 3)"
        )
        spark.sql(f"DELETE FROM {name} WHERE tailnum IN ('N5', 'N7', 'N8')")
        lookup.wait_for(name, 3)
        source.add(flights(spark))
        query.processAllAvailable()
        source.add(flights(spark).limit(10))
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(batches) == [0, 1, 2]
    used = {number: {row[-1] for row in rows} for number, rows in batches.items()}
    assert used == {0: {1}, 1: {3}, 2: {3}}
    for number, rows in batches.items():
        (snapshot,) = used[number]
        dim = spark.sql(f"SELECT tailnum, model, seats FROM {name} VERSION AS OF {snapshot}")
        stream = flights(spark).limit(10) if number == 2 else flights(spark)
        plain = stream.join(dim, "tailnum", "left").select("flight", "tailnum", "gate", "model", "seats")
        assert sorted(map(repr, (row[:-1] for row in rows))) == sorted(
            repr(tuple(row)) for row in plain.collect()
        )
    assert any(row[3] == "new model" for row in batches[1])
    status = lookup.status(name)
    assert [(pin.batch_id, pin.snapshot_id) for pin in status.pins] == [(1, 3), (2, 3)]
    assert (status.served_snapshot, status.rows, status.lag_millis) == (3, 297, 0)


def test_a_batch_is_asked_for_while_spark_plans_it(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By one question for all lookups. One of `foreachBatch` asks when it runs: it may only be shown."""
    name = table("planes")
    planes(spark, name)
    source = Source(spark, tmp_path / "in")
    asked: list[tuple[str, bool]] = []
    questions: list[list[str]] = []
    rows, together = PinTable.rows, system_operations.OPERATIONS["system.single_rows"]

    def all_noted(context: Any, request: Any) -> Any:
        questions.append([each["name"] for each in request["tables"]])
        return together(context, request)

    monkeypatch.setitem(dispatcher._OWN, "system.single_rows", all_noted)

    def noted(self: PinTable, context: Any, *others: Any) -> Any:
        running = context.spark.sparkContext.getLocalProperty("spark.sql.execution.id")
        asked.append((others[-1]["batch_id"], running is not None))
        return rows(self, context, *others)

    monkeypatch.setattr(PinTable, "rows", noted)

    def join(frame: DataFrame, column: str) -> DataFrame:
        return lookup_join(frame, name, on="tailnum", select=[column], options=options)

    def sink(frame: DataFrame, number: int) -> None:
        joined = join(frame, "year")
        joined.explain()
        assert len(joined.collect()) == 1000

    query = start(join(join(source.stream(), "model"), "seats"), tmp_path / "checkpoint", sink)
    try:
        for _ in range(2):
            source.add(flights(spark))
            query.processAllAvailable()
        plan = query._jsq.explainInternal(False)
    finally:
        query.stop()
    assert "ubquery" not in plan
    assert questions == [[f"{name.rpartition('.')[2]}$pin"] * 2] * 2
    assert asked == [("0", False), ("0", False), ("0", True), ("1", False), ("1", False), ("1", True)]


@pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning")
def test_a_stream_ends_with_the_words_of_the_lookup_that_failed(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    """Of two lookups that are asked for together, the one that can answer hides nothing."""
    name, other = table("planes"), table("other")
    planes(spark, name)
    planes(spark, other)
    source = Source(spark, tmp_path / "in")
    joined = lookup_join(source.stream(), name, on="tailnum", select=["model"], options=options)
    joined = lookup_join(joined, other, on="tailnum", select=["seats"], options=options)
    query = start(joined, tmp_path / "checkpoint", lambda frame, number: None)
    try:
        source.add(flights(spark))
        query.processAllAvailable()
        spark.sql(f"DROP TABLE {other}")
        planes(spark, other)
        source.add(flights(spark))
        with pytest.raises(StreamingQueryException, match="was dropped and created again"):
            query.processAllAvailable()
    finally:
        query.stop()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning")
def test_a_retried_batch_uses_the_snapshot_it_had(
    spark: SparkSession, lake: Lake, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name = table("planes")
    planes(spark, name)
    source = Source(spark, tmp_path / "in")
    source.add(flights(spark).limit(50))
    seen: list[tuple[int, set[int]]] = []
    fail = True

    def sink(frame: DataFrame, number: int) -> None:
        seen.append((number, {row.snap for row in frame.collect()}))
        if number == 1 and fail:
            raise RuntimeError("the sink is down")

    def joined(model: str = "model") -> DataFrame:
        select = {"model": model, "plane_year": "year"}
        return lookup_join(
            source.stream(), name, on="tailnum", select=select, snapshot_column="snap", options=options
        )

    query = start(joined(), tmp_path / "checkpoint", sink)
    query.processAllAvailable()
    source.add(flights(spark).limit(50))
    with pytest.raises(Exception, match="the sink is down"):
        query.processAllAvailable()
    query.stop()

    # The driver goes away, the table moves on, its snapshots expire as far as the pin lets them.
    lookup.close_all()
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN model TO kind")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN year TYPE BIGINT")
    for _ in range(3):
        spark.sql(f"INSERT INTO {name} VALUES ('N1', 2000, 'later', 1, 1.0)")
    plain = lake.catalog.load_table(name.removeprefix("lake."))
    lake.call("expire_snapshots", table=name.removeprefix("lake."), retain_max=1, retain_min=1)
    assert [snapshot.id for snapshot in plain.snapshots()] == [1, 2, 3, 4]
    fail = False
    query = start(joined("kind"), tmp_path / "checkpoint", sink)
    try:
        query.processAllAvailable()
        source.add(flights(spark).limit(50))
        query.processAllAvailable()
        source.add(flights(spark).limit(50))
        query.processAllAvailable()
    finally:
        query.stop()
    assert seen == [(0, {1}), (1, {1}), (1, {1}), (2, {4}), (3, {4})]
    lake.call("expire_snapshots", table=name.removeprefix("lake."), retain_max=1, retain_min=1)
    assert [snapshot.id for snapshot in plain.snapshots()] == [4]


@pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning")
def test_a_stream_keeps_its_columns_while_those_of_the_table_change(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    """By their ids, under the names and types of its start; the next start has the new ones."""
    name = table("planes")
    spark.sql(
        f"CREATE TABLE {name} (tailnum STRING, seats INT, model STRING, row STRING NOT NULL) "
        "TBLPROPERTIES ('primary-key'='tailnum', 'bucket'='2')"
    )
    spark.sql(f"INSERT INTO {name} VALUES ('N1', 1, 'a', 'x'), ('N2', 2, 'b', 'y')")
    source = Source(spark, tmp_path / "in")
    ways = {
        "jvm": {"lookup.cache": "memory"},
        "worker": {"lookup.in-jvm": "false"},
        "partial": {"lookup.cache": "partial"},
        "shuffle": {"lookup.shuffle": "true"},
    }

    def joined(seats: str, model: str) -> DataFrame:
        frame = source.stream()
        for way, given in ways.items():
            select = {f"seats_{way}": seats, f"model_{way}": model, f"row_{way}": "row"}
            where = col(model) != "hidden"
            every = {**options, "lookup.refresh.async": "false", **given}
            frame = lookup_join(frame, name, "tailnum", select=select, where=where, options=every)
        return frame

    def flights_of(*tails: str) -> None:
        rows = ", ".join(f"(1L, '{tail}', cast(0 AS SMALLINT))" for tail in tails)
        source.add(spark.sql(f"SELECT * FROM VALUES {rows} AS t(flight, tailnum, gate)"))

    batches: list[list[tuple[Any, ...]]] = []
    types: list[str] = []

    def sink(frame: DataFrame, number: int) -> None:
        types.append(frame.schema["seats_jvm"].dataType.simpleString())
        rows = sorted(tuple(row) for row in frame.drop("flight", "gate").collect())
        batches.append([(row[0], *({row[n : n + 3] for n in range(1, len(row), 3)})) for row in rows])

    query = start(joined("seats", "model"), tmp_path / "checkpoint", sink)
    try:
        flights_of("N1")
        query.processAllAvailable()
        for change in (
            "ALTER COLUMN seats TYPE BIGINT",
            "RENAME COLUMN model TO kind",
            "ALTER COLUMN row DROP NOT NULL",
            "ADD COLUMN model STRING",
        ):
            spark.sql(f"ALTER TABLE {name} {change}")
        spark.sql(f"INSERT INTO {name} VALUES ('N2', 3, 'c', null, 'no'), ('N3', 4, 'hidden', 'z', 'no')")
        flights_of("N1", "N2", "N3")
        query.processAllAvailable()
    finally:
        query.stop()
    first = ("N1", (1, "a", "x"))
    assert batches == [[first], [first, ("N2", (3, "c", None)), ("N3", (None, None, None))]]

    spark.sql(f"INSERT INTO {name} VALUES ('N2', {1 << 40}, 'd', 'y', 'no')")
    query = start(joined("seats", "kind"), tmp_path / "checkpoint", sink)
    try:
        flights_of("N2")
        query.processAllAvailable()
        spark.sql(f"ALTER TABLE {name} DROP COLUMN kind")
        flights_of("N2")
        with pytest.raises(StreamingQueryException, match=r"column 'kind' of .* was dropped"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert batches[2:] == [[("N2", (1 << 40, "d", "y"))]]
    assert types == ["int", "int", "bigint"]


def test_a_cache_that_is_cut_while_a_stream_runs_is_built_again(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name = table("planes")
    planes(spark, name)
    source = Source(spark, tmp_path / "in")
    joined = source.stream()
    for way in ("true", "false"):
        given = {**options, "lookup.cache": "memory", "lookup.in-jvm": way}
        joined = lookup_join(joined, name, "tailnum", select={f"seats_{way}": "seats"}, options=given)
    found: list[tuple[Any, ...]] = []

    def sink(frame: DataFrame, number: int) -> None:
        found.extend(tuple(row) for row in frame.selectExpr("sum(seats_true)", "sum(seats_false)").collect())

    query = start(joined, tmp_path / "checkpoint", sink)
    try:
        for file in ("", "LAYOUT.json", "generations/1/GENERATION.json", "generations/2/db/*.values"):
            if "2" in file:  # read by tasks alone, which have the state before open
                spark.sql(f"INSERT INTO {name} VALUES ('N1', 2024, 'new', 3, 0)")
                lookup.wait_for(name, 2)
            for path in (tmp_path / "cache").glob(f"*/{file}") if file else ():
                path.write_bytes(path.read_bytes()[:24])
            source.add(flights(spark))
            query.processAllAvailable()
    finally:
        query.stop()
    assert found == [found[0]] * 4
    assert found[0][0] == found[0][1] > 0


def test_branches_of_a_query_look_up_in_one_table(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    """Their metrics are numbered in the order of the plan, the same at each start."""
    name = table("planes")
    planes(spark, name)
    source = Source(spark, tmp_path / "in")

    def with_(stream: DataFrame, column: str, as_: str = "") -> DataFrame:
        return lookup_join(stream, name, "tailnum", select={as_ or column: column}, options=options)

    def query(folder: str) -> Any:
        known = with_(with_(source.stream().where("gate < 2"), "seats"), "model")
        left = with_(source.stream().where("gate = 4"), "seats").selectExpr("*", "'' AS model")
        union = known.union(left).union(known).selectExpr("*", "current_timestamp() AS at")
        other = with_(source.stream(), "seats", "s")
        other = other.selectExpr("flight AS f", "s", "current_timestamp() AS at2")
        near = expr("flight = f AND at2 BETWEEN at - interval 1 hour AND at")
        joined = union.withWatermark("at", "1 hour").join(other.withWatermark("at2", "1 hour"), near)
        return start(joined, tmp_path / folder, lambda frame, _: frame.foreach(lambda row: None))

    short = f"lookup {name.removeprefix('lake.')}"
    for folder in ("first", "first", "other"):
        source.add(flights(spark).limit(50))
        running = query(folder)
        try:
            running.processAllAvailable()
            # The last batches only move the watermark.
            metrics = next(each for each in running.recentProgress if each["numInputRows"])["observedMetrics"]
        finally:
            running.stop()
        rows = {key: row["rows"] for key, row in metrics.items()}
        assert rows == {short: 20, f"{short} 2": 20, f"{short} 3": 10, f"{short} 4": 50}


def test_a_stream_into_a_table_with_an_inner_join(
    spark: SparkSession, table: MakeName, options: dict[str, str], tmp_path: Path
) -> None:
    name, out = table("weather"), table("out")
    spark.sql(f"CREATE TABLE {name} (tailnum STRING, note STRING)")
    spark.sql(f"INSERT INTO {name} SELECT concat('N', id % 100), concat('note ', id) FROM range(150)")
    spark.sql(f"CREATE TABLE {out} (flight BIGINT, tailnum STRING, gate SMALLINT, note STRING, snap BIGINT)")
    source = Source(spark, tmp_path / "in")
    source.add(flights(spark))
    joined = lookup_join(
        source.stream(), name, on="tailnum", how="inner", snapshot_column="snap", options=options
    )
    query = joined.writeStream.option("checkpointLocation", str(tmp_path / "ck")).toTable(out)
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    plain = (
        flights(spark)
        .join(spark.table(name), "tailnum")
        .selectExpr("flight", "tailnum", "gate", "note", "1L AS snap")
    )
    same(spark.table(out), plain)
