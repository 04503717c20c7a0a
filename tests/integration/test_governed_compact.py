"""`compact` with an order under policies: no row is lost, and nothing is told of hidden ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from governed_world import ROWS, World
from pyspark.errors import AnalysisException
from ranger_world import allow, mask, row_filter

from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.operations.plans.file_rewrites import FileRewrite
from lockgate.framework.store.maintenance import ordered_compaction as order_module
from lockgate.procedures.builtin.compact import order_engine as engine_module

if TYPE_CHECKING:
    from lockgate import Lake

COLUMNS = "(id BIGINT, name STRING, ssn STRING, dept STRING, salary BIGINT)"
ORDER = "order_strategy => 'order', order_by => 'name'"


@pytest.fixture
def people(lake: Lake, table: Callable[[str], str], world: World) -> str:
    """A table of which ann, who may alter it, sees some rows and masks of numbers."""
    name = table("people")
    lake.sql(f"CREATE TABLE {name} {COLUMNS}")
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    world.put(
        *(allow(each, "all", users=["ann"]) for each in (name, f"{name}.*")),
        row_filter(name, "dept = 'x'", users=["ann"]),
        mask(f"{name}.ssn", "MASK_SHOW_LAST_4", users=["ann"]),
    )
    world.grant_calls("ann")
    return name


def test_all_rows_are_kept_as_they_are(
    lake: Lake, world: World, people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.sql(f"SELECT * FROM {people}", "root")
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 1)
    monkeypatch.setattr(engine_module, "rewrite_by_spark", None)
    call = f"CALL lake.sys.compact('{people.removeprefix('lake.')}', {ORDER}{{}})"
    (row,) = world.sql(call.format(""), "root")
    assert row[1] > 0
    assert world.sql(f"SELECT * FROM {people}", "root") == before
    with pytest.raises(Exception, match=r"Spark cannot order the rows .* policies decide"):
        world.sql(call.format(", order_engine => 'spark'"), "root")
    for more in ("", ", where => \"dept LIKE 'y%'\"", ", dry_run => true"):
        with pytest.raises(AnalysisException, match=r"CALL on table .* hidden from user 'ann'"):
            world.sql(call.format(more))
    assert world.sql(f"SELECT * FROM {people}", "root") == before


def test_a_handle_opens_no_door(lake: Lake, world: World, people: str) -> None:
    """Also one of a rewrite that began before there were policies."""
    table = lake.catalog.load_table(people.removeprefix("lake."))
    snapshot: Any = table.latest_snapshot()
    rewrite = FileRewrite(table, snapshot.id, [])
    with dispatcher().rewrites.begun(rewrite) as handle:
        ann = world.session("ann")
        with pytest.raises(Exception, match="policies decide"):
            ann.read.option("lockgate.rewrite", handle).table(people).collect()
        with pytest.raises(Exception, match="policies decide"):
            ann.table(people).writeTo(people).option("lockgate.rewrite", handle).append()
    assert rewrite.messages == []
    assert table.latest_snapshot() == snapshot
