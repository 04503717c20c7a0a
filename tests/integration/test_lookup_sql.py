"""The lookup join in SQL: the same rows as `lookup_join`'s and Spark's own join, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from same_frames import same

from lockgate import lookup
from lockgate.lookup import lookup_join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

MakeName = Callable[[str], str]

AS_OF = "FOR SYSTEM_TIME AS OF o.proc_time"
# Asked in every run; the others are long together.
QUICK = ("conditions on both", "columns that only inner queries name")


@pytest.fixture(scope="module")
def table(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeName]:
    """Two dimensions, whose lookups are kept in a folder of the module's own, and the stream `orders`."""
    spark = lake.spark
    lake.catalog.create_namespace("lookup_sql")
    cache = tmp_path_factory.mktemp("lookups")
    kept = f"'lookup.cache-dir'='{cache}', 'lookup.refresh.interval'='100 ms', 'lookup.strategy'='lookup'"
    spark.sql(
        "CREATE TABLE lake.lookup_sql.people (id BIGINT, city STRING, level INT, since DATE) "
        f"TBLPROPERTIES ('primary-key'='id', 'bucket'='1', {kept})"
    )
    spark.sql(
        "INSERT INTO lake.lookup_sql.people SELECT id, if(id % 5 = 0, null, concat('c', id % 4)), id % 7, "
        "date_add(DATE'2020-01-01', cast(id AS INT)) FROM range(1, 40)"
    )
    spark.sql(f"CREATE TABLE lake.lookup_sql.cities (city STRING, inhabitants INT) TBLPROPERTIES ({kept})")
    spark.sql(
        "INSERT INTO lake.lookup_sql.cities "
        "SELECT if(id = 5, null, concat('c', id % 3)), id * 10 FROM range(6)"
    )
    orders(spark).createOrReplaceTempView("orders")
    yield lambda name: f"lake.lookup_sql.{name}"
    lookup.close_all()
    spark.catalog.dropTempView("orders")


# Of 100 orders, those of a person from 1 to 39.
MATCHED = 70


def orders(spark: SparkSession) -> DataFrame:
    return spark.sql(
        "SELECT id AS number, if(id % 9 = 0, null, id % 50) AS person, cast(id % 13 AS INT) AS amount, "
        "TIMESTAMP'2024-01-01 00:00:00' AS proc_time FROM range(100)"
    )


def plain(text: str) -> str:
    """Return a statement without the clause, which is Spark's own join on the newest snapshot."""
    for clause in (AS_OF, "FOR SYSTEM_TIME AS OF PROCTIME()"):
        text = text.replace(clause, "")
    return re.sub(r"/\*\+.*?\*/", "", text)


