"""What a statement computes from a table is not stored over what others committed concurrently."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.functions import udf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Row = tuple[int, str]


def rows(spark: SparkSession, name: str) -> list[Row]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.fixture
def concurrently(spark: SparkSession, lake: Lake, database: str, tmp_path) -> Callable[[str, int, str], None]:
    """Register the SQL function `concurrently(x)`, which returns x after another writer has put in a row."""

    def register(name: str, key: int, value: str) -> None:
        warehouse, folder = lake.catalog.warehouse, str(tmp_path)

        def commit_once(text: str) -> str:
            import os

            from lockgate.framework.store import Catalog

            try:
                os.close(os.open(f"{folder}/{name}-{key}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return text
            table = Catalog(warehouse).load_table(f"{database}.{name}")
            table.append(pa.table({"id": [key], "v": [value]}, table.schema.arrow_schema))
            return text

        spark.udf.register("concurrently", udf(commit_once, useArrow=False))

    return register


@pytest.fixture
def keyed(spark: SparkSession, table: Callable[[str], str]) -> str:
    name = table("keyed")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return name


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET v = concurrently(concat(v, '!'))",
        "DELETE FROM {t} WHERE concurrently(v) = 'b'",
        "MERGE INTO {t} t USING (SELECT 2 AS id, 'z' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = concurrently(concat(t.v, s.v))",
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (
                "INSERT INTO {t} SELECT id, concurrently(concat(v, '!')) FROM {t}",
                "INSERT OVERWRITE {t} SELECT id, concurrently(upper(v)) FROM {t}",
            )
        ),
    ],
)
def test_a_change_of_the_same_keys_is_refused(
    spark: SparkSession, keyed: str, concurrently: Callable[[str, int, str], None], statement: str
) -> None:
    concurrently("keyed", 2, "theirs")
    with pytest.raises(Exception, match=r"changed partition .* repeat the statement"):
        spark.sql(statement.format(t=keyed))
    assert rows(spark, keyed) == [(1, "a"), (2, "theirs"), (3, "c")]
    spark.sql(statement.format(t=keyed).replace("= 'b'", "= 'theirs'"))
    assert rows(spark, keyed) != [(1, "a"), (2, "theirs"), (3, "c")]


def test_a_change_of_other_keys_is_kept_next_to_it(
    spark: SparkSession, keyed: str, concurrently: Callable[[str, int, str], None]
) -> None:
    concurrently("keyed", 9, "theirs")
    spark.sql(f"UPDATE {keyed} SET v = concurrently('x') WHERE id = 1")
    assert rows(spark, keyed) == [(1, "x"), (2, "b"), (3, "c"), (9, "theirs")]


def test_rows_that_do_not_depend_on_the_table_replace_whatever_is_there(
    spark: SparkSession, keyed: str, concurrently: Callable[[str, int, str], None]
) -> None:
    concurrently("keyed", 2, "theirs")
    spark.sql(f"INSERT OVERWRITE {keyed} SELECT 7, concurrently('new')")
    assert rows(spark, keyed) == [(7, "new")]


def test_an_older_state_can_be_put_back(spark: SparkSession, keyed: str) -> None:
    spark.sql(f"INSERT INTO {keyed} VALUES (1, 'wrong')")
    spark.sql(f"INSERT OVERWRITE {keyed} SELECT * FROM {keyed} VERSION AS OF 1")
    assert rows(spark, keyed) == [(1, "a"), (2, "b"), (3, "c")]


def test_rows_added_to_an_append_table_from_itself_need_no_check(
    spark: SparkSession, table: Callable[[str], str], concurrently: Callable[[str, int, str], None]
) -> None:
    name = table("plain")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    concurrently("plain", 2, "theirs")
    spark.sql(f"INSERT INTO {name} SELECT id + 10, concurrently(v) FROM {name}")
    assert rows(spark, name) == [(1, "a"), (2, "theirs"), (11, "a")]


def test_partitions_overwritten_from_themselves(
    spark: SparkSession, table: Callable[[str], str], concurrently: Callable[[str, int, str], None]
) -> None:
    name = table("parted")
    spark.sql(f"CREATE TABLE {name} (v STRING, id INT) PARTITIONED BY (id)")
    spark.sql(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2)")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        overwrite = (
            f"INSERT OVERWRITE {name} SELECT concurrently(concat(v, '!')), id FROM {name} WHERE id = 1"
        )
        concurrently("parted", 2, "theirs")
        spark.sql(overwrite)
        assert sorted(map(tuple, spark.table(name).collect())) == [("a!", 1), ("b", 2), ("theirs", 2)]
        concurrently("parted", 1, "theirs")
        with pytest.raises(Exception, match="repeat the statement"):
            spark.sql(overwrite)
        expected = [("a!", 1), ("b", 2), ("theirs", 1), ("theirs", 2)]
        assert sorted(map(tuple, spark.table(name).collect())) == expected
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


# --- tables without a key: files are rewritten ---------------------------------------------------


@pytest.fixture
def before_commit(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Let something happen after the next write has its files, and before it commits them."""
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import write_operations

    def arrange(happens: Callable[[], None]) -> None:
        def late(context: Any, request: dict[str, Any]) -> Any:
            monkeypatch.undo()
            happens()
            return write_operations.commit(context, request)

        monkeypatch.setitem(dispatcher._OWN, "write.commit", late)

    return arrange


