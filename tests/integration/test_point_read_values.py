"""Single values that the driver reads: every type, masks, and errors like those of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from point_reads import OFF, ask, left_to_tasks, on_driver, plan, rows
from pyspark.errors import PySparkException

import lockgate
from lockgate.errors import MaskedDataWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


Named = Callable[[str], str]
VALUES: dict[str, tuple[str, list[str]]] = {
    "TINYINT": ("-5Y", ["-5Y", "5Y"]),
    "INT": ("-5", ["-5", "5"]),
    "FLOAT": ("1.5F", ["1.5F", "CAST('NaN' AS FLOAT)", "-0.0F", "0.0F"]),
    "DOUBLE": ("1.5D", ["1.5D", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)", "-0.0D", "0.0D"]),
    "DECIMAL(10,2)": ("1.50", ["1.50", "-99999999.99"]),
    "DECIMAL(38,10)": ("12345678901234567890.5", ["12345678901234567890.5", "-1"]),
    "STRING": ("'ß–é'", ["'ß–é'", "''", "'A'", "'a'", "'東京'"]),
    "BINARY": ("X'00FF'", ["X'00FF'", "X''", "X'7F'"]),
    "DATE": ("DATE '1582-10-04'", ["DATE '1582-10-04'", "DATE '2024-02-29'"]),
    "TIMESTAMP": ("TIMESTAMP '1900-01-01 00:00:00.000001'", ["TIMESTAMP '1900-01-01 00:00:00.000001'"]),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ '2024-03-31 02:30:00'", ["TIMESTAMP_NTZ '2024-03-31 02:30:00'"]),
}
# Types that are much like another one here: the long lane has them.
LIKE_OTHERS = {"TINYINT", "FLOAT", "DECIMAL(10,2)", "TIMESTAMP_NTZ"}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if kind in LIKE_OTHERS else []) for kind in VALUES]
)
def test_single_values_of_every_type(spark: SparkSession, table: Named, kind: str) -> None:
    name = table("v")
    first, values = VALUES[kind]
    spark.sql(f"CREATE TABLE {name} (v {kind}, w {kind}, i INT)")
    listed = ", ".join(f"({value}, {first}, {i})" for i, value in enumerate([*values, "NULL"]))
    spark.sql(f"INSERT INTO {name} SELECT * FROM VALUES {listed}")
    for value in values:
        assert ask(spark, name, f"v = {value}"), value
        for operator in ("<", "<=", ">", ">=", "<>"):
            ask(spark, name, f"v {operator} {value} AND i IN (0, 1, 2, 3, 4, 5)")
    assert len(ask(spark, name, "v IS NULL AND i <=> %d" % len(values))) == 1  # noqa: UP031 - braces are SQL's
    ask(spark, name, f"v IN ({', '.join(values)})")
    ask(spark, name, f"v = {first} AND v = w", "w, i")


def test_nan_and_zeros(spark: SparkSession, table: Named) -> None:
    name = table("z")
    spark.sql(f"CREATE TABLE {name} (d DOUBLE)")
    spark.sql(f"INSERT INTO {name} VALUES (0.0D), (-0.0D), (double('NaN')), (1D), (NULL)")
    assert len(ask(spark, name, "d = 0D")) == 2
    assert len(ask(spark, name, "d = -0D")) == 2
    assert ask(spark, name, "d = double('NaN')") == ["(nan,)"]
    assert len(ask(spark, name, "d IN (double('NaN'), 1D) AND d > 0D")) == 2


def test_text_of_other_kinds(spark: SparkSession, table: Named) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (c CHAR(5), v VARCHAR(5), s STRING)")
    spark.sql(f"INSERT INTO {name} VALUES ('ab', 'ab', 'ab'), ('AB', 'AB', 'AB')")
    assert len(left_to_tasks(spark, name, "c = 'ab'")) == 1
    assert ask(spark, name, "v = 'ab'", "v, s") == ["('ab', 'ab')"]
    assert ask(spark, name, "v = 'ab '", "v, s") == []
    query = f"SELECT s FROM {name} {{}} WHERE s COLLATE UTF8_LCASE = 'ab'"
    assert len(rows(spark.sql(query.format("")))) == 2
    assert rows(spark.sql(query.format(""))) == rows(spark.sql(query.format(OFF)))


@pytest.fixture(scope="module")
def people(spark: SparkSession, shared_table: Named) -> str:
    """`<database>.people`, with an encrypted column that others see the digest of."""
    name = shared_table("people")
    properties = "'orc.encrypt' = 'pii:ssn', 'orc.mask' = 'sha256:ssn'"
    spark.sql(f"CREATE TABLE {name} (id INT, ssn STRING) TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {name} SELECT id, concat('ssn-', id) FROM range(20)")
    return name


def test_encrypted_columns(spark: SparkSession, people: str) -> None:
    assert ask(spark, people, "ssn = 'ssn-7'") == ["(7, 'ssn-7')"]
    assert ask(spark, people, "id = 7", "ssn") == ["('ssn-7',)"]
    assert "SecretKey" not in plan(spark.sql(f"SELECT * FROM {people} WHERE id = 7"))
    assert "ssn-7" not in plan(spark.sql(f"SELECT * FROM {people} WHERE id = 7"))


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_masks_without_the_key(spark: SparkSession, lake_folder: Path, people: str) -> None:
    lockgate.connect(str(lake_folder / "warehouse"), spark=spark, catalog="blind_points")
    name = people.replace("lake.", "blind_points.", 1)
    (mask,) = (row[0] for row in spark.sql("SELECT upper(sha2('ssn-7', 256))").collect())
    assert ask(spark, name, "id = 7") == [f"(7, '{mask}')"]
    assert ask(spark, name, f"ssn = '{mask}'", "id") == ["(7,)"]
    assert ask(spark, name, "ssn = 'ssn-7'") == []
    with pytest.warns(MaskedDataWarning, match="ssn"):
        spark.sql(f"SELECT ssn FROM {name} WHERE id = 7").collect()
    before = rows(spark.table(people))
    masked = spark.table(name).where("id = 7").cache()
    try:
        assert rows(masked) == [f"(7, '{mask}')"]
        for source in (masked, spark.table(name).where("id = 7")):
            with pytest.raises(PySparkException, match="pii"):
                source.writeTo(name).append()
    finally:
        masked.unpersist()
    assert rows(spark.table(people)) == before


def test_errors_are_those_of_tasks(spark: SparkSession, lake: Lake, people: str) -> None:
    location = lake.catalog.load_table(people.removeprefix("lake.")).location
    for path in Path(location).rglob("*.orc"):
        whole = path.read_bytes()
        path.write_bytes(bytes(255 - byte for byte in whole[:300]) + whole[300:])
    messages: list[Any] = []
    for options in ("", OFF):
        frame = spark.sql(f"SELECT * FROM {people} {options} WHERE id = 7")
        assert not on_driver(frame)
        with pytest.raises(PySparkException) as raised:
            frame.collect()
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