JOINS = {
    "inner": "SELECT o.number, d.city FROM orders AS o JOIN {people} {as_of} AS d ON o.person = d.id",
    "left, turned": "SELECT o.*, d.* FROM orders o LEFT JOIN {people} {as_of} d ON d.id = o.person",
    "a condition on the table": "SELECT o.number, d.city FROM orders AS o LEFT JOIN {people} {as_of} AS d "
    "ON o.person = d.id AND d.level > 2L AND d.since < DATE'2020-02-01' AND d.city IN ('c1', 'c2')",
    "conditions on the stream": "SELECT o.number, d.city FROM orders AS o LEFT JOIN {people} {as_of} AS d "
    "ON o.person = d.id AND o.amount > 5",
    "conditions on the stream, inner": "SELECT o.number, d.city FROM orders AS o JOIN {people} {as_of} AS d "
    "ON o.person = d.id AND o.amount > 5 AND d.level = 3",
    "conditions on both": "SELECT o.number, d.city, d.since FROM orders AS o LEFT JOIN {people} {as_of} AS d "
    "ON o.person = d.id AND o.amount > d.level AND length(d.city) = 2",
    "several matches": "SELECT o.number, x.inhabitants FROM (SELECT *, concat('c', amount % 5) AS c "
    "FROM orders) AS o LEFT JOIN {cities} {as_of} AS x ON o.c = x.city AND x.inhabitants >= 10",
    "several matches, on both": "SELECT o.number, x.inhabitants FROM orders AS o JOIN {cities} {as_of} AS x "
    "ON concat('c', amount % 5) = x.city AND x.inhabitants > o.amount * 3",
    "two equalities of one column": "SELECT o.number, d.city FROM orders AS o JOIN {people} {as_of} AS d "
    "ON o.person = d.id AND o.amount = d.id",
    "two tables": "SELECT o.number, d.city, x.inhabitants FROM orders AS o LEFT JOIN {people} {as_of} AS d "
    "ON o.person = d.id LEFT JOIN {cities} {as_of} AS x ON d.city = x.city",
    "one table twice": "SELECT o.number, a.city, b.city AS other FROM orders AS o JOIN {people} {as_of} AS a "
    "ON o.person = a.id LEFT JOIN {people} {as_of} AS b ON o.amount = b.id AND b.level < a.level",
    "names of columns": "SELECT o.number, d.k, d.c FROM orders AS o JOIN {people} {as_of} "
    "AS d(k, c, l, s) ON o.person = d.k AND d.l > 1",
    "equal names": "SELECT * FROM (SELECT a.*, b.amount, b.person FROM orders a JOIN orders b "
    "USING (number)) AS o JOIN {people} FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.number = d.id",
    "using": "SELECT * FROM (SELECT number AS id, proc_time FROM orders) AS o LEFT JOIN {people} {as_of} "
    "AS d USING (id)",
    "groups": "SELECT d.city, count(*) AS n, sum(o.amount) AS s FROM orders AS o LEFT JOIN {people} {as_of} "
    "AS d ON o.person = d.id GROUP BY d.city HAVING count(*) > 1 ORDER BY n DESC, d.city",
    "in a subquery": "SELECT number FROM orders WHERE number IN (SELECT d.level FROM orders AS o "
    "JOIN {people} {as_of} AS d ON o.person = d.id)",
    "no column of the table": "SELECT o.number FROM orders AS o LEFT JOIN {cities} {as_of} AS x "
    "ON concat('c', o.amount % 5) = x.city",
    "columns that only inner queries name": "SELECT q.number FROM (SELECT o.number, d.city, d.level FROM "
    "orders AS o LEFT JOIN {people} {as_of} AS d ON o.person = d.id) AS q WHERE q.level > 1 AND q.number IN "
    "(SELECT number FROM (SELECT o.number, x.inhabitants FROM orders AS o LEFT JOIN {cities} {as_of} AS x "
    "ON concat('c', o.amount % 5) = x.city))",
    "columns that only subqueries use": "SELECT q.number, (SELECT max(z.amount) FROM orders AS z WHERE "
    "z.amount = q.level) AS m FROM (SELECT o.number, d.city, d.level, d.since FROM orders AS o JOIN {people} "
    "{as_of} AS d ON o.person = d.id) AS q WHERE EXISTS (SELECT 1 FROM orders AS z WHERE z.person = "
    "day(q.since))",
    "common table expressions": "WITH a AS (SELECT * FROM orders WHERE amount > 2), b AS (SELECT o.number, "
    "o.proc_time, d.city FROM a AS o JOIN {people} {as_of} AS d ON o.person = d.id) "
    "SELECT o.number, o.city, x.inhabitants FROM b AS o LEFT JOIN {cities} {as_of} AS x ON o.city = x.city "
    "UNION ALL SELECT number, city, 0 FROM b",
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[] if each in QUICK else [pytest.mark.long]) for each in JOINS]
)
def test_a_join_gives_what_sparks_own_gives(spark: SparkSession, table: MakeName, name: str) -> None:
    text = JOINS[name].format(people=table("people"), cities=table("cities"), as_of=AS_OF)
    joined = spark.sql(text)
    plan = joined._jdf.queryExecution().optimizedPlan().toString()
    assert "lockgate.lookup" in plan or "ArrowEvalPython" in plan
    same(joined, spark.sql(plain(text)))


def test_the_plan_is_that_of_lookup_join(spark: SparkSession, table: MakeName) -> None:
    by_sql = spark.sql(
        f"SELECT o.*, d.city FROM orders AS o LEFT JOIN {table('people')} {AS_OF} AS d ON o.person = d.id"
    )
    by_call = lookup_join(spark.table("orders"), table("people"), on={"person": "id"}, select=["city"])
    plans = [frame._jdf.queryExecution().optimizedPlan() for frame in (by_sql, by_call)]
    nodes = [[line.lstrip(" :+-").split("[")[0] for line in each.toString().splitlines()] for each in plans]
    assert nodes[0][1:] == nodes[1][1:]
    same(by_sql, by_call)


