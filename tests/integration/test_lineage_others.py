"""What other tools expect of column lineage: every case of theirs in our words, with what we say, and why if we differ.

The suites are OpenLineage's `ColumnLineageWithTransformationTypesTest` and `ColumnLevelLineageIcebergTest`, and
kyuubi's `SparkSQLLineageParserHelperSuite`. The last two know no kinds: there the columns that each column comes
from are compared.
"""

# ruff: noqa: E501 - a statement and its truth are easier to compare when neither is broken

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from lineage_asked import Edges, asked

if TYPE_CHECKING:
    from lockgate import Lake

pytestmark = [pytest.mark.usefixtures("interpreted", "own_index"), pytest.mark.long]

Columns = dict[str, set[str]]


@pytest.fixture
def tables(lake: Lake, table: Callable[[str], str]) -> Iterator[str]:
    """The prefix of the tables `sale` and `shop`."""
    lake.sql(f"CREATE TABLE {table('sale')} (id INT, region STRING, amount INT, day INT, note STRING)")
    lake.sql(f"CREATE TABLE {table('shop')} (id INT, region STRING, opened INT)")
    lake.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW plain_view AS SELECT id AS k, region FROM {table('sale')} WHERE note IN ('x')"
    )
    lake.spark.conf.set("spark.lockgate.lineage", "all")
    yield table("sale").removesuffix("sale")
    lake.spark.conf.unset("spark.lockgate.lineage")
    lake.spark.catalog.clearCache()


@dataclass(frozen=True)
class Kinds:
    """A case of OpenLineage's kinds: `theirs` where they expect something else, and `why`."""

    name: str
    sql: str
    ours: Edges
    theirs: Edges | None = None
    why: str = ""


