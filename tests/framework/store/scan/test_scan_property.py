"""A pushed-down query returns what a full scan and then a filter would, whatever happened to the table."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.pushdown import (
    PATTERNS,
    TEXT,
    AlwaysTrue,
    And,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
    col,
    describe,
    evaluate,
)

NAN, INF = math.nan, math.inf
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int32(), [-7, 0, 1, 2, 3, 4, 5, 2**31 - 1]),
    "part": (pa.string(), ["a", "b", "c d/é", ""]),
    "day": (pa.date32(), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "i": (pa.int64(), [None, -(2**63), -1, 0, 111, 112, 2**62]),
    "f": (pa.float32(), [None, -INF, -0.0, 0.0, 0.5, 111.25, INF, NAN]),
    "d": (pa.float64(), [None, -1e300, -0.0, 0.0, 111.321, NAN]),
    "c": (pa.decimal128(6, 3), [None, Decimal("-0.001"), Decimal("0.000"), Decimal("111.321")]),
    "s": (pa.string(), [None, "", "a", "ab", "x" * 15 + "é", "x" * 16 + "yy", "x" * 15 + "￿" * 3]),
    "b": (pa.bool_(), [None, False, True]),
    "t": (
        pa.timestamp("us"),
        [None, dt.datetime(1960, 1, 1, 0, 0, 0, 500007), dt.datetime(2024, 1, 1, 0, 0, 0, 7)],
    ),
    "z": (pa.timestamp("us", "UTC"), [None, dt.datetime(2024, 1, 1, 0, 0, 0, 7, tzinfo=dt.UTC)]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
NUMBERS = [
    pa.scalar(value)
    for value in [0, 111, 2**62, -1.0, -0.0, 111.321, 0.5, NAN, INF, Decimal("111.321"), Decimal("110.5")]
]
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, buckets": {"options": {"bucket": "3", "bucket-key": "i,s"}},
    "append, partitions": {"partition_keys": ["part", "day"]},
    "key": {"primary_keys": ["id"], "options": {"bucket": "1"}},
    "key, partitions": {
        "primary_keys": ["part", "id"],
        "partition_keys": ["part"],
        "options": {"bucket": "2", "metadata.stats-mode": "full"},
    },
    "composite key": {
        "primary_keys": ["id", "day", "part"],
        "options": {"bucket": "2", "bucket-key": "id", "fields.s.stats-mode": "counts"},
    },
}

numbers = itertools.count()


def literals(name: str) -> st.SearchStrategy[pa.Scalar]:
    kind, values = COLUMNS[name]
    own = [pa.scalar(value, kind) for value in values]
    return st.sampled_from([*own, *NUMBERS] if name in ("id", "i", "f", "d", "c") else own)


@st.composite
def comparisons(draw: Callable[..., Any]) -> Comparison:
    name = draw(st.sampled_from(["id", "id", "part", *COLUMNS]))
    text = TEXT | PATTERNS
    ops = list(Op) if COLUMNS[name][0] == pa.string() else [op for op in Op if op not in text]
    op = draw(st.sampled_from([Op.EQ, *ops]))
    count = 0 if op in (Op.IS_NULL, Op.IS_NOT_NULL) else draw(st.integers(0, 3)) if op is Op.IN else 1
    return Comparison(op, (name,), tuple(draw(literals(name)) for _ in range(count)))


predicates = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda items: And(tuple(items))),
        st.lists(inner, min_size=1, max_size=3).map(lambda items: Or(tuple(items))),
        inner.map(Not),
    ),
    max_leaves=4,
)
rows = st.lists(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, (_, values) in COLUMNS.items()}),
    min_size=1,
    max_size=6,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("delete"), rows),
        st.tuples(st.just("compact"), st.just([])),
    ),
    min_size=1,
    max_size=4,
)


class Model:
    """The rows a table should have."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self._rows: list[dict[str, Any]] = []

    def append(self, new: list[dict[str, Any]]) -> None:
        if self._keys:
            self.delete(new)
            new = list({self._key(row): row for row in new}.values())
        self._rows += new

    def delete(self, gone: list[dict[str, Any]]) -> None:
        keys = {self._key(row) for row in gone}
        self._rows = [row for row in self._rows if self._key(row) not in keys]

    def _key(self, row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._keys)

    def matching(self, predicate: Predicate) -> Counter[str]:
        table = pa.Table.from_pylist(self._rows, SCHEMA)
        kept = [
            index
            for index in range(table.num_rows)
            if evaluate(predicate, {(name,): table[name][index] for name in table.column_names})
        ]
        return counted(table.take(pa.array(kept, pa.int64())))


