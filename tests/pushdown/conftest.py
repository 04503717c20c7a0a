"""Strategies: columns of random types with awkward values, and predicates over them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from lockgate.pushdown import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
)

NAN, INF = math.nan, math.inf
INTS = [-(2**31), -3, -1, 0, 1, 2, 3, 111, 112, 2**31 - 1]
FLOATS = [-INF, -2.5, -0.0, 0.0, 0.1, 1.0, 2.0, 111.321, 1e30, INF, NAN]
DECIMALS = [Decimal(text) for text in ("-9.99", "0.00", "0.10", "1.00", "2.50", "9.99")]
TEXTS = ["", "a", "ab", "abc", "b", "ä", "z" * 20, "￿", "😀"]
DATES = [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29)]
TIMES = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 1)]
KINDS: dict[str, tuple[pa.DataType, list[object]]] = {
    "i": (pa.int32(), list(INTS)),
    "t": (pa.int8(), [-128, -1, 0, 1, 2, 127]),
    "f": (pa.float32(), list(FLOATS)),
    "d": (pa.float64(), list(FLOATS)),
    "c": (pa.decimal128(3, 2), list(DECIMALS)),
    "s": (pa.string(), list(TEXTS)),
    "y": (pa.binary(), [text.encode() for text in TEXTS]),
    "b": (pa.bool_(), [False, True]),
    "a": (pa.date32(), list(DATES)),
    "n": (pa.timestamp("us"), list(TIMES)),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _) in KINDS.items()])
NUMBERS = [
    *(pa.scalar(value) for value in [*INTS, *FLOATS, 2**62, -(2**63)]),
    *(pa.scalar(value) for value in DECIMALS),
    pa.scalar(Decimal("111.321")),
    pa.scalar(Decimal("0.1000000000000000055511151231257827021181583404541015625")),
    pa.scalar(Decimal("2147483647.5")),
    pa.scalar(Decimal("1E+38"), pa.decimal256(40, 0)),
]
ORDER = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ_NULL_SAFE]
TEXT_OPS = [Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS]


def _literals(name: str) -> st.SearchStrategy[pa.Scalar]:
    kind, values = KINDS[name]
    choices = NUMBERS if name in "itfdc" else [pa.scalar(value, kind) for value in values]
    if name == "n":
        choices = [*choices, pa.scalar(1, pa.timestamp("ns")), pa.scalar(-1, pa.timestamp("ns"))]
    return st.sampled_from([*choices, *choices, pa.scalar(None, kind)])


@st.composite
def _comparisons(draw: Callable[..., object]) -> Predicate:
    name = str(draw(st.sampled_from(sorted(KINDS))))
    ops = [*ORDER, Op.IN, Op.IS_NULL, Op.IS_NOT_NULL, *(TEXT_OPS if name in "sy" else [])]
    op = draw(st.sampled_from(ops))
    assert isinstance(op, Op)
    if op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return Comparison(op, (name,))
    count = draw(st.integers(0, 4)) if op is Op.IN else 1
    return Comparison(op, (name,), tuple(draw(_literals(name)) for _ in range(count)))  # type: ignore[call-overload]  # one operator of many


def _predicates() -> st.SearchStrategy[Predicate]:
    leaves = st.one_of(_comparisons(), _comparisons(), st.sampled_from([AlwaysTrue(), AlwaysFalse()]))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: And(tuple(items))),
            st.lists(inner, max_size=3).map(lambda items: Or(tuple(items))),
            inner.map(Not),
        ),
        max_leaves=6,
    )


def _rows() -> st.SearchStrategy[list[dict[str, object]]]:
    row = {name: st.sampled_from([None, *values]) for name, (_, values) in KINDS.items()}
    return st.lists(st.fixed_dictionaries(row), min_size=1, max_size=8)


@pytest.fixture(scope="session")
def generated() -> SimpleNamespace:
    """The strategies `predicates` and `rows`, with the `schema` of the rows."""
    return SimpleNamespace(predicates=_predicates(), rows=_rows(), schema=SCHEMA)
