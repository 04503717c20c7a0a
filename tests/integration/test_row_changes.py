"""DELETE, UPDATE and MERGE on key tables whose files overlap, against a model of the rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.merge.merge import RowKind
from lockgate.framework.store.scan import table_scan
from lockgate.framework.store.scan.scan import ScanPlan, plan_scan
from lockgate.pushdown import AlwaysTrue, Predicate, col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]
Row = dict[str, Any]
Test = Callable[[Row], bool | None]


def loaded(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


# --- the shortest cases ----------------------------------------------------------------------------

STALE = {
    "update": "UPDATE {t} SET n = n + 1000 WHERE st = 'A'",
    "update with a subquery": "UPDATE {t} SET n = n + 1000 WHERE st IN (SELECT st FROM {t} WHERE id = 0)",
    "merge": "MERGE INTO {t} t USING (SELECT id FROM range(0, 30)) s ON t.id = s.id AND t.st = 'A' "
    "WHEN MATCHED THEN UPDATE SET n = t.n + 1000",
    "delete with a subquery": "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE st = 'A')",
}


@pytest.mark.parametrize(
    ("statement", "sequence"),
    [*((statement, "") for statement in STALE), ("update", ", 'sequence.field' = 'q'")],
)
def test_changed_and_deleted_rows_stay_so(
    lake: Lake, spark: SparkSession, table: Named, statement: str, sequence: str
) -> None:
    """The newest version, or the deletion, lies in a small file that holds no key of those that match."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, st STRING, n INT, q INT) "
        f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '3'{sequence})"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, 'A', CAST(id AS INT), 1 FROM range(0, 30, 1, 1)")
    store = loaded(lake, name)
    store.append(
        pa.table({"id": [27], "st": ["B"], "n": pa.array([270], pa.int32()), "q": pa.array([1], pa.int32())})
    )
    store.delete(pa.table({"id": [24]}))
    spark.sql(STALE[statement].format(t=name))
    found = {row["id"]: (row["st"], row["n"]) for row in loaded(lake, name).read().to_pylist()}
    untouched = {27: ("B", 270)}
    changed = (
        {} if "delete" in statement else {at: ("A", at + 1000) for at in range(30) if at not in (24, 27)}
    )
    assert found == changed | untouched


