"""A pushed-down query returns what a full scan and then a filter would: tables that evolve, encrypted or not.

Predicates, LIMIT, ORDER BY with LIMIT, and COUNT, MIN and MAX, also by partition, against a model in memory.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeType, DropColumn, RenameColumn
from lockgate.framework.types import BIGINT, DOUBLE, INT, STRING, from_arrow
from lockgate.pushdown import (
    Aggregate,
    And,
    Comparison,
    Function,
    Not,
    Op,
    Or,
    Predicate,
    SortKey,
    describe,
    evaluate,
)
from lockgate.pushdown.value_order import compare, plain

Compact = Callable[[Table], None]
PLACE = pa.struct([("zip", pa.int32()), ("town", pa.string())])
POOLS: dict[pa.DataType, list[Any]] = {
    pa.int32(): [None, -5, 0, 1, 2, 3, 2**31 - 1],
    pa.int64(): [None, -(2**40), 0, 2, 3, 2**40],
    pa.float32(): [None, -0.5, -0.0, 0.0, 1.25, math.inf, math.nan],
    pa.float64(): [None, -0.0, 0.5, 1e300, math.nan],
    pa.string(): [None, "", "10", "9", "a", "x" * 20],
    pa.decimal128(6, 2): [None, Decimal("-1.50"), Decimal("0.00"), Decimal("9.99")],
    pa.date32(): [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    PLACE: [None, {"zip": None, "town": "a"}, {"zip": 1, "town": None}, {"zip": 7, "town": "b"}],
}
KEYS = {"id": [1, 2, 3, 4, 5, 6], "part": ["a", "b"]}
COLUMNS = {
    "i": pa.int32(),
    "f": pa.float32(),
    "s": pa.string(),
    "c": pa.decimal128(6, 2),
    "day": pa.date32(),
    "place": PLACE,
}
WIDER = {pa.int32(): (BIGINT, pa.int64()), pa.float32(): (DOUBLE, pa.float64())}
NEW = {pa.int32(): INT, pa.string(): STRING}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append, partitions": {"partition_keys": ["part"]},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "key, partitions": {
        "primary_keys": ["part", "id"],
        "partition_keys": ["part"],
        "options": {"bucket": "1"},
    },
}
numbers = itertools.count()


@dataclass
class Model:
    """The rows that a table should have, by the number of each column, which outlives its name and type."""

    keys: list[str]
    columns: dict[str, tuple[int, pa.DataType]]
    rows: list[dict[int, Any]] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, kind) for name, (_, kind) in self.columns.items()])

    def table(self, rows: list[dict[int, Any]] | None = None) -> pa.Table:
        chosen = self.rows if rows is None else rows
        named = [{name: row.get(number) for name, (number, _) in self.columns.items()} for row in chosen]
        return pa.Table.from_pylist(named, self.schema)

    def numbered(self, rows: list[dict[str, Any]]) -> list[dict[int, Any]]:
        return [{self.columns[name][0]: value for name, value in row.items()} for row in rows]

    def append(self, new: list[dict[str, Any]]) -> None:
        numbered = self.numbered(new)
        if self.keys:
            self.delete(new)
            numbered = list({self._key(row): row for row in numbered}.values())
        self.rows += numbered

    def delete(self, gone: list[dict[str, Any]]) -> None:
        keys = {self._key(row) for row in self.numbered(gone)}
        self.rows = [row for row in self.rows if self._key(row) not in keys]

    def _key(self, row: dict[int, Any]) -> tuple[Any, ...]:
        return tuple(row[self.columns[name][0]] for name in self.keys)

    def matching(self, predicate: Predicate | None) -> pa.Table:
        table = self.table()
        if predicate is None:
            return table
        kept = [at for at in range(table.num_rows) if evaluate(predicate, fields_of(table, at)) is True]
        return table.take(pa.array(kept, pa.int64()))


def fields_of(table: pa.Table, at: int) -> dict[tuple[str, ...], pa.Scalar]:
    """The values of a row, also those inside `place`."""
    found = {(name,): table[name][at] for name in table.column_names}
    for name in [name for name in table.column_names if table.schema.field(name).type == PLACE]:
        whole = table[name][at]
        for inner in PLACE:
            found[name, inner.name] = whole[inner.name] if whole.is_valid else pa.scalar(None, inner.type)
    return found


def counted(table: pa.Table) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in table.to_pylist())


def draw_rows(data: st.DataObject, model: Model) -> list[dict[str, Any]]:
    one = {
        name: st.sampled_from(KEYS[name] if name in KEYS else POOLS[kind])
        for name, (_, kind) in model.columns.items()
    }
    return data.draw(st.lists(st.fixed_dictionaries(one), min_size=1, max_size=5))


def evolve(data: st.DataObject, catalog: Catalog, name: str, model: Model) -> None:
    """Change one column of a table, which keeps its files as they are."""
    free = [column for column in model.columns if column not in KEYS]
    what = data.draw(st.sampled_from(["add", "drop", "rename", "widen", "take a name over"]))
    column = data.draw(st.sampled_from(free))
    number, kind = model.columns[column]
    fresh = f"n{next(numbers)}"
    if what == "add" or len(free) < 3:
        new = data.draw(st.sampled_from(sorted(NEW, key=str)))
        catalog.alter_table(name, [AddColumn((fresh,), NEW[new])])
        model.columns[fresh] = (next(numbers), new)
    elif what == "drop":
        catalog.alter_table(name, [DropColumn((column,))])
        del model.columns[column]
    elif what == "widen" and kind in WIDER:
        wide, arrow = WIDER[kind]
        catalog.alter_table(name, [ChangeType((column,), wide)])
        model.columns[column] = (number, arrow)
    else:
        changes: list[Any] = [RenameColumn((column,), fresh)]
        if what == "take a name over":  # another column then has the former name, and nothing of the values
            changes.append(AddColumn((column,), from_arrow(pa.int32())))
        catalog.alter_table(name, changes)
        model.columns = {fresh if each == column else each: value for each, value in model.columns.items()}
        if len(changes) > 1:
            model.columns[column] = (next(numbers), pa.int32())


@st.composite
def comparisons(draw: Callable[..., Any], model: Model) -> Comparison:
    name = draw(st.sampled_from(["id", "part", *model.columns]))
    path: tuple[str, ...] = (name,)
    kind = model.columns[name][1]
    pool = KEYS.get(name, POOLS[kind])
    if kind == PLACE:
        inner = draw(st.sampled_from(["zip", "town"]))
        path, kind = (name, inner), PLACE.field(inner).type
        pool = [value[inner] for value in pool if value is not None]
    ops = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ_NULL_SAFE, Op.IN, Op.IS_NULL, Op.IS_NOT_NULL]
    op = draw(st.sampled_from([*ops, Op.STARTS_WITH] if kind == pa.string() else ops))
    count = 0 if op in (Op.IS_NULL, Op.IS_NOT_NULL) else draw(st.integers(0, 3)) if op is Op.IN else 1
    return Comparison(op, path, tuple(pa.scalar(draw(st.sampled_from(pool)), kind) for _ in range(count)))


def predicates(model: Model) -> st.SearchStrategy[Predicate]:
    return st.recursive(
        comparisons(model),
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda items: And(tuple(items))),
            st.lists(inner, min_size=2, max_size=3).map(lambda items: Or(tuple(items))),
            inner.map(Not),
        ),
        max_leaves=3,
    )


def first_rows(table: pa.Table, key: SortKey, limit: int) -> list[str]:
    """The values of the sorted column in the first rows, as SQL sorts."""
    (name,) = key.field
    values = [item for item in table[name] if item.is_valid]
    values.sort(
        key=cmp_to_key(lambda left, right: compare(plain(left), plain(right))), reverse=key.descending
    )
    nulls = ["None"] * (table.num_rows - len(values))
    texts = [repr(0.0 if item.as_py() == 0 else item.as_py()) for item in values]
    return (nulls + texts if key.nulls_first else texts + nulls)[:limit]


def check_order(data: st.DataObject, table: Table, model: Model, predicate: Predicate | None) -> None:
    sortable = [name for name, (_, kind) in model.columns.items() if kind != PLACE]
    name = data.draw(st.sampled_from(sortable))
    key = SortKey((name,), data.draw(st.booleans()), data.draw(st.booleans()))
    limit = data.draw(st.integers(0, 6))
    found = table.read(table.scan(predicate, order=(key,), limit=limit))
    assert not counted(found) - counted(model.matching(predicate))
    assert first_rows(found, key, limit) == first_rows(model.matching(predicate), key, limit), key


def check_aggregates(data: st.DataObject, table: Table, model: Model, *, partitioned: bool) -> None:
    """Compare what metadata answers, where it does."""
    name = data.draw(st.sampled_from([name for name, (_, kind) in model.columns.items() if kind != PLACE]))
    asked = [Aggregate(Function.COUNT), *(Aggregate(function, (name,)) for function in Function)]
    wanted = data.draw(st.lists(st.sampled_from(asked), min_size=1, max_size=3, unique=True))
    only = Comparison(Op.EQ, ("part",), (pa.scalar("a"),))
    predicate = only if partitioned and data.draw(st.booleans()) else None
    answer = table.aggregate(wanted, predicate=predicate)
    if answer.rows is None:
        return
    rows = model.matching(predicate)
    values = [item for item in rows[name] if item.is_valid]
    values.sort(key=cmp_to_key(lambda left, right: compare(plain(left), plain(right))))
    for each in wanted:
        found = answer.rows[str(each)][0].as_py()
        if each.function is Function.COUNT:
            assert found == (rows.num_rows if each.field is None else len(values)), each
        else:
            end = values[0 if each.function is Function.MIN else -1].as_py() if values else None
            assert found == end, each


@pytest.mark.filterwarnings("ignore::lockgate.errors.PlaintextWarning")  # a new column takes over a name
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pushed_results(
    tmp_path: Path, compact: Compact, layout: str, encrypted: bool, data: st.DataObject
) -> None:
    run(tmp_path, compact, LAYOUTS[layout], encrypted, data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lockgate.errors.PlaintextWarning")  # a new column takes over a name
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_pushed_results_of_many_tables(
    tmp_path: Path, compact: Compact, layout: str, encrypted: bool, data: st.DataObject
) -> None:
    run(tmp_path, compact, LAYOUTS[layout], encrypted, data)


def run(folder: Path, compact: Compact, layout: dict[str, Any], encrypted: bool, data: st.DataObject) -> None:
    catalog = Catalog(folder, keys=MemoryKeyProvider({"pii@0": bytes(range(16))}))
    if "db" not in catalog.list_namespaces():
        catalog.create_namespace("db")
    kinds = {"id": pa.int32(), "part": pa.string(), **COLUMNS}
    model = Model(
        layout.get("primary_keys", []), {name: (next(numbers), kind) for name, kind in kinds.items()}
    )
    options = dict(layout.get("options", {}))
    if encrypted:
        chosen = data.draw(
            st.lists(st.sampled_from([*COLUMNS, "place.zip"]), min_size=1, max_size=3, unique=True)
        )
        if "place" in chosen and "place.zip" in chosen:
            chosen.remove("place.zip")
        options["orc.encrypt"] = f"pii:{','.join(chosen)}"
    name = f"db.t{next(numbers)}"
    table = catalog.create_table(name, Schema.from_arrow(model.schema, **{**layout, "options": options}))
    for what in data.draw(
        st.lists(st.sampled_from(["append", "append", "evolve", "delete", "compact"]), min_size=2, max_size=6)
    ):
        if what == "append":
            new = draw_rows(data, model)
            table.append(pa.Table.from_pylist(new, model.schema))
            model.append(new)
        elif what == "evolve":
            evolve(data, catalog, name, model)
            table = catalog.load_table(name)
        elif what == "delete" and model.keys:
            gone = draw_rows(data, model)
            table.delete(pa.Table.from_pylist(gone, model.schema).select(model.keys))
            model.delete(gone)
        elif what == "compact" and model.keys:
            compact(table)
    assert counted(table.read()) == counted(model.table())
    for predicate in data.draw(st.lists(predicates(model), min_size=2, max_size=4)):
        expected = counted(model.matching(predicate))
        assert counted(table.read(predicate=predicate)) == expected, describe(predicate)
        limit = data.draw(st.integers(0, 4))
        some = counted(table.read(predicate=predicate, limit=limit))
        assert some.total() == min(limit, expected.total()), describe(predicate)
        assert not some - expected
        check_order(data, table, model, predicate)
    check_order(data, table, model, None)
    check_aggregates(data, table, model, partitioned="partition_keys" in layout)
