"""Lineage of columns against truth written by hand, sqlglot's, and values that are changed."""

# ruff: noqa: E501 - a statement and its truth are easier to compare when neither is broken

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from lineage_asked import Edges, asked
from tpch.queries import QUERIES

from lockgate.framework.lineage.model.edge_kinds import DIRECT, kind_names

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = pytest.mark.usefixtures("interpreted", "own_index")


@pytest.fixture(scope="module")
def tables(lake: Lake, shared_table: Callable[[str], str]) -> str:
    """The prefix of three tables: p of people, d of departments, and n with nested columns."""
    for name, columns in (
        ("p", "id INT, name STRING, pay INT, dept INT"),
        ("d", "dept INT, dname STRING"),
        (
            "n",
            "id INT, address STRUCT<zip: STRING, place: STRUCT<city: STRING>>, tags ARRAY<STRING>, marks MAP<STRING, INT>",
        ),
    ):
        lake.sql(f"CREATE TABLE {shared_table(name)} ({columns})")
    lake.sql("CREATE OR REPLACE TEMPORARY FUNCTION plus_one(x INT) RETURNS INT RETURN x + 1")
    lake.spark.udf.register("in_python", lambda text: text, "string")
    return shared_table("p").removesuffix("p")


# What others try, in our own words: expressions of each kind, nested columns, functions, generators, windows,
# set operations, subqueries, all joins. Each column with its whole truth.
WRITTEN: list[tuple[str, Edges]] = [
    ("SELECT name AS a, pay + dept AS b, sum(pay) OVER (PARTITION BY dept ORDER BY id) AS c FROM {0}p", {
        "a": {"p.name identity"}, "b": {"p.pay transformation", "p.dept transformation"},
        "c": {"p.pay aggregation", "p.dept window", "p.id window"}}),
    ("SELECT sha1(name) AS a, md5(concat(name, 'x')) AS b, count(pay) AS c, max(xxhash64(dept)) AS d FROM {0}p GROUP BY name", {
        "a": {"p.name masked_transformation"}, "b": {"p.name masked_transformation"}, "c": {"p.pay masked_aggregation"},
        "d": {"p.dept masked_aggregation"}, "*": {"p.name group_by"}}),
    ("SELECT address.zip AS z, address.place.city AS c, address.place AS p FROM {0}n", {
        "z": {"n.address.zip identity"}, "c": {"n.address.place.city identity"}, "p": {"n.address.place identity"}}),
    ("SELECT upper(address.zip) AS z FROM {0}n WHERE address.place.city = 'x'", {
        "z": {"n.address.zip transformation"}, "*": {"n.address.place.city filter"}}),
    ("SELECT id, tag FROM {0}n LATERAL VIEW explode(tags) t AS tag", {
        "id": {"n.id identity"}, "tag": {"n.tags transformation"}}),
    ("SELECT k, v, pos FROM {0}n LATERAL VIEW explode(marks) m AS k, v LATERAL VIEW posexplode(tags) t AS pos, tag", {
        "k": {"n.marks transformation"}, "v": {"n.marks transformation"}, "pos": {"n.tags transformation"}}),
    ("SELECT inline(array(named_struct('a', id, 'b', name))) FROM {0}p", {
        "a": {"p.id transformation", "p.name transformation"}, "b": {"p.id transformation", "p.name transformation"}}),
    ("SELECT plus_one(pay) AS a, in_python(name) AS b FROM {0}p", {
        "a": {"p.pay transformation"}, "b": {"p.name transformation"}}),
    ("SELECT count(DISTINCT name) AS a, max_by(name, pay) AS b, collect_list(struct(id, pay)) AS c FROM {0}p", {
        "a": {"p.name masked_aggregation"}, "b": {"p.name aggregation", "p.pay aggregation"},
        "c": {"p.id aggregation", "p.pay aggregation"}}),
    ("SELECT id FROM {0}p INTERSECT SELECT dept FROM {0}d", {
        "id": {"p.id identity", "d.dept identity"}}),
    ("SELECT p.name, d.dname FROM {0}p p LEFT JOIN {0}d d USING (dept) ORDER BY pay", {
        "name": {"p.name identity"}, "dname": {"d.dname identity"},
        "*": {"p.dept join", "d.dept join", "p.pay sort"}}),
    ("SELECT name FROM {0}p p LEFT ANTI JOIN {0}d d ON p.dept = d.dept AND d.dname = 'x'", {
        "name": {"p.name identity"}, "*": {"p.dept join", "d.dept join", "d.dname join"}}),
    ("SELECT lag(name) OVER (PARTITION BY dept ORDER BY id) AS a, first_value(pay) OVER w AS b FROM {0}p WINDOW w AS (ORDER BY id)", {
        "a": {"p.name transformation", "p.dept window", "p.id window"}, "b": {"p.pay aggregation", "p.id window"}}),
    ("WITH a AS (SELECT id, name FROM {0}p), b AS (SELECT id, upper(name) AS u FROM a) SELECT u FROM b JOIN a USING (id)", {
        "u": {"p.name transformation"}, "*": {"p.id join"}}),
    ("SELECT id + 1 AS next, next * 2 AS twice FROM {0}p", {
        "next": {"p.id transformation"}, "twice": {"p.id transformation"}}),
    ("SELECT id, CAST(id AS STRING) AS s, pay % 2 = 0 AS even FROM {0}p WHERE name LIKE 'a%' DISTRIBUTE BY dept", {
        "id": {"p.id identity"}, "s": {"p.id identity"}, "even": {"p.pay transformation"}, "*": {"p.name filter"}}),
    ("SELECT coalesce(CASE WHEN dept > 1 THEN name END, 'x') AS c, iff.v AS v FROM {0}p, LATERAL (SELECT if(pay > 1, id, 0) AS v) iff", {
        "c": {"p.dept conditional", "p.name transformation"}, "v": {"p.pay conditional", "p.id transformation"}}),
    ("VALUES (1, 'a')", {}),
    ("SELECT current_date() AS d, 1 AS one, id FROM {0}p LIMIT 1", {"id": {"p.id identity"}}),
]  # fmt: skip