@pytest.mark.parametrize("statement", ["DELETE", "MERGE"])
def test_deletions_hold_what_they_take_away(
    lake: Lake, spark: SparkSession, table: Named, statement: str
) -> None:
    """The whole row, of MERGE the columns that cannot be null, so that other engines can merge it."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3) NOT NULL, v VARCHAR(5), at STRUCT<x: INT, y: CHAR(2)>, "
        "list ARRAY<INT> NOT NULL, names MAP<STRING, INT>, amount DECIMAL(20, 2) NOT NULL, note STRING) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT id, 'c', 'v', named_struct('x', 1, 'y', 'y'), array(1), map('k', 2), "
        "1.5, 'note' FROM VALUES 1, 2 AS t(id)"
    )
    before = loaded(lake, name).read(predicate=col("id") == 1).to_pylist()[0]
    if statement == "DELETE":
        spark.sql(f"DELETE FROM {name} WHERE c = 'c' AND v = 'v' AND id = 1")
    else:
        spark.sql(f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    store = loaded(lake, name)
    paths = [path for split in store.scan().splits for path in split.paths]
    rows = []
    for path in paths:
        with EncryptedOrcFile((store.file_system, path)) as file:
            rows += [row for row in file.read().to_pylist() if row["_VALUE_KIND"] == RowKind.DELETE]
    (row,) = rows
    if statement == "MERGE":
        before |= dict.fromkeys(("v", "at", "names", "note"))
    assert {key: row[key] for key in before} == before
    assert store.read(columns=["id"])["id"].to_pylist() == [2]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """The plans of scans that were left something out of at run time."""
    found: list[ScanPlan] = []

    def noting(*args: Any, late: Predicate | None = None, **options: Any) -> ScanPlan:
        plan = plan_scan(*args, late=late, **options)
        if late not in (None, AlwaysTrue()):
            found.append(plan)
        return plan

    monkeypatch.setattr(table_scan, "plan_scan", noting)
    return found


@pytest.mark.parametrize(("partitioned", "files"), [(False, 2), (True, 5)])
def test_changes_leave_files_out_as_a_whole(
    lake: Lake, spark: SparkSession, table: Named, planned: list[ScanPlan], partitioned: bool, files: int
) -> None:
    """Partitions, and files that share no keys with others."""
    name = table("t")
    layout = (
        "PARTITIONED BY (p) TBLPROPERTIES ('primary-key' = 'p,id', 'bucket' = '1')"
        if partitioned
        else "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2')"
    )
    spark.sql(f"CREATE TABLE {name} (p INT, id BIGINT, st STRING) {layout}")
    store = loaded(lake, name)
    for part in range(5):
        for repeat in range(5 if partitioned else 1):
            ids = [at + (0 if partitioned else 100 * part) for at in range(20)]
            parts, kinds = (
                pa.array([part] * 20, pa.int32()),
                ["A" if part == 2 and (partitioned is False or repeat == 4) else "B"] * 20,
            )
            store.append(pa.table({"p": parts, "id": ids, "st": kinds}))
    if not partitioned:  # makes it unlike what the condition alone leaves
        store.append(pa.table({"p": pa.array([0], pa.int32()), "id": [350], "st": ["A"]}))
        store.delete(pa.table({"id": [350]}))
    spark.sql(f"UPDATE {name} SET st = 'changed' WHERE st < 'B'")
    (plan,) = planned
    assert sum(len(split.files) for split in plan.splits) == files
    assert loaded(lake, name).read(predicate=col("st") == "changed").num_rows == 20


# --- random statements -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """A condition in SQL, of columns that `{t}` stands before, and what it is of a row; None: unknown."""

    sql: str
    test: Test
    of_partitions: bool = False

    def of(self, row: Row) -> bool:
        """Say whether a row meets it."""
        return self.test(row) is True


def both(one: Condition, other: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        answers = (one.test(row), other.test(row))
        return False if False in answers else None if None in answers else True

    return Condition(f"({one.sql} AND {other.sql})", test, one.of_partitions and other.of_partitions)


def either(one: Condition, other: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        answers = (one.test(row), other.test(row))
        return True if True in answers else None if None in answers else False

    return Condition(f"({one.sql} OR {other.sql})", test, one.of_partitions and other.of_partitions)


def inverted(one: Condition) -> Condition:
    def test(row: Row) -> bool | None:
        answer = one.test(row)
        return None if answer is None else not answer

    return Condition(f"NOT ({one.sql})", test)


class Model:
    """The newest version of each key: where it stands by `sequence.field`, and its row, None if deleted."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.versions: dict[tuple[Any, ...], tuple[int, Row | None]] = {}

    @property
    def rows(self) -> list[Row]:
        """The rows of the table."""
        return [row for _, row in self.versions.values() if row is not None]

    def write(self, row: Row, *, deletes: bool = False) -> None:
        """Take in a version of a key, unless a newer one is there."""
        age, key = self.order * row["q"], (row["p"], row["id"])
        if key not in self.versions or age >= self.versions[key][0]:
            self.versions[key] = (age, None if deletes else dict(row))

    def drop(self, partitions: Condition) -> None:
        """Forget partitions whole, with the deletions in them."""
        self.versions = {
            (part, *key): version
            for (part, *key), version in self.versions.items()
            if not partitions.of({"p": part})
        }

    def compact(self) -> None:
        """Forget deletions."""
        self.versions = {key: version for key, version in self.versions.items() if version[1] is not None}


SCHEMA = pa.schema(
    [
        ("p", pa.string()),
        ("id", pa.int64()),
        ("st", pa.string()),
        ("n", pa.int32()),
        pa.field("q", pa.int32(), nullable=False),
    ]
)
SEQUENCES = {"": 0, "ascending": 1, "descending": -1}


