"""Tables with Parquet and Avro data files in Spark: the same rows as from ORC, and as Paimon reads them."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest
from converted_tables import to_avro, to_parquet, to_thin
from exact_rows import exact_rows, in_order
from zoo import REFUSED, expected, unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

Named = Callable[[str], str]
Convert = Callable[..., None]

COLUMNS = """
    id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, num INT, real FLOAT, dbl DOUBLE,
    dec DECIMAL(9, 2), wide DECIMAL(30, 4), name STRING, code CHAR(4), vc VARCHAR(9), raw BINARY, day DATE,
    at TIMESTAMP, wall TIMESTAMP_NTZ, tags ARRAY<STRING>, m MAP<STRING, INT>, s STRUCT<a: INT, b: STRING>
"""
ROWS = """
    SELECT id, IF(id % 7 = 0, NULL, id % 2 = 0), CAST(id % 100 AS TINYINT), CAST(id AS SMALLINT),
        CAST(id * 3 AS INT), CAST(IF(id % 50 = 0, 'NaN', id / 3) AS FLOAT), IF(id % 60 = 0, -0.0D, id / 7),
        CAST(id / 9 AS DECIMAL(9, 2)), CAST(-id * 1000000007 AS DECIMAL(30, 4)),
        IF(id % 11 = 0, NULL, concat('näme-', id % 300)), concat('c', id % 10), concat('v', id),
        CAST(concat('r', id) AS BINARY), DATE '1500-01-01' + INT(id * 100), TIMESTAMP '1899-12-31 23:00:00' +
        make_interval(0, 0, 0, int(id), 0, 0, 0.123456), TIMESTAMP_NTZ '2024-02-29 01:02:03.000004',
        IF(id % 5 = 0, NULL, array('x', NULL, string(id))), map('k', int(id)),
        IF(id % 13 = 0, NULL, struct(int(id) AS a, 'b' AS b))
    FROM range({first}, {last})