_NULLS = (
    "whether a value is null is a part of the value: COALESCE takes it from its arguments directly, and a second, "
    "conditional edge between the same columns would say nothing more"
)
KINDS = [
    Kinds("simpleQueryOnlyIdentity", "SELECT amount FROM {0}sale", {"amount": {"sale.amount identity"}}),
    Kinds("simpleQueryOnlyTransform", "SELECT concat(id, '!') AS t, id + amount AS u FROM {0}sale",
          {"t": {"sale.id transformation"}, "u": {"sale.id transformation", "sale.amount transformation"}}),
    Kinds("simpleQueryOnlyAggregation", "SELECT count(id) AS n FROM {0}sale", {"n": {"sale.id masked_aggregation"}}),
    Kinds("simpleQueryIndirect", "SELECT id FROM {0}sale WHERE amount > 1",
          {"id": {"sale.id identity"}, "*": {"sale.amount filter"}}),
    Kinds("simpleQueryMultipleIndirect", "SELECT id, day FROM {0}sale WHERE amount > 1 GROUP BY id, day ORDER BY day",
          {"id": {"sale.id identity"}, "day": {"sale.day identity"},
           "*": {"sale.id group_by", "sale.day group_by", "sale.amount filter", "sale.day sort"}}),
    Kinds("simpleQueryPriorityDirect",
          "SELECT id AS i, id + 1 AS t, sum(amount) AS id, 2 * sum(amount) AS ta, 2 * sum(amount + 3) AS tat FROM {0}sale GROUP BY id",
          {"i": {"sale.id identity"}, "t": {"sale.id transformation"}, "id": {"sale.amount aggregation"},
           "ta": {"sale.amount aggregation"}, "tat": {"sale.amount aggregation"}, "*": {"sale.id group_by"}}),
    Kinds("simpleQueryMasking",
          "SELECT id AS i, sha1(string(id + 1)) AS mt, sum(amount) AS s, sha1(string(sum(amount))) AS ms FROM {0}sale GROUP BY id",
          {"i": {"sale.id identity"}, "mt": {"sale.id masked_transformation"}, "s": {"sale.amount aggregation"},
           "ms": {"sale.amount masked_aggregation"}, "*": {"sale.id group_by"}}),
    Kinds("simpleQueryWithCaseWhenConditional", "SELECT CASE WHEN amount > 1 THEN id ELSE id + amount END AS c FROM {0}sale",
          {"c": {"sale.id transformation", "sale.amount transformation", "sale.amount conditional"}}),
    Kinds("simpleQueryWithIfConditional", "SELECT if(amount > 1, id, id + amount) AS c FROM {0}sale",
          {"c": {"sale.id transformation", "sale.amount transformation", "sale.amount conditional"}}),
    Kinds("simpleQueryWithNullIfConditional", "SELECT nullif(id, amount) AS c FROM {0}sale",
          {"c": {"sale.id transformation", "sale.id conditional", "sale.amount conditional"}}),
    Kinds("simpleQueryWithNvlConditional", "SELECT nvl(id, amount) AS c FROM {0}sale",
          {"c": {"sale.id transformation", "sale.amount transformation"}},
          {"c": {"sale.id transformation", "sale.id conditional", "sale.amount transformation", "sale.amount conditional"}}, _NULLS),
    Kinds("simpleQueryWithNvl2Conditional", "SELECT nvl2(id, amount, day) AS c FROM {0}sale",
          {"c": {"sale.id conditional", "sale.amount transformation", "sale.day transformation"}}),
    Kinds("simpleQueryWithCoalesceConditional", "SELECT coalesce(id, amount, 0) AS c FROM {0}sale",
          {"c": {"sale.id transformation", "sale.amount transformation"}},
          {"c": {"sale.id transformation", "sale.id conditional", "sale.amount transformation", "sale.amount conditional"}}, _NULLS),
    Kinds("simpleQueryExplode", "SELECT w FROM (SELECT explode(split(note, ' ')) AS w FROM {0}sale)",
          {"w": {"sale.note transformation"}}),
    Kinds("simpleQueryRank", "SELECT note, rank() OVER (PARTITION BY region ORDER BY day) AS r FROM {0}sale",
          {"note": {"sale.note identity"}, "r": {"sale.region window", "sale.day window"}}),
    Kinds("simpleQueryWindowedAggregate", "SELECT sum(amount) OVER (PARTITION BY region ORDER BY day) AS s FROM {0}sale",
          {"s": {"sale.amount aggregation", "sale.region window", "sale.day window"}}),
    Kinds("simpleQueryWindowedTransformation", "SELECT lag(amount, 3, 0) OVER (PARTITION BY region ORDER BY day) AS l FROM {0}sale",
          {"l": {"sale.amount transformation", "sale.region window", "sale.day window"}}),
    Kinds("union", "SELECT id, note, 'one' AS origin FROM {0}sale UNION ALL SELECT id, region, 'two' FROM {0}shop",
          {"id": {"sale.id identity", "shop.id identity"}, "note": {"sale.note identity", "shop.region identity"}}),
    Kinds("simpleQueryMultipleJoinsToSameTable",
          "SELECT s.id, x.id AS one, y.id AS two FROM {0}sale s LEFT JOIN {0}shop x ON s.amount = x.id "
          "LEFT JOIN {0}shop y ON s.day = y.id WHERE s.amount IS NOT NULL AND s.day IS NOT NULL",
          {"id": {"sale.id identity"}, "one": {"shop.id identity"}, "two": {"shop.id identity"},
           "*": {"sale.amount join", "shop.id join", "sale.day join", "sale.amount filter", "sale.day filter"}},
          {"id": {"sale.id identity"}, "one": {"shop.id identity"}, "two": {"shop.id identity"},
           "*": {"sale.amount join", "shop.id join", "sale.day join", "sale.amount filter", "sale.day filter", "shop.id filter"}},
          "they read the optimised plan, which adds checks for null that nobody wrote, and count a column once for each join"),
    Kinds("simpleDistinctQuery", "SELECT DISTINCT id AS a FROM {0}sale", {"a": {"sale.id identity"}, "*": {"sale.id group_by"}}),
    Kinds("queryWithProgressivelyComplexTransformations",
          "SELECT note AS c1, concat(note, region) AS c2, upper(concat(note, region)) AS c3, substring(upper(concat(note, id)), 1, 5) AS c4 FROM {0}sale",
          {"c1": {"sale.note identity"}, "c2": {"sale.note transformation", "sale.region transformation"},
           "c3": {"sale.note transformation", "sale.region transformation"}, "c4": {"sale.note transformation", "sale.id transformation"}}),
]  # fmt: skip


