"""`migrate_table` of what Spark wrote: Spark and Python read the new table as Spark read the old one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from lockgate.framework.keys import KeyFileProvider, create_key_file
from lockgate.framework.store import Catalog
from lockgate.procedures.builtin.migrate import migration as migrate_module

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from lockgate import Lake


@pytest.fixture
def origin(spark: SparkSession) -> Iterator[Callable[[str], str]]:
    """Make `spark_catalog.default.<unique>` of what follows CREATE TABLE <name>."""
    made: list[str] = []

    def make(definition: str) -> str:
        name = f"default.origin_{len(made)}"
        spark.sql(f"DROP TABLE IF EXISTS spark_catalog.{name}")
        spark.sql(f"CREATE TABLE spark_catalog.{name} {definition}")
        made.append(name)
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS spark_catalog.{name}")


def rows(spark: SparkSession, name: str, key: str = "id") -> list[Row]:
    return spark.table(name).orderBy(key).collect()


def migrate(lake: Lake, table: str, target: str, **more: Any) -> Row:
    (row,) = lake.call("migrate_table", source_type="spark", table=table, target_table=target, **more)
    return row


FLAT = """USING ORC AS SELECT id, CAST(id AS INT) i, CAST(id % 100 AS TINYINT) t, CAST(id AS SMALLINT) s,
    CAST(id / 4 AS DECIMAL(12, 3)) d, CAST(id AS FLOAT) f, CAST(id AS DOUBLE) x, id % 2 = 0 AS b,
    concat('name ', id) AS name, date_add(DATE'2020-01-01', CAST(id AS INT)) AS born,
    CAST(concat('b', id) AS BINARY) AS raw, array(id, NULL) AS list, map('k', id) AS pairs,
    named_struct('a', id, 'b', array(CAST(id AS STRING))) AS inner,
    CASE WHEN id % 3 = 0 THEN NULL ELSE id END AS maybe FROM range(0, 500, 1, 2)"""


def test_flat_and_nested_columns_are_adopted(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]
) -> None:
    source = origin(FLAT)
    before = rows(spark, f"spark_catalog.{source}")
    row = migrate(lake, f"spark_catalog.{source}", f"{database}.t")
    assert (row.files_adopted, row.files_rewritten, row.rows) == (2, 0, 500)
    assert rows(spark, f"lake.{database}.t") == before
    table = lake.catalog.load_table(f"{database}.t")
    found = table.read().sort_by("id")
    assert found.num_rows == 500
    assert found["name"].to_pylist() == [each["name"] for each in before]
    assert found["inner"].to_pylist() == [each["inner"].asDict() for each in before]
    assert spark.table(f"lake.{database}.t").where("id = 7 AND inner.a = 7").count() == 1
    # The old table is still there, and the new one lives on without it.
    spark.sql(f"DROP TABLE spark_catalog.{source}")
    lake.sql(f"INSERT INTO lake.{database}.t SELECT * FROM lake.{database}.t WHERE id < 10")
    assert spark.table(f"lake.{database}.t").count() == 510


def test_partitions_are_migrated_without_new_files(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]
) -> None:
    source = origin(
        """USING ORC PARTITIONED BY (day, kind) AS SELECT id, concat('n', id) AS name,
        date_add(DATE'2026-01-01', CAST(id % 2 AS INT)) AS day,
        element_at(array('a=b/c', 'ü %', NULL), CAST(id % 3 AS INT) + 1) AS kind FROM range(60)"""
    )
    before = rows(spark, f"spark_catalog.{source}")
    row = migrate(lake, source, f"{database}.t")
    assert (row.files_rewritten, row.partitions, row.rows) == (0, 6, 60)
    assert rows(spark, f"lake.{database}.t") == before
    assert spark.table(f"lake.{database}.t").where("kind = 'a=b/c' AND day = DATE'2026-01-01'").count() == 10
    assert spark.table(f"lake.{database}.t").where("kind IS NULL").count() == 20
    found = lake.catalog.load_table(f"{database}.t").read().sort_by("id").to_pylist()
    assert found == [each.asDict() for each in before]
    (compacted,) = lake.call("compact", table=f"{database}.t")
    assert compacted.files_after == 6
    assert rows(spark, f"lake.{database}.t") == before


def test_timestamps_are_rewritten(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]
) -> None:
    source = origin(
        """USING ORC AS SELECT id, timestamp_micros(1700000000123456 + id) AS at,
        CAST(timestamp_micros(1700000000123456 + id * 1000000) AS TIMESTAMP_NTZ) AS local FROM range(20)"""
    )
    before = rows(spark, f"spark_catalog.{source}")
    row = migrate(lake, source, f"{database}.t")
    assert (row.files_adopted, row.rows) == (0, 20)
    assert row.files_rewritten > 0
    assert rows(spark, f"lake.{database}.t") == before
    found = lake.catalog.load_table(f"{database}.t").read().sort_by("id")
    assert found["local"].to_pylist() == [each.local for each in before]
    assert [int(each.timestamp() * 1e6) for each in found["at"].to_pylist()] == [
        1700000000123456 + each for each in range(20)
    ]
    assert lake.catalog.list_tables(database) == ["t"]


def test_a_primary_key(lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]) -> None:
    source = origin("USING ORC AS SELECT concat('k', id) AS faa, id AS v FROM range(100)")
    row = migrate(lake, source, f"{database}.t", options="primary-key=faa,bucket=2")
    assert (row.files_adopted, row.rows, row.snapshot_id) == (0, 100, 1)
    lake.sql(f"INSERT INTO lake.{database}.t VALUES ('k5', 0)")
    lake.sql(f"DELETE FROM lake.{database}.t WHERE faa = 'k6'")
    assert spark.table(f"lake.{database}.t").count() == 99
    assert spark.table(f"lake.{database}.t").where("faa = 'k5'").first().v == 0


@pytest.fixture
def scope(lake: Lake) -> str:
    """The handle of the lake's keys, by which Spark's own ORC writer encrypts."""
    from lockgate.framework.spark.bridge.dispatcher import dispatcher

    keys = lake.catalog.keys
    assert keys is not None
    return dispatcher().scopes.register(keys)


def secret(scope: str, columns: str = "") -> str:
    return f"""USING ORC OPTIONS ('orc.key.provider' 'lockgate:{scope}', 'orc.encrypt' 'pii:ssn',
        'orc.mask' 'sha256:ssn') AS SELECT id, concat('s-', id) AS ssn {columns} FROM range(30)"""


def test_encrypted_files_are_adopted(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str], scope: str
) -> None:
    source = origin(secret(scope))
    row = migrate(lake, source, f"{database}.t")
    assert (row.files_rewritten, row.rows) == (0, 30)
    table = lake.catalog.load_table(f"{database}.t")
    assert (table.options["orc.encrypt"], table.options["orc.mask"]) == ("pii:ssn", "sha256:ssn")
    assert [each.ssn for each in rows(spark, f"lake.{database}.t")] == [f"s-{each}" for each in range(30)]
    assert table.read(strict=True).sort_by("id")["ssn"].to_pylist() == [f"s-{each}" for each in range(30)]
    lake.sql(f"INSERT INTO lake.{database}.t VALUES (30, 's-30')")
    lake.call("compact", table=f"{database}.t")
    assert table.read(strict=True).num_rows == 31


def test_encrypted_files_with_timestamps_are_rewritten_from_their_values(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str], scope: str
) -> None:
    source = origin(secret(scope, ", timestamp_seconds(id) AS at"))
    row = migrate(lake, source, f"{database}.t", options="orc.encrypt=other:ssn")
    assert row.files_adopted == 0
    found = rows(spark, f"lake.{database}.t")
    assert [each.ssn for each in found] == [f"s-{each}" for each in range(30)]
    assert [each.at.timestamp() for each in found] == [float(each) for each in range(30)]


def test_files_under_keys_that_are_not_the_lakes(
    lake: Lake, spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """Their keys are named by an argument; what Spark rewrites is then under the lake's own."""
    from lockgate.framework.spark.bridge.dispatcher import dispatcher

    create_key_file(tmp_path / "keys.json", ["pii"])
    scope = dispatcher().scopes.register(KeyFileProvider(tmp_path / "keys.json"))
    frame = spark.sql("SELECT id, concat('s-', id) AS ssn, timestamp_seconds(id) AS at FROM range(30)")
    folder = str(tmp_path / "origin")
    (
        frame.write.option("orc.key.provider", f"lockgate:{scope}")
        .option("orc.encrypt", "pii:ssn")
        .option("orc.mask", "sha256:ssn")
        .orc(folder)
    )
    arguments = {"source_type": "orc", "table": folder, "target_table": f"{database}.t"}
    with pytest.raises(AnalysisException, match=r"pii@0 does not open column .ssn."):
        lake.call("migrate_table", **arguments)
    (row,) = lake.call("migrate_table", **arguments, source_keys=f"file:{tmp_path / 'keys.json'}")
    assert (row.files_adopted, row.rows) == (0, 30)
    found = rows(spark, f"lake.{database}.t")
    assert [(each.ssn, each.at.timestamp()) for each in found] == [(f"s-{i}", float(i)) for i in range(30)]
    options = lake.catalog.load_table(f"{database}.t").options
    assert (options["orc.encrypt"], options["orc.mask"]) == ("pii:ssn", "sha256:ssn")


