"""Streams of tables from which policies hide rows or values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import World, limit
from pyspark.errors import AnalysisException, StreamingQueryException
from ranger_world import allow, row_filter

from lockgate.framework.plugins import current_principal
from lockgate.lookup import lookup_join
from lockgate.lookup.join.pin_table import PinTable

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]


def test_streams_whose_rows_nobody_judges_are_refused_by_name(world: World, people: str) -> None:
    session = world.session("ann")
    with pytest.raises(AnalysisException, match="denied to user 'ann'"):
        session.readStream.table(people)
    limit(world, people)
    with pytest.raises(AnalysisException, match="SELECT on path Rate"):
        session.readStream.format("rate").load()
    # Of kinds of changes, rows are gone.
    world.put(allow(f"{people}.*", users=["ann"]), row_filter(people, "dept = 'x'", users=["ann"]))
    for view in ("audit_log", "binlog"):
        kinds = session.readStream.table(f"{people.removesuffix('.people')}.`people${view}`")
        with pytest.raises(StreamingQueryException, match="rows and values that are hidden from you"):
            streamed(kinds, [])


def streamed(frame: Any, seen: list[Any], checkpoint: Path | None = None, mode: str = "append") -> Any:
    """Run a stream up to the newest snapshot; returns its query, which has ended."""
    writer = frame.writeStream.outputMode(mode).foreachBatch(
        lambda rows, _: seen.extend(map(tuple, rows.collect()))
    )
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def test_a_lookup_of_a_stream_asks_early_as_its_user(
    world: World,
    people: str,
    options: dict[str, str],
    lookups_end: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each snapshot is asked for on a thread of its own, while the streams of two users run."""
    world.authorizer.governs_others = False  # who may read files is not the question
    only_x = row_filter(people, "dept = 'x'", users=["ann"])
    world.put(*(allow(f"{people}.*", users=[user]) for user in ("ann", "bob")), only_x)
    asked: list[tuple[Any, ...]] = []
    rows = PinTable.rows

    def noted(self: PinTable, context: Any, *others: Any) -> Any:
        local = context.spark.sparkContext.getLocalProperty
        running = local("spark.sql.execution.id") is not None
        user = context.spark.conf.get("spark.lockgate.user")
        properties = others[-1]
        assert local("sql.streaming.queryId") == properties["query_id"]
        asked.append(
            (current_principal().user, user, properties["query_id"], properties["batch_id"], running)
        )
        return rows(self, context, *others)

    monkeypatch.setattr(PinTable, "rows", noted)
    source, found = str(tmp_path / "rows"), {"ann": [], "bob": []}
    world.session("root").range(1, 5).write.parquet(source)

    def started(user: str) -> Any:
        stream = world.session(user).readStream.schema("id BIGINT").parquet(source)
        said = {**options, "lookup.strategy": "lookup"}
        joined = lookup_join(stream, people, on="id", select=["name"], options=said)
        seen = found[user]
        return joined.writeStream.foreachBatch(
            lambda batch, _: seen.extend((row["id"], row["name"]) for row in batch.collect())
        ).start()

    queries = {user: started(user) for user in found}
    try:
        for query in queries.values():
            query.processAllAvailable()
        world.session("root").range(5, 6).write.mode("append").parquet(source)
        for query in queries.values():
            query.processAllAvailable()
    finally:
        for query in queries.values():
            query.stop()
    everybody = [(1, "ann"), (2, "bob"), (3, "cal"), (4, "dan"), (5, None)]
    shown = [(key, name if name in ("ann", "cal") else None) for key, name in everybody]
    assert {user: sorted(seen) for user, seen in found.items()} == {"ann": shown, "bob": everybody}
    assert sorted(asked) == sorted(
        (user, user, query.id, batch, False) for user, query in queries.items() for batch in ("0", "1")
    )


def everything(world: World, mine: str, tmp_path: Path) -> list[Any]:
    seen: list[Any] = []
    streamed(world.session("root").readStream.table(mine).select("id"), seen, tmp_path / "root")
    return seen


def test_a_stream_brings_columns_with_the_right_to_alter_alone(
    world: World, lake: Lake, table: Named, tmp_path: Path
) -> None:
    world.authorizer.governs_others = False  # who may write a checkpoint is not the question
    name, source = table("grows"), table("source")
    lake.sql(f"CREATE TABLE {name} (id BIGINT)")
    lake.sql(f"CREATE TABLE {source} (id BIGINT, host STRING)")
    lake.sql(f"INSERT INTO {source} VALUES (1, 'a')")
    writes = [allow(f"{source}.*", users=["ann"]), allow(f"{name}.*", "select", "insert", users=["ann"])]

    def run(checkpoint: str, *columns: str) -> None:
        frame = world.session("ann").readStream.table(source).select(*columns)
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / checkpoint))
        writer = writer.option("write.merge-schema", "true").trigger(availableNow=True)
        writer.toTable(name).awaitTermination()

    world.put(*writes)
    run("first", "id")
    denied = f"ALTER on table {name.removeprefix('lake.')} is denied to user 'ann'"
    with pytest.raises(StreamingQueryException, match=denied):
        run("second", "id", "host")
    assert lake.spark.table(name).columns == ["id"]
    assert everything(world, name, tmp_path / "seen") == [(1,)]
    world.put(*writes, allow(f"{name}.*", "alter", users=["ann"]))
    run("third", "id", "host")
    assert sorted(map(tuple, lake.spark.table(name).collect()), key=str) == [(1, "a"), (1, None)]
