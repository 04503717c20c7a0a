"""What lookup joins answer and are asked by: nested values, many columns, keys of every type; all caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from lookup_ways import BOTH_WAYS
from same_frames import same

from lockgate import lookup
from lockgate.errors import InputError
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MakeName = Callable[[str], str]
Join = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("lookups_end")


# A null, nothing in it, and a null in it, at every level.
NESTED = {
    "tags ARRAY<STRING>": "element_at(array(null, array(), array('a', null, ''), array('é', 'b')), n)",
    "scores MAP<STRING, INT>": "element_at(array(map('a', 1, '', null), null, map(), map('z', 7)), n)",
    "place STRUCT<city: STRING, at: STRUCT<lat: DOUBLE, lon: DECIMAL(20,3)>>": (
        "if(n = 2, null, named_struct('city', if(n = 3, null, concat('c', id)), 'at', "
        "if(n = 1, null, named_struct('lat', id / 3, 'lon', cast(id / 8 AS DECIMAL(20,3))))))"
    ),
    "visits ARRAY<STRUCT<on: DATE, notes: ARRAY<STRING>>>": (
        "if(n = 4, null, transform(sequence(1, n), x -> if(x = 2, null, named_struct("
        "'on', date_add(DATE'2024-01-01', cast(x AS INT)), 'notes', if(x = 1, null, array(null, 'n'))))))"
    ),
    "index MAP<INT, ARRAY<MAP<STRING, TIMESTAMP>>>": (
        "map(cast(id AS INT), if(n = 1, null, array(map('t', timestamp_micros(id)), map(), null)))"
    ),
}
KINDS = {
    "full": {"lookup.cache": "full"},
    "memory": {"lookup.cache": "memory"},
    "encrypted": {},
}


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_nested_values_and_more_than_64_columns(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    wide = [f"w{n}" for n in range(70)]
    columns = ", ".join([*NESTED, *(f"{name} INT" for name in wide)])
    numbers = ", ".join(f"if(id % 70 = {n}, null, cast(id + {n} AS INT))" for n in range(70))
    nested = ", ".join(NESTED.values())
    values = f"SELECT id, id % 9, {nested}, {numbers} FROM (SELECT id, cast(id % 4 + 1 AS INT) n"
    stream = spark.range(0, 60, 2).selectExpr("id", "id % 5 AS g")
    name, encrypted = table("nested"), table("sealed")
    for made, more in (
        (name, ""),
        (encrypted, ", 'orc.encrypt'='pii:tags,visits', 'orc.mask'='nullify:tags,visits'"),
    ):
        spark.sql(
            f"CREATE TABLE {made} (id BIGINT, g BIGINT, {columns}) "
            f"TBLPROPERTIES ('primary-key'='id', 'bucket'='1'{more})"
        )
        spark.sql(f"INSERT INTO {made} {values} FROM range(40))")
    for kind, given in KINDS.items():
        dim = encrypted if kind == "encrypted" else name
        chosen = {**options, **given}
        select = [*_names(), *(wide if kind == "full" else [])]
        joined = lookup_join(stream, dim, on="id", select=select, snapshot_column="s", options=chosen)
        plain = stream.join(spark.table(dim).drop("g"), "id", "left")
        same(joined, plain.selectExpr(*joined.columns[:-1], "1L AS s"))
        assert lookup.status(dim).rows == 40
        if kind == "encrypted":
            lists = lookup_join(stream, dim, on="g", how="inner", select=_names(), options=chosen)
            same(lists, stream.join(spark.table(dim).drop("id"), "g").select(*lists.columns))
        lookup.close_all()

    # What changes is followed: rows whose nested values alone differ, and rows that come and go.
    running = {**options, **KINDS["full"]}
    joined = lookup_join(stream, name, on="id", select=_names(), options=running)
    assert len(joined.select("*").collect()) == 30
    spark.sql(f"INSERT INTO {name} {values} FROM range(41, 43))")
    spark.sql(f"UPDATE {name} SET tags = array('new', null), place = null WHERE id % 4 = 2")
    spark.sql(f"DELETE FROM {name} WHERE id < 3")
    lookup.wait_for(name)
    assert not lookup.status(name).full_load
    same(joined, stream.join(spark.table(name).drop("g"), "id", "left").select(*joined.columns))


def _names() -> list[str]:
    return [described.split(" ", 1)[0] for described in NESTED]


# A value of each type by a number, and whether other numbers give other values.
KEYS = {
    "BOOLEAN": "{n} % 2 = 0",
    "TINYINT": "cast({n} AS TINYINT)",
    "SMALLINT": "cast({n} * 300 AS SMALLINT)",
    "INT": "cast({n} * 70000 AS INT)",
    "BIGINT": "{n} * 5000000000",
    "FLOAT": "cast({n} / 4 AS FLOAT)",
    "DOUBLE": "{n} / 3",
    "DECIMAL(9,2)": "cast({n} / 8 AS DECIMAL(9,2))",
    "DECIMAL(30,3)": "cast({n} / 8 AS DECIMAL(30,3))",
    "STRING": "concat('é', {n})",
    "CHAR(6)": "rpad(concat('c', {n}), 6, ' ')",
    "VARCHAR(9)": "concat('v', {n})",
    "BINARY": "cast(concat('b', {n}) AS BINARY)",
    "DATE": "date_add(DATE'1960-01-01', cast({n} AS INT) * 500)",
    "TIMESTAMP": "timestamp_micros({n} * 1234567891234)",
    "TIMESTAMP_NTZ": "cast(timestamp_micros({n} * 1234567891234) AS TIMESTAMP_NTZ)",
}


@pytest.mark.parametrize(
    ("kind", "in_jvm"),
    [
        pytest.param("full", "true", marks=pytest.mark.long),
        ("memory", "true"),
        pytest.param("memory", "false", marks=pytest.mark.long),
    ],
)
@BOTH_WAYS
def test_keys_of_every_type_together(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    kind: str,
    in_jvm: str,
    lookup_join: Join,
) -> None:
    """A row matches if all of its keys do: each type is the one that differs in some rows, or is null."""
    name = table("keyed")
    names = [f"k{n}" for n in range(len(KEYS))]
    described = ", ".join(f"{each} {kind}" for each, kind in zip(names, KEYS, strict=True))
    spark.sql(
        f"CREATE TABLE {name} ({described}, v BIGINT) TBLPROPERTIES "
        f"('primary-key'='{','.join(names)}', 'bucket'='2')"
    )
    made = ", ".join(each.format(n="id") for each in KEYS.values())
    spark.sql(f"INSERT INTO {name} SELECT {made}, id FROM range(-10, 10)")
    asked = []
    for number, (each, expression) in enumerate(zip(names, KEYS.values(), strict=True)):
        other = expression.format(n=f"(id + if(r = {number}, 1, 0))")
        asked.append(f"if(r = {100 + number}, null, {other}) AS {each}")
    # r = -1: all keys as they are in the table.
    rows = "SELECT explode(array(-1, {})) AS r, id FROM range(-12, 12)".format(
        ", ".join(f"{number}, {100 + number}" for number in range(len(KEYS)))
    )
    stream = spark.sql(f"SELECT {', '.join(asked)}, r, id FROM ({rows})")
    given = {**options, "lookup.cache": kind, "lookup.in-jvm": in_jvm}
    joined = lookup_join(stream, name, on=names, options=given)
    plain = stream.join(spark.table(name), names, "left").select(*joined.columns)
    same(joined, plain)
    matched = joined.where("v IS NOT NULL").select("r", "id", "v").collect()
    assert sorted(tuple(row) for row in matched) == [(-1, n, n) for n in range(-10, 10)]


# The stream's type, the dimension's, and a value by a number.
WIDENED = [
    ("TINYINT", "SMALLINT", "{n}"),
    ("TINYINT", "BIGINT", "{n}"),
    ("SMALLINT", "INT", "{n} * 300"),
    ("INT", "BIGINT", "{n} * 70000"),
    ("INT", "DOUBLE", "{n} * 70000"),
    ("SMALLINT", "FLOAT", "{n} * 300"),
    ("FLOAT", "DOUBLE", "{n} / 4"),
    ("INT", "DECIMAL(20,3)", "{n} * 70000"),
    ("DECIMAL(5,2)", "DECIMAL(9,2)", "{n} / 4"),
    ("DECIMAL(9,2)", "DECIMAL(30,4)", "{n} / 4"),
    ("VARCHAR(5)", "STRING", "concat('v', {n})"),
]


@BOTH_WAYS
def test_narrower_keys_of_the_stream_are_widened(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    lookup_join: Join,
) -> None:
    name = table("wide")
    names = [f"k{n}" for n in range(len(WIDENED))]
    described = ", ".join(f"{each} {kind}" for each, (_, kind, _) in zip(names, WIDENED, strict=True))
    spark.sql(f"CREATE TABLE {name} ({described}, v BIGINT)")

    def values(place: int) -> str:
        made = zip(names, WIDENED, strict=True)
        return ", ".join(f"cast({each[2].format(n='id')} AS {each[place]}) AS {key}" for key, each in made)

    spark.sql(f"INSERT INTO {name} SELECT {values(1)}, id FROM range(-20, 20)")
    stream = spark.sql(f"SELECT {values(0)}, id FROM range(-30, 30)")
    joined = lookup_join(stream, name, on=names, options=options)
    assert joined.schema[: len(names)] == stream.schema[: len(names)], "the stream's own columns stay"
    expected = [(n, n if -20 <= n < 20 else None) for n in range(-30, 30)]
    assert sorted(tuple(row) for row in joined.select("id", "v").collect()) == expected


REFUSED = [
    ("BIGINT", "INT"),
    ("INT", "FLOAT"),
    ("BIGINT", "DOUBLE"),
    ("DOUBLE", "FLOAT"),
    ("DOUBLE", "DECIMAL(20,3)"),
    ("DECIMAL(9,2)", "DECIMAL(9,3)"),
    ("DECIMAL(20,2)", "DECIMAL(19,2)"),
    ("BIGINT", "DECIMAL(18,0)"),
    ("DECIMAL(5,0)", "INT"),
    ("INT", "STRING"),
    ("STRING", "INT"),
    ("BOOLEAN", "INT"),
    ("BINARY", "STRING"),
    ("DATE", "TIMESTAMP"),
    ("TIMESTAMP", "TIMESTAMP_NTZ"),
]
# As the store names them.
SHOWN = {"TIMESTAMP": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP_NTZ": "TIMESTAMP(6)"}


def test_other_types_are_an_error_that_names_both(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name = table("typed")
    described = ", ".join(f"k{n} {kind}" for n, (_, kind) in enumerate(REFUSED))
    spark.sql(f"CREATE TABLE {name} ({described}, v BIGINT)")
    for number, (given, wanted) in enumerate(REFUSED):
        stream = spark.sql(f"SELECT cast(null AS {given}) AS k{number}")
        ours = stream.schema[0].dataType.simpleString()
        with pytest.raises(InputError) as error:
            lookup_join(stream, name, on=f"k{number}", options=options)
        message = str(error.value).replace(", ", ",")
        assert f"has type {ours} in the stream and {SHOWN.get(wanted, wanted)}" in message
    nested = spark.sql("SELECT array(1) AS k0")
    with pytest.raises(InputError, match=r"has type array<int> in the stream and INT"):
        lookup_join(nested, name, on="k0", options=options)
    assert lookup.statuses() == [], "all this is found before anything is started"
