"""What tasks read from and write to ORC files: columns by id, ranges, types, layout, statistics, failures."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc
import pytest
from messages import answer

from lockgate.framework.orc import EncryptedOrcFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

MakeName = Callable[[str], str]


def _struct(**columns: str) -> dict[str, Any]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()
    ]
    return {"type": "struct", "fields": fields}


def _schema(**columns: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"id": number, "name": name, "type": kind} for name, (number, kind) in columns.items()]


def _read(
    spark: SparkSession,
    path: Path,
    table: dict[str, Any],
    schemas: dict[str, Any],
    *,
    partition: dict[str, Any] | None = None,
    schema_id: int = 0,
) -> list[list[Any]]:
    file = {"path": path.as_uri(), "size": path.stat().st_size, "schema_id": schema_id}
    plan = {
        "schema_id": max(map(int, schemas)),
        "schemas": schemas,
        "integrity": "verify",
        "splits": [{"partition": partition or {}, "bucket": 0, "merge": False, "files": [file]}],
    }
    text = json.dumps(table)
    reader = spark.sparkContext._jvm.io.lockgate.spark.merge.Conformance
    return json.loads(reader.read(spark._jsparkSession, text, text, json.dumps(answer("scan.plan", plan))))


@pytest.fixture
def plain_file(tmp_path: Path) -> Path:
    """A file without field ids: columns a INT, b FLOAT, c STRING."""
    path = tmp_path / "plain.orc"
    rows = pa.table(
        {"a": pa.array([1, None], pa.int32()), "b": pa.array([0.5, 2.0], pa.float32()), "c": ["x", None]}
    )
    pa.orc.write_table(rows, path)
    return path


def test_columns_are_found_by_the_schema_the_file_was_written_with(
    spark: SparkSession, plain_file: Path
) -> None:
    schemas = {
        "0": _schema(a=(0, "integer"), b=(1, "float"), c=(2, "string")),
        # b was renamed to bee and became wider, c was dropped, another c was added, a became wider
        "1": _schema(c=(3, "string"), bee=(1, "double"), a=(0, "long")),
    }
    found = _read(spark, plain_file, _struct(c="string", bee="double", a="long"), schemas)
    assert found == [[None, 0.5, 1], [None, 2.0, None]]


def test_columns_are_found_by_name_where_nothing_else_is_known(spark: SparkSession, plain_file: Path) -> None:
    schemas = {"7": _schema(C=(0, "string"), a=(1, "long"), new=(2, "date"))}
    found = _read(spark, plain_file, _struct(C="string", a="long", new="date"), schemas)
    assert found == [["x", 1, None], [None, None, None]]


def test_field_ids_in_a_file_are_stronger_than_names(
    lake: Lake, spark: SparkSession, table: MakeName
) -> None:
    name = table("ids")
    spark.sql(f"CREATE TABLE {name} (first STRING, second INT)")
    spark.sql(f"INSERT INTO {name} VALUES ('x', 1)")
    path = _data_files(lake, name)[0]
    ids = _field_ids(path)
    schemas = {
        "0": _schema(unknown=(99, "string")),
        "1": _schema(second=(ids["first"], "string"), first=(ids["second"], "long"), third=(77, "string")),
    }
    wanted = _struct(second="string", first="long", third="string")
    assert _read(spark, path, wanted, schemas) == [["x", 1, None]]


def _field_ids(path: Path) -> dict[str, int]:
    schema = pa.orc.ORCFile(path).schema
    return {field.name: int(field.metadata[b"paimon.id"]) for field in schema}


def test_partition_columns_come_from_the_split(spark: SparkSession, plain_file: Path) -> None:
    schemas = {"0": _schema(day=(5, "date"), c=(2, "string"), price=(6, "decimal(5,2)"))}
    found = _read(
        spark,
        plain_file,
        _struct(day="date", c="string", price="decimal(5,2)"),
        schemas,
        partition={"day": 19782, "price": "1.50"},
        schema_id=0,
    )
    assert found == [[19782, "x", "1.50"], [19782, None, "1.50"]]


def test_a_type_that_cannot_be_read_is_named(spark: SparkSession, plain_file: Path) -> None:
    with pytest.raises(
        Exception, match=r"plain\.orc of table t: column c: a file's string cannot be read as TIMESTAMP"
    ):
        _read(spark, plain_file, _struct(c="timestamp"), {"0": _schema(c=(2, "timestamp"))})


@pytest.mark.parametrize("damage", ["truncated", "garbage"])
def test_a_damaged_file_is_named(spark: SparkSession, plain_file: Path, damage: str) -> None:
    content = plain_file.read_bytes()
    plain_file.write_bytes(content[:-7] if damage == "truncated" else b"x" * len(content))
    with pytest.raises(Exception, match=r"cannot read ORC file .*plain\.orc"):
        _read(spark, plain_file, _struct(a="integer"), {"0": _schema(a=(0, "integer"))})


# --- written by tasks -----------------------------------------------------------------------------

TYPES = """id BIGINT, tiny TINYINT, small SMALLINT, num INT, flag BOOLEAN, f FLOAT, d DOUBLE,
  money DECIMAL(10, 2), huge DECIMAL(38, 10), txt STRING, raw BINARY, day DATE,
  ltz TIMESTAMP, ntz TIMESTAMP_NTZ,
  list ARRAY<INT>, pairs MAP<STRING, BIGINT>,
  nest STRUCT<x: INT, y: STRUCT<z: STRING, w: ARRAY<STRUCT<v: DATE>>>>"""
VALUES = """SELECT id, CAST(id % 100 AS TINYINT), CAST(-id AS SMALLINT), CAST(id * 7 AS INT), id % 2 = 0,
  CAST(id / 3 AS FLOAT), id / 7, CAST(id / 4 AS DECIMAL(10, 2)),
  CAST(id * -12345678901.5 AS DECIMAL(38, 10)),
  IF(id % 7 = 0, NULL, concat('größe ', id)), CAST(CAST(id AS STRING) AS BINARY),
  date_add(DATE '1960-01-01', CAST(id AS INT)),
  timestamp_micros(id * 86400123456), CAST(timestamp_micros(id * -3600000000) AS TIMESTAMP_NTZ),
  IF(id % 5 = 0, NULL, array(CAST(id AS INT), NULL)), map(CAST(id AS STRING), id),
  IF(id % 3 = 0, NULL, named_struct('x', CAST(id AS INT),
    'y', IF(id % 4 = 0, NULL, named_struct('z', CAST(id AS STRING),
    'w', array(named_struct('v', DATE '2020-02-29'))))))
  FROM range({rows})"""


def _rows(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


def _data_files(lake: Lake, name: str) -> list[Path]:
    _, database, table = name.split(".")
    location = Path(lake.catalog.load_table(f"{database}.{table}").location)
    return sorted(location.rglob("data-*.orc"))


@pytest.mark.parametrize("key", [False, True])
def test_every_type_comes_back(spark: SparkSession, table: MakeName, key: bool) -> None:
    name, source = table("types"), VALUES.format(rows=3000)
    columns = TYPES.replace("id BIGINT", "id BIGINT NOT NULL") if key else TYPES
    properties = "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')" if key else ""
    spark.sql(f"CREATE TABLE {name} ({columns}) {properties}")
    spark.sql(f"INSERT INTO {name} {source}")
    assert _rows(spark.table(name)) == _rows(spark.sql(source))


def test_fields_of_nested_columns_are_read_alone(spark: SparkSession, table: MakeName) -> None:
    name = table("nested")
    spark.sql(f"CREATE TABLE {name} ({TYPES})")
    spark.sql(f"INSERT INTO {name} {VALUES.format(rows=200)}")
    frame = spark.sql(f"SELECT nest.y.z, nest.y.w[0].v, pairs['7'] FROM {name} ORDER BY id")
    scan = frame._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    assert "struct<y:struct<z:string" in scan.scan().readSchema().simpleString()
    rows = frame.collect()
    assert tuple(rows[5]) == ("5", datetime.date(2020, 2, 29), None)
    assert tuple(rows[7]) == ("7", datetime.date(2020, 2, 29), 7)
    assert tuple(rows[8]) == tuple(rows[9]) == (None, None, None)


@pytest.mark.long
def test_ranges_of_a_file_hold_every_row_once(lake: Lake, spark: SparkSession, table: MakeName) -> None:
    name = table("ranges")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, txt STRING) TBLPROPERTIES ('target-file-size' = '4 mb')")
    rows = spark.range(0, 300_000, 1, 1).selectExpr("id", "sha2(CAST(id AS STRING), 256) AS txt")
    rows.writeTo(name).append()
    files = _data_files(lake, name)
    assert len(files) > 1  # rolled at the target size
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1mb")
    try:
        frame = spark.table(name)
        assert frame.rdd.getNumPartitions() > len(files)
        assert frame.selectExpr("count(*)", "sum(id)", "count(DISTINCT txt)").first() == (
            300_000,
            299_999 * 150_000,
            300_000,
        )
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id = 123456", 1),
        ("id IN (5, 199999, -1)", 2),
        ("id BETWEEN 70000 AND 70009", 10),
        ("txt = 'v00000042'", 1),
        ("day = DATE '1970-01-11'", 1),
        ("money >= 1999.98", 2),
        ("NOT (id < 199990)", 10),
        ("id = 3 OR (d < 0.5 AND id IS NOT NULL)", 2),
        ("d > 199998.0", 1),
        ("none IS NOT NULL", 0),
    ],
)
def test_row_groups_are_skipped_by_filters(
    spark: SparkSession, skipping: str, condition: str, expected: int
) -> None:
    frame = spark.sql(f"SELECT * FROM {skipping} WHERE {condition}")
    assert len(frame.collect()) == expected
    if "d > " not in condition:  # not used: a NaN may hide behind a row group's maximum
        assert _scanned(frame) <= 20_000


def _scanned(frame: DataFrame) -> int:
    """Return how many rows left the scan."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    plan = leaves.head()
    if "AdaptiveSparkPlan" in plan.getClass().getName():
        plan = plan.executedPlan().collectLeaves().head()
    return int(plan.metrics().apply("numOutputRows").value())


