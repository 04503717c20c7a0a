"""Differences of states, and options of tables that select what is read, under policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from governed_world import ROWS, World, make_people
from ranger_world import allow, deny, mask, row_filter

from lockgate.framework.access import Principal
from lockgate.tables import Between, ReadRequest

if TYPE_CHECKING:
    from lockgate import Lake

    Named = Callable[[str], str]


def between(name: str, mode: str, columns: str = "id") -> str:
    asked = f"`incremental-between`='one,two', `incremental-between-scan-mode`='{mode}'"
    return f"SELECT {columns} FROM {name} WITH ({asked})"


@pytest.mark.parametrize("properties", ["", "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"])
def test_a_difference_tells_nothing_of_hidden_changes(
    world: World, lake: Lake, table: Named, properties: str
) -> None:
    """Which files two states do not share would tell that a hidden row or value is another."""
    name = table("states")
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, name STRING, ssn STRING, dept STRING, salary BIGINT) "
        f"{properties}"
    )
    of = name.removeprefix("lake.")
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    lake.sql(f"CALL lake.sys.create_tag('{of}', 'one')")
    if properties:
        lake.sql(f"INSERT INTO {name} VALUES (4, 'dan', '999-99-4444', 'y', 6)")
    else:
        lake.sql(f"UPDATE {name} SET salary = 6, ssn = '999-99-4444' WHERE id = 4")
    lake.sql(f"CALL lake.sys.create_tag('{of}', 'two')")
    every = allow(f"{name}.*", users=["ann"])
    masks = [mask(f"{name}.{column}", "MASK_NULL", users=["ann"]) for column in ("salary", "ssn")]
    whole = [(number,) for number in (1, 2, 3, 4)]
    assert len(world.sql(between(name, "diff-after"), "root")) < 4
    for policies, seen in (
        ([row_filter(name, "dept = 'x'", users=["ann"])], [(1,), (3,)]),
        (masks, whole),
        ([deny(f"{name}.salary", users=["ann"])], whole),
    ):
        world.put(every, *policies)
        if policies is masks:
            assert world.sql(between(name, "diff")) == []
        mode = "diff-after" if policies is masks else "diff-before"
        assert world.sql(between(name, mode)) == seen
        assert world.sql(between(name, mode, "count(*)")) == [(len(seen),)]
    with pytest.raises(Exception, match=r"states \(columns salary\) is denied"):
        world.sql(between(name, "diff"))
    world.put(every, row_filter(name, "dept = 'x'", users=["ann"]))
    asked = ReadRequest(between=Between(1, 2, states="after"), principal=Principal("ann"))
    assert sorted(lake.catalog.load_table(of).read(asked)["id"].to_pylist()) == [1, 3]
    world.put(every, row_filter(name, "id > 2", users=["ann"]), *masks[:1])
    assert world.sql(between(name, "diff", "id, ssn, salary")) == [(4, "999-99-4444", None)]


def test_only_who_may_read_a_table_learns_of_its_maps(world: World, lake: Lake, table: Named) -> None:
    name = table("maps")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, m MAP<STRING, INT>, n ARRAY<INT>)")
    lake.sql(f"INSERT INTO {name} VALUES (1, map('a', 1), NULL)")
    for tag in ("one", "two"):
        lake.sql(f"CALL lake.sys.create_tag('{name.removeprefix('lake.')}', '{tag}')")
    for query in (between(name, "diff"), f"SELECT 1 WHERE 1 IN ({between(name, 'diff')})"):
        with pytest.raises(Exception, match="maps is denied to user 'ann'") as refused:
            world.sql(query)
        assert "MAP" not in str(refused.value)
        with pytest.raises(Exception, match="column m has a MAP, whose values Spark cannot compare"):
            world.sql(query, "root")


def with_options(lake: Lake, name: str, options: dict[str, str]) -> None:
    """Give a table options in its schema's file, as another engine does."""
    table = lake.catalog.load_table(name.removeprefix("lake."))
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"] |= options
    path.write_text(json.dumps(schema))
    lake.sql(f"REFRESH TABLE {name}")


def test_rows_that_options_of_a_table_select_have_its_policies(
    world: World, lake: Lake, table: Named
) -> None:
    name = make_people(lake, table("selected"))
    lake.sql(f"CALL lake.sys.create_branch('{name.removeprefix('lake.')}', 'b')")
    branch = f"{name.removesuffix('.selected')}.`selected$branch_b`"
    lake.sql(f"INSERT INTO {branch} VALUES (11, 'eve', '5', 'x', 1), (12, 'fay', '6', 'y', 2)")
    every = allow(f"{name}.*", users=["ann"])
    only_x = row_filter(name, "dept = 'x'", users=["ann"])
    hidden = deny(f"{name}.salary", users=["ann"])
    by_query = f"SELECT id FROM {name} WITH (`{{}}` = '{{}}')"
    counted = f"SELECT count(*), max(id) FROM {name}"
    world.put(every, only_x, hidden, mask(f"{name}.ssn", "MASK_NULL", users=["ann"]))
    with_options(lake, name, {"scan.bucket": "0"})
    assert world.sql(f"SELECT id, ssn FROM {name}") == [(1, None), (3, None)]
    assert world.sql(counted) == [(2, 3)]
    with_options(lake, name, {"scan.bucket": "", "scan.file-creation-time-millis": str(2**45)})
    assert world.sql(counted) == [(0, None)]
    for option, value in (("scan.bucket", "1"), ("scan.file-creation-time-millis", "1"), ("branch", "b")):
        with pytest.raises(Exception, match=r"unknown read option|a branch is read as a table of its own"):
            world.sql(by_query.format(option, value))
    with_options(lake, name, {"scan.file-creation-time-millis": "", "branch": "b"})
    assert world.sql(f"SELECT id, ssn FROM {name}") == [(11, None)]
    with pytest.raises(Exception, match=r"selected\.salary .*is denied|column .*selected\.salary"):
        world.sql(f"SELECT id FROM {name} WHERE salary > 0")
    world.put(every, only_x, mask(f"{name}.ssn", "MASK_SHOW_LAST_4", users=["ann"]))
    assert world.sql(f"SELECT id, ssn FROM {name}") == [(11, "5")]
    world.put(every, only_x)
    assert world.sql(f"SELECT id, ssn FROM {name}") == [(11, "5")]
    assert world.sql(counted) == [(1, 11)]
    assert world.sql(counted, "root") == [(2, 12)]