def test_columns_of_queries(lake: Lake, tables: str, all_statements: None) -> None:
    found = asked(lake, [sql.replace("{0}", tables) for sql, _ in WRITTEN])
    wrong = {sql: edges for (sql, truth), edges in zip(WRITTEN, found, strict=True) if edges != truth}
    assert wrong == {}


# --- what a changed value changes ---

EXPRESSIONS = (
    "{a} + {b}", "{a} * 2", "CASE WHEN {a} > {b} THEN {c} ELSE 7 END", "concat({a}, '-', {b})", "coalesce({a}, {b})",
    "sum({a}) OVER (PARTITION BY {b})", "sha2(CAST({a} AS STRING), 256)", "if({a} = 3, {b}, {c})", "greatest({a}, {b})",
    "{a}", "CAST({a} AS BIGINT)", "array({a}, {b})[0]", "abs({a} - {c})",
)  # fmt: skip
COLUMNS = ("a", "b", "c", "e", "f")


# Queries that random expressions stand in; each row has a `k` of its own that never changes.
SHAPES = (
    "SELECT k, {texts} FROM {{0}} WHERE {a} < 7",
    "SELECT {a} AS k, sum({b}) AS x, max({c}) FILTER (WHERE {b} > 2) AS y, count({b}) AS z FROM {{0}} GROUP BY {a}",
    "SELECT k, {texts}, other FROM {{0}} JOIN (SELECT k AS place, {b} + {c} AS other FROM {{0}}) ON {a} = place",
    "SELECT k, {a} AS x, {b} + {c} AS y FROM {{0}} UNION ALL SELECT k + 100, {b}, {a} FROM {{0}}",
    "WITH one AS (SELECT k, {texts} FROM {{0}}) SELECT *, (SELECT max({a}) FROM {{0}} WHERE {b} < 5) AS best FROM one",
    "SELECT k, {texts}, rank() OVER (PARTITION BY {a} ORDER BY {b}, k) AS place FROM {{0}}",
    "SELECT k, {texts} FROM {{0}} WHERE {a} IN (SELECT {b} FROM {{0}})",
    "SELECT k + 100 * at AS k, x, {texts} FROM {{0}} LATERAL VIEW posexplode(array({a}, {b})) AS at, x",
)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 1 else ()) for seed in range(1, 9)]
)
def test_only_columns_that_lineage_names_change(
    lake: Lake, table: Callable[[str], str], all_statements: None, seed: int
) -> None:
    """One source column gets other values: what lineage does not lead to stays as it is."""
    chance = random.Random(seed)
    rows = [(n, *(chance.randrange(9) for _ in COLUMNS)) for n in range(12)]
    source = table("source")
    lake.sql(f"CREATE TABLE {source} (k INT, {', '.join(f'{c} INT' for c in COLUMNS)})")
    lake.spark.createDataFrame(rows, lake.table(source).schema).writeTo(source).append()
    shapes = SHAPES if seed > 1 else chance.sample(SHAPES, 2)
    compared = sum(_perturb(lake, source, chance, shape) for shape in shapes)
    assert compared > len(shapes)