@pytest.fixture(scope="module")
def skipping(lake: Lake) -> str:
    """A sorted table of 200,000 rows in one file of many row groups."""
    lake.catalog.create_namespace("executor_skipping", ignore_if_exists=True)
    name = "lake.executor_skipping.sorted"
    lake.spark.sql(
        f"CREATE TABLE {name} (id BIGINT, txt STRING, day DATE, money DECIMAL(9, 2), d DOUBLE, none INT)"
    )
    lake.spark.range(0, 200_000, 1, 1).selectExpr(
        "id",
        "concat('v', lpad(CAST(id AS STRING), 8, '0')) AS txt",
        "date_add(DATE '1970-01-01', CAST(id AS INT)) AS day",
        "CAST(id / 100 AS DECIMAL(9, 2)) AS money",
        "CAST(id AS DOUBLE) AS d",
        "CAST(NULL AS INT) AS none",
    ).writeTo(name).append()
    return name


def test_nan_is_found_where_statistics_leave_it_out(spark: SparkSession, table: MakeName) -> None:
    name = table("nan")
    spark.sql(f"CREATE TABLE {name} (id INT, d DOUBLE)")
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES (1, 1.0D), (2, double('NaN')), (3, -0.0D) t(id, d)")
    found = {
        text: [row.id for row in spark.sql(f"SELECT id FROM {name} WHERE {text} ORDER BY id").collect()]
        for text in ["d > 5", "NOT (d < 5)", "d = 0.0", "d = double('NaN')"]
    }
    assert found == {"d > 5": [2], "NOT (d < 5)": [2], "d = 0.0": [3], "d = double('NaN')": [2]}


