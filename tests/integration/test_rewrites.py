"""A query that writes the table it reads needs its keys: without one it fails, the table stays as it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

import lockgate
from lockgate.framework.keys import KeyProvider, MemoryKeyProvider

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]

pytestmark = pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")

OLD, NEW = {"old@0": b"0123456789abcdef"}, {"new@0": b"fedcba9876543210"}


@pytest.fixture(scope="module")
def catalogs(lake: Lake, lake_folder: Path) -> dict[str, Lake]:
    """The warehouse with both keys, with the one that tables name today, and with none."""

    def connect(name: str, keys: KeyProvider | None) -> Lake:
        return lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog=name, keys=keys)

    return {
        "both": connect("rewrite_both", MemoryKeyProvider(OLD | NEW)),
        "new": connect("rewrite_new", MemoryKeyProvider(NEW)),
        "none": connect("rewrite_none", None),
    }


@pytest.fixture
def people(catalogs: dict[str, Lake], spark: SparkSession, database: str) -> str:
    """A table, as `<database>.people`: its first file is under the key `old`, `orc.encrypt` names `new`."""
    name = f"{database}.people"
    both = catalogs["both"]
    spark.sql(
        f"CREATE TABLE rewrite_both.{name} (id INT, ssn STRING, part INT) PARTITIONED BY (part) "
        "TBLPROPERTIES ('orc.encrypt' = 'old:ssn')"
    )
    spark.sql(f"INSERT INTO rewrite_both.{name} VALUES (1, 'secret', 1)")
    table = both.catalog.load_table(name)
    options = {**table.schema.options, "orc.encrypt": "new:ssn"}
    table.schema_files.create(dataclasses.replace(table.schema, id=1, options=options))
    spark.sql(f"INSERT INTO rewrite_both.{name} VALUES (2, 'other', 1)")
    return name


def state(folder: str | Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


STATEMENTS = {
    "overwrite": "INSERT OVERWRITE {c}.{t} SELECT * FROM {c}.{t}",
    "append": "INSERT INTO {c}.{t} SELECT id + 10, ssn, part FROM {c}.{t}",
    "some partitions": "INSERT OVERWRITE {c}.{t} PARTITION (part = 1) SELECT id, ssn FROM {c}.{t} LIMIT 9",
    "through a shuffle": "INSERT OVERWRITE {c}.{t} SELECT max(id), ssn, 1 FROM {c}.{t} GROUP BY ssn",
    "a subquery": "INSERT INTO {c}.{t} SELECT 3, (SELECT max(ssn) FROM {c}.{t}), 1",
    "an older snapshot": "INSERT OVERWRITE {c}.{t} SELECT * FROM {c}.{t} VERSION AS OF 1",
    "two writes": "FROM {c}.{t} INSERT INTO {c}.{t} SELECT 7, ssn, 7 INSERT INTO {c}.{t} SELECT 8, ssn, 8",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_missing_key_is_an_error_before_the_first_file(
    catalogs: dict[str, Lake], spark: SparkSession, people: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = catalogs["both"].catalog.load_table(people).location
    before = state(location)
    begun = _spy_on_writes(monkeypatch)
    with pytest.raises(Exception, match=r"column 'ssn', whose key 'old(@0)?' is not held"):
        spark.sql(STATEMENTS[kind].format(c="rewrite_new", t=people))
    assert state(location) == before
    assert not begun
    if kind != "two writes":
        spark.sql(STATEMENTS[kind].format(c="rewrite_both", t=people))
        rows = {row.ssn for row in spark.table(f"rewrite_both.{people}").collect()}
        assert rows <= {"secret", "other"}
        assert "secret" in rows or kind == "a subquery"


def _spy_on_writes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    from lockgate.framework.spark.bridge import dispatcher
    from lockgate.framework.spark.operations import write_operations

    begun: list[object] = []

    def begin(context: object, request: dict[str, object]) -> object:
        begun.append(request)
        return write_operations.OPERATIONS["write.begin"](context, request)  # type: ignore[arg-type]  # a request of its message

    monkeypatch.setitem(dispatcher._OWN, "write.begin", begin)
    return begun


def test_masks_read_through_another_catalog_are_not_stored(
    catalogs: dict[str, Lake], spark: SparkSession, people: str
) -> None:
    """One table under two names: what counts is the table that is read and written."""
    before = state(catalogs["both"].catalog.load_table(people).location)
    assert spark.table(f"rewrite_none.{people}").where("ssn IS NULL").count() == 2
    with pytest.raises(Exception, match="column 'ssn', whose key 'new' is not held"):
        spark.sql(f"INSERT OVERWRITE rewrite_both.{people} SELECT * FROM rewrite_none.{people}")
    cached = spark.table(f"rewrite_none.{people}").cache()
    try:
        assert cached.where("ssn IS NULL").count() == 2
        with pytest.raises(Exception, match="column 'ssn', whose key 'new' is not held"):
            cached.writeTo(f"rewrite_both.{people}").overwritePartitions()
    finally:
        cached.unpersist()
    assert state(catalogs["both"].catalog.load_table(people).location) == before


def test_columns_that_are_not_read_need_no_key(
    catalogs: dict[str, Lake], spark: SparkSession, people: str
) -> None:
    spark.sql(f"INSERT INTO rewrite_new.{people} SELECT id + 100, 'fresh', 1 FROM rewrite_new.{people}")
    rows = sorted(map(tuple, spark.sql(f"SELECT id, ssn FROM rewrite_both.{people}").collect()))
    assert rows == [(1, "secret"), (2, "other"), (101, "fresh"), (102, "fresh")]


def test_masks_may_go_into_another_table(catalogs: dict[str, Lake], spark: SparkSession, people: str) -> None:
    spark.sql(f"CREATE TABLE rewrite_new.{people}_masked AS SELECT * FROM rewrite_none.{people}")
    assert spark.table(f"rewrite_new.{people}_masked").where("ssn IS NULL").count() == 2


def test_rows_are_changed_strictly(catalogs: dict[str, Lake], spark: SparkSession, database: str) -> None:
    """Also where the masks come from a source of MERGE that is the table itself."""
    name = f"{database}.keyed"
    spark.sql(
        f"CREATE TABLE rewrite_both.{name} (id INT, ssn STRING) "
        "TBLPROPERTIES ('primary-key' = 'id', 'orc.encrypt' = 'old:ssn')"
    )
    spark.sql(f"INSERT INTO rewrite_both.{name} VALUES (1, 'secret')")
    table = catalogs["both"].catalog.load_table(name)
    options = {**table.schema.options, "orc.encrypt": "new:ssn"}
    table.schema_files.create(dataclasses.replace(table.schema, id=1, options=options))
    before = state(table.location)
    for statement in (
        "UPDATE {0} SET ssn = concat(ssn, '!') WHERE id = 1",
        "DELETE FROM {0} WHERE ssn IS NULL",
        "MERGE INTO {0} t USING (SELECT id + 1 AS id, ssn FROM {0}) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, ssn) VALUES (s.id, s.ssn)",
    ):
        with pytest.raises(Exception, match=r"column 'ssn', whose key 'old(@0)?' is not held"):
            spark.sql(statement.format(f"rewrite_new.{name}"))
        assert state(table.location) == before
    spark.sql(f"UPDATE rewrite_both.{name} SET ssn = concat(ssn, '!') WHERE id = 1")
    assert spark.table(f"rewrite_both.{name}").collect() == [(1, "secret!")]


def test_a_stream_that_reads_the_table_it_writes(
    catalogs: dict[str, Lake], spark: SparkSession, people: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id": 1}')
    stream = spark.readStream.schema("id INT").json(str(tmp_path / "in"))

    def run(catalog: str) -> None:
        known = spark.table(f"{catalog}.{people}")
        joined = stream.join(known, "id").selectExpr("id + 50 AS id", "ssn", "part")
        query = joined.writeStream.option("checkpointLocation", str(tmp_path / catalog))
        query.trigger(availableNow=True).toTable(f"{catalog}.{people}").awaitTermination()

    before = state(catalogs["both"].catalog.load_table(people).location)
    with pytest.raises(StreamingQueryException, match=r"whose key 'old@0' is not held"):
        run("rewrite_new")
    assert state(catalogs["both"].catalog.load_table(people).location) == before
    run("rewrite_both")
    assert spark.table(f"rewrite_both.{people}").where("id = 51").collect() == [(51, "secret", 1)]
