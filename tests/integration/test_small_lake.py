"""A little of everything on a small lake, on every Spark that has a connector; what older ones lack is
refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from spark_version import SPARK

import lockgate
from lockgate.errors import DeprecatedSparkWarning, MaskedDataWarning, UnsupportedError

if TYPE_CHECKING:
    from lockgate import Lake

Named = Callable[[str], str]


def rows(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in lake.sql(query).collect()]


@pytest.fixture
def log(lake: Lake, table: Named) -> str:
    """A table of appended rows, in partitions."""
    name = table("log")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, day STRING, x DOUBLE DEFAULT 1.5) PARTITIONED BY (day)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a', DEFAULT), (2, 'b', DEFAULT), (3, 'b', 4.0)")
    return name


@pytest.fixture
def dimension(lake: Lake, table: Named) -> str:
    """A table with a primary key, one of whose rows was replaced."""
    name = table("dim")
    options = "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, city STRING) {options}")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'Bern'), (2, 'Oslo')")
    lake.sql(f"INSERT INTO {name} VALUES (2, 'Rome'), (3, 'Lima')")
    return name


def test_tables_are_made_read_and_changed(lake: Lake, table: Named, log: str, dimension: str) -> None:
    assert rows(lake, f"SELECT count(*), sum(x) FROM {log} WHERE day = 'b'") == [(2, 5.5)]
    lake.sql(f"CREATE TABLE {table('c')} AS SELECT id, day FROM {log}")
    lake.sql(f"CREATE OR REPLACE TABLE {table('c')} AS SELECT id FROM {log} WHERE id > 1")
    assert rows(lake, f"SELECT id FROM {table('c')} ORDER BY id") == [(2,), (3,)]
    lake.sql(f"UPDATE {log} SET x = 9 WHERE id = 1")
    lake.sql(f"DELETE FROM {dimension} WHERE id = 3")
    lake.sql(
        f"MERGE INTO {dimension} t USING (SELECT 2 AS id, 'Nara' AS city UNION ALL SELECT 8, 'Kyiv') s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = s.city WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(lake, f"SELECT * FROM {dimension} ORDER BY id") == [(1, "Bern"), (2, "Nara"), (8, "Kyiv")]
    lake.sql(f"ALTER TABLE {log} ADD COLUMN note STRING")
    lake.sql(f"INSERT OVERWRITE {log} VALUES (5, 'e', 1.0, 'n')")
    assert rows(lake, f"SELECT * FROM {log}") == [(5, "e", 1.0, "n")]
    assert rows(lake, f"SELECT count(*) FROM {log} VERSION AS OF 1") == [(3,)]


def test_an_insert_by_some_columns(lake: Lake, log: str) -> None:
    insert = f"INSERT INTO {log} (id, day) VALUES (7, 'z')"
    if SPARK < (4, 1):
        with pytest.raises(AnalysisException, match="Cannot find data for the output column"):
            lake.sql(insert)
        lake.sql(f"INSERT INTO {log} (id, day, x) VALUES (7, 'z', DEFAULT)")
    else:
        lake.sql(insert)
    assert rows(lake, f"SELECT * FROM {log} WHERE day = 'z'") == [(7, "z", 1.5)]


def test_procedures_explanations_and_lineage(lake: Lake, table: Named, log: str, dimension: str) -> None:
    plain = dimension.removeprefix("lake.")
    (compacted,) = lake.sql(f"CALL lake.sys.compact(table => '{plain}')").collect()
    assert compacted["files_rewritten"] > 0
    (report,) = lake.explain_pushdown(f"SELECT city FROM {dimension} WHERE id = 2")
    assert "id = 2" in str(report)
    assert lake.inspect_sql(f"SELECT city FROM {dimension}").kind == "SELECT"
    lake.sql(f"CREATE TABLE {table('d')} AS SELECT city FROM {dimension}")
    made_of = lake.lineage(f"{table('d')}.city".removeprefix("lake."))
    assert f"{plain}.city" in {edge.source.qualified.removeprefix("lake.") for edge in made_of.found}
    if SPARK < (4, 1):
        with pytest.raises(AnalysisException, match="PROCEDURES"):
            lake.sql("SHOW PROCEDURES IN lake.sys")
    else:
        assert len(rows(lake, "SHOW PROCEDURES IN lake.sys")) > 40


def test_an_order_by_spark_s_tasks(lake: Lake, log: str) -> None:
    order = (
        f"CALL lake.sys.compact(table => '{log.removeprefix('lake.')}', order_strategy => 'order', "
        "order_by => 'id', order_engine => "
    )
    if SPARK < (4, 1):
        with pytest.raises(AnalysisException, match=r"since 4\.1; leave out order_engine"):
            lake.sql(f"{order} 'spark')")
        lake.sql(f"{order} 'auto')")
    else:
        lake.sql(f"{order} 'spark')")
    assert len(rows(lake, f"SELECT * FROM {log}")) == 3


def test_what_newer_grammars_have(lake: Lake, table: Named, dimension: str) -> None:
    changes = f"SELECT id, city FROM {dimension} CHANGES FROM VERSION 2 TO VERSION 2"
    like = f"CREATE TABLE {table('like')} LIKE {dimension}"
    if SPARK < (4, 2):
        for statement in (changes, like):
            with pytest.raises(AnalysisException):
                lake.sql(statement)
    else:
        assert {(2, "Rome"), (3, "Lima")} <= set(rows(lake, changes))
        lake.sql(like)
        assert lake.sql(f"SELECT * FROM {table('like')}").columns == ["id", "city"]


def test_encrypted_columns(lake: Lake, public: Lake, table: Named) -> None:
    name = table("people")
    options = "'primary-key'='id', 'bucket'='1', 'orc.encrypt'='pii:ssn', 'orc.mask'='nullify:ssn'"
    lake.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ({options})")
    lake.sql(f"INSERT INTO {name} VALUES (1, '123'), (2, '456')")
    lake.sql(f"INSERT INTO {name} VALUES (2, '789')")
    assert rows(lake, f"SELECT * FROM {name} ORDER BY id") == [(1, "123"), (2, "789")]
    catalog = lockgate.Catalog(public.catalog.warehouse)
    with pytest.warns(MaskedDataWarning, match="no key pii@0"):
        plain = catalog.load_table(name.removeprefix("lake.")).read(columns=["id", "ssn"])
    assert plain.to_pylist() == [{"id": 1, "ssn": None}, {"id": 2, "ssn": None}]


@pytest.mark.usefixtures("lookups_end")
def test_lookup_joins_of_streams(
    lake: Lake, table: Named, dimension: str, options: dict[str, str], tmp_path: Path
) -> None:
    lake.sql(f"CREATE TABLE {table('events')} (id BIGINT)")
    lake.sql(f"INSERT INTO {table('events')} VALUES (1), (2), (99)")
    wanted = [(1, "Bern"), (2, "Rome"), (99, None)]

    def joined(**more: str) -> list[tuple[Any, ...]]:
        stream = lake.spark.readStream.table(table("events"))
        found = lake.lookup_join(
            stream,
            dimension.removeprefix("lake."),
            on="id",
            how="left",
            select=["city"],
            options={**options, **{key.replace("_", "-"): value for key, value in more.items()}},
        )
        place = str(tmp_path / f"checkpoint{len(more)}")
        query = found.writeStream.option("checkpointLocation", place).trigger(availableNow=True)
        query.toTable(table(f"out{len(more)}")).awaitTermination()
        return rows(lake, f"SELECT * FROM {table(f'out{len(more)}')} ORDER BY id")

    assert joined() == wanted
    if SPARK < (4, 1):
        with pytest.raises(UnsupportedError, match=r"Python's workers .* needs PySpark 4\.1 or newer"):
            joined(**{"lookup.in_jvm": "false"})
    else:
        assert joined(**{"lookup.in_jvm": "false"}) == wanted
    lake.spark.readStream.table(table("events")).createOrReplaceTempView("coming")
    in_sql = lake.sql(
        f"SELECT o.id, d.city FROM coming AS o LEFT JOIN {dimension} FOR SYSTEM_TIME AS OF PROCTIME() AS d "
        "ON o.id = d.id"
    )
    query = in_sql.writeStream.option("checkpointLocation", str(tmp_path / "sql")).trigger(availableNow=True)
    query.toTable(table("from_sql")).awaitTermination()
    assert rows(lake, f"SELECT * FROM {table('from_sql')} ORDER BY id") == wanted


def test_an_old_spark_is_said_to_be_old(lake: Lake) -> None:
    from lockgate.framework.spark.session.session import attach

    if SPARK < (4, 1):
        with pytest.warns(DeprecatedSparkWarning, match=r"Spark 4\.0\.\d is deprecated"):
            attach(lake.spark)
    else:
        attach(lake.spark)  # warnings are errors