def test_files_of_hive_without_names(
    lake: Lake, spark: SparkSession, database: str, scope: str, tmp_path: Path, origin: Callable[[str], str]
) -> None:
    """A table names what its files do not, encrypted columns too."""
    frame = spark.sql("SELECT id AS _col0, concat('s-', id) AS _col1 FROM range(30)")
    folder = tmp_path / "origin"
    frame.write.option("orc.key.provider", f"lockgate:{scope}").option("orc.encrypt", "pii:_col1").orc(
        str(folder)
    )
    source = origin(f"(id BIGINT, ssn STRING) USING ORC LOCATION '{folder}'")
    row = migrate(lake, source, f"{database}.t")
    assert (row.files_adopted, row.rows) == (0, 30)
    assert [tuple(each) for each in rows(spark, f"lake.{database}.t")] == [(i, f"s-{i}") for i in range(30)]
    assert lake.catalog.load_table(f"{database}.t").options["orc.encrypt"] == "pii:ssn"


@pytest.mark.parametrize("columns", ["", ", timestamp_seconds(id) AS at"])
def test_without_the_key_nothing_happens(
    lake: Lake, database: str, origin: Callable[[str], str], scope: str, columns: str
) -> None:
    from lockgate.errors import KeyMissingError
    from lockgate.procedures import ProcedureContext, call

    source = origin(secret(scope, columns))
    keyless = ProcedureContext(Catalog(lake.catalog.warehouse), "lake", lake.spark)
    with pytest.raises(KeyMissingError, match="pii"):
        call(keyless, "migrate_table", "spark", source, target_table=f"{database}.t")
    assert lake.catalog.list_tables(database) == []