def test_the_last_of_equal_keys_in_one_statement_stays(
    lake: Lake, spark: SparkSession, table: MakeName
) -> None:
    name = table("last")
    spark.sql(
        f"CREATE TABLE {name} (k INT NOT NULL, p STRING NOT NULL, v INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('primary-key' = 'p,k', 'bucket' = '3')"
    )
    rows = [(i % 50, "ab"[i % 2], i) for i in range(1000)]
    spark.createDataFrame(rows, "k INT, p STRING, v INT").coalesce(1).writeTo(name).append()
    spark.sql(f"DELETE FROM {name} WHERE k >= 40 AND p = 'a'")
    expected = {(k, p): v for k, p, v in rows if k < 40 or p == "b"}
    assert {(row.k, row.p): row.v for row in spark.table(name).collect()} == expected
    _, database, short = name.split(".")
    stored = lake.catalog.load_table(f"{database}.{short}").read().to_pylist()
    assert {(row["k"], row["p"]): row["v"] for row in stored} == expected


def test_files_of_a_key_table_are_as_paimon_lays_them_out(
    lake: Lake, spark: SparkSession, table: MakeName
) -> None:
    name = table("layout")
    spark.sql(
        f"CREATE TABLE {name} (day DATE NOT NULL, id BIGINT NOT NULL, v STRING) PARTITIONED BY (day) "
        "TBLPROPERTIES ('primary-key' = 'day,id', 'bucket' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT DATE '1970-01-03', id, CAST(id AS STRING) FROM range(10) ORDER BY -id"
    )
    (path,) = _data_files(lake, name)
    assert path.parent.parts[-2:] == ("day=2", "bucket-0")
    content = pa.orc.read_table(path)
    assert content.column_names == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "day", "id", "v"]
    assert content["_KEY_id"].to_pylist() == content["id"].to_pylist() == list(range(10))
    assert content["_SEQUENCE_NUMBER"].to_pylist() == list(range(10))
    ids = _field_ids(path)
    assert ids["_KEY_id"] == 2**30 - 1 + ids["id"]
    assert (ids["_SEQUENCE_NUMBER"], ids["_VALUE_KIND"]) == (2**31 - 2, 2**31 - 3)


