"""The statements and DataFrames of `governed_holes`: what each user gets of them."""

from __future__ import annotations

from typing import Any

from governed_holes import DENIED, Expected, Hole
from spark_version import SPARK


def _same(text: str, expected: Expected, **more: Any) -> Hole:
    return Hole(text, expected, expected, **more)


OURS = ("append", "key")
ZERO = "DIVIDE_BY_ZERO"
IDS = ([1, 3], [2, 4])
ONE_KIND = ("append",)

QUERIES = [
    Hole(
        "SELECT id, name, n, dept FROM {t}",
        [(1, "xx-1111", 7, "ann"), (3, "xx-3333", 9, "ann")],
        [(2, "xx-2222", 0, "bob"), (4, "xx-4444", 8, "bob")],
    ),
    _same("SELECT id FROM {t} WHERE name LIKE 'z%'", []),
    _same("SELECT id FROM {t} WHERE startswith(name, 'z') OR name < 'x'", []),
    Hole("SELECT id FROM {t} WHERE name = 'xx-1111'", [1], []),
    Hole("SELECT id FROM {t} WHERE id = 2", [], [2]),
    Hole("SELECT name FROM {t} WHERE id IN (1, 2)", ["xx-1111"], ["xx-2222"]),
    _same("SELECT count(*) FROM {t}", [2]),
    _same("SELECT count(*) FROM (SELECT * FROM {t})", [2]),
    Hole("SELECT min(n), max(n), max(name) FROM {t}", [(7, 9, "xx-3333")], [(0, 8, "xx-4444")]),
    Hole("SELECT max_by(name, n), any_value(dept) FROM {t}", [("xx-3333", "ann")], [("xx-4444", "bob")]),
    Hole("SELECT id FROM {t} ORDER BY n DESC LIMIT 1", [3], [4]),
    Hole("SELECT id FROM {t} ORDER BY id OFFSET 1", [3], [4]),
    Hole("SELECT id FROM {t} WHERE 8 / n > 0", IDS[0], ZERO),
    Hole("SELECT id FROM {t} WHERE IF(dept = 'bob', raise_error('seen'), true)", IDS[0], "seen"),
    Hole("SELECT sum(1 / (id - 1)) FROM {t}", ZERO, [1.3333333333333333]),
    Hole("SELECT a.id FROM {t} a JOIN range(9) r ON a.id = r.id AND 8 / a.n > 0", IDS[0], ZERO),
    _same("SELECT id FROM {t} WHERE CAST(name AS INT) = 1", "CAST_INVALID_INPUT"),
    Hole("SELECT id FROM {t} WHERE n > (SELECT avg(n) FROM {t})", [3], [4]),
    Hole("SELECT r.id FROM range(5) r WHERE EXISTS (SELECT 1 FROM {t} p WHERE p.id = r.id)", *IDS),
    Hole("SELECT r.id FROM range(5) r WHERE r.id IN (SELECT id FROM {t})", *IDS),
    Hole("SELECT r.id FROM range(1, 5) r WHERE r.id NOT IN (SELECT id FROM {t})", *IDS[::-1]),
    Hole("SELECT (SELECT max(n) FROM {t})", [9], [8]),
    Hole("SELECT l.n FROM range(5) r, LATERAL (SELECT n FROM {t} p WHERE p.id = r.id) l", [7, 9], [0, 8]),
    Hole("WITH c AS (SELECT * FROM {t}) SELECT a.id FROM c a JOIN c b ON a.id = b.id", *IDS),
    Hole("SELECT a.id FROM {t} a JOIN {t} b ON a.name = b.name", *IDS),
    Hole("SELECT r.id FROM range(1, 5) r FULL JOIN {t} p ON p.id = r.id WHERE p.id IS NULL", *IDS[::-1]),
    Hole("SELECT id FROM {t} UNION SELECT id FROM {t}", *IDS),
    Hole("SELECT id FROM range(1, 5) EXCEPT SELECT id FROM {t}", *IDS[::-1]),
    Hole("SELECT id, lag(n) OVER (ORDER BY id) FROM {t}", [(1, None), (3, 7)], [(2, None), (4, 0)]),
    Hole("SELECT dept, sum(n) FROM {t} GROUP BY dept", [("ann", 16)], [("bob", 8)]),
    Hole(
        "SELECT dept, count(*) FROM {t} GROUP BY ROLLUP (dept)",
        [("ann", 2), (None, 2)],
        [("bob", 2), (None, 2)],
    ),
    Hole(
        "SELECT * FROM (SELECT dept, n FROM {t}) PIVOT (count(n) FOR dept IN ('ann', 'bob'))",
        [(2, None)],
        [(None, 2)],
    ),
    Hole("SELECT v FROM {t} UNPIVOT (v FOR c IN (name, dept)) WHERE v LIKE 'x%1'", ["xx-1111"], []),
    Hole("SELECT e FROM {t} LATERAL VIEW explode(array(n)) l AS e", [7, 9], [0, 8]),
    Hole("SELECT id FROM {t} TABLESAMPLE (100 PERCENT)", *IDS),
    Hole("FROM {t} |> WHERE n > 7 |> SELECT id", [3], [4]),
    Hole(
        "WITH RECURSIVE r AS (SELECT id, n FROM {t} UNION ALL SELECT r.id + 100, p.n FROM r JOIN {t} p"
        " ON p.id = r.id) SELECT id, n FROM r",
        [(1, 7), (3, 9), (101, 7), (103, 9)],
        [(2, 0), (4, 8), (102, 0), (104, 8)],
    ),
    _same("SELECT id FROM {t} WHERE name COLLATE UTF8_LCASE LIKE 'ZQ%'", []),
    Hole("SELECT id, id + 1 AS more, more + n AS most FROM {t} WHERE n > 7", [(3, 4, 13)], [(4, 5, 13)]),
    Hole("EXECUTE IMMEDIATE 'SELECT id FROM {t}'", *IDS),
    Hole(
        "SELECT * EXCEPT (pay, name) FROM {t}", [(1, 7, "ann"), (3, 9, "ann")], [(2, 0, "bob"), (4, 8, "bob")]
    ),
    Hole("FROM {t} |> SET pay = 1 |> SELECT id, pay", [(1, 1), (3, 1)], [(2, 1), (4, 1)]),
    Hole("SELECT id FROM {t} WITH (`lockgate.grant`='x', `lockgate.rights`='y')", *IDS),
    _same("SELECT pay FROM {t} WHERE false", []),
    Hole("SELECT typeof(pay), id FROM {t}", [("int", 1), ("int", 3)], [("int", 2), ("int", 4)]),
    Hole("BEGIN SELECT id FROM {t}; END", *IDS),
    Hole("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM {t} ;; SELECT id FROM v", *IDS),
    Hole("CACHE TABLE kept AS SELECT id, name FROM {t} ;; SELECT name FROM kept ;; DROP VIEW kept", ..., ...),
    Hole(
        "DROP TABLE IF EXISTS {mine} ;; CREATE TABLE {mine} AS SELECT id, name FROM {t} ;;"
        " SELECT name FROM {mine}",
        ["xx-1111", "xx-3333"],
        ["xx-2222", "xx-4444"],
    ),
    Hole("SELECT id FROM {t} VERSION AS OF 1", *IDS, kinds=OURS),
    Hole("SELECT id FROM {t}$ro", *IDS, kinds=("append",)),
    _same("DESCRIBE {t}", ..., kinds=OURS),
    _same("SHOW COLUMNS IN {t}", ..., kinds=OURS),
    _same("EXPLAIN EXTENDED SELECT id, name FROM {t} WHERE n = 0", ...),
    _same("EXPLAIN FORMATTED SELECT max(name) FROM {t}", ...),
    _same("EXPLAIN COST SELECT id FROM {t} WHERE name > 'a'", ...),
    _same("EXPLAIN CODEGEN SELECT id FROM {t} WHERE name > 'a'", ...),
]

