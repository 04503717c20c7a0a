"""Attacks on what policies hide from streams of files and of foreign tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from governed_foreign import (
    CHANGED,
    COLUMNS,
    RATES,
    Hiding,
    on,
    put_files,
    streamed,
)
from governed_world import World
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from ranger_world import allow, deny, mask, row_filter

from lockgate.framework.governance.ranger.service_definition import service_definition

if TYPE_CHECKING:
    from governed_foreign import Made
    from pyspark.sql import DataFrame

    from lockgate import Lake


def test_a_checkpoint_lends_no_files_to_another_stream(
    world: World, foreign_table: Made, tmp_path: Path
) -> None:
    """A stream that did not finish its batch leaves the names of files, which the next one would read."""
    name = foreign_table("lent_streams")
    mine = put_files(tmp_path / "mine", "(9, 'zoe', '', 'z', 1)")
    rights = [allow(f"{name}.*", users=["ann"]), row_filter(name, "dept = 'x'", users=["ann"])]
    world.put(*rights, on(tmp_path, "read", "write"), serviceDef=service_definition())
    session, seen = world.session("ann"), []
    checkpoint = str(tmp_path / "checkpoint")

    def fail(_: DataFrame, __: int) -> None:
        raise ValueError("stops here")

    writer = session.readStream.table(name).writeStream.option("checkpointLocation", checkpoint)
    with pytest.raises(StreamingQueryException, match="stops here"):
        writer.foreachBatch(fail).trigger(availableNow=True).start().awaitTermination()
    files = session.readStream.schema(COLUMNS).parquet(f"{mine[:-1]}?")  # a pattern: Spark trusts it
    with pytest.raises(StreamingQueryException, match="would read files that are not there"):
        streamed(files, seen, checkpointLocation=checkpoint)
    assert seen == []
    with pytest.raises(AnalysisException, match=f"may not read table {name} with the options path"):
        session.readStream.option("PATH", mine).table(name)


def test_a_stream_leaves_no_names_or_copies_of_hidden_files(
    world: World, foreign_table: Made, hiding: Hiding, tmp_path: Path
) -> None:
    root, session = world.session("root"), world.session("ann")
    flat, folder = put_files(tmp_path / "in" / "flat"), tmp_path / "in" / "parts"
    root.read.parquet(flat).write.partitionBy("dept").parquet(str(folder))
    reader = session.readStream.schema(COLUMNS)
    lacks = "with nothing hidden, as a stream needs that keeps names of files"
    for hidden in ({"row_filter": "id = 1"}, {"columns": "dept"}, {"dept": "NULL"}):
        hiding.hide(**hidden)
        with pytest.raises(AnalysisException, match=lacks):
            reader.parquet(str(folder))
    hiding.hide("salary", name="'?'")
    assert streamed(reader.parquet(str(folder)).select("id", "name", "dept"))[0] == (1, "?", "x")
    archive = reader.option("cleanSource", "archive").option("sourceArchiveDir", str(tmp_path / "out"))
    with pytest.raises(AnalysisException, match=lacks):
        archive.parquet(flat)
    hiding.hide()
    archive.parquet(flat)
    hiding.hide(row_filter="id = 1")
    deleting = session.readStream.schema(COLUMNS).option("cleanSource", "delete")
    frame = deleting.option("maxFilesPerTrigger", 1).parquet(flat).select("id")
    assert streamed(frame) == [(1,)]


def test_a_view_on_a_stream_of_another_user_shows_its_reader_what_is_permitted(
    world: World, foreign_table: Made
) -> None:
    name = foreign_table("viewed_streams")
    world.put(
        allow(f"{name}.*", users=["ann", "bob"]),
        row_filter(name, "dept = 'x'", users=["ann"]),
        allow("global_temp.*.*.*", users=["ann", "bob"]),
    )
    bob = world.session("bob")
    bob.readStream.table(name).createOrReplaceGlobalTempView("viewed")
    frame = bob.readStream.table(name)
    try:
        for user, count in (("ann", 2), ("bob", 4), ("ann", 2)):
            rows = world.session(user).readStream.table("global_temp.viewed").select("id")
            assert len(streamed(rows)) == count, user
        assert len(streamed(frame.select("id"))) == 4
        world.put(allow(f"{name}.*", users=["ann", "bob"]), allow("global_temp.*.*.*", users=["ann", "bob"]))
        for user in ("bob", "ann", "bob"):
            rows = world.session(user).readStream.table("global_temp.viewed").select("id")
            assert len(streamed(rows)) == 4, user
    finally:
        bob.catalog.dropGlobalTempView("viewed")


def test_streams_without_batches_take_a_right_of_their_own(world: World) -> None:
    """Nothing would ask for rights again."""
    name = "RateStreamTable"
    rate = world.session("ann").readStream.format("rate")
    with pytest.raises(AnalysisException, match=f"SELECT on path {name} is denied"):
        rate.load()
    world.put(on(name, "read"), serviceDef=service_definition())
    query = rate.load().writeStream.format("noop").trigger(continuous="1 second").start()
    with pytest.raises(StreamingQueryException, match="on statement WriteToContinuousDataSource"):
        query.awaitTermination(60)


def test_a_source_without_files_is_limited_by_its_class(world: World, hiding: Hiding) -> None:
    session = world.session("ann")
    rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10)
    hiding.hide("timestamp", row_filter="value % 2 = 0", value="value * 100")
    assert streamed(rate.load().select("value").where("value < 500")) == [(0,), (200,), (400,)]
    with pytest.raises(StreamingQueryException, match="column timestamp"):
        streamed(rate.load())

    class Counter(SimpleDataSourceStreamReader):
        def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
            return {"at": 0}

        def read(self, start: dict[str, int]) -> tuple[Any, dict[str, int]]:
            return iter([(start["at"], "a"), (start["at"] + 1, "b")]), {"at": start["at"] + 2}

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Any:  # noqa: N802 - Spark's name
            return iter([(each, "ab"[each % 2]) for each in range(start["at"], end["at"])])

    class Counting(DataSource):
        @classmethod
        def name(cls) -> str:
            return "counting"

        def schema(self) -> str:
            return "id INT, name STRING"

        def simpleStreamReader(self, schema: object) -> Counter:  # noqa: N802 - Spark's name
            return Counter()

    session.dataSource.register(Counting)
    hiding.hide(row_filter="id % 2 = 1", name="upper(name)")
    frame = session.readStream.format("counting").load()
    assert streamed(frame.where("id < 4"))[:1] == [(1, "B")]
    hiding.hide(row_filter="id % 2 = 0")
    with pytest.raises(StreamingQueryException, match=f"path PythonTable {CHANGED}"):
        streamed(frame)


def test_no_right_to_clean_ends_a_stream_at_its_start(world: World, hiding: Hiding, tmp_path: Path) -> None:
    hiding.hide(row_filter="id = 1")
    folder = put_files(tmp_path / "in")
    cleaning = world.session("ann").readStream.schema(COLUMNS).option("cleanSource", "delete")
    frame = cleaning.parquet(folder).select("id")
    hiding.may_write = False
    with pytest.raises(AnalysisException, match=f"INSERT on path {folder} is denied"):
        streamed(frame)


def test_records_name_the_relation_of_a_stream(world: World, foreign_table: Made, tmp_path: Path) -> None:
    name = foreign_table("recorded_streams")
    folder = put_files(tmp_path / "in")
    world.put(
        allow(f"{name}.*", users=["ann"]),
        row_filter(name, "dept = 'x'", users=["ann"]),
        on(folder, "read", recursive=False),
        serviceDef=service_definition(),
    )
    session = world.session("ann")
    for frame, resource in (
        (session.readStream.table(name), f"{name.replace('.', '/')}/id"),
        (session.readStream.schema(COLUMNS).parquet(folder), folder),
    ):
        world.records.clear()
        streamed(frame.select("id"))
        assert resource in {each.resource for each in world.records}
        assert all(each.allowed for each in world.records)


def test_options_of_a_read_show_nothing_that_is_hidden(world: World, lake: Lake, foreign_table: Made) -> None:
    """With another separator, the first column of a row holds all the others."""
    name = foreign_table("separated", "csv")
    may, refused = allow(f"{name}.*", users=["ann"]), f"may not read table {name} with the options sep"
    session = world.session("ann")
    for hidden in (mask(f"{name}.ssn", "MASK_NULL", users=["ann"]), deny(f"{name}.salary", users=["ann"])):
        world.put(may, hidden)
        for read in (session.read, session.readStream):
            with pytest.raises(AnalysisException, match=refused):
                read.option("SEP", "|").table(name)
        with pytest.raises(AnalysisException, match=refused):
            world.sql(f"SELECT name FROM {name} WITH ('sep' = '|')")
        assert session.read.option("maxFilesPerTrigger", "1").table(name).select("name").count() == 4
        # Spark takes one of two that differ by case alone.
        with pytest.raises(AnalysisException, match="with the options path"):
            session.read.option("PATH", "/etc").table(name)
    world.put(may)
    assert session.read.option("sep", "|").table(name).where("id IS NULL").count() == 4
    world.put(allow(f"{RATES}.*", users=["ann"]))
    with pytest.raises(AnalysisException, match=f"may not read table {RATES} with the options rowsperbatch"):
        session.readStream.option("rowsPerBatch", 5).table(RATES)
