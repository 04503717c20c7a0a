"""Statements that change rows, by users from whom rows or values are hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from governed_world import ROWS, World
from pyspark.errors import AnalysisException
from ranger_world import allow, mask, row_filter

if TYPE_CHECKING:
    from lockgate import Lake

COLUMNS = "(id BIGINT NOT NULL, name STRING, ssn STRING, dept STRING, salary BIGINT)"
PROPERTIES = {
    "append": "('bucket' = '-1')",
    "key": "('primary-key' = 'id', 'bucket' = '1')",
    "deletion vectors": "('primary-key' = 'id', 'bucket' = '1', 'deletion-vectors.enabled' = 'true')",
}
CHANGES = (
    "DELETE FROM {}",
    "DELETE FROM {} WHERE true",
    "DELETE FROM {} WHERE id = 2",
    "DELETE FROM {} WHERE dept = 'x'",
    "UPDATE {} SET salary = 0",
    "UPDATE {} SET salary = 0 WHERE id = 2",
    "UPDATE {} SET name = ssn",
    "MERGE INTO {} AS t USING (SELECT 2L AS id) AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO {} AS t USING (SELECT 2L AS id) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = ssn",
    "MERGE INTO {} AS t USING (SELECT 9L AS id) AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "MERGE INTO {} AS t USING (SELECT 2L AS id) AS s ON t.id = s.id WHEN NOT MATCHED "
    "THEN INSERT (id) VALUES (9)",
    "INSERT OVERWRITE {} VALUES (1, 'ann', '1', 'x', 1)",
    "INSERT INTO {} REPLACE WHERE true VALUES (1, 'ann', '1', 'x', 1)",
)


@pytest.fixture(scope="module", params=sorted(PROPERTIES))
def changed(request: pytest.FixtureRequest, lake: Lake, shared_table: Callable[[str], str]) -> str:
    """A table of people of each kind that can be changed."""
    name = shared_table(request.param.replace(" ", "_"))
    lake.sql(f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES {PROPERTIES[request.param]}")
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    return name


@pytest.mark.parametrize("right", ["insert", "all"])
@pytest.mark.parametrize("hides", ["rows", "values"])
def test_nothing_is_changed_by_a_user_from_whom_something_is_hidden(
    world: World, changed: str, right: str, hides: str
) -> None:
    """With all rights too, and by statements without conditions, which remove whole files."""
    limit = (
        row_filter(changed, "dept = 'x'", users=["ann"])
        if hides == "rows"
        else mask(f"{changed}.ssn", "MASK", users=["ann"])
    )
    rights = [allow(each, right, users=["ann"]) for each in (changed, f"{changed}.*")]
    world.put(allow(f"{changed}.*", "select", users=["ann"]), *rights, limit)
    before = world.sql(f"SELECT * FROM {changed}", "root")
    for change in CHANGES:
        with pytest.raises(AnalysisException, match=r"denied to user 'ann'|hidden from (user 'ann'|you)"):
            world.sql(change.format(changed))
        assert world.sql(f"SELECT * FROM {changed}", "root") == before, change


def test_a_user_may_append_what_a_row_filter_leaves_of_the_same_table(
    world: World, lake: Lake, shared_table: Callable[[str], str]
) -> None:
    """It is no MERGE, although the plan of one has the same nodes in Spark before 4.2."""
    name = shared_table("appended")
    lake.sql(f"CREATE TABLE {name} {COLUMNS}")
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    rights = [allow(each, "insert", users=["ann"]) for each in (name, f"{name}.*")]
    seen = row_filter(name, "dept = 'x'", users=["ann"])
    world.put(allow(f"{name}.*", "select", users=["ann"]), *rights, seen)
    before = len(world.sql(f"SELECT * FROM {name}", "ann"))
    world.sql(f"INSERT INTO {name} SELECT t.* FROM {name} AS t LEFT ANTI JOIN {name} AS o ON t.id = o.id + 9")
    assert len(world.sql(f"SELECT * FROM {name}", "ann")) == 2 * before > 0


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "first-row"])
def test_an_upsert_reaches_no_hidden_row(
    world: World, lake: Lake, shared_table: Callable[[str], str], engine: str
) -> None:
    """A row that merges with a hidden one would show its values in a visible row, or take its place."""
    name = shared_table(engine.replace("-", "_"))
    lake.sql(
        f"CREATE TABLE {name} {COLUMNS} TBLPROPERTIES ('primary-key' = 'id', 'merge-engine' = '{engine}')"
    )
    lake.sql(f"INSERT INTO {name} VALUES {ROWS}")
    rights = [allow(each, "all", users=["ann"]) for each in (name, f"{name}.*")]
    world.put(*rights, row_filter(name, "dept = 'x'", users=["ann"]))
    frame = world.session("ann").createDataFrame([(2, None, None, "x", None)], COLUMNS[1:-1])
    for insert in (
        lambda: world.sql(f"INSERT INTO {name} VALUES (2, NULL, NULL, 'x', NULL)"),
        lambda: frame.writeTo(name).append(),
        lambda: frame.write.insertInto(name),
    ):
        with pytest.raises(AnalysisException, match=r"INSERT on table .* hidden from user 'ann'"):
            insert()
    assert world.sql(f"SELECT count(*) FROM `{name.replace('.', '`.`')}$snapshots`", "root") == [(1,)]


def test_a_user_from_whom_nothing_is_hidden_changes_rows(world: World, changed: str) -> None:
    world.put(*(allow(each, "all", users=["ann"]) for each in (changed, f"{changed}.*")))
    before = world.sql(f"SELECT * FROM {changed}", "root")
    world.sql(f"UPDATE {changed} SET salary = 0 WHERE id = 2")
    world.sql(f"DELETE FROM {changed} WHERE id = 1")
    assert [row[0] for row in world.sql(f"SELECT id FROM {changed} WHERE salary > 0", "root")] == [3, 4]
    world.sql(f"INSERT INTO {changed} VALUES (1, 'ann', '111-11-1111', 'x', 100)")
    world.sql(f"UPDATE {changed} SET salary = 200 WHERE id = 2")
    assert world.sql(f"SELECT * FROM {changed}", "root") == before
