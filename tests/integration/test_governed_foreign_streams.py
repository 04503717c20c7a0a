"""Streams of files, of tables of Spark's own catalog, of other catalogs and of sources under policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from governed_foreign import (
    CHANGED,
    COLUMNS,
    MORE,
    on,
    put_files,
    running,
    shown_by,
    start,
    streamed,
)
from governed_world import World, limit
from pyspark.errors import AnalysisException, StreamingQueryException
from ranger_world import allow, mask, row_filter

from lockgate.framework.governance.ranger.service_definition import service_definition

if TYPE_CHECKING:
    from governed_foreign import Made
    from pyspark.sql import DataFrame

    from lockgate import Lake

# --- rows and values ---


def test_files_are_limited_by_their_folder_and_not_one_by_one(world: World, tmp_path: Path) -> None:
    folder = put_files(tmp_path / "in")
    session = world.session("ann")

    def read() -> list[Any]:
        return streamed(session.readStream.schema(COLUMNS).parquet(folder).select("id"))

    world.put(on(folder, "read", recursive=False), serviceDef=service_definition())
    assert read() == [(1,), (2,), (3,), (4,)]
    world.put(on(f"{folder}-of-others", "read"), serviceDef=service_definition())
    with pytest.raises(AnalysisException, match=f"SELECT on path {folder} is denied to user 'ann'"):
        read()


def test_a_stream_of_a_pattern_asks_about_what_matches(world: World, tmp_path: Path) -> None:
    session = world.session("ann")
    for number in (1, 2):
        put_files(tmp_path / "in" / f"part-{number}", f"({number}, 'a', 'b', 'c', 1)")
    mine = [on(tmp_path / "in" / f"part-{number}", "read") for number in (1, 2)]
    mine[1]["id"] += 1
    world.put(*mine, serviceDef=service_definition())
    frame, seen = session.readStream.schema(COLUMNS).parquet(f"{tmp_path}/in/part-*").select("id"), []
    with running(frame, seen) as query:
        assert sorted(seen) == [(1,), (2,)]
        put_files(tmp_path / "in" / "part-3", "(3, 'a', 'b', 'c', 1)")
        with pytest.raises(StreamingQueryException, match="is denied to user 'ann'"):
            query.processAllAvailable()
    assert sorted(seen) == [(1,), (2,)]


def test_conditions_of_all_kinds_limit_a_stream(
    world: World, foreign_table: Made, lake: Lake, tmp_path: Path
) -> None:
    """Spark replaces the time of a batch late, and plans subqueries and padded texts in ways of their own."""
    name, other = foreign_table("conditions"), foreign_table("of_conditions")
    lake.sql(f"ALTER TABLE {name} ADD COLUMNS (code CHAR(4), at TIMESTAMP)")
    lake.sql(f"INSERT INTO {name} VALUES (7, 'gus', '7', 'x', 1, 'ab', TIMESTAMP '2001-01-01 00:00:00')")
    session = world.session("ann")
    for condition, expected in (
        ("at < current_timestamp() AND CAST(at AS DATE) < current_date()", [(7, "ab  ")]),
        (
            f"id > 3 AND id IN (SELECT id FROM {other} WHERE dept = 'y') OR code = 'ab'",
            [(4, None), (7, "ab  ")],
        ),
        ("name = current_user()", [(1, None)]),
    ):
        world.put(allow(f"{name}.*", users=["ann"]), row_filter(name, condition, users=["ann"]))
        frame = session.readStream.option("maxFilesPerTrigger", 1).table(name)
        assert streamed(frame.select("id", "code")) == expected


def test_a_limited_stream_writes_what_it_shows(
    world: World, foreign_table: Made, lake: Lake, table: Made, tmp_path: Path
) -> None:
    name, target = foreign_table("written_streams"), table("written_streams")
    lake.sql(f"CREATE TABLE {target} (id BIGINT, ssn STRING)")
    world.put(
        allow(f"{name}.*", users=["ann"]),
        row_filter(name, "dept = 'x'", users=["ann"]),
        mask(f"{name}.ssn", "MASK_NULL", users=["ann"]),
        allow(f"{target}.*", "select", "insert", users=["ann"]),
        on(tmp_path, "read", "write"),
        serviceDef=service_definition(),
    )
    frame = world.session("ann").readStream.table(name).select("id", "ssn")
    writer = frame.writeStream.trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "first")).toTable(target).awaitTermination()
    writer = frame.writeStream.trigger(availableNow=True).format("parquet")
    writer.option("checkpointLocation", str(tmp_path / "second")).start(
        str(tmp_path / "out")
    ).awaitTermination()
    assert world.sql(f"SELECT * FROM {target}", "root") == [(1, None), (3, None)]
    written = pyarrow.parquet.read_table(tmp_path / "out").sort_by("id").to_pydict()
    assert written == {"id": [1, 3], "ssn": [None, None]}


# --- changes of policies ---


def test_two_users_follow_one_table_at_a_time(world: World, foreign_table: Made, lake: Lake) -> None:
    name = foreign_table("shared_streams")
    rights = [allow(f"{name}.*", users=["ann", "bob"])]
    rights += [
        row_filter(name, f"dept = '{dept}'", users=[user]) for user, dept in (("ann", "x"), ("bob", "y"))
    ]
    world.put(*rights)
    seen: dict[str, list[Any]] = {"ann": [], "bob": []}
    queries = [start(world.session(user).readStream.table(name).select("id"), seen[user]) for user in seen]
    try:
        for rows in (
            "(11, '', '', 'x', 0), (12, '', '', 'y', 0)",
            "(13, '', '', 'x', 0), (14, '', '', 'y', 0)",
        ):
            for query in queries:
                query.processAllAvailable()
            lake.sql(f"INSERT INTO {name} VALUES {rows}")
        for query in queries:
            query.processAllAvailable()
    finally:
        for query in queries:
            query.stop()
    assert sorted(seen["ann"]) == [(1,), (3,), (11,), (13,)]
    assert sorted(seen["bob"]) == [(2,), (4,), (12,), (14,)]


def test_what_a_stream_is_joined_with_is_asked_about_again(
    world: World, foreign_table: Made, tmp_path: Path
) -> None:
    name = foreign_table("static_streams")
    mine = (allow(f"{name}.*", users=["ann"]), on(tmp_path, "read"))
    session = world.session("ann")
    for condition in (None, "dept = 'x'"):
        folder = put_files(tmp_path / ("limited" if condition else "open"))
        only = [row_filter(name, condition, users=["ann"])] if condition else []
        world.put(*mine, *only, serviceDef=service_definition())
        frame = session.readStream.schema(COLUMNS).parquet(folder).select("id")
        frame, seen = frame.join(session.table(name).select("id", "dept"), "id"), []
        with running(frame, seen) as query:
            assert len(seen) == (2 if condition else 4)
            world.put(*mine, row_filter(name, "dept = 'y'", users=["ann"]), serviceDef=service_definition())
            put_files(folder)
            with pytest.raises(StreamingQueryException, match=f"table {name} {CHANGED}"):
                query.processAllAvailable()
        assert len(seen) == (2 if condition else 4)


# --- operators above ---


def test_state_is_kept_of_permitted_rows(world: World, foreign_table: Made, lake: Lake) -> None:
    name = foreign_table("stateful_streams")
    limit(world, name)
    lake.sql(f"INSERT INTO {name} VALUES {MORE}")
    session = world.session("ann")
    frame = session.readStream.table(name).selectExpr("*", "timestamp_seconds(id * 100) AS at")
    timed = frame.withWatermark("at", "10 seconds")
    grouped = frame.groupBy("dept").count()
    assert streamed(grouped, mode="complete") == [("x", 3)]
    windows = timed.groupBy("at").count().selectExpr("unix_seconds(at)", "count")
    assert streamed(windows) == [(100, 1), (300, 1)]
    assert streamed(frame.dropDuplicates(["dept"]).select("dept")) == [("x",)]
    assert streamed(timed.dropDuplicatesWithinWatermark(["dept"]).select("dept")) == [("x",)]
    assert streamed(frame.selectExpr("8 / (id - 2) AS v").select("v").where("v > 0")) == [
        (2.6666666666666665,),
        (8.0,),
    ]
    assert streamed(frame.select("id").union(session.readStream.table(name).select("id"))) == [
        (1,), (1,), (3,), (3,), (5,), (5,),
    ]  # fmt: skip
    again = session.readStream.table(name).select("id", "name")
    joined = frame.select("id", "dept").join(again, "id").select("id", "dept", "name")
    assert streamed(joined) == [(1, "x", "ann"), (3, "x", "cal"), (5, "x", "eve")]
    own = frame.select("id").join(frame.selectExpr("id + 2 AS id"), "id")
    assert streamed(own) == [(3,), (5,)]


def test_streams_of_which_one_is_limited_are_joined(
    world: World, foreign_table: Made, tmp_path: Path
) -> None:
    name = foreign_table("joined_streams")
    folder = put_files(tmp_path / "open")
    rights = [allow(f"{name}.*", users=["ann"]), row_filter(name, "dept = 'x'", users=["ann"])]
    world.put(*rights, on(folder, "read"), serviceDef=service_definition())
    session, seen = world.session("ann"), []
    open_rows = session.readStream.schema(COLUMNS).parquet(folder).selectExpr("id", "salary + 1 AS more")
    frame = session.readStream.table(name).select("id", "ssn").join(open_rows, "id")
    with running(frame.select("id", "more"), seen) as query:
        assert sorted(seen) == [(1, 101), (3, 301)]
        told = shown_by(query)
    assert "rights of ann" in told
    assert "222-22" not in told


def test_functions_of_a_batch_have_the_rights_of_its_user(world: World, foreign_table: Made) -> None:
    name = foreign_table("batch_streams")
    limit(world, name)
    found: list[Any] = []

    def use(rows: DataFrame, _: int) -> None:
        session = rows.sparkSession
        found.append(session.sql(f"SELECT id FROM {name}").collect())
        rows.createOrReplaceTempView("rows_of_batch")
        found.append(session.sql("SELECT id FROM rows_of_batch").collect())
        found.append(rows.inputFiles())

    writer = world.session("ann").readStream.table(name).select("id").writeStream.foreachBatch(use)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [sorted(map(tuple, each)) for each in found] == [[(1,), (3,)], [(1,), (3,)], []]