@dataclass(frozen=True)
class Sources:
    """A case without kinds: the columns that each column comes from, `theirs` where they expect others."""

    name: str
    sql: str
    ours: Columns
    theirs: Columns | None = None
    why: str = ""


_COUNT = "count(*) comes from no column: a vertex `__count__` would be a column that no table has"
_EXISTS = "they leave out tables that only a condition reads; here they decide which rows there are"
_GROUPS = "GROUPING__ID says which keys were left out, so it depends on them (kind group_by)"
_CORRELATED = "the condition that ties a subquery to its row decides the value, on both of its sides"
_IF = "a condition of IF decides the value (kind conditional), and so does all that the condition reads"
ID, REGION, AMOUNT, NOTE, DAY = ({f"sale.{name}"} for name in ("id", "region", "amount", "note", "day"))
SHOP, SHOP_REGION, OPENED = ({f"shop.{name}"} for name in ("id", "region", "opened"))
ICEBERG = [
    Sources("testCreateTableAsSelectWithUnion", "SELECT id, amount FROM {0}sale UNION SELECT id, opened FROM {0}shop",
            {"id": ID | SHOP, "amount": AMOUNT | OPENED}),
    Sources("testInsertIntoTableWithAlias", "SELECT * FROM {0}shop", {"id": SHOP, "region": SHOP_REGION, "opened": OPENED}),
    Sources("testUnaryExpression", "SELECT id, ceil(amount) AS c, abs(day) AS d FROM {0}sale", {"id": ID, "c": AMOUNT, "d": DAY}),
    Sources("testBinaryAndComplexExpression", "SELECT concat(CAST(id AS STRING), CAST(day AS STRING)) AS c, id + day AS d FROM {0}sale",
            {"c": ID | DAY, "d": ID | DAY}),
    Sources("testJoinQuery", "SELECT (sale.id + shop.id) AS c FROM {0}sale sale JOIN {0}shop shop ON sale.id = shop.id", {"c": ID | SHOP}),
    Sources("testAggregateQuery", "SELECT max(id) AS m FROM {0}sale GROUP BY id", {"m": ID}),
    Sources("testCTEQuery", "WITH t(a, b) AS (SELECT id, day FROM {0}sale) SELECT a AS c, b AS d FROM t WHERE t.a = 1", {"c": ID, "d": DAY}),
]  # fmt: skip
# Cases of that suite that are no query: where they are shown, or why they cannot be asked.
ICEBERG_ELSEWHERE = {
    "testJobWithCachedDataset": "test_cached_rows_of_cached_rows",
    "testReadWriteParquetDataset": "test_files_are_read_and_written",
    "testMergeIntoCow": "test_merge_takes_from_both_tables",
    "testMergeIntoMor": "test_merge_takes_from_both_tables",
    "testEmptyColumnLineageFacet": "columns are those of the plan, and no schema from elsewhere can disagree",
    "testLogicalPlanUnavailable": "test_lineage_statements.py::test_failed_and_cancelled_statements",
    "testLogicalPlanWhenOptimizedPlanIsNull": "the analysed plan is read, which every execution has or fails without",
}

