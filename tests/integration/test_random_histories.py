"""Random tables, changes and queries in SQL mean what they mean on a plain view of Spark's own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("interpreted")

PROPERTIES = {
    "append": "",
    "encrypted": "TBLPROPERTIES ('orc.encrypt' = 'pii:i,s,at.zip')",
    "key": "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2')",
    "encrypted key": "TBLPROPERTIES ('primary-key' = 'id,p', 'bucket' = '2', 'orc.encrypt' = 'pii:x,t,at')",
}
KINDS = {
    "id": "INT",
    "i": "INT",
    "x": "FLOAT",
    "s": "STRING",
    "t": "TIMESTAMP",
    "c": "DECIMAL(8, 2)",
    "at": "STRUCT<zip: INT, town: STRING>",
    "p": "STRING",
}
WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(8, 2)": "DECIMAL(12, 2)"}


class History:
    """A table and a view of the same rows, changed by the same statements as far as Spark's view can be."""

    def __init__(self, spark: SparkSession, name: str, layout: str, seed: int) -> None:
        self.spark, self.name, self.keyed = spark, name, "key" in layout
        self.pick = random.Random(seed)
        self.kinds = dict(KINDS)
        self.view = f"plain_{abs(hash((layout, seed)))}"
        self.next = 0
        columns = ", ".join(f"{column} {kind}" for column, kind in KINDS.items())
        spark.sql(f"CREATE TABLE {name} ({columns}) PARTITIONED BY (p) {PROPERTIES[layout]}")
        self._show(spark.createDataFrame([], columns))

    def _show(self, rows: DataFrame) -> None:
        held = self.spark.createDataFrame(rows.collect(), rows.schema)
        held.createOrReplaceTempView(self.view)

    # --- changes -------------------------------------------------------------------------------

    def change(self) -> None:
        self.pick.choice([self.insert, self.insert, self.delete, self.update, self.evolve])()

    def insert(self) -> None:
        start, count = self.next, self.pick.randrange(5, 30)
        if self.keyed and self.pick.random() < 0.5:
            start = max(0, start - self.pick.randrange(1, 20))
        self.next = max(self.next, start + count)
        made = {
            "id": "CAST(id AS INT)",
            "i": "IF(id % 11 = 0, NULL, CAST(id % 10 AS INT))",
            "x": "CASE WHEN id % 17 = 0 THEN float('NaN') WHEN id % 9 <> 0 THEN float(id % 12 - 5) / 2 END",
            "s": "IF(id % 7 = 0, NULL, concat('v', id % 12))",
            "t": "timestampadd(DAY, CAST(id % 28 AS INT), TIMESTAMP'2024-01-01 03:00:00')",
            "c": "CAST(id % 13 - 2 AS DECIMAL(8, 2)) + 0.25BD",
            "at": "IF(id % 8 = 0, NULL, named_struct('zip', int(id % 6), 'town', concat('t', id % 4)))",
            "p": f"'{self.pick.choice('abc')}'",
        }
        values = [
            f"CAST({made.get(column, 'CAST(id % 5 AS INT)')} AS {kind}) AS {column}"
            for column, kind in self.kinds.items()
        ]
        new = f"SELECT {', '.join(values)} FROM range({start}, {start + count}, 1, 1)"
        rows = self.spark.table(self.view)
        self.spark.sql(f"INSERT INTO {self.name} {new}")
        added = self.spark.sql(new)
        if self.keyed:
            rows = rows.join(added.select("id", "p"), ["id", "p"], "left_anti").select(*self.kinds)
        self._show(rows.union(added))

    def delete(self) -> None:
        condition = self.condition()
        self.spark.sql(f"DELETE FROM {self.name} WHERE {condition}")
        self._show(self.spark.sql(f"SELECT * FROM {self.view} WHERE ({condition}) IS NOT TRUE"))

    def update(self) -> None:
        condition, column = self.condition(), self.pick.choice(["s", "t"])
        if column not in self.kinds:
            return
        value = "'changed'" if column == "s" else "NULL"
        self.spark.sql(f"UPDATE {self.name} SET {column} = {value} WHERE {condition}")
        columns = [
            f"IF({condition}, CAST({value} AS {kind}), {each}) AS {each}" if each == column else each
            for each, kind in self.kinds.items()
        ]
        self._show(self.spark.sql(f"SELECT {', '.join(columns)} FROM {self.view}"))

    def evolve(self) -> None:
        column = self.pick.choice([name for name in self.kinds if name not in ("id", "p", "at")])
        kind = self.kinds[column]
        rows = self.spark.table(self.view)
        if kind in WIDER and self.pick.random() < 0.5:
            self.spark.sql(f"ALTER TABLE {self.name} ALTER COLUMN {column} TYPE {WIDER[kind]}")
            self.kinds[column] = WIDER[kind]
            rows = rows.withColumn(column, rows[column].cast(WIDER[kind]))
        elif self.pick.random() < 0.5:
            fresh = f"n{len(self.kinds)}_{self.next}"
            if fresh in self.kinds:
                return
            self.spark.sql(f"ALTER TABLE {self.name} ADD COLUMN {fresh} INT")
            self.kinds[fresh] = "INT"
            rows = rows.selectExpr("*", f"CAST(NULL AS INT) AS {fresh}")
        else:
            fresh = f"{column}_"
            self.spark.sql(f"ALTER TABLE {self.name} RENAME COLUMN {column} TO {fresh}")
            self.kinds = {fresh if name == column else name: kind for name, kind in self.kinds.items()}
            rows = rows.withColumnRenamed(column, fresh)
        self._show(rows)

    # --- queries -------------------------------------------------------------------------------

    def atom(self) -> str:
        column, kind = self.pick.choice(list(self.kinds.items()))
        number = self.pick.randrange(-3, 13)
        if column == "at":
            column = self.pick.choice(["at.zip", "at.town"])
            kind = "INT" if column == "at.zip" else "STRING"
        if kind == "STRING":
            literal = (
                f"'{self.pick.choice('abcz')}'" if column == "p" else f"'{self.pick.choice('vt')}{number}'"
            )
        elif kind == "TIMESTAMP":
            literal = f"TIMESTAMP'2024-01-{self.pick.randrange(1, 29):02d} 03:00:00'"
        else:
            literal = self.pick.choice([str(number), f"{number}.5D", f"{number}.25"])
        shapes = [
            f"{column} {self.pick.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {literal}",
            f"{literal} > {column}",
            f"{column} IN ({literal}, {literal}, NULL)",
            f"{column} IS NULL",
            f"{column} IS NOT NULL",
        ]
        if kind == "STRING":
            shapes += [f"{column} LIKE 'v1%'", f"{column} LIKE '%2'", f"upper({column}) = 'V3'"]
        if kind in ("INT", "BIGINT"):
            shapes += [f"{column} % 4 = 1"]
        return self.pick.choice(shapes)

    def condition(self, depth: int = 0) -> str:
        if depth == 2 or self.pick.random() < 0.35:
            return self.atom()
        left, right = self.condition(depth + 1), self.condition(depth + 1)
        return self.pick.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])

    def query(self) -> str:
        """A query of the table `{}`, whose rows are the same in whatever order they are read."""
        where = self.pick.choice(["", f"WHERE {self.condition()}", f"WHERE {self.condition()}"])
        columns = self.pick.sample(list(self.kinds), self.pick.randrange(1, 4))
        plain = [name for name in self.kinds if name != "at"]
        first = self.pick.choice(plain)
        order = f"{first} {self.pick.choice(['', 'DESC', 'NULLS LAST'])}, id, p"
        return self.pick.choice(
            [
                f"SELECT {', '.join(columns)} FROM {{}} {where}",
                f"SELECT at.zip, count(*) FROM {{}} {where} GROUP BY 1",
                f"SELECT count(*), count({first}), min({first}), max({first}) FROM {{}} {where}",
                f"SELECT p, count(*), max({first}) FROM {{}} WHERE p <> 'b' GROUP BY p",
                f"SELECT id, p, {first} FROM {{}} {where} ORDER BY {order} LIMIT {self.pick.randrange(1, 9)}",
                f"SELECT count(*) FROM (SELECT id FROM {{}} {where} LIMIT {self.pick.randrange(1, 20)})",
            ]
        )

    def check(self, queries: int) -> None:
        for query in ["SELECT * FROM {}", *(self.query() for _ in range(queries))]:
            found = sorted(repr(tuple(row)) for row in self.spark.sql(query.format(self.name)).collect())
            wanted = sorted(repr(tuple(row)) for row in self.spark.sql(query.format(self.view)).collect())
            assert found == wanted, query


def run(spark: SparkSession, name: str, layout: str, seed: int, changes: int, queries: int) -> None:
    history = History(spark, name, layout, seed)
    try:
        history.insert()
        for _ in range(changes):
            history.change()
        history.check(queries)
    finally:
        spark.catalog.dropTempView(history.view)


@pytest.mark.parametrize("layout", ["append", pytest.param("encrypted key", marks=pytest.mark.long)])
def test_queries_after_changes(spark: SparkSession, table: Named, layout: str) -> None:
    run(spark, table("t"), layout, 20240229, changes=5, queries=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("layout", PROPERTIES)
def test_many_queries_after_many_changes(spark: SparkSession, table: Named, layout: str, seed: int) -> None:
    run(spark, table("t"), layout, seed, changes=12, queries=40)