"""


@pytest.fixture(scope="module")
def zoo(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    import lockgate

    folder = unpack(tmp_path_factory.mktemp("zoo"))
    lockgate.connect(str(folder), spark=spark, catalog="zoo_lake")
    return "zoo_lake.zoo"


@pytest.mark.parametrize("name", sorted(set(expected()) - set(REFUSED) - {"all_types_parquet"}))
def test_the_zoo(spark: SparkSession, zoo: str, name: str) -> None:
    snapshots = expected()[name]["snapshots"]
    rows = exact_rows(spark.table(f"{zoo}.{name}").toArrow())
    assert in_order(rows) == in_order(snapshots[max(snapshots)]["rows"])


@pytest.fixture(scope="module")
def formats(lake: Lake) -> Iterator[tuple[str, str, str]]:
    """Tables of the same rows in ORC, Parquet and Avro files."""
    lake.sql("CREATE NAMESPACE lake.formats")
    names = ("lake.formats.orc", "lake.formats.parquet", "lake.formats.avro")
    for name in names:
        lake.sql(f"CREATE TABLE {name} ({COLUMNS})")
        lake.sql(f"INSERT INTO {name} {ROWS.format(first=0, last=3000)}")
        lake.sql(f"INSERT INTO {name} {ROWS.format(first=3000, last=5000)}")
    to_parquet(lake.catalog.load_table("formats.parquet"), row_group_rows=500)
    to_avro(lake.catalog.load_table("formats.avro"))
    yield names
    lake.sql("DROP NAMESPACE lake.formats CASCADE")


@pytest.fixture(scope="module")
def both(formats: tuple[str, str, str]) -> tuple[str, str]:
    return formats[:2]


LITERALS = {
    "flag": ["true", "false"],
    "tiny": ["7Y", "-1Y", "99Y"],
    "small": ["7S", "4999S"],
    "num": ["300", "14997", "-4"],
    "id": ["0L", "2500L", "4999L", "9999L"],
    "real": ["FLOAT('NaN')", "10F", "1666F"],
    "dbl": ["0.0D", "-0.0D", "100D"],
    "dec": ["0.00BD", "55.56BD", "555.44BD"],
    "wide": ["-1000000007.0000BD", "0BD"],
    "name": ["'näme-1'", "'näme-299'", "'zz'", "''"],
    "code": ["'c1'", "'c1  '", "'c9'"],
    "vc": ["'v1'", "'v999'"],
    "day": ["DATE '1500-01-01'", "DATE '1582-10-10'", "DATE '2024-01-01'"],
    "at": ["TIMESTAMP '1900-01-05 23:00:00.123456'"],
    "wall": ["TIMESTAMP_NTZ '2024-02-29 01:02:03.000004'"],
    "s.a": ["17", "4000"],
}


def random_filter(chosen: random.Random, depth: int = 0) -> str:
    if depth < 2 and chosen.random() < 0.5:
        sides = [random_filter(chosen, depth + 1) for _ in range(2)]
        return f"({chosen.choice([' AND ', ' OR ']).join(sides)})"
    column = chosen.choice(sorted(LITERALS))
    literals = LITERALS[column]
    text = chosen.choice(
        [
            f"{column} {chosen.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {chosen.choice(literals)}",
            f"{column} {chosen.choice(['IN', 'NOT IN'])} ({', '.join(literals)})",
            f"{column} IS {chosen.choice(['NULL', 'NOT NULL'])}",
        ]
    )
    return f"NOT ({text})" if chosen.random() < 0.2 else text


def test_all_columns_are_those_of_orc(spark: SparkSession, formats: tuple[str, str, str]) -> None:
    orc, parquet, avro = (exact_rows(spark.table(name).orderBy("id").toArrow()) for name in formats)
    assert len(orc) == 5000
    assert orc == parquet
    assert orc == avro


@pytest.mark.parametrize("number", [1, 2], ids=["parquet", "avro"])
def test_tasks_share_a_file(
    spark: SparkSession, lake: Lake, formats: tuple[str, str, str], number: int
) -> None:
    """Ranges of 20,000 bytes have each row once, with its number in the file."""
    name = formats[number]
    lake.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('source.split.target-size' = '20000 b')")
    query = "SELECT id, _ROW_INDEX FROM {} WHERE _ROW_INDEX >= 0 ORDER BY id"
    ranges = spark.table(name).rdd.getNumPartitions()
    assert ranges > 3
    assert spark.sql(query.format(name)).collect() == spark.sql(query.format(formats[0])).collect()
    assert spark.sql(f"SELECT count(*), sum(num) FROM {name}").collect() == [(5000, 3 * sum(range(5000)))]


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_filters_leave_the_rows_that_they_leave_of_orc(spark: SparkSession, both: tuple[str, str]) -> None:
    chosen = random.Random(5)
    for _ in range(25):
        condition = random_filter(chosen)
        orc, parquet = (
            sorted(row[0] for row in spark.sql(f"SELECT id FROM {name} WHERE {condition}").collect())
            for name in both
        )
        assert orc == parquet, condition


def test_row_groups_are_left_out(spark: SparkSession, both: tuple[str, str]) -> None:
    """A filter on one row leaves nine of ten row groups of 500 rows unread."""
    frame = spark.sql(f"SELECT sum(num) FROM {both[1]} WHERE id BETWEEN 1200 AND 1300")
    frame.collect()
    read = [int(text) for text in scan_rows(frame)]
    assert read == [500]


def scan_rows(frame: Any) -> list[str]:
    plan = frame._jdf.queryExecution().executedPlan()
    found: list[str] = []

    def walk(node: Any) -> None:
        if "BatchScan" in node.nodeName():
            found.append(str(node.metrics().apply("numOutputRows").value()))
        if node.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            walk(node.finalPhysicalPlan())
        if node.getClass().getSimpleName().endswith("QueryStageExec"):
            walk(node.plan())
        children = node.children()
        for number in range(children.size()):
            walk(children.apply(number))

    walk(plan)
    return found


def test_columns_of_rows(spark: SparkSession, both: tuple[str, str]) -> None:
    """Row numbers hold where row groups are left out, and no column at all is read for a count."""
    query = "SELECT id, _ROW_INDEX FROM {} WHERE id IN (17, 2900, 4000) ORDER BY id"
    assert [tuple(row) for row in spark.sql(query.format(both[1])).collect()] == [
        tuple(row) for row in spark.sql(query.format(both[0])).collect()
    ]
    assert spark.sql(f"SELECT count(*) FROM {both[1]} WHERE flag IS NULL OR NOT flag").collect()[0][0] > 0
    assert spark.sql(f"SELECT count(DISTINCT _FILE_PATH) FROM {both[1]}").collect()[0][0] > 1


@pytest.mark.parametrize("to_format", [to_parquet, to_avro])
def test_altered_columns(lake: Lake, spark: SparkSession, table: Named, to_format: Convert) -> None:
    name = table("altered")
    lake.sql(f"CREATE TABLE {name} (a INT, b FLOAT, c STRING, d DECIMAL(5, 2), gone INT)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 1.5, 'x', 1.25, 1), (NULL, NULL, NULL, NULL, NULL)")
    to_format(lake.catalog.load_table(name.removeprefix("lake.")))
    for change in (
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN b TYPE DOUBLE",
        "ALTER COLUMN d TYPE DECIMAL(9, 2)",
        "RENAME COLUMN c TO text",
        "DROP COLUMN gone",
        "ADD COLUMN gone STRING",
    ):
        lake.sql(f"ALTER TABLE {name} {change}")
    lake.sql(f"INSERT INTO {name} VALUES (5000000000, 2.5D, 'y', 1.50, 'here')")
    rows = spark.sql(
        f"SELECT a, b, text, CAST(d AS STRING), gone FROM {name} ORDER BY a NULLS FIRST"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (None, None, None, None, None),
        (1, 1.5, "x", "1.25", None),
        (5000000000, 2.5, "y", "1.50", "here"),
    ]
    assert spark.sql(f"SELECT text FROM {name} WHERE a = 1").collect() == [("x",)]


@pytest.mark.parametrize("to_format", [None, to_parquet, to_avro])
def test_altered_fields_inside(
    lake: Lake, spark: SparkSession, table: Named, to_format: Convert | None
) -> None:
    """Fields are found by their ids: two that swapped names, one that came back, one with a wider type."""
    name = table("inside")
    lake.sql(
        f"CREATE TABLE {name} (id INT, "
        "s STRUCT<a: INT, b: INT, gone: STRING, deep: STRUCT<x: INT, y: STRING>>, "
        "l ARRAY<STRUCT<n: INT, t: STRING>>, m MAP<STRING, STRUCT<n: INT, t: STRING>>, k MAP<INT, FLOAT>)"
    )
    lake.sql(
        f"INSERT INTO {name} VALUES (1, named_struct('a', 1, 'b', 2, 'gone', 'g', 'deep', "
        "named_struct('x', 3, 'y', 'y')), array(named_struct('n', 4, 't', 't'), NULL), "
        "map('k', named_struct('n', 5, 't', 'u'), 'o', NULL), map(6, 1.5F, 7, NULL)), "
        "(2, NULL, NULL, NULL, NULL), "
        "(3, named_struct('a', NULL, 'b', 2, 'gone', NULL, 'deep', NULL), array(), map(), map())"
    )
    if to_format is not None:
        to_format(lake.catalog.load_table(name.removeprefix("lake.")))
    for change in (
        "RENAME COLUMN s.a TO c",
        "RENAME COLUMN s.b TO a",
        "RENAME COLUMN s.c TO b",
        "DROP COLUMN s.gone",
        "ADD COLUMN s.gone INT",
        "ALTER COLUMN s.deep.x TYPE BIGINT",
        "DROP COLUMN l.element.t",
        "ALTER COLUMN l.element.n TYPE BIGINT",
        "RENAME COLUMN m.value.n TO number",
        "ADD COLUMN m.value.extra STRING",
        "ALTER COLUMN k.value TYPE DOUBLE",
    ):
        lake.sql(f"ALTER TABLE {name} {change}")
    rows = spark.sql(
        f"SELECT id, to_json(s), to_json(l), to_json(m), to_json(k) FROM {name} ORDER BY id"
    ).collect()
    assert [tuple(row) for row in rows] == [
        (
            1,
            '{"b":1,"a":2,"deep":{"x":3,"y":"y"}}',
            '[{"n":4},null]',
            '{"k":{"number":5,"t":"u"},"o":null}',
            '{"6":1.5,"7":null}',
        ),
        (2, None, None, None, None),
        (3, '{"a":2}', "[]", "{}", "{}"),
    ]
    assert spark.sql(f"SELECT s.a, s.gone, s.deep.x, l[0].n FROM {name} WHERE s.b = 1").collect() == [
        (2, None, 3, 4)
    ]


@pytest.mark.parametrize("to_format", [to_parquet, to_avro])
@pytest.mark.parametrize("every", [1, 2], ids=["alone", "with orc"])
def test_overlapping_files_of_a_key_table(
    lake: Lake, spark: SparkSession, table: Named, every: int, to_format: Convert
) -> None:
    name = table("keyed")
    lake.sql(
        f"CREATE TABLE {name} (k STRING, id BIGINT, v STRING, n INT, tags ARRAY<INT>) "
        "TBLPROPERTIES ('primary-key' = 'k,id', 'bucket' = '2')"
    )
    rows = "SELECT concat('k', id % 10), id, 'v{0}', int(id), array(int(id), {0}) FROM range({1}, {2})"
    lake.sql(f"INSERT INTO {name} {rows.format(1, 0, 9000)}")
    lake.sql(f"INSERT INTO {name} {rows.format(2, 3000, 6000)}")
    lake.sql(f"DELETE FROM {name} WHERE id BETWEEN 4000 AND 4999")
    query = f"SELECT * FROM {name} ORDER BY id"
    before = spark.sql(query).collect()
    to_format(lake.catalog.load_table(name.removeprefix("lake.")), every=every)
    assert spark.sql(query).collect() == before
    assert len(before) == 8000
    assert spark.sql(f"SELECT count(*), min(n), max(v) FROM {name} WHERE v = 'v2'").collect() == [
        (2000, 3000, "v2")
    ]


def test_files_without_key_columns(lake: Lake, spark: SparkSession, table: Named) -> None:
    """Thin files have keys as values only, in each of the formats."""
    name = table("thin")
    lake.sql(
        f"CREATE TABLE {name} (k DECIMAL(9, 2), id BIGINT, v STRING) "
        "TBLPROPERTIES ('primary-key' = 'k,id', 'bucket' = '1')"
    )
    rows = "SELECT CAST(id % 10 + 0.25 AS DECIMAL(9, 2)), id, 'v{0}' FROM range({1}, {2})"
    lake.sql(f"INSERT INTO {name} {rows.format(1, 0, 900)}")
    lake.sql(f"INSERT INTO {name} {rows.format(2, 300, 600)}")
    lake.sql(f"DELETE FROM {name} WHERE id BETWEEN 400 AND 499")
    query = f"SELECT * FROM {name} ORDER BY id"
    before = spark.sql(query).collect()
    to_thin(lake.catalog.load_table(name.removeprefix("lake.")))
    assert spark.sql(query).collect() == before
    assert lake.catalog.load_table(name.removeprefix("lake.")).read().num_rows == len(before) == 800
    assert spark.sql(f"SELECT count(*), max(k) FROM {name} WHERE v = 'v2'").collect()[0][0] == 200
    lake.sql(f"INSERT INTO {name} VALUES (0.25, 0, 'new')")
    assert spark.sql(f"SELECT v FROM {name} WHERE id = 0").collect() == [("new",)]
    assert spark.sql(f"SELECT count(v) FROM {name}").collect() == [(800,)]
    lake.sql(f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}')")
    assert spark.sql(f"SELECT count(*), count(DISTINCT k, id) FROM {name}").collect() == [(800, 800)]


@pytest.mark.parametrize("to_format", [to_parquet, to_avro])
def test_a_damaged_file_is_a_clear_error(
    lake: Lake, spark: SparkSession, table: Named, to_format: Convert
) -> None:
    name = table("damaged")
    lake.sql(f"CREATE TABLE {name} (a INT)")
    lake.sql(f"INSERT INTO {name} VALUES (1)")
    loaded = lake.catalog.load_table(name.removeprefix("lake."))
    to_format(loaded)
    (path,) = (path for path in Path(loaded.location).rglob("bucket-*/*") if path.suffix != ".orc")
    path.write_bytes(path.read_bytes()[:-20] + b"x" * 20)
    with pytest.raises(Exception, match=r"cannot read (Parquet|Avro) file"):
        spark.table(name).collect()


def test_a_parquet_file_that_was_replaced_is_read_again(
    lake: Lake, spark: SparkSession, table: Named
) -> None:
    """A footer that was read before is not taken for that of other bytes of the same length."""
    paths = []
    for part, last in (("first", 7), ("second", 9)):
        name = table(part)
        lake.sql(f"CREATE TABLE {name} (a INT) TBLPROPERTIES ('file.format' = 'parquet')")
        lake.sql(f"INSERT INTO {name} SELECT explode(array(1, 2, {last})) AS a")
        assert sorted(row.a for row in spark.table(name).collect()) == [1, 2, last]
        location = Path(lake.catalog.load_table(name.removeprefix("lake.")).location)
        (path,) = location.rglob("bucket-*/*.parquet")
        paths.append(path)
    first, second = paths
    assert first.stat().st_size == second.stat().st_size
    first.write_bytes(second.read_bytes())
    os.utime(first, (1, 1))
    assert sorted(row.a for row in spark.table(table("first")).collect()) == [1, 2, 9]


SELF = {
    "type": "record",
    "name": "s",
    "fields": [{"name": "x", "type": "int"}, {"name": "s", "type": ["null", "s"]}],
}


@pytest.mark.parametrize(
    ("kinds", "values", "message"),
    [
        ({"a": "string"}, b"\x02x", "column a has the type STRING of Avro, which is not its own"),
        ({"t": "string"}, b"\x04\xc3\x28", "a text that is not UTF-8"),
        ({"t": "string"}, b"\xfe\xff\xff\xff\x0fx", "damaged"),
        ({"none": "null"}, b"", "its rows take no bytes"),
        ({"s": SELF}, b"\x00\x02" * 1_000_000 + b"\x00\x00", "nested too deep"),
        ({"s": {"type": "record", "name": "s", "fields": []}, "a": "int"}, b"\x02", "it has no column s.x"),
        ({"a": ["null", "int", "long"]}, b"\x02\x02", "column a has the type UNION of Avro"),
    ],
)
def test_hostile_avro_files(
    lake: Lake, spark: SparkSession, table: Named, kinds: dict[str, Any], values: bytes, message: str
) -> None:
    name = table("hostile")
    lake.sql(f"CREATE TABLE {name} (a INT, t STRING, s STRUCT<x: INT>)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 't', named_struct('x', 1))")
    loaded = lake.catalog.load_table(name.removeprefix("lake."))
    to_avro(loaded)
    (path,) = Path(loaded.location).rglob("*.avro")
    fields = [{"name": column, "type": kind} for column, kind in kinds.items()]
    path.write_bytes(container({"type": "record", "name": "r", "fields": fields}, values))
    with pytest.raises(Exception, match=message) as caught:
        spark.table(name).collect()
    assert f"cannot read Avro file {path.as_uri()}" in str(caught.value)


def container(schema: dict[str, Any], block: bytes, count: int = 1) -> bytes:
    """Return an Avro file with one block, which may be wrong in any way."""
    head = io.BytesIO()
    fastavro.writer(head, schema, [], sync_marker=b"s" * 16)
    sizes = io.BytesIO()
    for number in (count, len(block)):
        fastavro.schemaless_writer(sizes, "long", number)
    return head.getvalue() + sizes.getvalue() + block + b"s" * 16