KYUUBI = [
    Sources("base: join", "SELECT s.id AS a0, h.id AS a1 FROM {0}sale s JOIN {0}shop h WHERE h.id = s.id", {"a0": ID, "a1": SHOP}),
    Sources("base: group", "SELECT count(id) AS n, region FROM {0}sale GROUP BY region", {"n": ID, "region": REGION}),
    Sources("V2: hash of a hash", "SELECT id, hash(hash(id)) AS h FROM {0}sale", {"id": ID, "h": ID}),
    Sources("V2: case of a column", "SELECT CASE note WHEN '1' THEN 's' ELSE note END AS c FROM {0}sale", {"c": NOTE}),
    Sources("V2: sum of hashes", "SELECT id AS a, sum(hash(id) + hash(hash(id))) AS s FROM {0}sale GROUP BY id", {"a": ID, "s": ID}),
    Sources("V2: columns of one name", "SELECT id AS a, 'x' AS b, 'y', first(note) AS c FROM {0}sale GROUP BY id", {"a": ID, "c": NOTE}),
    Sources("V2: join of subqueries", "SELECT l.a, count(r.b) AS n FROM (SELECT id AS a FROM {0}sale) l JOIN (SELECT id AS b FROM {0}sale) r ON l.a = r.b GROUP BY 1",
            {"a": ID, "n": ID}),
    Sources("CTE", "WITH kinds AS (SELECT id, CASE WHEN note = 1 THEN 'car' ELSE 'other' END AS k FROM {0}sale GROUP BY id, CASE WHEN note = 1 THEN 'car' ELSE 'other' END), "
            "open AS (SELECT s.id, h.opened, i.region FROM {0}sale s JOIN (SELECT a.id, a.opened FROM {0}shop a JOIN {0}shop b ON a.id = b.id WHERE b.region LIKE '%t%') h "
            "ON s.day = h.id JOIN {0}shop i ON i.id = s.id), both AS (SELECT k.id, k.k, o.opened, o.region FROM kinds k JOIN open o ON k.id = o.id) SELECT * FROM both LIMIT 10",
            {"id": ID, "k": NOTE, "opened": OPENED, "region": SHOP_REGION}),
    Sources("join", "SELECT s.id AS a, h.id AS b, concat(s.id, h.id) AS c, concat(concat(s.id, h.region), concat(s.note, h.opened)) AS d "
            "FROM {0}sale s JOIN {0}shop h ON s.id = h.id", {"a": ID, "b": SHOP, "c": ID | SHOP, "d": ID | SHOP_REGION | NOTE | OPENED}),
    Sources("union", "SELECT id, x FROM (SELECT id, amount AS x FROM {0}sale UNION SELECT id, opened AS x FROM {0}shop) u",
            {"id": ID | SHOP, "x": AMOUNT | OPENED}),
    Sources("aggregates of aggregates", "SELECT region, sum(n) AS n0, sum(v) AS v0, CAST(unix_timestamp() AS BIGINT) AS at FROM "
            "(SELECT region, count(DISTINCT id) AS n, sum(amount * day) AS v FROM {0}sale WHERE 1 = 1 AND note = 1 GROUP BY region) GROUP BY region",
            {"region": REGION, "n0": ID, "v0": AMOUNT | DAY}),
    Sources("aggregates of unions", "SELECT region, sum(n) AS n0 FROM (SELECT region, count(DISTINCT id) AS n FROM {0}sale GROUP BY region "
            "UNION ALL SELECT region, 0 AS n FROM {0}shop GROUP BY region) u GROUP BY u.region", {"region": REGION | SHOP_REGION, "n0": ID}),
    Sources("agg 0", "SELECT id AS a, count(*) AS b, 1 AS c FROM {0}sale GROUP BY id", {"a": ID}, {"a": ID, "b": {"sale.__count__"}}, _COUNT),
    Sources("agg 1, 3", "SELECT count(*) AS a, 1 AS b FROM {0}sale", {}, {"a": {"sale.__count__"}}, _COUNT),
    Sources("agg 2", "SELECT every(id == 1) AS a FROM {0}sale", {"a": ID}),
    Sources("agg 4", "SELECT first(id) AS a FROM {0}sale", {"a": ID}),
    Sources("agg 5", "SELECT avg(id) AS a FROM {0}sale", {"a": ID}),
    Sources("agg 6", "SELECT count(note) + sum(id) AS a FROM {0}sale", {"a": NOTE | ID}),
    Sources("agg 7", "SELECT count(*) + sum(id) AS a FROM {0}sale", {"a": ID}, {"a": ID | {"sale.__count__"}}, _COUNT),
    Sources("subquery 0", "SELECT id AS a, b FROM (SELECT opened AS b FROM {0}shop) t, {0}sale", {"a": ID, "b": OPENED}),
    Sources("subquery 1", "SELECT (SELECT id FROM {0}shop) AS a, opened AS b FROM {0}shop", {"a": SHOP, "b": OPENED}),
    Sources("subquery 2", "SELECT (SELECT count(*) FROM {0}sale) AS a, opened AS b FROM {0}shop", {"b": OPENED},
            {"a": {"sale.__count__"}, "b": OPENED}, _COUNT),
    Sources("subquery 3: IN", "SELECT id FROM {0}sale WHERE id IN (SELECT id FROM {0}shop)", {"id": ID, "*": ID | SHOP}, {"id": ID}, _EXISTS),
    Sources("subquery 4: EXISTS", "SELECT id FROM {0}sale s WHERE EXISTS (SELECT * FROM {0}shop h WHERE s.note = h.region)",
            {"id": ID, "*": NOTE | SHOP_REGION}, {"id": ID}, _EXISTS),
    Sources("subquery 5", "SELECT id FROM {0}sale WHERE EXISTS (SELECT * FROM {0}shop WHERE region = 'x')", {"id": ID, "*": SHOP_REGION}, {"id": ID}, _EXISTS),
    Sources("subquery 6", "SELECT id FROM {0}sale WHERE NOT EXISTS (SELECT * FROM {0}shop WHERE region = 'x')", {"id": ID, "*": SHOP_REGION}, {"id": ID}, _EXISTS),
    Sources("subquery 7: NOT IN", "SELECT id FROM {0}sale WHERE id NOT IN (SELECT id FROM {0}shop)", {"id": ID, "*": ID | SHOP}, {"id": ID}, _EXISTS),
    Sources("subquery 8", "SELECT (SELECT id FROM {0}shop) + 1 AS a, opened AS b FROM {0}shop", {"a": SHOP, "b": OPENED}),
    Sources("subquery 9", "SELECT (SELECT id FROM {0}shop LIMIT 1) + 1 AS a FROM {0}shop", {"a": SHOP}),
    Sources("subquery 10", "SELECT (SELECT id FROM {0}shop LIMIT 1) + (SELECT id FROM {0}sale LIMIT 1) + 1 AS a FROM {0}shop", {"a": SHOP | ID}),
    Sources("subquery 11", "SELECT t.id, opened FROM (SELECT * FROM {0}shop) t", {"id": SHOP, "opened": OPENED}),
    Sources("subquery 12", "SELECT (SELECT sum(amount) FROM {0}sale s WHERE h.region = s.note) AS a FROM {0}shop h",
            {"a": AMOUNT | SHOP_REGION | NOTE}, {"a": AMOUNT | SHOP_REGION}, _CORRELATED),
    Sources("subquery 13", "SELECT if((SELECT sum(amount) FROM {0}sale s WHERE h.region = s.note) > 100, id, opened) AS a FROM {0}shop h",
            {"a": AMOUNT | NOTE | SHOP_REGION | SHOP | OPENED}, {"a": AMOUNT | SHOP_REGION | SHOP | OPENED}, _IF),
    Sources("group by 0, 1", "SELECT id, concat_ws('/', collect_set(note)) AS b, count(DISTINCT note) * count(DISTINCT region) AS c FROM {0}sale GROUP BY id",
            {"id": ID, "b": NOTE, "c": NOTE | REGION}),
    Sources("group by 2", "SELECT id, count(DISTINCT CAST(note AS INT) + CAST(region AS INT)) AS b FROM {0}sale GROUP BY id", {"id": ID, "b": NOTE | REGION}),
    Sources("grouping sets", "SELECT id, note, grouping__id AS g FROM {0}sale GROUP BY id, note, day, amount GROUPING SETS ((id, note, day), (id, note, amount))",
            {"id": ID, "note": NOTE, "g": DAY | AMOUNT}, {"id": ID, "note": NOTE}, _GROUPS),
    Sources("count in a subquery", "SELECT 1 AS a, (SELECT count(DISTINCT ifnull(get_json_object(note, '$.b.i'), get_json_object(note, '$.b.j'))) FROM {0}sale) AS c", {"c": NOTE}),
    Sources("view", "SELECT k AS a, region FROM plain_view WHERE k = 7", {"a": ID, "region": REGION}),
    Sources("lateral view 0", "SELECT 1 AS a, s.id, c.word, s.day FROM {0}sale s LATERAL VIEW explode(split(note, ',')) c AS word", {"id": ID, "word": NOTE, "day": DAY}),
    Sources("lateral view 1", "SELECT v.x, w.y FROM {0}sale LATERAL VIEW explode(split(note, ',')) v AS x LATERAL VIEW explode(split(region, ',')) w AS y", {"x": NOTE, "y": REGION}),
    Sources("lateral view 2", "SELECT v.pos, v.x FROM {0}sale LATERAL VIEW posexplode(split(note, ',')) v AS pos, x", {"pos": NOTE, "x": NOTE}),
    Sources("inputs of joins", "SELECT s.id, s.note FROM {0}sale s JOIN {0}shop h ON s.id = h.id", {"id": ID, "note": NOTE}),
    Sources("inputs of semi joins", "SELECT s.id FROM {0}sale s LEFT SEMI JOIN {0}shop h ON s.id = h.id", {"id": ID}),
]  # fmt: skip
# Cases of that suite about commands: the rest of `test_lineage_statements.py` has their truth.
KYUUBI_ELSEWHERE = {
    "AlterViewAsCommand": "CASES['alter view']", "DataSourceV2Relation": "CASES['persistent view']",
    "AppendData/OverwriteByExpression": "test_partitions_are_overwritten", "CreateViewCommand": "CASES['persistent view']",
    "CreateDataSourceTableAsSelectCommand": "CASES['v1 ctas']", "CreateTableAsSelect": "CASES['ctas']",
    "CreateHiveTableAsSelectCommand": "test_lineage_hive.py", "OptimizedCreateHiveTableAsSelectCommand": "test_lineage_hive.py",
    "InsertIntoHiveDirCommand": "test_lineage_hive.py", "InsertIntoHiveTable": "test_lineage_hive.py",
    "InsertIntoDataSourceCommand": "by its class, as AppendData", "InsertIntoHadoopFsRelationCommand": "CASES['v1 insert']",
    "InsertIntoDatasourceDirCommand": "CASES['directory']", "not generate lineage sql": "CASES['create']: a process without edges",
    "catch table": "test_cached_rows_of_cached_rows", "cache table with window function": "test_cached_rows_of_cached_rows",
    "FROM xxx INSERT xxx": "test_several_inserts_are_several_processes", "create view from view": "test_views_of_views",
    "skip parsing permanent view": "views are always looked through, and named by each process that read through them",
    "directory to table": "CASES['from directory']: they have no sources for files, here the file is one",
}  # fmt: skip


