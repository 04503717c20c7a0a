"""Random DELETE, UPDATE, MERGE and INSERT on tables of every layout, against a model in memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from lockgate import Lake
    from lockgate.framework.store import Table


Named = Callable[[str], str]


Row = dict[str, Any]


Test = Callable[[Row], bool | None]


def loaded(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.removeprefix("lake."))


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