def test_options_of_hints(spark: SparkSession, table: MakeName) -> None:
    def refused(hint: str, message: str, behind: str = "") -> None:
        with pytest.raises(AnalysisException, match=message):
            spark.sql(
                f"SELECT {hint} d.city FROM orders AS o JOIN {table('people')} {behind} {AS_OF} AS d "
                "ON o.person = d.id"
            )

    refused("/*+ LOOKUP('table'='x') */", "is about x, which is not a table .* has d")
    refused("/*+ LOOKUP('async'='true') */", "names no table: write LOOKUP")
    refused("/*+ LOOKUP('table'='d', 'retry-predicat'='lookup_miss') */", "did you mean 'retry-predicate'")
    refused("/*+ LOOKUP('table'='d', 'async'='perhaps') */", "async.* true or false")
    refused("", "did you mean 'lookup.cache'", "/*+ OPTIONS('lookup.cach'='full') */")


@pytest.mark.long
def test_retries_of_a_hint(spark: SparkSession, table: MakeName) -> None:
    for name in ("d", table("people")):
        found = spark.sql(
            f"SELECT /*+ LOOKUP('table'='{name}', 'retry-predicate'='lookup_miss', 'fixed-delay'='1 ms', "
            "'max-attempts'='1', 'async'='true', 'output-mode'='allow_unordered') */ d.city FROM orders AS o "
            f"JOIN {table('people')} /*+ OPTIONS('lookup.timeout'='9 min') */ {AS_OF} AS d ON o.person = d.id"
        )
        # Retries are done by Python.
        assert "ArrowEvalPython" in found._jdf.queryExecution().optimizedPlan().toString()
        assert found.count() == MATCHED


