"""DELETE, UPDATE and MERGE on key tables whose files overlap: the shortest cases, and the files they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.store.scan import table_scan
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.pushdown import AlwaysTrue, Predicate, col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]


def loaded(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


STALE = {
    "update": "UPDATE {t} SET n = n + 1000 WHERE st = 'A'",
    "update with a subquery": "UPDATE {t} SET n = n + 1000 WHERE st IN (SELECT st FROM {t} WHERE id = 0)",
    "merge": "MERGE INTO {t} t USING (SELECT id FROM range(0, 30)) s ON t.id = s.id AND t.st = 'A' "
    "WHEN MATCHED THEN UPDATE SET n = t.n + 1000",
    "delete with a subquery": "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE st = 'A')",
}


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [*((statement, "") for statement in STALE), ("update", ", 'sequence.field' = 'q'")],
)
def test_changed_and_deleted_rows_stay_so(
    lake: Lake, spark: SparkSession, table: Named, statement: str, sequence: str
) -> None:
    """The newest version, or the deletion, lies in a small file that holds no key of those that match."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, st STRING, n INT, q INT) "
        f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '3'{sequence})"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'A', CAST(id AS INT), 1 FROM range(0, 30, 1, 1)")
    store = loaded(lake, name)
    store.append(
        pa.table({"id": [27], "st": ["B"], "n": pa.array([270], pa.int32()), "q": pa.array([1], pa.int32())})
    )
    store.delete(pa.table({"id": [24]}))
    spark.sql(STALE[statement].format(t=name))
    found = {row["id"]: (row["st"], row["n"]) for row in loaded(lake, name).read().to_pylist()}
    untouched = {27: ("B", 270)}
    changed = (
        {} if "delete" in statement else {at: ("A", at + 1000) for at in range(30) if at not in (24, 27)}
    )
    assert found == changed | untouched


@pytest.mark.parametrize("statement", ["DELETE", "MERGE"])
def test_deletions_hold_what_they_take_away(
    lake: Lake, spark: SparkSession, table: Named, statement: str
) -> None:
    """The whole row, of MERGE the columns that cannot be null, so that other engines can merge it."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3) NOT NULL, v VARCHAR(5), at STRUCT<x: INT, y: CHAR(2)>, "
        "list ARRAY<INT> NOT NULL, names MAP<STRING, INT>, amount DECIMAL(20, 2) NOT NULL, note STRING) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, 'c', 'v', named_struct('x', 1, 'y', 'y'), array(1), map('k', 2), "
        "1.5, 'note' FROM VALUES 1, 2 AS t(id)"
    )
    before = loaded(lake, name).read(predicate=col("id") == 1).to_pylist()[0]
    if statement == "DELETE":
        spark.sql(f"DELETE FROM {name} WHERE c = 'c' AND v = 'v' AND id = 1")
    else:
        spark.sql(f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    store = loaded(lake, name)
    paths = [path for split in store.scan().splits for path in split.paths]
    rows = []
    for path in paths:
        with EncryptedOrcFile((store.file_system, path)) as file:
            rows += [row for row in file.read().to_pylist() if row["_VALUE_KIND"] == RowKind.DELETE]
    (row,) = rows
    if statement == "MERGE":
        before |= dict.fromkeys(("v", "at", "names", "note"))
    assert {key: row[key] for key in before} == before
    assert store.read(columns=["id"])["id"].to_pylist() == [2]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """The plans of scans that were left something out of at run time."""
    found: list[ScanPlan] = []

    def noting(*args: Any, late: Predicate | None = None, **options: Any) -> ScanPlan:
        plan = plan_scan(*args, late=late, **options)
        if late not in (None, AlwaysTrue()):
            found.append(plan)
        return plan

    monkeypatch.setattr(table_scan, "plan_scan", noting)
    return found


@pytest.mark.parametrize(("partitioned", "files"), [(False, 2), (True, 5)])
def test_changes_leave_files_out_as_a_whole(
    lake: Lake, spark: SparkSession, table: Named, planned: list[ScanPlan], partitioned: bool, files: int
) -> None:
    """Partitions, and files that share no keys with others."""
    name = table("t")
    layout = (
        "PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '1')"
        if partitioned
        else "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    spark.sql(f"CREATE TABLE {name} (p INT, id BIGINT, st STRING) {layout}")
    store = loaded(lake, name)
    for part in range(5):
        for repeat in range(5 if partitioned else 1):
            ids = [at + (0 if partitioned else 100 * part) for at in range(20)]
            parts, kinds = (
                pa.array([part] * 20, pa.int32()),
                ["A" if part == 2 and (partitioned is False or repeat == 4) else "B"] * 20,
            )
            store.append(pa.table({"p": parts, "id": ids, "st": kinds}))
    if not partitioned:  # makes it unlike what the condition alone leaves
        store.append(pa.table({"p": pa.array([0], pa.int32()), "id": [350], "st": ["A"]}))
        store.delete(pa.table({"id": [350]}))
    spark.sql(f"UPDATE {name} SET st = 'changed' WHERE st < 'B'")
    (plan,) = planned
    assert sum(len(split.files) for split in plan.splits) == files
    assert loaded(lake, name).read(predicate=col("st") == "changed").num_rows == 20