@pytest.fixture
def plain(spark: SparkSession, lake: Lake, database: str) -> Table:
    spark.sql(f"CREATE TABLE lake.{database}.plain (id INT, v STRING)")
    spark.sql(f"INSERT INTO lake.{database}.plain VALUES (1, 'a'), (2, 'b')")
    return lake.catalog.load_table(f"{database}.plain")


def one(table: Table, key: int, value: str) -> pa.Table:
    return pa.table({"id": [key], "v": [value]}, table.schema.arrow_schema)


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("UPDATE {t} SET v = upper(v) WHERE id >= 1", [(1, "A"), (2, "B")]),
        ("DELETE FROM {t} WHERE v <= 'a' OR v = 'theirs'", [(2, "b")]),
        (
            "MERGE INTO {t} t USING (SELECT 2 AS id, 'z' AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE",
            [(2, "z")],
        ),
    ],
)
def test_rows_that_others_append_concurrently_are_not_seen_and_not_lost(
    spark: SparkSession, plain: Table, before_commit: Any, statement: str, changed: list[Row]
) -> None:
    name = f"lake.{plain.identifier}"
    before_commit(lambda: plain.append(one(plain, 9, "theirs")))
    spark.sql(statement.format(t=name))
    assert rows(spark, name) == [*changed, (9, "theirs")]


def test_serializable_statements_are_refused_instead(
    spark: SparkSession, plain: Table, before_commit: Any
) -> None:
    name = f"lake.{plain.identifier}"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.isolation-level' = 'serializable')")
    before_commit(lambda: plain.append(one(plain, 9, "theirs")))
    on_disk = {info.name for info in plain.file_system.list(f"{plain.location}/bucket-0")}
    with pytest.raises(Exception, match="repeat the statement"):
        spark.sql(f"UPDATE {name} SET v = 'x' WHERE id = 1")
    assert rows(spark, name) == [(1, "a"), (2, "b"), (9, "theirs")]
    # What the refused statement wrote is gone.
    assert len({info.name for info in plain.file_system.list(f"{plain.location}/bucket-0")} - on_disk) == 1


@pytest.mark.parametrize("key", ["", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"])
def test_a_snapshot_that_was_rolled_back_and_its_number_given_again(
    spark: SparkSession, lake: Lake, database: str, before_commit: Any, key: str
) -> None:
    name = f"lake.{database}.t"
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) {key}")
    table = lake.catalog.load_table(f"{database}.t")
    table.append(one(table, 1, "a"))
    table.append(one(table, 2, "wrong"))

    def roll_back() -> None:
        table.rollback(1)
        assert table.append(one(table, 2, "right")).id == 2

    before_commit(roll_back)
    with pytest.raises(Exception, match="was rolled back"):
        spark.sql(f"UPDATE {name} SET v = concat(v, '!')")
    assert rows(spark, name) == [(1, "a"), (2, "right")]


def test_partitions_are_deleted_as_they_are_when_the_statement_lands(
    spark: SparkSession, lake: Lake, database: str, before_commit: Any
) -> None:
    name = f"lake.{database}.parted"
    spark.sql(f"CREATE TABLE {name} (v STRING, id INT) PARTITIONED BY (id)")
    spark.sql(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2)")
    table = lake.catalog.load_table(f"{database}.parted")
    theirs = pa.table({"v": ["theirs"], "id": [1]}, table.schema.arrow_schema)
    before_commit(lambda: table.append(theirs))
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (id = 1) SELECT 'new'")
    assert sorted(map(tuple, spark.table(name).collect())) == [("b", 2), ("new", 1)]
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    assert sorted(map(tuple, spark.table(name).collect())) == [("b", 2)]