def test_an_origin_that_grows_concurrently_is_kept(
    lake: Lake,
    spark: SparkSession,
    database: str,
    origin: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = f"spark_catalog.{origin('USING ORC AS SELECT id FROM range(3)')}"
    adopt = migrate_module.adopt

    def append_and_adopt(*arguments: Any) -> Any:
        spark.sql(f"INSERT INTO {source} VALUES (99)")
        return adopt(*arguments)

    monkeypatch.setattr(migrate_module, "_threads", lambda _: 1)
    monkeypatch.setattr(migrate_module, "adopt", append_and_adopt)
    with pytest.raises(AnalysisException, match="not dropped"):
        migrate(lake, source, f"{database}.t", delete_origin=True)
    assert spark.table(source).count() > 3
    assert lake.table(f"{database}.t").count() == 3


def test_delete_origin(lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]) -> None:
    source = origin("USING ORC AS SELECT id FROM range(3)")
    migrate(lake, source, f"{database}.t", delete_origin=True)
    assert not spark.catalog.tableExists(f"spark_catalog.{source}")
    assert spark.table(f"lake.{database}.t").count() == 3


def test_a_folder_that_spark_wrote(lake: Lake, spark: SparkSession, database: str, tmp_path: Path) -> None:
    frame = spark.sql(
        """SELECT id, timestamp_seconds(id) AS at, timestamp_ntz '2026-01-01 12:00:00' AS local, id % 2 AS p
        FROM range(9)"""
    )
    frame.write.partitionBy("p").orc(str(tmp_path / "origin"))
    (row,) = lake.call(
        "migrate_table", source_type="orc", table=str(tmp_path / "origin"), target_table=f"{database}.t"
    )
    assert (row.files_adopted, row.rows, row.partitions) == (0, 9, 2)
    expected = spark.read.orc(str(tmp_path / "origin")).orderBy("id").collect()
    assert rows(spark, f"lake.{database}.t") == expected