REFUSED = [
    _same(text, DENIED)
    for text in (
        "SELECT * FROM {t}",
        "TABLE {t}",
        "SELECT pay FROM {t}",
        "SELECT id FROM {t} WHERE pay > 90000",
        "SELECT id FROM {t} WHERE 1 / (pay - 770100) > 0",
        "SELECT id FROM {t} WHERE pay IS NULL OR id > 0 AND pay > 1",
        "SELECT id FROM {t} ORDER BY pay",
        "SELECT count(*) FROM {t} GROUP BY pay",
        "SELECT dept FROM {t} GROUP BY dept HAVING max(pay) > 1",
        "SELECT max(pay) FROM {t}",
        "SELECT count(DISTINCT pay) FROM {t}",
        "SELECT id, row_number() OVER (ORDER BY pay) FROM {t}",
        "SELECT (SELECT max(pay) FROM {t})",
        "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE pay > 5)",
        "SELECT r.id FROM range(9) r WHERE EXISTS (SELECT 1 FROM {t} p WHERE p.pay > r.id)",
        "SELECT l.pay FROM range(5) r, LATERAL (SELECT pay FROM {t} p WHERE p.id = r.id) l",
        "SELECT a.id FROM {t} a JOIN {t} b USING (pay)",
        "SELECT a.id FROM {t} a NATURAL JOIN {t} b",
        "SELECT to_json(struct(*)) FROM {t}",
        "SELECT hash(*) FROM {t}",
        "SELECT CASE WHEN pay > 5 THEN 1 END FROM {t}",
        "SELECT v FROM (SELECT pay, n FROM {t}) UNPIVOT (v FOR c IN (pay, n))",
        "SELECT e FROM {t} LATERAL VIEW explode(array(pay)) l AS e",
        "FROM {t} |> WHERE pay > 1 |> SELECT id",
        "EXECUTE IMMEDIATE 'SELECT max(pay) FROM {t}'",
        "EXECUTE IMMEDIATE 'SELECT count(*) FROM {t} WHERE pay > ?' USING 5",
        "WITH RECURSIVE r AS (SELECT id, pay FROM {t} UNION ALL SELECT id + 9, pay FROM r WHERE id < 9)"
        " SELECT max(pay) FROM r",
        "SELECT /*+ REPARTITION(pay) */ id FROM {t}",
        "SELECT transform(array(pay), x -> x) FROM {t}",
        "SELECT count(*) FILTER (WHERE pay > 770200) FROM {t}",
        "BEGIN DECLARE s INT; FOR r AS SELECT pay FROM {t} DO SET s = r.pay; END FOR; SELECT s; END",
        "BEGIN IF (SELECT max(pay) FROM {t}) > 5 THEN SELECT 'much'; END IF; END",
        "DROP TABLE IF EXISTS {mine} ;; CREATE TABLE {mine} (id BIGINT, n INT) ;;"
        " UPDATE {mine} SET n = (SELECT max(pay) FROM {t})",
        "DROP TABLE IF EXISTS {mine} ;; CREATE TABLE {mine} (id BIGINT, n INT) ;;"
        " DELETE FROM {mine} WHERE n IN (SELECT pay FROM {t})",
        "DROP TABLE IF EXISTS {mine} ;; CREATE TABLE {mine} (id BIGINT, n INT) ;;"
        " MERGE INTO {mine} m USING {t} s ON m.id = s.id WHEN MATCHED AND s.pay > 5 THEN DELETE",
        "BEGIN SELECT max(pay) FROM {t}; END",
        "WITH c AS (SELECT * FROM {t}) SELECT max(pay) FROM c",
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM {t} ;; SELECT max(pay) FROM v",
        "CACHE TABLE held AS SELECT * FROM {t} ;; SELECT 1",
        "DROP TABLE IF EXISTS {mine} ;; CREATE TABLE {mine} AS SELECT * FROM {t}",
        "DECLARE OR REPLACE VARIABLE x INT ;; SET VAR x = (SELECT max(pay) FROM {t}) ;; SELECT x",
        "DELETE FROM {t} WHERE pay > 1",
        "INSERT INTO {t} (id, name, n, dept, pay) SELECT 9, 'a', 9, 'ann', 9",
        "INSERT OVERWRITE {t} (id, name, n, dept, pay) SELECT 9, 'a', 9, 'ann', 9",
        "SELECT input_file_name() FROM {t}",
        "SELECT TRANSFORM (id) USING 'cat' FROM {t}",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.name') FROM {t}",
        "INSERT OVERWRITE DIRECTORY '{files}/out' USING parquet SELECT id FROM {t}",
        "SELECT * FROM parquet.`{files}`",
        "SELECT * FROM text.`{files}`",
        "CREATE OR REPLACE TEMPORARY VIEW w USING parquet OPTIONS (path '{files}')",
        "DESCRIBE EXTENDED {t} n",
        "DROP TABLE {t}",
        "TRUNCATE TABLE {t}",
        "ALTER TABLE {t} ADD COLUMN more INT",
        "ALTER TABLE {t} SET TBLPROPERTIES ('sequence.field'='pay')",
        "COMMENT ON TABLE {t} IS 'mine'",
        "CREATE OR REPLACE TEMPORARY FUNCTION f() RETURNS INT RETURN (SELECT max(pay) FROM {t}) ;;"
        " SELECT f()",
        "SELECT max(pay) FROM IDENTIFIER('{t}')",
        "DECLARE OR REPLACE VARIABLE c STRING DEFAULT 'pay' ;; SELECT IDENTIFIER(c) FROM {t}",
        "SELECT pay FROM {t} WITH (`lockgate.grant`='x', `lockgate.rights`='y')",
        "SELECT /*+ REPARTITION_BY_RANGE(3, pay) */ id FROM {t}",
        "SELECT id FROM {t} GROUP BY ALL HAVING max(pay) > 5",
        "SELECT listagg(name, ',') WITHIN GROUP (ORDER BY pay) FROM {t}",
        "SELECT count(pay) FROM {t}",
        "SELECT 1 FROM {t} WHERE pay = pay",
        "SELECT aggregate(collect_list(named_struct('p', pay)), 0, (a, x) -> a + x.p) FROM {t}",
        "SELECT sum(id) FROM {t} WHERE IF(pay > 770200, raise_error(CAST(pay AS STRING)), true)",
        "SELECT e.col FROM explode((SELECT collect_list(pay) FROM {t})) e",
        "FROM {t} |> EXTEND pay * 2 AS d |> AGGREGATE max(d)",
        "FROM {t} |> ORDER BY pay |> LIMIT 1 |> SELECT id",
        "CACHE LAZY TABLE {t} ;; SELECT id FROM {t}",
    )
]

