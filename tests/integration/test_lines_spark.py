"""Branches and rollbacks through Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lockgate import Lake


def test_a_branch_is_a_table(lake: Lake, table: Callable[[str], str]) -> None:
    name, sql = table("t"), lake.spark.sql
    branch = name.removesuffix("t") + "`t$branch_dev`"
    sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    short = name.removeprefix("lake.")
    assert [tuple(row) for row in sql(f"CALL lake.sys.create_tag('{short}', 'first')").collect()]
    (row,) = sql(f"CALL lake.sys.create_branch('{short}', 'dev', tag => 'first')").collect()
    assert (row.created_branches_count, row.snapshot_id) == (1, 1)
    sql(f"INSERT INTO {branch} VALUES (3, 'c')")
    sql(f"DELETE FROM {branch} WHERE id = 1")
    sql(f"ALTER TABLE {branch} ADD COLUMN w STRING")
    sql(f"UPDATE {branch} SET w = 'x' WHERE id = 2")
    found = sql(f"SELECT * FROM {branch} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(2, "b", "x"), (3, "c", None)]
    joined = sql(f"SELECT t.v, b.w FROM {name} t JOIN {branch} b ON t.id = b.id").collect()
    assert [tuple(row) for row in joined] == [("b", "x")]
    at_tag = sql(f"SELECT id FROM {branch} VERSION AS OF 'first' ORDER BY id").collect()
    assert [row.id for row in at_tag] == [1, 2]
    (row,) = lake.call("compact", table=f"{short}$branch_dev")
    assert row.rows_after == 2
    assert [tuple(row) for row in sql(f"SELECT * FROM {name} ORDER BY id").collect()] == [(1, "a"), (2, "b")]
    assert [row.tableName for row in sql(f"SHOW TABLES IN {name.rpartition('.')[0]}").collect()] == ["t"]
    (row,) = sql(f"CALL lake.sys.fast_forward('{short}', 'dev')").collect()
    assert row.added_snapshots_count == 4
    sql(f"REFRESH TABLE {name}")
    found = sql(f"SELECT * FROM {name} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(2, "b", "x"), (3, "c", None)]
    sql(f"CALL lake.sys.delete_branch('{short}', 'dev')")
    with pytest.raises(Exception, match="has no branch 'dev'; the table has none"):
        sql(f"SELECT * FROM {branch}").collect()


def test_rollback_in_sql_removes_later_snapshots(lake: Lake, table: Callable[[str], str]) -> None:
    name, sql = table("r"), lake.spark.sql
    sql(f"CREATE TABLE {name} (id INT)")
    for number in (1, 2, 3):
        sql(f"INSERT INTO {name} VALUES ({number})")
    short = name.removeprefix("lake.")
    (row,) = sql(f"CALL lake.sys.rollback('{short}', '2')").collect()
    assert (row.previous_snapshot_id, row.current_snapshot_id, row.deleted_snapshots_count) == (3, 2, 1)
    assert sorted(row.id for row in sql(f"SELECT * FROM {name}").collect()) == [1, 2]
    sql(f"INSERT INTO {name} VALUES (9)")
    assert sorted(row.id for row in sql(f"SELECT * FROM {name}").collect()) == [1, 2, 9]
    assert sorted(row.id for row in sql(f"SELECT * FROM {name} VERSION AS OF 3").collect()) == [1, 2, 9]