def test_kinds_of_openlineage(lake: Lake, tables: str) -> None:
    found = asked(lake, [case.sql.replace("{0}", tables) for case in KINDS])
    assert {case.name: edges for case, edges in zip(KINDS, found, strict=True) if edges != case.ours} == {}
    assert len(KINDS) == 21
    assert [case.name for case in KINDS if (case.theirs not in (None, case.ours)) != bool(case.why)] == []


@pytest.mark.parametrize("suite", ["ICEBERG", "KYUUBI"])
def test_sources_of_others(lake: Lake, tables: str, suite: str) -> None:
    cases = {"ICEBERG": ICEBERG, "KYUUBI": KYUUBI}[suite]
    found = asked(lake, [case.sql.replace("{0}", tables) for case in cases])
    wrong = {}
    for case, edges in zip(cases, found, strict=True):
        sources = {column: {each.split()[0] for each in each_of} for column, each_of in edges.items()}
        if "*" not in case.ours:
            sources.pop("*", None)
        if sources != case.ours:
            wrong[case.name] = sources
    assert wrong == {}
    assert [case.name for case in cases if (case.theirs not in (None, case.ours)) != bool(case.why)] == []


def test_cached_rows_of_cached_rows(lake: Lake, tables: str, table: Callable[[str], str]) -> None:
    first = lake.spark.table(f"{tables}sale").cache()
    first.count()
    second = first.selectExpr(
        "id AS c", "day AS d", "row_number() OVER (PARTITION BY region ORDER BY day) AS r"
    ).cache()
    second.count()
    second.selectExpr("c AS e", "d AS f", "r").where("r = 1").write.saveAsTable(table("kept"))
    found = {
        (edge.target.column, edge.source.column)
        for edge in lake.lineage(table("kept"), kinds="direct,window").found
    }
    assert found == {("e", "id"), ("f", "day"), ("r", "region"), ("r", "day")}