OF_LOCKGATE = [
    _same(text, DENIED, kinds=OURS)
    for text in (
        "UPDATE {t} SET n = 1 WHERE pay > 1",
        "MERGE INTO {t} USING (SELECT id AS k FROM range(9)) r ON r.k = pay WHEN MATCHED THEN DELETE",
        "ALTER TABLE {t} DROP COLUMN pay",
        "ALTER TABLE {t} RENAME COLUMN pay TO open",
        "SELECT _FILE_PATH FROM {t}",
        "SELECT * FROM {t}$files",
        "SELECT * FROM {t}$audit_log",
        "SELECT * FROM {t}$partitions",
        "SELECT max(pay) FROM {t} VERSION AS OF 1",
        "SELECT max(pay) FROM {t}$ro",
    )
] + [
    _same("CALL lake.sys.compact('{name}')", "denied", kinds=OURS),
    Hole(
        "SELECT o.id, d.name FROM range(1, 5) AS o LEFT JOIN {t} /*+ OPTIONS('lookup.strategy'='spark') */"
        " FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id",
        [(1, "xx-1111"), (2, None), (3, "xx-3333"), (4, None)],
        [(1, None), (2, "xx-2222"), (3, None), (4, "xx-4444")],
        kinds=OURS,
    ),
    _same(  # a cache can not hold this mask
        "SELECT d.name FROM range(1, 5) AS o LEFT JOIN {t} /*+ OPTIONS('lookup.strategy'='lookup') */"
        " FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id",
        "a mask that Python can apply",
        kinds=OURS,
    ),
    _same(
        "SELECT d.pay FROM range(1, 5) AS o LEFT JOIN {t} /*+ OPTIONS('lookup.strategy'='lookup') */"
        " FOR SYSTEM_TIME AS OF PROCTIME() AS d ON o.id = d.id",
        "denied",
        kinds=OURS,
    ),
]  # fmt: skip

