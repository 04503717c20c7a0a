"""What clients reach without a statement: Spark's catalog, sinks of streams, and the texts of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from governed_world import World
from pyspark.errors import AnalysisException, PySparkException
from ranger_world import allow, item, mask, row_filter

from lockgate.framework.governance.ranger.service_definition import service_definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    from lockgate import Lake

    Named = Callable[[str], str]

FILES = "spark_catalog.clients"


@pytest.fixture(scope="module")
def hidden(lake: Lake, shared_table: Named) -> Iterator[dict[str, str]]:
    """Tables of which ann may read nothing, of the warehouse and of files, and one that everybody reads."""
    named = {"ours": shared_table("hidden"), "files": f"{FILES}.hidden", "open": shared_table("open")}
    lake.sql(f"CREATE DATABASE {FILES}")
    for kind in ("ours", "files"):
        using = "USING parquet" if kind == "files" else ""
        lake.sql(f"CREATE TABLE {named[kind]} (id BIGINT, zebra STRING) {using}")
        lake.sql(f"INSERT INTO {named[kind]} VALUES (1, 'a')")
    lake.sql(f"CREATE TABLE {named['open']} (id BIGINT, zebra STRING)")
    lake.sql(f"INSERT INTO {named['open']} VALUES (1, 'a')")
    yield named
    lake.sql(f"DROP DATABASE {FILES} CASCADE")


# --- names and columns ---


@pytest.mark.usefixtures("generated")
def test_the_catalog_lists_tables_of_which_nothing_may_be_read_by_name_alone(
    world: World, hidden: dict[str, str]
) -> None:
    world.put(allow(FILES, users=["ann"]))
    catalog = world.session("ann").catalog
    try:
        listed = str(catalog.listTables(FILES))
    except AnalysisException as error:
        listed = str(error)
    assert "zebra" not in listed
    world.put(allow(FILES, users=["ann"]), allow(f"{hidden['files']}.id", users=["ann"]))
    assert [each.name for each in catalog.listTables(FILES)] == ["hidden"]


# --- columns that policies are about ---


def test_a_dropped_column_would_lose_its_policies(world: World, lake: Lake, table: Named) -> None:
    """Under its name a new one is empty: a row filter on it would then show other rows."""
    name = table("dropped")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, level INT, n INT)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 1, 1), (2, 9, 2)")
    may = allow(f"{name}.*", "select", "alter", users=["ann"])
    for hiding in (
        row_filter(name, "coalesce(level, 0) < 3", users=["ann"]),
        mask(f"{name}.level", "MASK_NULL", users=["ann"]),
    ):
        world.put(may, hiding)
        for statement in ("DROP COLUMN level", "DROP COLUMNS (n, level)", "DROP COLUMN n"):
            with pytest.raises(PySparkException, match="hidden from user 'ann'"):
                world.sql(f"ALTER TABLE {name} {statement}")
    assert world.sql(f"SELECT * FROM {name}", "root") == [(1, 1, 1), (2, 9, 2)]
    world.put(may)
    world.sql(f"ALTER TABLE {name} DROP COLUMN n")


# --- sinks of streams ---


def written(world: World, table: str) -> DataStreamWriter:
    return world.session("ann").readStream.table(table).writeStream.trigger(availableNow=True)


def on(path: Path | str, *accesses: str) -> dict[str, Any]:
    """Return a policy about a folder and all in it."""
    folder = {"path": {"values": [str(path)], "isRecursive": True}}
    return {
        "id": 1_000_000 + len(str(path)),
        "resources": folder,
        "policyItems": [item(*accesses, users=["ann"])],
    }


def test_a_stream_writes_no_files_without_a_right(
    world: World, lake: Lake, hidden: dict[str, str], lake_folder: Path, tmp_path: Path
) -> None:
    """Else it would add files to tables of others, and hide theirs behind its own list."""
    reads, source = allow(f"{hidden['open']}.*", users=["ann"]), hidden["open"]
    victim = lake_folder / "spark-warehouse" / "clients.db" / "hidden"
    inside = Path(lake.catalog.load_table(source.removeprefix("lake.")).location.removeprefix("file:"))
    before = sorted(victim.iterdir())

    def start(path: Path, checkpoint: Path) -> None:
        made = written(world, source).format("parquet").option("checkpointLocation", str(checkpoint))
        made.start(str(path)).awaitTermination()

    world.put(reads)
    with pytest.raises(AnalysisException, match=f"INSERT on path {victim} is denied to user 'ann'"):
        start(victim, tmp_path / "checkpoint")
    everywhere = on("/", "read", "write")
    world.put(reads, on(victim, "write"), serviceDef=service_definition())
    with pytest.raises(AnalysisException, match=f"SELECT on path {tmp_path}/checkpoint is denied"):
        start(victim, tmp_path / "checkpoint")
    world.put(reads, everywhere, serviceDef=service_definition())
    with pytest.raises(AnalysisException, match="may not write files of a warehouse"):
        start(inside / "mine", tmp_path / "checkpoint")
    with pytest.raises(AnalysisException, match="files of a warehouse"):
        start(tmp_path / "rows", inside / "checkpoint")
    assert sorted(victim.iterdir()) == before
    assert not list(tmp_path.glob("rows/*.parquet"))
    start(tmp_path / "rows", tmp_path / "checkpoint")
    assert list(tmp_path.glob("rows/*.parquet"))


def test_a_stream_into_a_table_takes_the_right_to_insert(
    world: World, lake: Lake, hidden: dict[str, str], tmp_path: Path
) -> None:
    reads = [allow(f"{hidden[kind]}.*", users=["ann"]) for kind in ("open", "files", "ours")]
    world.put(*reads, on(tmp_path, "read", "write"), serviceDef=service_definition())
    for kind in ("files", "ours"):
        stream = written(world, hidden["open"]).option("checkpointLocation", str(tmp_path / kind))
        with pytest.raises(PySparkException, match=r"INSERT on table .*hidden is denied to user 'ann'"):
            stream.toTable(hidden[kind]).awaitTermination()
        assert lake.sql(f"SELECT count(*) FROM {hidden[kind]}").collect()[0][0] == 1


def test_a_stream_that_keeps_nothing_takes_no_right_to_write(world: World, hidden: dict[str, str]) -> None:
    world.put(allow(f"{hidden['open']}.*", users=["ann"]))
    seen: list[int] = []
    written(world, hidden["open"]).format("noop").start().awaitTermination()
    query = written(world, hidden["open"]).foreachBatch(lambda rows, _: seen.append(rows.count()))
    query.start().awaitTermination()
    assert seen == [1]


def test_a_stream_removes_no_files_of_others(world: World, tmp_path: Path) -> None:
    """By `cleanSource` Spark deletes or moves what a stream has read, by the rights of the server."""
    source, archive = tmp_path / "source", tmp_path / "archive"
    source.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"id": [1, 2]}), str(source / "a.parquet"))
    files = sorted(source.iterdir())
    reads = [on(source, "read")]
    writes_own = on(tmp_path / "own", "read", "write")

    def cleaning(**options: str) -> DataStreamReader:
        reader = world.session("ann").readStream.schema("id BIGINT")
        return reader.options(sourceArchiveDir=str(archive), **options)

    def run(frame: DataFrame) -> None:
        checkpoint = str(tmp_path / "own" / "checkpoint")
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()

    world.put(*reads, writes_own, serviceDef=service_definition())
    run(cleaning(cleanSource="OFF").parquet(str(source)))
    for kind in ("delete", "Archive"):
        with pytest.raises(AnalysisException, match=f"INSERT on path {source} is denied to user 'ann'"):
            cleaning(CLEANSOURCE=kind).parquet(str(source))
        with pytest.raises(AnalysisException, match=f"INSERT on path {source} is denied to user 'ann'"):
            cleaning(cleanSource=kind).format("parquet").load(str(source))
    world.put(*reads, on(source, "write"), writes_own, serviceDef=service_definition())
    with pytest.raises(AnalysisException, match=f"SELECT on path {archive} is denied to user 'ann'"):
        cleaning(cleanSource="archive").parquet(str(source))
    assert sorted(source.iterdir()) == files
    world.put(*reads, on(tmp_path, "read", "write"), serviceDef=service_definition())
    cleaning(cleanSource="archive").parquet(str(source))