REFUSED = {
    "right": ("o RIGHT JOIN {people} {as_of} d ON o.person = d.id", "with RIGHT JOIN"),
    "full": ("o FULL JOIN {people} {as_of} d ON o.person = d.id", "with FULL JOIN"),
    "semi": (
        "o LEFT SEMI JOIN {people} {as_of} d ON o.person = d.id",
        "JOIN, or LEFT JOIN with WHERE d.<key>",
    ),
    "anti": ("o LEFT ANTI JOIN {people} {as_of} d ON o.person = d.id", "IS NULL"),
    "cross": ("o CROSS JOIN {people} {as_of} d", r"no equality .* of d \(its primary key is id\) .* d.id"),
    "no equality": ("o JOIN {people} {as_of} d ON o.person > d.id", "no equality"),
    "types": ("o JOIN {people} {as_of} d ON o.person = d.level", "has type bigint in the stream and INT"),
    "no time": (
        "o JOIN {people} FOR SYSTEM_TIME AS OF o.amount d ON o.person = d.id",
        "is not a time, but INT",
    ),
    "time of the table": (
        "o JOIN {people} FOR SYSTEM_TIME AS OF d.since d ON o.person = d.id",
        "is a column of the table that is looked up in",
    ),
    "no such time": (
        "o JOIN {people} FOR SYSTEM_TIME AS OF o.time d ON o.person = d.id",
        "not a column of the stream, whose times are .*proc_time",
    ),
    "no table of ours": (
        "o JOIN orders {as_of} d ON o.person = d.number",
        "looks up in tables of Lockgate only, and d is none",
    ),
    "left side": (
        "x JOIN (SELECT * FROM {people} FOR SYSTEM_TIME AS OF PROCTIME() d WHERE level > 1) d "
        "ON x.person = d.id",
        "at a table that nothing looks up in",
    ),
    "several matches": (
        "o LEFT JOIN {cities} {as_of} d ON concat('c', amount) = d.city AND length(d.city) > o.amount",
        "may find several rows of d .*condition on .*amount.*Write JOIN",
    ),
    "random": ("o JOIN {people} {as_of} d ON o.person = d.id AND rand() > 0.5", "the same value whenever"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_lookup_cannot_do(spark: SparkSession, table: MakeName, name: str) -> None:
    rest, message = REFUSED[name]
    text = rest.format(people=table("people"), cities=table("cities"), as_of=AS_OF)
    with pytest.raises(AnalysisException, match=message):
        spark.sql(f"SELECT count(*) FROM orders {text}")


LOOKED_UP = "SELECT o.number, d.city FROM orders AS o JOIN {people} {as_of} AS d ON o.person = d.id"
CHANGES = {
    "MERGE": "INTO {cities} t USING ({query}) s ON t.inhabitants = s.number WHEN MATCHED THEN DELETE",
    "UPDATE": "{cities} SET inhabitants = (SELECT max(number) FROM ({query}))",
    "DELETE": "FROM {people} WHERE id IN (SELECT number FROM ({query}))",
}


@pytest.mark.parametrize("statement", CHANGES)
@pytest.mark.parametrize("by_view", [False, True])
def test_statements_that_read_their_query_several_times(
    spark: SparkSession, table: MakeName, statement: str, by_view: bool
) -> None:
    """Neither in their own words, nor by a view that hides the join."""
    query = LOOKED_UP.format(people=table("people"), as_of=AS_OF)
    if by_view:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW looked_up AS {query}")
        query = "SELECT * FROM looked_up"
    before = spark.table(table("cities")).count()
    text = CHANGES[statement].format(people=table("people"), cities=table("cities"), query=query)
    with pytest.raises(AnalysisException, match=rf"{statement} cannot use a join .* then {statement} with s"):
        spark.sql(f"{statement} {text}")
    with pytest.raises(AnalysisException, match="cannot use a join"):
        spark.sql(f"WITH c AS (SELECT 1) {statement} {text}")
    assert spark.table(table("cities")).count() == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT d.city FROM (SELECT o.person AS p) AS s JOIN {people} {as_of} AS d ON s.p = d.id",
        "SELECT d.city FROM (SELECT 1L AS p) AS s LEFT JOIN {people} {as_of} AS d ON s.p = d.id",
        "SELECT d.city FROM {people} {as_of} AS d WHERE d.id = o.person",
        "SELECT city FROM looked_up WHERE number = o.number",
        "SELECT max(c) AS city FROM (SELECT 1 AS p), LATERAL (SELECT d.city AS c FROM (SELECT 1L AS p) AS s "
        "JOIN {people} {as_of} AS d ON s.p = d.id)",
    ],
)
def test_lateral_subqueries(spark: SparkSession, table: MakeName, query: str) -> None:
    """They are refused in our words, whatever the subquery does with the rows around it."""
    names = {"people": table("people"), "as_of": AS_OF.replace("o.proc_time", "PROCTIME()")}
    looked_up = LOOKED_UP.format(people=names["people"], as_of=AS_OF)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW looked_up AS {looked_up}")
    for join in (", LATERAL", "LEFT JOIN LATERAL"):
        with pytest.raises(AnalysisException, match="a LATERAL subquery cannot use a join FOR SYSTEM_TIME"):
            spark.sql(f"SELECT o.number, x.city FROM orders AS o {join} ({query.format(**names)}) AS x")


def test_lateral_subqueries_around_a_lookup(spark: SparkSession, table: MakeName) -> None:
    lookup = f"JOIN {table('people')} {AS_OF} AS d ON o.person = d.id"
    around = spark.sql(
        f"SELECT o.number, z.y FROM orders AS o {lookup}, LATERAL (SELECT upper(d.city) AS y) AS z"
    )
    expected = spark.sql(f"SELECT o.number, upper(d.city) AS y FROM orders AS o {lookup}")
    same(around, expected)


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO {cities} USING {people} {clause} AS s ON inhabitants = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {cities} TABLE {people} {clause}",
        "SELECT * FROM orders AS o JOIN STREAM({people}) {clause} AS d ON o.person = d.id",
    ],
)
@pytest.mark.parametrize("clause", ["FOR SYSTEM_TIME AS OF PROCTIME()", "FOR SYSTEM_TIME AS OF o.proc_time"])
def test_the_clause_where_the_grammar_has_no_place_for_it(
    spark: SparkSession, table: MakeName, text: str, clause: str
) -> None:
    with pytest.raises(ParseException, match="a lookup stands behind JOIN, as in FROM orders AS o JOIN"):
        spark.sql(text.format(people=table("people"), cities=table("cities"), clause=clause))