def counted(table: pa.Table) -> Counter[str]:
    return Counter(repr([value for _, value in sorted(row.items())]) for row in table.to_pylist())


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog(str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=examples(15), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pushed_result_is_that_of_a_full_scan(
    catalog: Catalog, compact: Callable[[Table], None], layout: str, data: st.DataObject
) -> None:
    keys = LAYOUTS[layout].get("primary_keys", [])
    table = catalog.create_table(f"db.t{next(numbers)}", Schema.from_arrow(SCHEMA, **LAYOUTS[layout]))
    model = Model(keys)
    for what, new in data.draw(steps):
        if what == "append":
            table.append(pa.Table.from_pylist(new, SCHEMA))
            model.append(new)
        elif keys and what == "delete":
            table.delete(pa.Table.from_pylist(new, SCHEMA).select(keys))
            model.delete(new)
        elif keys and what == "compact":
            compact(table)
    assert counted(table.read()) == model.matching(AlwaysTrue())
    for predicate in data.draw(st.lists(predicates, min_size=3, max_size=6)):
        plan = table.scan(predicate)
        expected = model.matching(predicate)
        found = table.read(plan)
        assert counted(found) == expected, describe(predicate)
        assert plan.report.render()
        narrow = table.read(predicate=predicate, columns=["s", "id"])
        assert narrow.column_names == ["s", "id"]
        assert narrow.num_rows == found.num_rows
        batches = list(table.read_batches(table.scan(predicate, limit=2)))
        assert sum(batch.num_rows for batch in batches) == min(2, expected.total())


SQL = [
    "id = 3",
    "id IN (1, 2) AND part = 'a'",
    "f > 0.25 OR s IS NULL",
    "NOT (d <= 111.0)",
    "f = 'NaN'::FLOAT",
    "d = 0.0",
    "day > DATE '1970-01-01' AND i BETWEEN 0 AND 111",
    "c >= 0.000 AND b",
    "s >= 'x' OR part <> 'b'",
]


@pytest.mark.parametrize("layout", ["append", "key, partitions"])
def test_duckdb_agrees(catalog: Catalog, layout: str) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **LAYOUTS[layout]))
    cells = {name: itertools.cycle(values) for name, (_, values) in COLUMNS.items()}
    every = [{name: next(cycle) for name, cycle in cells.items()} for _ in range(200)]
    for start in range(0, 200, 50):
        table.append(pa.Table.from_pylist(every[start : start + 50], SCHEMA))
    whole = table.read()
    day = dt.date(1970, 1, 1)
    pushed: list[Predicate] = [
        col("id") == 3,
        col("id").isin([1, 2]) & (col("part") == "a"),
        (col("f") > 0.25) | col("s").is_null(),
        ~(col("d") <= 111.0),
        col("f") == NAN,
        col("d") == 0.0,
        (col("day") > day) & (col("i") >= 0) & (col("i") <= 111),
        (col("c") >= Decimal("0.000")) & (col("b") == True),  # noqa: E712 - a predicate, not a truth
        (col("s") >= "x") | (col("part") != "b"),
    ]
    assert whole.num_rows >= 8
    with duckdb.connect() as session:
        session.register("whole", whole)
        for text, predicate in zip(SQL, pushed, strict=True):
            expected = session.sql(f"SELECT id, part, i FROM whole WHERE {text}").fetchall()
            found = table.read(predicate=predicate, columns=["id", "part", "i"])
            assert Counter(tuple(row.values()) for row in found.to_pylist()) == Counter(expected), text