def test_statistics_reach_the_manifest(lake: Lake, spark: SparkSession, table: MakeName) -> None:
    name = table("statistics")
    spark.sql(
        f"CREATE TABLE {name} (i INT, txt STRING, m DECIMAL(5, 2), day DATE, at TIMESTAMP, l ARRAY<INT>)"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (3, 'abcdefghijklmnopqrstuvwxyz', 1.50, DATE '2020-01-02', "
        "TIMESTAMP '2020-01-01 00:00:00.5', array(1)), (-1, NULL, -2.00, NULL, NULL, NULL)"
    )
    _, database, short = name.split(".")
    stored = lake.catalog.load_table(f"{database}.{short}")
    files = [file for split in stored.scan().splits for file in split.files]
    bounds: dict[str, list[Any]] = {"min": [], "max": [], "nulls": []}
    columns = [list(file.value_stats_cols or stored.schema.field_names) for file in files]
    for column in ["i", "txt", "m", "day", "at"]:
        values = [
            (file.value_stats.min[at], file.value_stats.max[at], file.value_stats.null_counts[at])
            for file, names in zip(files, columns, strict=True)
            for at in [names.index(column)]
        ]
        bounds["min"].append(min(value[0] for value in values if value[0] is not None))
        bounds["max"].append(max(value[1] for value in values if value[1] is not None))
        bounds["nulls"].append(sum(value[2] for value in values))
    at = datetime.datetime(2020, 1, 1, 0, 0, 0, 500_000)
    day = datetime.date(2020, 1, 2)
    assert bounds["nulls"] == [0, 1, 0, 1, 1]
    assert bounds["min"][:4] == [-1, "abcdefghijklmnop", Decimal("-2.00"), day]
    assert bounds["max"][:4] == [3, "abcdefghijklmnoq", Decimal("1.50"), day]
    assert [value[4].replace(tzinfo=None) for value in (bounds["min"], bounds["max"])] == [at, at]


def test_a_failed_statement_leaves_no_file(lake: Lake, spark: SparkSession, table: MakeName) -> None:
    for number, properties in enumerate(["", "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"]):
        name = table(f"failed{number}")
        spark.sql(f"CREATE TABLE {name} (id BIGINT NOT NULL, v INT) {properties}")
        with pytest.raises(Exception, match="the 9000th row"):
            spark.sql(
                f"INSERT INTO {name} SELECT id, IF(id = 9000, raise_error('the 9000th row'), 1) "
                "FROM range(10000)"
            )
        assert _data_files(lake, name) == []
        assert spark.table(name).count() == 0


def test_a_timestamp_that_orc_cannot_hold_is_refused(spark: SparkSession, table: MakeName) -> None:
    name = table("second")
    spark.sql(f"CREATE TABLE {name} (at TIMESTAMP)")
    with pytest.raises(Exception, match="in the second before 1970-01-01"):
        spark.sql(f"INSERT INTO {name} VALUES (timestamp_micros(-500000))")


def test_files_of_spark_have_the_types_of_files_of_python(
    lake: Lake, spark: SparkSession, table: MakeName
) -> None:
    """Types, names and field ids, also of system columns and of what is inside columns."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, day DATE, price DECIMAL(5, 2), seen TIMESTAMP,"
        " at TIMESTAMP_NTZ, tags ARRAY<STRING>, inner STRUCT<a: INT, b: ARRAY<STRUCT<c: INT>>>,"
        " places MAP<STRUCT<x: INT, y: INT>, STRUCT<x: STRING>>)"
        " TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} (id, inner, places) VALUES (1, named_struct('a', 1, 'b', array()),"
        " map(named_struct('x', 1, 'y', 2), named_struct('x', 'z')))"
    )
    stored = lake.catalog.load_table(name.removeprefix("lake."))
    stored.append(stored.read())
    found = [_types_in(path) for path in _data_files(lake, name)]
    assert len(found) == 2
    assert found[0] == found[1]
    assert any("'c', '" in each for each in found[0])


def _types_in(path: Path) -> list[str]:
    with EncryptedOrcFile(path) as file:
        types = file._tail.footer.types
    names = {
        child: name
        for each in types
        for child, name in zip(each.subtypes, each.field_names, strict=bool(each.field_names))
    }
    return [
        str((each.kind, each.precision, names.get(at), *(one.value for one in each.attributes)))
        for at, each in enumerate(types)
    ]