def test_the_table_on_the_left_side(spark: SparkSession, table: MakeName) -> None:
    with pytest.raises(AnalysisException, match="on the left side of a join, where the stream belongs"):
        spark.sql(
            f"SELECT * FROM {table('people')} FOR SYSTEM_TIME AS OF PROCTIME() AS d JOIN orders AS o "
            "ON o.person = d.id"
        )


def test_time_travel_stays_as_it_is(spark: SparkSession, table: MakeName) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    for clause in ("VERSION AS OF 1", "FOR SYSTEM_VERSION AS OF 1", "TIMESTAMP AS OF now()"):
        assert spark.sql(f"SELECT id FROM {table('people')} {clause}").count() == 39
    for time in ("current_timestamp()", "'2024-01-01'", "DATE'2024-01-01'", "now()"):
        text = f"SELECT * FROM {table('people')} FOR SYSTEM_TIME AS OF {time} AS d"
        assert "PROCTIME" not in parser.parsePlan(text).toString()


@pytest.mark.filterwarnings("ignore::lockgate.errors.LineageWarning")
def test_views_keep_the_clause(spark: SparkSession, table: MakeName) -> None:
    text = (
        f"SELECT /*+ LOOKUP('table'='d', 'async'='true') */ o.number, d.city AS `FOR SYSTEM_TIME AS OF x` "
        f"FROM {{orders}} AS o JOIN {table('people')} {AS_OF} AS d ON o.person = d.id"
    )
    expected = spark.sql(plain(text.format(orders="orders")))
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen AS {text.format(orders='orders')}")
    spark.sql("CREATE TABLE spark_catalog.default.stored_orders USING parquet AS SELECT * FROM orders")
    stored = text.format(orders="spark_catalog.default.stored_orders")
    spark.sql(f"CREATE VIEW spark_catalog.default.stored AS {stored}")
    try:
        for view in ("seen", "spark_catalog.default.stored"):
            joined = spark.table(view)
            assert "ockgate" in joined._jdf.queryExecution().optimizedPlan().toString()
            same(joined, expected)
    finally:
        spark.sql("DROP VIEW spark_catalog.default.stored")
        spark.sql("DROP TABLE spark_catalog.default.stored_orders")


@pytest.mark.long
def test_rows_are_written_by_such_a_query(spark: SparkSession, table: MakeName) -> None:
    query = f"SELECT o.number, d.city FROM orders AS o JOIN {table('people')} {AS_OF} AS d ON o.person = d.id"
    spark.sql(f"DROP TABLE IF EXISTS {table('made')}")
    spark.sql(f"CREATE TABLE {table('made')} TBLPROPERTIES ('primary-key'='number','bucket'='1') AS {query}")
    same(spark.table(table("made")), spark.sql(plain(query)))
    spark.sql(f"INSERT INTO {table('made')} {query.replace('o.number', 'o.number + 1000')}")
    assert spark.table(table("made")).count() == 2 * MATCHED


def test_a_stream_is_joined_by_the_snapshot_of_each_batch(
    spark: SparkSession, table: MakeName, tmp_path: Path
) -> None:
    folder = str(tmp_path / "in")
    orders(spark).coalesce(1).write.parquet(folder)
    reader = spark.readStream.schema(orders(spark).schema).option("maxFilesPerTrigger", 1)
    reader.parquet(folder).createOrReplaceTempView("coming")
    people = table("people")
    text = (
        f"SELECT o.number, d.city, x.city AS other FROM coming AS o LEFT JOIN {people} {AS_OF} AS d "
        f"ON o.person = d.id LEFT JOIN {people} {AS_OF} AS x ON o.amount = x.id"
    )
    batches: list[list[tuple[Any, ...]]] = []
    writer = spark.sql(text).writeStream.option("checkpointLocation", str(tmp_path / "ck"))
    query = writer.foreachBatch(
        lambda frame, _: batches.append([tuple(row) for row in frame.collect()])
    ).start()
    try:
        query.processAllAvailable()
        first = [tuple(row) for row in spark.sql(plain(text.replace("coming", "orders"))).collect()]
        metrics = query.lastProgress["observedMetrics"]
    finally:
        query.stop()
    assert sorted(map(repr, batches[0])) == sorted(map(repr, first))
    name = people.removeprefix("lake.")
    assert {f"lookup {name}", f"lookup {name} 2"} <= set(metrics)
    assert metrics[f"lookup {name}"]["rows"] == 100
