"""Random histories of a table of any engine, format and kind of buckets, and a plain model of its rows.

A history writes by Python, or by Python and Spark in turn, and compares what every reader sees with the model
after each commit. At the end it reads every snapshot again, and replays the changelog if there is one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate import procedures
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.scan.read import FileReader
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.store import Table

Row = tuple[Any, ...]
NAMES = ("p", "k", "a", "b", "s")
SPARK_COLUMNS = "p INT, k INT, a BIGINT, b STRING, s INT"
SCHEMA = pa.schema(
    [("p", pa.int32()), ("k", pa.int32()), ("a", pa.int64()), ("b", pa.string()), ("s", pa.int32())]
)
KEYS = 40
PARTITIONS = 3
ENGINES: dict[str, dict[str, str]] = {
    "append": {},
    "deduplicate": {},
    "ordered": {"sequence.field": "s"},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.a.aggregate-function": "sum",
        "fields.b.aggregate-function": "max",
    },
    "first-row": {"merge-engine": "first-row"},
}
_PRODUCERS = {
    "append": ("none",),
    "deduplicate": ("none", "input", "lookup", "full-compaction"),
    "first-row": ("none", "lookup"),
}
_LATE = ("none", "lookup", "full-compaction")


def drawn_options(engine: str, pick: random.Random) -> dict[str, str]:
    """Draw the options of a table of an engine."""
    options = {
        **ENGINES[engine],
        "file.format": pick.choice(["orc", "parquet"]),
        "target-file-size": pick.choice(["128 mb", "1 kb"]),
    }
    producer = pick.choice(_PRODUCERS.get(engine, _LATE))
    if engine == "append":
        options["bucket"] = pick.choice(["-1", "2"])
        options |= {"bucket-key": "k"} if options["bucket"] == "2" else {}
        options["deletion-vectors.enabled"] = "true"
        options["deletion-vectors.bitmap64"] = pick.choice(["true", "false"])
        return options
    options |= {"bucket": pick.choice(["1", "3", "-1"]), "dynamic-bucket.target-row-num": "7"}
    if pick.random() < 0.3:
        options["file.format.per.level"] = pick.choice(["0:orc,5:parquet", "0:parquet,5:orc"])
    options |= {} if producer == "none" else {"changelog-producer": producer}
    if engine != "first-row" and producer != "full-compaction" and pick.random() < 0.4:
        options["deletion-vectors.enabled"] = "true"
        options["deletion-vectors.bitmap64"] = pick.choice(["true", "false"])
        options["num-levels"] = pick.choice(["6", "2"])
    return options


class History:
    """One table `name` of a catalog and its model; with `spark` each step is done by one of both."""

    def __init__(
        self, catalog: Catalog, name: str, engine: str, seed: int, spark: SparkSession | None = None
    ) -> None:
        self.pick = random.Random(f"{engine} {seed}")
        self.engine, self.spark, self.name = engine, spark, name
        self.options = drawn_options(engine, self.pick)
        self.producer = self.options.get("changelog-producer", "none")
        parts = self.pick.choice([(), ("p",)])
        keys = () if engine == "append" else ("p", "k")
        schema = Schema.from_arrow(SCHEMA, primary_keys=keys, partition_keys=parts, options=self.options)
        catalog.create_table(name, schema)
        self._catalog = catalog
        self.rows: dict[Any, Row] = {}
        self.states: dict[int, Counter[Row]] = {0: Counter()}
        self._next = 0
        self.log = [f"engine {engine}, seed {seed}, partitions {parts}, {self.options}"]

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return self._catalog.load_table(self.name)

    def run(self, steps: int) -> None:
        """Do so many steps, and check all."""
        for _ in range(steps):
            self.step()
            self.check()
        self.compact("full")
        self.check()
        self.check_history()

    def step(self) -> None:
        """Do one random thing."""
        steps = [self.write, self.write, self.write, self.compact]
        if self.engine in ("append", "deduplicate"):
            steps += [self.delete, self.overwrite]
        if self.spark is not None and self.engine in ("append", "deduplicate"):
            steps += [self.update, self.merge]
        self.pick.choice(steps)()

    def _note(self, what: str) -> None:
        self.log.append(what)

    @property
    def _by_spark(self) -> bool:
        return self.spark is not None and self.pick.random() < 0.6

    @property
    def _sql_name(self) -> str:
        return f"lake.{self.name}"

    # --- what is done -----------------------------------------------------------------------------

    def _drawn(self) -> list[Row]:
        pick, found = self.pick, []
        for _ in range(pick.randrange(1, 25)):
            k = pick.randrange(KEYS)
            self._next += 1
            a = None if pick.random() < 0.3 else pick.randrange(-9, 10)
            b = None if pick.random() < 0.3 else f"v{self._next:04d}" + "x" * pick.choice([0, 300])
            found.append((k % PARTITIONS, k, a, b, pick.randrange(100)))
        return found

    def write(self) -> None:
        """Append or upsert rows."""
        rows = self._drawn()
        for row in rows:
            self._take(row)
        by_spark = self._by_spark
        self._note(f"write {rows} by {'Spark' if by_spark else 'Python'}")
        if by_spark:
            self._frame(rows).writeTo(self._sql_name).append()
        else:
            self.table.append(arrow(rows))

    def _frame(self, rows: list[Row]) -> Any:
        assert self.spark is not None
        return self.spark.createDataFrame(rows, SPARK_COLUMNS).coalesce(1)

    def _take(self, row: Row) -> None:
        if self.engine == "append":
            self.rows[len(self.rows), self._next, len(self.log)] = row
            return
        old = self.rows.get(row[1])
        self.rows[row[1]] = row if old is None else merge(self.engine, old, row)

    def _forget(self, low: int, high: int) -> None:
        self.rows = {key: row for key, row in self.rows.items() if not low <= row[1] <= high}

    def delete(self) -> None:
        """Delete rows of some keys."""
        low = self.pick.randrange(KEYS)
        high = low + self.pick.randrange(8)
        by_spark = self._by_spark
        self._note(f"delete {low} to {high} by {'Spark' if by_spark else 'Python'}")
        self._forget(low, high)
        if by_spark:
            self._sql(f"DELETE FROM {self._sql_name} WHERE k BETWEEN {low} AND {high}")
        else:
            self.table.delete((col("k") >= low) & (col("k") <= high))

    def update(self) -> None:
        """Change rows of some keys by a statement."""
        low = self.pick.randrange(KEYS)
        self._note(f"update from {low}")
        self._sql(f"UPDATE {self._sql_name} SET a = coalesce(a, 0) + 1, b = 'u' WHERE k >= {low}")
        for key, row in self.rows.items():
            if row[1] >= low:
                self.rows[key] = (*row[:2], (row[2] or 0) + 1, "u", row[4])

    def merge(self) -> None:
        """Delete, update and insert by one statement."""
        low = self.pick.randrange(KEYS)
        self._note(f"merge from {low}")
        self._sql(
            f"MERGE INTO {self._sql_name} t USING (SELECT CAST(id AS INT) k FROM range({low}, {low} + 6)) s "
            "ON t.k = s.k WHEN MATCHED AND s.k % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET b = 'm' "
            f"WHEN NOT MATCHED THEN INSERT (p, k, a, b, s) VALUES (s.k % {PARTITIONS}, s.k, 1, 'n', 0)"
        )
        there = {row[1] for row in self.rows.values()}
        for key, row in list(self.rows.items()):
            if low <= row[1] < low + 6:
                if row[1] % 2:
                    self.rows[key] = (*row[:3], "m", row[4])
                else:
                    del self.rows[key]
        for k in range(low, low + 6):
            if k not in there:
                self._take((k % PARTITIONS, k, 1, "n", 0))
                self._next += 1

    def overwrite(self) -> None:
        """Replace all rows."""
        rows = self._drawn()
        self._note(f"overwrite by {rows}")
        self.rows = {}
        for row in rows:
            self._next += 1
            self._take(row)
        self.table.overwrite(arrow(rows))

    def compact(self, strategy: str | None = None) -> None:
        """Compact the table; no row changes."""
        chosen = strategy or self.pick.choice(["full", "minor"])
        self._note(f"compact {chosen}")
        call = procedures.ProcedureContext(self._catalog)
        procedures.call(call, "compact", table=self.name, compact_strategy=chosen)

    def _sql(self, statement: str) -> None:
        assert self.spark is not None
        self.spark.sql(statement)

    # --- what is checked --------------------------------------------------------------------------

    def check(self) -> None:
        """Compare the rows with the model; of first-row tables only what compactions have seen counts."""
        if self.engine == "first-row" and not self.log[-1].startswith("compact full"):
            return
        expected = Counter(self.rows.values())
        found = counted(self.table.read())
        assert found == expected, self._story(found, expected)
        latest = self.table.latest_snapshot()
        self.states[0 if latest is None else latest.id] = expected
        if self.spark is not None:
            frame = self.spark.table(self._sql_name)
            seen = Counter(tuple(row) for row in frame.collect())
            assert seen == expected, self._story(seen, expected)
            assert frame.count() == sum(expected.values()), self._story(seen, expected)

    def check_history(self) -> None:
        """Read every checked snapshot again, and replay the changelog."""
        for number, expected in self.states.items():
            if number:
                found = counted(self.table.read(snapshot_id=number))
                assert found == expected, f"snapshot {number}: {self._story(found, expected)}"
        overwritten = any(line.startswith("overwrite") for line in self.log)
        if self.producer in ("lookup", "full-compaction") and not overwritten:
            replayed, expected = Counter(self._replayed().values()), Counter(self.rows.values())
            assert replayed == expected, self._story(replayed, expected)

    def _replayed(self) -> dict[int, Row]:
        table, rows = self.table, dict[int, Row]()
        for snapshot in table.snapshots():
            for meta in table.manifests.changelog_manifests(snapshot):
                for each in table.manifests.read_manifest(meta):
                    path = table.paths.data_file(each.partition, each.bucket, each.file)
                    values = dict(zip(table.schema.partition_keys, each.partition, strict=True))
                    names = ("_VALUE_KIND", *NAMES)
                    read = FileReader(table, table.schema, strict=True).whole(path, each.file, names, values)
                    for kind, *row in zip(*(read[name].to_pylist() for name in names), strict=True):
                        if kind in (0, 2):
                            rows[row[1]] = tuple(row)
                        else:
                            assert rows.pop(row[1]) == tuple(row), self._story(row, None)
        return rows

    def _story(self, found: object, expected: object) -> str:
        return "\n".join([*self.log, f"found    {found}", f"expected {expected}"])


def merge(engine: str, old: Row, new: Row) -> Row:
    """Return what two rows of a key become."""
    if engine == "first-row":
        return old
    if engine == "ordered":
        return new if new[4] >= old[4] else old
    if engine == "partial-update":
        return tuple(was if now is None else now for was, now in zip(old, new, strict=True))
    if engine == "aggregation":
        given = [value for value in (old[2], new[2]) if value is not None]
        texts = [value for value in (old[3], new[3]) if value is not None]
        return (*new[:2], sum(given) if given else None, max(texts, default=None), new[4])
    return new


def arrow(rows: list[Row]) -> pa.Table:
    """Return rows as an Arrow table."""
    return pa.table(
        [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SCHEMA)], schema=SCHEMA
    )


def counted(rows: pa.Table) -> Counter[Row]:
    """Return the rows of a table with their numbers."""
    named: Mapping[str, list[Any]] = rows.select(NAMES).to_pydict()
    return Counter(zip(*named.values(), strict=True))