def test_converted_tables(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]
) -> None:
    """Flat files are adopted; those with points in time and nested columns are rewritten."""
    flat = """SELECT id, CAST(id AS TINYINT) t, CAST(id / 4 AS DECIMAL(12, 3)) d, concat('name ', id) AS name,
        date_add(DATE'2020-01-01', CAST(id AS INT)) AS born, CAST(id % 2 AS INT) AS p
        FROM range(0, 100, 1, 2)"""
    more = ", array(id, NULL) AS list, TIMESTAMP'2024-03-01 12:30:00.123456' AS at FROM"
    for name, query, adopted in (("t", flat, 4), ("u", flat.replace("FROM", more), 0)):
        source = origin(f"USING PARQUET PARTITIONED BY (p) AS {query}")
        before = rows(spark, f"spark_catalog.{source}")
        row = migrate(lake, f"spark_catalog.{source}", f"{database}.{name}")
        assert (row.files_adopted, row.files_rewritten, row.rows) == (adopted, 4 - adopted, 100)
        assert rows(spark, f"lake.{database}.{name}") == before
        assert spark.table(f"lake.{database}.{name}").where("id > 90 AND p = 1").count() == 5
        lake.sql(f"INSERT INTO lake.{database}.{name} SELECT * FROM lake.{database}.{name} WHERE id < 10")
        assert spark.table(f"lake.{database}.{name}").count() == 110


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        ("USING CSV AS SELECT 1 AS id", "not stored as ORC, Parquet or Avro but as csv"),
        ("USING ORC CLUSTERED BY (id) INTO 2 BUCKETS AS SELECT 1 AS id", "bucketed by Spark"),
    ],
)
def test_other_tables_are_refused(
    lake: Lake, database: str, origin: Callable[[str], str], definition: str, complaint: str
) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match=complaint):
        migrate(lake, origin(definition), f"{database}.t")


def test_files_that_differ_are_read_by_spark_without_loss(
    lake: Lake, spark: SparkSession, database: str, origin: Callable[[str], str]
) -> None:
    """Timestamps make Spark read the files; older ones have narrower types, and fewer columns and members."""
    source = origin("(id INT, n INT, f FLOAT, s STRUCT<a: INT>, at TIMESTAMP, w TIMESTAMP_NTZ) USING ORC")
    name = f"spark_catalog.{source}"
    spark.sql(
        f"INSERT INTO {name} SELECT 1, 2147483647, 1.5F, named_struct('a', 7), "
        "TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00.000001'"
    )
    wider = "id INT, n BIGINT, f DOUBLE, s STRUCT<a: BIGINT, b: STRING>, at TIMESTAMP, w TIMESTAMP_NTZ"
    location = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").where("col_name = 'Location'").first().data_type
    second = origin(f"({wider}, m MAP<STRING, TIMESTAMP>) USING ORC LOCATION '{location}'")
    spark.sql(
        f"INSERT INTO spark_catalog.{second} SELECT 2, 1099511627776, 0.1D, named_struct('a', 1099511627776, "
        "'b', 'x'), TIMESTAMP'2024-03-01 12:00:00.123456', NULL, map('k', TIMESTAMP'2024-03-01 12:00:00')"
    )
    with pytest.raises(
        AnalysisException, match=r"column 'n' is BIGINT in the file and INT in spark_catalog\.default\.o"
    ):
        migrate(lake, name, f"{database}.t")
    assert lake.catalog.list_tables(database) == []
    before = rows(spark, f"spark_catalog.{second}")
    assert migrate(lake, f"spark_catalog.{second}", f"{database}.t", delete_origin=True).rows == 2
    assert rows(spark, f"lake.{database}.t") == before
    assert (before[0].n, before[0].s.a, before[0].s.b, before[1].f) == (2147483647, 7, None, 0.1)
    assert not spark.catalog.tableExists(f"spark_catalog.{second}")


def test_a_table_is_not_dropped_if_spark_read_other_values(
    lake: Lake,
    spark: SparkSession,
    database: str,
    origin: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lockgate.procedures.builtin.migrate import migrated_by_spark

    source = origin("USING ORC AS SELECT id, timestamp_micros(id) AS at, map('k', id) AS m FROM range(9)")
    real = migrated_by_spark._staged

    def other(context: Any, origin: Any, *more: Any) -> Any:
        read = migrated_by_spark._read
        with monkeypatch.context() as patch:
            patch.setattr(
                migrated_by_spark,
                "_read",
                lambda *given: read(*given).selectExpr("id", "at + INTERVAL 1 DAY AS at", "m"),
            )
            staged = real(context, origin, *more)
            made = staged.__enter__()
        return _Entered(staged, made)

    monkeypatch.setattr(migrated_by_spark, "_staged", other)
    with pytest.raises(Exception, match=r"not deleted.*other values in column 'at'"):
        migrate(lake, source, f"{database}.t", delete_origin=True)
    assert spark.table(f"spark_catalog.{source}").count() == 9


class _Entered:
    """A context that was entered already."""

    def __init__(self, context: Any, value: Any) -> None:
        self._context, self._value = context, value

    def __enter__(self) -> Any:
        return self._value

    def __exit__(self, *error: Any) -> Any:
        return self._context.__exit__(*error)
