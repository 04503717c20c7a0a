"""Random histories of a dimension; lookups must equal a join with VERSION AS OF their snapshot."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fuzz.expressions import Expressions
from fuzz.kinds import KINDS, Column
from fuzz.outcome import bag, differ

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake

VALUES = ("INT", "DOUBLE", "STRING", "DECIMAL(18,4)", "DATE", "TIMESTAMP", "BOOLEAN", "BINARY", "ARRAY<INT>")
KEYS = ("BIGINT", "STRING", "DECIMAL(5,2)", "DATE", "DOUBLE", "BOOLEAN")
# How the cache is kept and asked, and who joins.
FORMS = (
    {"lookup.cache": "memory", "lookup.strategy": "lookup"},
    {"lookup.cache": "memory", "lookup.strategy": "lookup", "lookup.in-jvm": "false"},
    {"lookup.cache": "full", "lookup.strategy": "lookup"},
    {"lookup.strategy": "spark"},
)
SNAPSHOT = "answered_from"
IDS = 30


@dataclass
class LookupReport:
    """What one history led to."""

    seed: int
    comparisons: int = 0
    differences: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


class Dimension:
    """A table that changes at random, and the batches that are joined with it."""

    def __init__(self, lake: Lake, name: str, folder: Path, seed: int, report: LookupReport) -> None:
        self.lake, self.name, self.folder, self.report = lake, name, folder, report
        self.spark: SparkSession = lake.spark
        self.pick = random.Random(seed)
        self.keyed = self.pick.random() < 0.7
        self.columns = [Column("k", KINDS["BIGINT" if self.keyed else self.pick.choice(KEYS)])]
        chosen = self.pick.sample(VALUES, 3)
        self.columns += [Column(f"v{index}", KINDS[sql]) for index, sql in enumerate(chosen)]
        self.form = dict(self.pick.choice(FORMS))
        self._create()

    def _create(self) -> None:
        columns = ", ".join(column.ddl for column in self.columns)
        options = {"primary-key": "k", "bucket": self.pick.choice("123")} if self.keyed else {}
        if self.form.get("lookup.cache") != "memory" and self.pick.random() < 0.4:
            options["orc.encrypt"] = "pii:v0"
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        self.run(f"CREATE TABLE {self.name} ({columns})" + (f" TBLPROPERTIES ({listed})" if listed else ""))

    def run(self, text: str) -> None:
        """Run a statement and note it."""
        self.report.log.append(text)
        self.spark.sql(text).collect()

    # --- changes ---------------------------------------------------------------------------------

    def change(self) -> None:
        """One random change."""
        ways: dict[Callable[[], None], float] = {
            self.insert: 6,
            self.update: 3,
            self.delete: 2,
            self.add_column: 0.7,
            self.compact: 1,
            self.roll_back: 1,
            self.overwrite: 0.5,
        }
        self.pick.choices(list(ways), list(ways.values()))[0]()

    def _rows(self) -> str:
        makers = Expressions(self.pick, [])
        lines = []
        for row in self.pick.sample(range(IDS), self.pick.choice([1, 3, 8, 20])):
            key = f"{row}L" if self.keyed else makers.literal(self.columns[0].kind, 0.1)
            values = [makers.literal(column.kind, 0.2) for column in self.columns[1:]]
            lines.append(f"({', '.join([key, *values])})")
        return f"VALUES {', '.join(lines)}"

    def insert(self) -> None:
        self.run(f"INSERT INTO {self.name} {self._rows()}")

    def overwrite(self) -> None:
        self.run(f"INSERT OVERWRITE {self.name} {self._rows()}")

    def _condition(self) -> str:
        if self.keyed and self.pick.random() < 0.6:
            return f"k % {self.pick.choice([2, 3, 5])} = {self.pick.randrange(2)}"
        return Expressions(self.pick, self.columns).predicate(2)

    def update(self) -> None:
        column = self.pick.choice(self.columns[1:])
        value = Expressions(self.pick, self.columns).literal(column.kind, 0.2)
        self.run(f"UPDATE {self.name} SET {column.name} = {value} WHERE {self._condition()}")

    def delete(self) -> None:
        self.run(f"DELETE FROM {self.name} WHERE {self._condition()}")

    def add_column(self) -> None:
        name = f"v{len(self.columns)}"
        column = Column(name, KINDS[self.pick.choice(VALUES)])
        self.run(f"ALTER TABLE {self.name} ADD COLUMN {column.ddl}")
        self.columns.append(column)

    def compact(self) -> None:
        self.run(f"CALL lake.sys.compact(table => '{self._plain_name}')")

    def roll_back(self) -> None:
        snapshots = self.lake.catalog.load_table(self._plain_name).snapshots()
        if len(snapshots) > 2:
            number = self.pick.choice(snapshots[-4:-1]).id
            self.run(f"CALL lake.sys.rollback(table => '{self._plain_name}', snapshot => {number})")

    @property
    def _plain_name(self) -> str:
        return self.name.removeprefix("lake.")

    # --- batches ---------------------------------------------------------------------------------

    def batch(self) -> DataFrame:
        """Random keys, some of them null, some that the dimension does not have."""
        makers = Expressions(self.pick, [])
        kind = self.columns[0].kind
        lines = []
        for row in range(self.pick.choice([1, 5, 40])):
            key = f"{self.pick.randrange(IDS + 5)}L" if self.keyed else makers.literal(kind)
            lines.append(f"({row}, {'CAST(NULL AS ' + kind.sql + ')' if self.pick.random() < 0.1 else key})")
        return self.spark.sql(f"SELECT * FROM VALUES {', '.join(lines)} AS v (row, k)")

    def join(self, rows: DataFrame) -> DataFrame:
        """The lookup join in this history's form."""
        return self.lake.lookup_join(  # type: ignore[attr-defined]  # a method that a plugin adds
            rows,
            self.name,
            on="k",
            how=self.how,
            snapshot_column=SNAPSHOT,
            options={**self.options, **self.form},
        )

    def check(self, rows: DataFrame, found: pa.Table, what: str) -> None:
        """Compare what a lookup answered with a join with the state it says it answered from."""
        self.report.comparisons += 1
        snapshots = {value for value in found.column(SNAPSHOT).to_pylist() if value is not None}
        if len(snapshots) > 1:
            raise LookupDifferenceError(f"{what}: one batch answered from snapshots {sorted(snapshots)}")
        if not snapshots:
            return
        number = snapshots.pop()
        dimension = self._state(number)
        names = [name for name in found.column_names if name != SNAPSHOT]
        wanted = rows.join(dimension, "k", self.how).select(*names).toArrow()
        difference = differ(bag(wanted), bag(found.select(names)))
        if difference:
            form = f"{self.form}, {self.how}"
            raise LookupDifferenceError(f"{what} at snapshot {number} ({form}): {difference}")
        self._check_not_behind(number, what)

    def _state(self, number: int) -> DataFrame:
        """A snapshot with all columns: those that were added after it hold nulls, also for lookups."""
        state = self.spark.sql(f"SELECT * FROM {self.name} VERSION AS OF {number}")
        later = [column for column in self.columns if column.name not in state.columns]
        return state.selectExpr("*", *(f"CAST(NULL AS {each.kind.sql}) AS {each.name}" for each in later))

    def _check_not_behind(self, number: int, what: str) -> None:
        newest = self.lake.catalog.load_table(self._plain_name).latest_snapshot()
        if newest is None or number > newest.id:
            raise LookupDifferenceError(f"{what}: there is no snapshot {number} that it says it read")

    def batch_query(self) -> None:
        """A batch DataFrame."""
        rows = self.batch()
        self.check(rows, self.join(rows).toArrow(), "batch")

    def stream_query(self, each_batch: bool) -> None:
        """A stream of one file, joined in its plan or in foreachBatch."""
        source = self.folder / f"in_{uuid.uuid4().hex}"
        done: list[pa.Table] = []
        rows = self.batch()
        rows.coalesce(1).write.parquet(str(source))
        stream = self.spark.readStream.schema(rows.schema).parquet(str(source))
        joined = stream if each_batch else self.join(stream)

        def sink(batch: DataFrame, _: int) -> None:
            done.append((self.join(batch) if each_batch else batch).toArrow())

        writer = joined.writeStream.option("checkpointLocation", f"{source}-checkpoint").foreachBatch(sink)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        for answered in done:
            self.check(rows, answered, "foreachBatch" if each_batch else "stream")

    def ask(self) -> None:
        """One of the ways to ask, by a left or an inner join."""
        self.how = self.pick.choice(["left", "inner"])
        ways = [self.batch_query, self.batch_query, lambda: self.stream_query(True)]
        if self.form["lookup.strategy"] == "lookup":
            ways.append(lambda: self.stream_query(False))
        self.pick.choice(ways)()

    @property
    def options(self) -> dict[str, str]:
        """A cache of the history's own that sees each commit at once, as far as lookups can."""
        return {
            "lookup.cache-dir": str(self.folder / "cache"),
            "lookup.refresh.interval": "100 ms",
            "lookup.refresh.async": "false",
        }


class LookupDifferenceError(Exception):
    """Raised when a lookup does not answer what its snapshot holds."""


def fuzz_lookups(lake: Lake, folder: Path, seed: int, steps: int) -> LookupReport:
    """Run one history with a batch after most changes."""
    from lockgate import lookup

    report = LookupReport(seed)
    database = f"lookups_{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(database)
    try:
        dimension = Dimension(lake, f"lake.{database}.d", folder / database, seed, report)
        dimension.insert()
        for _ in range(steps):
            dimension.change()
            if dimension.pick.random() < 0.7:
                dimension.ask()
    except LookupDifferenceError as difference:
        report.differences.append(str(difference))
    finally:
        lookup.close_all()
        lake.catalog.drop_namespace(database, cascade=True)
    return report
