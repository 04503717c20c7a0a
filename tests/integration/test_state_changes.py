"""What changed between two tags, in Spark as in Python: `t$audit_log` and `t$ro`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import selection_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]
VIEWS = ("audit_log", "ro")
KEYS = {"key": "'primary-key' = 'id', 'bucket' = '2'", "append": "'bucket' = '-1'"}


@pytest.mark.parametrize("kind", KEYS)
def test_what_changed_between_two_tags(lake: Lake, spark: SparkSession, table: Named, kind: str) -> None:
    """The audit log and the read-optimized table: by options of a query and of the table."""
    name = table("logged")
    of = name.removeprefix("lake.")
    lake.sql(f"CREATE TABLE {name} (id INT NOT NULL, v STRING, tags ARRAY<INT>) TBLPROPERTIES ({KEYS[kind]})")
    lake.sql(f"INSERT INTO {name} SELECT INT(id), 'a', array(INT(id)) FROM range(6)")
    lake.sql(f"CALL lake.sys.compact('{of}', compact_strategy => 'full')")
    lake.sql(f"CALL lake.sys.create_tag('{of}', 'one')")
    lake.sql(f"UPDATE {name} SET v = 'b' WHERE id IN (1, 2)")
    lake.sql(f"UPDATE {name} SET v = 'a' WHERE id = 2")
    lake.sql(f"DELETE FROM {name} WHERE id = 5")
    lake.sql(f"INSERT INTO {name} VALUES (9, 'b', NULL)")
    lake.sql(f"CALL lake.sys.compact('{of}', compact_strategy => 'full')")
    lake.sql(f"INSERT INTO {name} VALUES (10, 'b', NULL)")
    lake.sql(f"CALL lake.sys.create_tag('{of}', 'two')")
    lake.sql(f"CALL lake.sys.expire_snapshots('{of}', retain_max => 1, retain_min => 1)")
    between = "WITH (`incremental-between` = 'one,two')"
    loaded = lake.catalog.load_table(of)
    request = ReadRequest(between=selection_of(loaded, {"incremental-between": "one,two"}).between)
    log = python_rows(loaded, "audit_log", request)
    gone = [("-", 1, "a")] if kind == "append" else []
    expected = [*gone, ("+", 1, "b"), ("+", 9, "b"), ("+", 10, "b"), ("-", 5, "a")]
    assert sorted((row[0][0], *row[1:3]) for row in log) == sorted(expected)
    found = spark.sql(f"SELECT * FROM lake.{quoted(of, 'audit_log')} {between}")
    assert sorted(map(tuple, found.collect()), key=repr) == log
    for view in VIEWS:
        truth = python_rows(loaded, view, request)
        by_options = spark.read.option("incremental-between", "one,two").table(f"lake.{quoted(of, view)}")
        assert sorted(map(tuple, by_options.collect()), key=repr) == truth, view
    with pytest.raises(Exception, match=r"\$binlog of table .* is not defined between two states"):
        spark.read.option("incremental-between", "one,two").table(f"lake.{quoted(of, 'binlog')}").collect()
    new = "v = 'b' AND rowkind LIKE '+%'"
    filtered = f"SELECT id, rowkind FROM lake.{quoted(of, 'audit_log')} {between} WHERE {new}"
    assert sorted(row[0] for row in spark.sql(filtered).collect()) == [1, 9, 10]
    counted = f"SELECT rowkind, count(*) FROM lake.{quoted(of, 'audit_log')} {between} GROUP BY rowkind"
    assert dict(map(tuple, spark.sql(counted).collect())) == Counter(row[0] for row in log)
    give_option(loaded, "incremental-between", "one,two")
    for view in VIEWS:
        by_table = spark.table(f"lake.{quoted(of, view)}")
        assert sorted(map(tuple, by_table.collect()), key=repr) == python_rows(loaded, view, request), view
    ids = sorted(loaded.read(request)["id"].to_pylist())
    assert sorted(row[0] for row in spark.table(name).collect()) == ids
    assert spark.sql(f"SELECT count(*) FROM {name} VERSION AS OF 'two'").collect() == [(7,)]
    with pytest.raises(Exception, match="incremental-between"):
        lake.sql(f"DELETE FROM {name} WHERE id = 1")
    lake.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('incremental-between')")
    assert spark.table(name).count() == 7
    lake.sql(f"ALTER TABLE {name} ADD COLUMN m MAP<STRING, INT>")
    with pytest.raises(Exception, match="column m has a MAP"):
        spark.read.option("incremental-between", "one,two").table(f"lake.{quoted(of, 'audit_log')}").collect()


def give_option(table: Table, key: str, value: str) -> None:
    """Give a table an option in its schema's file, as another engine does."""
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"][key] = value
    path.write_text(json.dumps(schema))


def quoted(table: str, view: str) -> str:
    namespace, _, name = table.rpartition(".")
    return f"{namespace}.`{name}${view}`"


def python_rows(table: Table, view: str, request: ReadRequest) -> list[tuple[Any, ...]]:
    found = table.system(view, request).to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)