TRAVELS = [
    _same(
        "SELECT id FROM lake.holes.append TIMESTAMP AS OF (SELECT CAST(max(pay) AS TIMESTAMP) FROM {t})",
        DENIED,
        kinds=("append", "key", "files"),
    )
]

# Of the session, whatever the table.
SETTINGS = [
    _same(text, "may not change", kinds=ONE_KIND)
    for text in (
        "SET spark.lockgate.user = root",
        "SET spark.sql.extensions = x",
        "SET spark.sql.catalog.thief = io.lockgate.spark.LockgateCatalog",
        "SET spark.sql.optimizer.excludedRules = x",
        "RESET",
    )
] + [
    _same("ADD JAR '{files}/x.jar'", DENIED, kinds=ONE_KIND),
    _same("CREATE FUNCTION f AS 'x.Y' USING JAR '{files}/x.jar'", DENIED, kinds=ONE_KIND),
]  # fmt: skip

FRAMES = [
    Hole("t.select('id')", *IDS, frame=True),
    Hole("t.drop('pay').select('name')", ["xx-1111", "xx-3333"], ["xx-2222", "xx-4444"], frame=True),
    Hole("t.filter(F.col('n') > 7).select('id')", [3], [4], frame=True),
    Hole("t.filter(8 / F.col('n') > 0).select('id')", IDS[0], ZERO, frame=True),
    Hole("t.groupBy('dept').count()", [("ann", 2)], [("bob", 2)], frame=True),
    Hole("t.agg(F.max('name'))", ["xx-3333"], ["xx-4444"], frame=True),
    Hole("[t.count()]", [2], [2], frame=True),
    Hole("t.select('id').orderBy('id').tail(1)", [3], [4], frame=True),
    Hole("t.orderBy('id').select('id').head(1)", [1], [2], frame=True),
    Hole("list(t.select('id').toLocalIterator())", *IDS, frame=True),
    Hole("t.select('id').toArrow()['id'].to_pylist()", *IDS, frame=True),
    Hole("t.select('id').cache()", *IDS, frame=True),
    Hole("t.select('id').sample(1.0)", *IDS, frame=True),
    Hole("t.alias('a').join(t.alias('b'), F.expr('a.name = b.name')).select('a.id')", *IDS, frame=True),
    Hole("t.select('id').observe('o', F.max('id').alias('m'))", *IDS, frame=True),
    _same("t.observe('o', F.max('pay').alias('m')).select('id')", DENIED, frame=True),
    _same("t.lateralJoin(t.alias('b').select('pay'))", DENIED, frame=True),
    Hole("t.select('id').union(t.select('id')).distinct()", *IDS, frame=True),
    Hole("spark.range(1, 5).exceptAll(t.select('id'))", *IDS[::-1], frame=True),
    Hole("t.select('id', 'n').unpivot('id', 'n', 'k', 'v').select('v')", [7, 9], [0, 8], frame=True),
    Hole("t.select('n').summary('min', 'max').select('n')", ["7", "9"], ["0", "8"], frame=True),
    Hole("[t.approxQuantile('n', [0.0, 1.0], 0.0)]", [(7.0, 9.0)], [(0.0, 8.0)], frame=True),
    Hole("t.crosstab('dept', 'n').select('dept_n')", ["ann"], ["bob"], frame=True),
    Hole("t.select('id').repartition(2).sortWithinPartitions('id')", *IDS, frame=True),
    Hole("t.select('id').withColumn('k', F.monotonically_increasing_id()).select('id')", *IDS, frame=True),
    Hole(
        "t.select(F.udf(lambda s: s, 'string', useArrow=False)('name'))",
        ["xx-1111", "xx-3333"],
        ["xx-2222", "xx-4444"],
        frame=True,
    ),
    Hole("t.select('id', 'n').transpose().select('key')", ["n"], ["n"], frame=True),
    Hole("t.groupBy('dept').pivot('n').count().select('dept')", ["ann"], ["bob"], frame=True),
    _same("[t.isEmpty()]", [False], frame=True),
    _same("t.select('id', 'pay').transpose()", DENIED, frame=True),
    _same("t.groupBy('dept').pivot('pay').count()", DENIED, frame=True),
    _same("t.freqItems(['pay'])", DENIED, frame=True),
    _same("t.localCheckpoint().select('id')", DENIED, frame=True),
    _same("t", DENIED, frame=True),
    _same("[t.first()]", DENIED, frame=True),
    _same("t.toArrow()", DENIED, frame=True),
    _same("t.cache()", DENIED, frame=True),
    _same("t.describe()", DENIED, frame=True),
    _same("t.select('pay').distinct()", DENIED, frame=True),
    _same("t.filter('pay > 1').select('id')", DENIED, frame=True),
    _same("t.orderBy('pay').select('id')", DENIED, frame=True),
    _same("t.dropDuplicates(['pay']).select('id')", DENIED, frame=True),
    _same("t.dropna().select('id')", DENIED, frame=True),
    _same("[t.corr('pay', 'n')]", DENIED, frame=True),
    _same("t.select(F.udf(lambda v: v, 'int', useArrow=False)('pay'))", DENIED, frame=True),
    _same("t.select(F.input_file_name())", DENIED, frame=True),
    _same("[t.write.mode('overwrite').parquet('{files}/out')]", DENIED, frame=True),
    _same("[t.writeTo('{mine}').createOrReplace()]", DENIED, frame=True),
    _same("spark.read.parquet('{files}')", DENIED, frame=True),
    _same("spark.read.format('binaryFile').load('{files}')", DENIED, frame=True),
]

HOLES = [
    hole
    for hole in (*QUERIES, *REFUSED, *OF_LOCKGATE, *TRAVELS, *SETTINGS, *FRAMES)
    # Spark 4.0 has the grammar, and fails where it plans them.
    if SPARK >= (4, 1) or "RECURSIVE" not in hole.text
]