def test_files_are_read_and_written(lake: Lake, tables: str, tmp_path: object) -> None:
    lake.spark.range(3).write.parquet(f"{tmp_path}/one")
    rows = lake.spark.read.parquet(f"{tmp_path}/one").join(lake.spark.table(f"{tables}shop"), "id")
    rows.selectExpr("id", "id * 2 AS twice").write.parquet(f"{tmp_path}/two")
    found = {
        (edge.target.column, edge.source.qualified) for edge in lake.lineage(f"file:{tmp_path}/two").found
    }
    assert found == {("id", f"file:{tmp_path}/one#id"), ("twice", f"file:{tmp_path}/one#id")}


def test_merge_takes_from_both_tables(lake: Lake, tables: str, table: Callable[[str], str]) -> None:
    """They name the target's own column too, because rows that stay are copied; here those have no edge."""
    for name, option in (("marked", ""), ("keyed", "TBLPROPERTIES ('primary-key' = 'id')")):
        lake.sql(f"CREATE TABLE {table(name)} (id INT, region STRING, opened INT) {option}")
        lake.sql(
            f"MERGE INTO {table(name)} t USING {tables}shop s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        found = {
            (edge.target.column, edge.source.table.rpartition(".")[2], edge.source.column)
            for edge in lake.lineage(table(name)).found
        }
        assert found == {("id", "shop", "id"), ("region", "shop", "region"), ("opened", "shop", "opened")}