def _perturb(lake: Lake, source: str, chance: random.Random, shape: str) -> int:
    """Return how many columns had to stay as they were."""
    picked = [chance.choice(EXPRESSIONS) for _ in range(5)]
    texts = [each.format(**dict(zip("abc", chance.sample(COLUMNS, 3), strict=True))) for each in picked]
    named = dict(zip("abc", chance.sample(COLUMNS, 3), strict=True))
    inner = shape.format(texts=", ".join(f"{text} AS x{n}" for n, text in enumerate(texts)), **named)
    sql = f"SELECT * FROM ({inner}) ORDER BY k"
    [edges] = asked(lake, [sql.format(source)])
    leads = {column: {each.split(".")[1].split()[0] for each in found} for column, found in edges.items()}
    before = lake.sql(sql.format(source)).collect()
    compared = 0
    for changed in chance.sample(COLUMNS, 3):
        if changed in leads.get("*", set()):
            continue
        others = ", ".join(f"{c} + 3 AS {c}" if c == changed else c for c in ("k", *COLUMNS))
        lake.sql(f"SELECT {others} FROM {source}").createOrReplaceTempView("perturbed")
        after = lake.sql(sql.format("perturbed")).collect()
        for column in before[0].asDict() if before else ():
            if changed not in leads.get(column, set()):
                compared += 1
                assert [row[column] for row in before] == [row[column] for row in after], (
                    sql,
                    changed,
                    column,
                )
    return compared


# --- sqlglot ---

TPCH = {
    "region": "r_regionkey INT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING",
    "supplier": "s_suppkey INT, s_name STRING, s_address STRING, s_nationkey INT, s_phone STRING, s_acctbal DECIMAL(15,2), s_comment STRING",
    "customer": "c_custkey INT, c_name STRING, c_address STRING, c_nationkey INT, c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey INT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "partsupp": "ps_partkey INT, ps_suppkey INT, ps_availqty INT, ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "orders": "o_orderkey INT, o_custkey INT, o_orderstatus STRING, o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey INT, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING",
}
# Columns of which sqlglot and the plan name other sources, beyond the conditions of CASE and the keys of windows,
# which sqlglot takes for values: none but `grouping`, which TPC-H does not use.
MISMATCHES: dict[tuple[int, str], set[str]] = {}


@pytest.mark.slow
def test_tpch_as_sqlglot_sees_it(lake: Lake, all_statements: None) -> None:
    lake.sql("CREATE DATABASE IF NOT EXISTS lake.tpch_lineage")
    try:
        for name, columns in TPCH.items():
            lake.sql(f"CREATE TABLE lake.tpch_lineage.{name} ({columns})")
        names = {name: f"lake.tpch_lineage.{name}" for name in TPCH}
        texts = {number: _text(number, names) for number in QUERIES}
        found = asked(lake, list(texts.values()))
        wrong = {
            (number, column): difference
            for number, edges in zip(texts, found, strict=True)
            for column, difference in _differences(_text(number, {n: n for n in TPCH}), edges)
        }
    finally:
        lake.catalog.drop_namespace("tpch_lineage", cascade=True)
    assert wrong == MISMATCHES


def _text(number: int, names: dict[str, str]) -> str:
    from string import Template

    return Template(QUERIES[number]).substitute(names, fraction="0.0001")


def _differences(sql: str, edges: Edges) -> Iterator[tuple[str, set[str]]]:
    from sqlglot import exp, parse_one
    from sqlglot.lineage import lineage

    schema = {name: dict(c.split() for c in columns.split(", ")) for name, columns in TPCH.items()}
    for column in parse_one(sql, dialect="spark").named_selects:
        node = lineage(column, sql, schema=schema, dialect="spark")
        leaves = {
            f"{each.expression.find(exp.Table).name}.{each.name.rpartition('.')[2]}"
            for each in node.walk()
            if isinstance(each.expression, exp.Table)
        }
        direct = {
            each.split()[0]
            for each in edges.get(column, set())
            if each.split()[1] in set(kind_names(int(DIRECT)))
        }
        all_named = {each.split()[0] for each in edges.get(column, set())}
        # What sqlglot has more are conditions and keys of windows; those are there as such.
        difference = (direct - leaves) | (leaves - all_named)
        if difference:
            yield column, difference
