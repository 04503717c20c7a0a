"""DELETE, UPDATE and MERGE on tables without a primary key rewrite the files that hold rows to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import lockgate
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]


def rows(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in spark.table(name).collect()), key=repr)


def files(table: Table) -> dict[str, int]:
    latest = table.latest_snapshot()
    return {entry.file.file_name: entry.file.row_count for entry in table.manifests.live_files(latest)}


@pytest.fixture
def events(spark: SparkSession, table: Named) -> str:
    """Three files of two rows, by `id` 1-2, 3-4, 5-6."""
    name = table("events")
    spark.sql(f"CREATE TABLE {name} (id INT, name STRING, s STRUCT<a: INT, b: STRING>)")
    for first in (1, 3, 5):
        spark.sql(
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('n', id), struct(id AS a, 'b' AS b) "
            f"FROM VALUES ({first}), ({first + 1}) AS t(id)"
        )
    return name


def loaded(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


def test_delete_rewrites_only_the_files_with_such_rows(lake: Lake, spark: SparkSession, events: str) -> None:
    before = files(loaded(lake, events))
    spark.sql(f"DELETE FROM {events} WHERE name = 'n3' OR s.a = 4 AND id < 0")
    after = files(loaded(lake, events))
    assert [row[0] for row in rows(spark, events)] == [1, 2, 4, 5, 6]
    assert len(before.keys() & after.keys()) == 2
    assert sorted(after.values()) == [1, 2, 2]
    assert loaded(lake, events).latest_snapshot().commit_kind.value == "OVERWRITE"  # type: ignore[union-attr]  # there is one
    # An older snapshot still has what it had.
    assert spark.sql(f"SELECT * FROM {events} VERSION AS OF 3").count() == 6


def test_delete_without_such_rows_commits_nothing(lake: Lake, spark: SparkSession, events: str) -> None:
    spark.sql(f"DELETE FROM {events} WHERE name = 'nobody'")
    assert loaded(lake, events).latest_snapshot().id == 3  # type: ignore[union-attr]  # there is one


def test_delete_of_all_rows_of_a_file_leaves_no_file(lake: Lake, spark: SparkSession, events: str) -> None:
    spark.sql(f"DELETE FROM {events} WHERE id IN (1, 2)")
    assert sorted(files(loaded(lake, events)).values()) == [2, 2]
    assert [row[0] for row in rows(spark, events)] == [3, 4, 5, 6]


def test_an_update_changes_rows_of_a_table_without_key(spark: SparkSession, events: str) -> None:
    spark.sql(f"UPDATE {events} SET name = upper(name), s.b = 'new' WHERE id % 4 = 1")
    changed = [(row[0], row[1], row[2].b) for row in rows(spark, events)]
    assert changed == [
        (1, "N1", "new"), (2, "n2", "b"), (3, "n3", "b"), (4, "n4", "b"), (5, "N5", "new"), (6, "n6", "b")
    ]  # fmt: skip


def test_conditions_that_read_other_tables_and_nulls(spark: SparkSession, table: Named, events: str) -> None:
    other = table("other")
    spark.sql(f"CREATE TABLE {other} (id INT)")
    spark.sql(f"INSERT INTO {other} VALUES (2), (5), (NULL)")
    spark.sql(f"INSERT INTO {events} VALUES (NULL, NULL, NULL)")
    spark.sql(f"DELETE FROM {events} WHERE id IN (SELECT id FROM {other})")
    assert [row[0] for row in rows(spark, events)] == [1, 3, 4, 6, None]
    # NOT of unknown is unknown: the row without an id stays.
    spark.sql(f"DELETE FROM {events} WHERE NOT (id > 3)")
    assert [row[0] for row in rows(spark, events)] == [4, 6, None]


def test_a_merge_rewrites_files_with_changed_rows_only(lake: Lake, spark: SparkSession, events: str) -> None:
    before = files(loaded(lake, events))
    spark.sql(
        f"MERGE INTO {events} t USING (SELECT * FROM VALUES "
        "(3, 'gone'), (4, 'four'), (9, 'nine') AS v(id, name)) s ON t.id = s.id "
        "WHEN MATCHED AND s.name = 'gone' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
    )
    assert [row[:2] for row in rows(spark, events)] == [
        (1, "n1"), (2, "n2"), (4, "four"), (5, "n5"), (6, "n6"), (9, "nine")
    ]  # fmt: skip
    assert len(before.keys() & files(loaded(lake, events)).keys()) == 2
    spark.sql(
        f"MERGE INTO {events} t USING (SELECT 9 AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE"
    )
    assert [row[0] for row in rows(spark, events)] == [1, 2, 4, 9]


def test_partitions_and_buckets_keep_their_rows(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("parted")
    spark.sql(
        f"CREATE TABLE {name} (id INT, day DATE, v STRING) PARTITIONED BY (day) "
        "TBLPROPERTIES ('bucket' = '2', 'bucket-key' = 'id')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, date_add(DATE'2024-01-01', CAST(id % 2 AS INT)), 'v' "
        "FROM range(20) AS t(id)"
    )
    before = loaded(lake, name).manifests.live_files(loaded(lake, name).latest_snapshot())
    spark.sql(f"UPDATE {name} SET v = 'w' WHERE day = DATE'2024-01-01' AND id < 10")
    assert {entry.file.file_name for entry in before if entry.partition[0].day == 2} <= files(
        loaded(lake, name)
    ).keys()
    assert spark.sql(f"SELECT id, v FROM {name} WHERE id = 4").collect() == [(4, "w")]
    assert spark.table(name).where("v = 'w'").count() == 5
    # A row may move to another partition.
    spark.sql(f"UPDATE {name} SET day = DATE'2024-05-05' WHERE id = 3")
    assert spark.sql(f"SELECT id FROM {name} WHERE day = DATE'2024-05-05'").collect() == [(3,)]
    assert spark.table(name).count() == 20
    spark.sql(f"DELETE FROM {name} WHERE day = DATE'2024-05-05'")
    assert spark.table(name).count() == 19
    assert sorted(row["id"] for row in lake.catalog.load_table(name[5:]).read().to_pylist()) == [
        number for number in range(20) if number != 3
    ]


def test_files_of_older_schemas(spark: SparkSession, events: str) -> None:
    spark.sql(f"ALTER TABLE {events} RENAME COLUMN name TO title")
    spark.sql(f"ALTER TABLE {events} ADD COLUMNS (extra BIGINT)")
    spark.sql(f"UPDATE {events} SET extra = id * 2 WHERE title = 'n2'")
    assert [(row[0], row[1], row[3]) for row in rows(spark, events)][:3] == [
        (1, "n1", None), (2, "n2", 4), (3, "n3", None)
    ]  # fmt: skip


def test_a_commit_in_between_is_a_conflict(
    lake: Lake, spark: SparkSession, events: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import write_operations

    real = write_operations.commit

    def late(context: Any, request: dict[str, Any]) -> Any:
        monkeypatch.undo()
        other = loaded(lake, events)
        read = other.manifests.live_files(other.latest_snapshot())
        from lockgate.framework.store.commit.message import CommitMessage

        gone = CommitMessage(
            read[0].partition, read[0].bucket, read[0].total_buckets, deleted=(read[0].file,)
        )
        other.commit([gone], kind="OVERWRITE")
        return real(context, request)

    monkeypatch.setitem(dispatcher._OWN, "write.commit", late)
    with pytest.raises(AnalysisException, match="another commit replaced it"):
        spark.sql(f"UPDATE {events} SET name = 'x' WHERE id >= 1")
    assert spark.table(events).where("name = 'x'").count() == 0
    table = loaded(lake, events)
    on_disk = {info.name for info in table.file_system.list(f"{table.location}/bucket-0")}
    assert len(on_disk) == 3, "the refused files are deleted"


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_encrypted_columns_need_their_keys(
    lake: Lake, lake_folder: Any, spark: SparkSession, database: str
) -> None:
    warehouse = str(lake_folder / "warehouse")
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    lockgate.connect(warehouse, spark=spark, catalog="files_with", keys=keys)
    lockgate.connect(warehouse, spark=spark, catalog="files_without", keys=None)
    name = f"{database}.people"
    spark.sql(
        f"CREATE TABLE files_with.{name} (id INT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')"
    )
    spark.sql(f"INSERT INTO files_with.{name} VALUES (1, 'one'), (2, 'two')")
    for statement in ("DELETE FROM {} WHERE id = 1", "UPDATE {} SET id = 5 WHERE id = 1"):
        with pytest.raises(AnalysisException, match="pii"):
            spark.sql(statement.format(f"files_without.{name}"))
    assert lake.catalog.load_table(name).latest_snapshot().id == 1  # type: ignore[union-attr]  # there is one
    spark.sql(f"UPDATE files_with.{name} SET id = 5 WHERE ssn = 'one'")
    assert rows(spark, f"files_with.{name}") == [(2, "two"), (5, "one")]
    assert {row[1] for row in rows(spark, f"files_without.{name}")} == {None}


def test_metadata_columns_tell_where_rows_lie(
    lake: Lake, spark: SparkSession, table: Named, events: str
) -> None:
    found = spark.sql(f"SELECT id, _FILE_PATH, _ROW_INDEX FROM {events} WHERE id > 2 ORDER BY id").collect()
    assert [(row[0], row[2]) for row in found] == [(3, 0), (4, 1), (5, 0), (6, 1)]
    location = loaded(lake, events).location
    assert {row[1].removeprefix(f"file://{location}/bucket-0/") for row in found} <= files(
        loaded(lake, events)
    ).keys()
    one = found[0][1]
    assert spark.sql(f"SELECT id FROM {events} WHERE _FILE_PATH = '{one}' AND id >= 4").collect() == [(4,)]
    assert spark.sql(f"SELECT max(_ROW_INDEX) FROM {events} WHERE id = 6").collect() == [(1,)]
    assert spark.table(events).columns == ["id", "name", "s"]
    # Over stripes and ranges of a file, and not confused by filters that skip row groups.
    big = table("big")
    spark.sql(f"CREATE TABLE {big} (id BIGINT, pad STRING) TBLPROPERTIES ('target-file-size' = '2 mb')")
    spark.range(0, 60000, 1, 1).selectExpr("id", "sha2(string(id), 512) pad").writeTo(big).append()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "300k")
    try:
        wrong = (
            f"SELECT count(*) FROM {big} a JOIN (SELECT _FILE_PATH p, min(id) low FROM {big} GROUP BY 1) b "
            "ON a._FILE_PATH = b.p WHERE a.id - b.low != a._ROW_INDEX"
        )
        assert spark.sql(wrong).collect() == [(0,)]
        [(_, low)] = spark.sql(f"SELECT _FILE_PATH, min(id) FROM {big} GROUP BY 1 LIMIT 1").collect()
        assert spark.sql(f"SELECT _ROW_INDEX FROM {big} WHERE id = {low + 25000}").collect() == [(25000,)]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