def test_partitions_are_overwritten(lake: Lake, tables: str, table: Callable[[str], str]) -> None:
    """A partition that is named by a literal comes from nothing."""
    for name, sql, wanted in (
        (
            "dynamic",
            "INSERT OVERWRITE {0} PARTITION (p) SELECT id, region AS p FROM {1}shop",
            {("v", "id"), ("p", "region")},
        ),
        ("static", "INSERT OVERWRITE {0} PARTITION (p = 'x') SELECT id FROM {1}shop", {("v", "id")}),
    ):
        lake.sql(f"CREATE TABLE {table(name)} (v INT, p STRING) PARTITIONED BY (p)")
        lake.sql(sql.format(table(name), tables))
        assert {
            (edge.target.column, edge.source.column) for edge in lake.lineage(table(name)).found
        } == wanted


def test_views_of_views(lake: Lake, tables: str, table: Callable[[str], str]) -> None:
    lake.sql(
        "CREATE OR REPLACE TEMPORARY VIEW view_of_view AS SELECT k AS a, region FROM plain_view WHERE k IN (7)"
    )
    lake.sql(f"CREATE TABLE {table('of')} AS SELECT a, region FROM view_of_view")
    assert {(edge.target.column, edge.source.column) for edge in lake.lineage(table("of")).found} == {
        ("a", "id"),
        ("region", "region"),
    }