class Changes:
    """A table and its model, changed by the same statements."""

    def __init__(
        self, lake: Lake, name: str, *, buckets: int, sequence: str = "", partitioned: bool = False, seed: int
    ) -> None:
        self.lake, self.name, self.pick = lake, name, random.Random(seed)
        self.sequence, self.partitioned = sequence, partitioned
        self.model = Model(SEQUENCES[sequence])
        self.made = f"seed {seed}, {buckets} buckets, sequence {sequence!r}, partitioned: {partitioned}"
        options = {"primary-key": "p,id", "bucket": str(buckets), "target-file-size": "2 kb"}
        if sequence:
            options |= {"sequence.field": "q", "sequence.field.sort-order": sequence}
        texts = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        lake.sql(
            f"CREATE TABLE {name} (p STRING, id BIGINT, st STRING, n INT, q INT NOT NULL) "
            f"{'PARTITIONED BY (p)' if partitioned else ''} TBLPROPERTIES ({texts})"
        )
        self.store = loaded(lake, name)
        self.append(range(60))

    # --- small and large files, without Spark ------------------------------------------------------

    def row(self, number: int) -> Row:
        return {
            "p": self.pick.choice("uv"),
            "id": number,
            "st": self.pick.choice(["A", "B", None]),
            "n": self.pick.choice([None, *range(10)]),
            "q": self.pick.randrange(5),
        }

    def append(self, ids: Sequence[int]) -> None:
        rows = [self.row(number) for number in ids]
        self.store.append(pa.Table.from_pylist(rows, SCHEMA))
        for row in rows:
            self.model.write(row)

    def prepare(self) -> None:
        """Lay small files over large ones."""
        for _ in range(self.pick.randrange(1, 4)):
            choice = self.pick.random()
            first = self.pick.randrange(60)
            if choice < 0.6:
                self.append(range(first, first + self.pick.choice([1, 1, 2, 20])))
            elif choice < 0.9 and self.model.rows:
                gone = self.pick.sample(self.model.rows, 1)
                self.store.delete(pa.Table.from_pylist(gone, SCHEMA).select(["p", "id", "q"]))
                for row in gone:
                    self.model.write(row, deletes=True)
            elif self.pick.random() < 0.4:
                self.lake.call("compact", table=self.name.removeprefix("lake."))
                self.model.compact()

    # --- conditions --------------------------------------------------------------------------------

    def source(self) -> list[Row]:
        """Show rows to Spark as the view `changes`, one of a key."""
        ids = self.pick.sample(range(70), self.pick.choice([1, 3, 30]))
        rows = [self.row(number) for number in ids]
        values = ", ".join(
            f"('{row['p']}', {row['id']}, {_literal(row['st'])}, {_literal(row['n'])}, {row['q']})"
            for row in rows
        )
        self.lake.sql(
            "CREATE OR REPLACE TEMP VIEW changes AS SELECT p, CAST(id AS BIGINT) id, CAST(st AS STRING) st, "
            f"CAST(n AS INT) n, q FROM VALUES {values} AS t(p, id, st, n, q)"
        )
        return rows

    def atom(self, source: Sequence[Row]) -> Condition:
        number, text, limit = self.pick.randrange(60), self.pick.choice("AB"), self.pick.randrange(10)
        part = self.pick.choice("uv")
        named = {row["id"] for row in source if row["st"] == text}
        keys = {(row["p"], row["id"]) for row in source}
        rows = self.model.rows
        largest = max((row["id"] for row in rows if row["st"] == text), default=None)
        return self.pick.choice(
            [
                Condition(f"{{t}}id % 3 = {number % 3}", lambda row: row["id"] % 3 == number % 3),
                Condition(f"{{t}}id < {number}", lambda row: row["id"] < number),
                Condition(
                    f"{{t}}id IN ({number}, {number + 1})", lambda row: row["id"] in (number, number + 1)
                ),
                Condition(
                    f"{{t}}st = '{text}'", lambda row: None if row["st"] is None else row["st"] == text
                ),
                Condition(
                    f"{{t}}st = '{text}'", lambda row: None if row["st"] is None else row["st"] == text
                ),
                Condition("{t}st IS NULL", lambda row: row["st"] is None),
                Condition(f"{{t}}n > {limit}", lambda row: None if row["n"] is None else row["n"] > limit),
                Condition(f"{{t}}p = '{part}'", lambda row: row["p"] == part, self.partitioned),
                Condition(
                    f"{{t}}id IN (SELECT id FROM changes WHERE st = '{text}')", lambda row: row["id"] in named
                ),
                Condition(
                    f"{{t}}id = (SELECT max(id) FROM {self.name} WHERE st = '{text}')",
                    lambda row: None if largest is None else row["id"] == largest,
                ),
                Condition(
                    "EXISTS (SELECT 1 FROM changes c WHERE c.id = {t}id AND c.p = {t}p)",
                    lambda row: (row["p"], row["id"]) in keys,
                ),
            ]
        )

    def condition(self, source: Sequence[Row], *, queries: bool = True) -> Condition:
        atoms = [self.atom(source) for _ in range(2)]
        while not queries and any("SELECT" in atom.sql for atom in atoms):
            atoms = [self.atom(source) for _ in range(2)]
        one, other = atoms
        return self.pick.choice([one, one, both(one, other), both(one, other), either(one, other)])

    # --- statements --------------------------------------------------------------------------------

    def step(self) -> None:
        """Run a statement and compare all rows."""
        self.prepare()
        statement = self.pick.choice([self.delete, self.update, self.update, self.merge, self.merge])()
        found = sorted(map(repr, loaded(self.lake, self.name).read().to_pylist()))
        assert found == sorted(map(repr, self.model.rows)), f"{self.made}: {statement}"

    def delete(self) -> str:
        condition = self.condition(self.source())
        gone = [row for row in self.model.rows if condition.of(row)]
        statement = f"DELETE FROM {self.name} t WHERE {condition.sql.format(t='t.')}"
        self.lake.sql(statement)
        if condition.of_partitions:
            self.model.drop(condition)
        for row in () if condition.of_partitions else gone:
            self.model.write(row, deletes=True)
        return statement

    def update(self) -> str:
        condition = self.condition(self.source())
        changed = [row for row in self.model.rows if condition.of(row)]
        later = self.pick.choice([0, 0, 1])
        statement = (
            f"UPDATE {self.name} t SET n = 7, st = concat(st, '+'), q = q + {later} "
            f"WHERE {condition.sql.format(t='t.')}"
        )
        self.lake.sql(statement)
        for row in changed:
            text = None if row["st"] is None else row["st"] + "+"
            self.model.write({**row, "n": 7, "st": text, "q": row["q"] + later})
        return statement

    def merge(self) -> str:
        source = self.source()
        by_key = {(row["p"], row["id"]): row for row in source}
        on = "t.p = s.p AND t.id = s.id"
        extra = self.condition(source, queries=False) if self.pick.random() < 0.4 else None
        if extra is not None:
            on += f" AND {extra.sql.format(t='t.')}"
        actions: list[str] = []
        writes: list[tuple[Row, bool]] = []
        first = self.pick.choice(["UPDATE SET n = s.n, q = s.q", "DELETE"])
        when = self.condition(source, queries=False) if self.pick.random() < 0.5 else None
        condition = f" AND {when.sql.format(t='t.')}" if when else ""
        actions.append(f"WHEN MATCHED{condition} THEN {first}")
        pairs = [
            (row, by_key[row["p"], row["id"]])
            for row in self.model.rows
            if (row["p"], row["id"]) in by_key and (extra is None or extra.of(row))
        ]
        if when is not None and self.pick.random() < 0.5:
            actions.append("WHEN MATCHED THEN UPDATE SET st = 'second'")
        for row, new in pairs:
            if when is None or when.of(row):
                deletes = first == "DELETE"
                writes.append((row if deletes else {**row, "n": new["n"], "q": new["q"]}, deletes))
            elif len(actions) == 2:
                writes.append(({**row, "st": "second"}, False))
        # With a condition of the target, a row may be both unmatched and a key that is there.
        if self.pick.random() < 0.5:
            matched = {(row["p"], row["id"]) for row, _ in pairs}
            actions.append("WHEN NOT MATCHED AND s.n IS NOT NULL THEN INSERT *")
            writes += [
                (row, False) for key, row in by_key.items() if key not in matched and row["n"] is not None
            ]
        elif extra is None:
            lost = self.condition(source, queries=False)
            does = self.pick.choice(["DELETE", "UPDATE SET st = 'lost'"])
            actions.append(f"WHEN NOT MATCHED BY SOURCE AND {lost.sql.format(t='t.')} THEN {does}")
            for row in self.model.rows:
                if (row["p"], row["id"]) not in by_key and lost.of(row):
                    writes.append((row, True) if does == "DELETE" else ({**row, "st": "lost"}, False))
        statement = f"MERGE INTO {self.name} t USING changes s ON {on} {' '.join(actions)}"
        self.lake.sql(statement)
        for row, deletes in writes:
            self.model.write(row, deletes=deletes)
        return statement


def _literal(value: object) -> str:
    return "NULL" if value is None else repr(value)


LAYOUTS: list[dict[str, Any]] = [
    {"buckets": buckets, "sequence": sequence, "partitioned": partitioned}
    for sequence in SEQUENCES
    for buckets, partitioned in ((1, False), (2, True), (3, False), (4, True), (4, False))
]


@pytest.mark.parametrize("layout", [LAYOUTS[2], LAYOUTS[6]], ids=["plain", "sequence"])
def test_random_changes(lake: Lake, table: Named, layout: dict[str, Any]) -> None:
    changes = Changes(lake, table("t"), **layout, seed=20261122)
    for _ in range(6):
        changes.step()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_many_random_changes(lake: Lake, table: Named, layout: dict[str, Any], seed: int) -> None:
    changes = Changes(lake, table("t"), **layout, seed=seed)
    for _ in range(15):
        changes.step()
