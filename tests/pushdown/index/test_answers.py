"""Rows that file indexes return: all matching rows, exactly these from bitmaps; and the indexes' bytes."""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lockgate.errors import CorruptFileError
from lockgate.pushdown import Op, Predicate, all_of, any_of, col, evaluate
from lockgate.pushdown.index.container import damage_named, read_container, write_container
from lockgate.pushdown.index.hashes import hashes_of
from lockgate.pushdown.index.index_evaluation import IndexedColumn, matching_rows
from lockgate.pushdown.index.index_kinds import BITMAP, BLOOM_FILTER, INDEX_KINDS, RANGE_BITMAP, write_index
from lockgate.pushdown.index.value_kinds import ValueKind

NAN = math.nan
Columns = dict[tuple[str, ...], IndexedColumn]
FLOATS = [0.0, -0.0, NAN, math.inf, -math.inf, 1.5, -2.0, 1e300, 5e-324]
EPOCH = datetime.datetime(1970, 1, 1)
MOMENTS = [EPOCH + datetime.timedelta(microseconds=n) for n in (-1_500, -1, 0, 999, 1_000, 1_001, 10**15)]
TEXTS = ["", "a", "ab", "abc", "b", "ü", "中文", "a" * 40, "\x7f", "\uffff", "😀"]
COLUMNS: dict[ValueKind, tuple[pa.DataType, list[Any]]] = {
    ValueKind.BOOLEAN: (pa.bool_(), [True, False]),
    ValueKind.TINYINT: (pa.int8(), [-128, -1, 0, 1, 127]),
    ValueKind.SMALLINT: (pa.int16(), [-(2**15), -1, 0, 7, 2**15 - 1]),
    ValueKind.INT: (pa.int32(), [-(2**31), -1, 0, 7, 2**31 - 1]),
    ValueKind.BIGINT: (pa.int64(), [-(2**63), -1, 0, 7, 2**63 - 1]),
    ValueKind.FLOAT: (pa.float32(), [float(np.float32(min(x, 1e30))) if x == x else x for x in FLOATS]),
    ValueKind.DOUBLE: (pa.float64(), FLOATS),
    ValueKind.TEXT: (pa.string(), TEXTS),
    ValueKind.BYTES: (pa.binary(), [text.encode() for text in TEXTS] + [b"\xff", b"\xff\xff"]),
    ValueKind.MILLIS: (pa.timestamp("us"), MOMENTS),
    ValueKind.MICROS: (pa.timestamp("us", "UTC"), [each.replace(tzinfo=datetime.UTC) for each in MOMENTS]),
    ValueKind.DECIMAL: (pa.decimal128(5, 2), [Decimal(n) / 100 for n in (-99999, -1, 0, 150, 99999)]),
}
# Literals of other types than the column's, as Spark sends them after a type was widened.
OTHERS = [1.5, -2.5, 7, 2**62, Decimal("1.5"), Decimal("0.005"), NAN, 300, "a", b"a"]
COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.EQ_NULL_SAFE]


@st.composite
def cases(draw: st.DrawFn) -> tuple[ValueKind, pa.Array, Predicate]:
    kind = draw(st.sampled_from(list(COLUMNS)))
    type_, pool = COLUMNS[kind]
    values = draw(st.lists(st.sampled_from([*pool, None]), max_size=40))
    literals = st.sampled_from([pa.scalar(value, type_) for value in [*pool, None]])
    if kind not in (ValueKind.MILLIS, ValueKind.MICROS):
        literals |= st.sampled_from([pa.scalar(value) for value in OTHERS])
    leaves = st.builds(lambda op, value: col("c")._compare(op, value), st.sampled_from(COMPARISONS), literals)
    leaves |= st.builds(lambda result: col("c").isin(result), st.lists(literals, max_size=4))
    leaves |= st.sampled_from([col("c").is_null(), col("c").is_not_null()])
    if kind is ValueKind.TEXT:
        leaves |= st.builds(lambda text: col("c").starts_with(text), st.sampled_from(TEXTS))
        leaves |= st.builds(lambda text: col("c").contains(text), st.sampled_from(TEXTS))
    tree = st.recursive(
        leaves,
        lambda inner: (
            st.builds(lambda one: ~one, inner)
            | st.builds(all_of, inner, inner)
            | st.builds(any_of, inner, inner)
        ),
        max_leaves=4,
    )
    return kind, pa.array(values, type_), draw(tree)


PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    (BLOOM_FILTER, {}),
    (BLOOM_FILTER, {"items": 100, "fpp": 0.01}),
    (BITMAP, {"version": 1}),
    (BITMAP, {}),
    (BITMAP, {"index-block-size": 30}),
    (RANGE_BITMAP, {}),
    (RANGE_BITMAP, {"chunk-size": 40}),
]


def truth(predicate: Predicate, column: pa.Array) -> set[int]:
    """Return the matching rows, one by one; all rows if the types do not compare."""
    from lockgate.errors import UnsupportedTypeError

    try:
        return {row for row, value in enumerate(column) if evaluate(predicate, {("c",): value})}
    except UnsupportedTypeError:
        return set()


@settings(max_examples=examples(150))
@given(cases())
def test_indexes_return_all_matching_rows(case: tuple[ValueKind, pa.Array, Predicate]) -> None:
    kind, column, predicate = case
    expected = truth(predicate, column)
    supported = [(name, parameters) for name, parameters in PARAMETERS if kind in INDEX_KINDS[name].values]
    for name, given_ in supported:
        indexed = IndexedColumn(kind, column.type, {name: write_index(name, kind, column, given_)})
        answer = matching_rows(predicate, {("c",): indexed}, len(column))
        kept = set(range(len(column))) if answer is True else set() if answer is False else set(answer)
        assert expected <= kept <= set(range(len(column))), name
    together = {name: write_index(name, kind, column) for name, _ in supported}
    answer = matching_rows(predicate, {("c",): IndexedColumn(kind, column.type, together)}, len(column))
    assert answer is True or expected <= (set() if answer is False else set(answer))


@pytest.mark.parametrize("name", [BITMAP, RANGE_BITMAP])
@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (col("c") == 1.5, [0, 5]),
        (col("c") != 1.5, [1, 2, 3]),
        (col("c") == 0.0, [1, 2]),
        (col("c") == NAN, [3]),
        (col("c").isin([1.5, NAN, None]), [0, 3, 5]),
        (~col("c").isin([1.5, NAN]), [1, 2]),
        (col("c").is_null(), [4]),
        (col("c").is_not_null(), [0, 1, 2, 3, 5]),
        ((col("c") == 1.5) | col("c").is_null(), [0, 4, 5]),
        ((col("c") == 7) | (col("other") == 1), None),
        ((col("c") == 7) & (col("other") == 1), []),
        (col("c") == None, []),  # noqa: E711 - builds a predicate
    ],
)
def test_indexes_return_exact_rows(name: str, predicate: Predicate, rows: list[int] | None) -> None:
    column = pa.array([1.5, 0.0, -0.0, NAN, None, 1.5])
    data = write_index(name, ValueKind.DOUBLE, column)
    answer = matching_rows(predicate, {("c",): IndexedColumn(ValueKind.DOUBLE, column.type, {name: data})}, 6)
    assert answer == (True if rows is None else BitMap(rows) if rows else False)


@pytest.mark.parametrize(
    ("predicate", "rows"),
    [
        (col("c") >= 0.0, [0, 1, 2, 3]),
        (col("c") > 0.0, [0, 3]),
        (col("c") < 0.0, [5]),
        (col("c") <= -0.0, [1, 2, 5]),
        (col("c") > Decimal("1.4"), [0, 3]),
        (col("c") < -2, [5]),
    ],
)
def test_a_range_bitmap_orders_floating_point_values(predicate: Predicate, rows: list[int]) -> None:
    column = pa.array([1.5, 0.0, -0.0, NAN, None, -2.5])
    data = write_index(RANGE_BITMAP, ValueKind.DOUBLE, column)
    indexed = IndexedColumn(ValueKind.DOUBLE, column.type, {RANGE_BITMAP: data})
    assert matching_rows(predicate, {("c",): indexed}, 6) == BitMap(rows)


def test_empty_indexes() -> None:
    """An empty index stands for a column with only nulls."""
    columns: Columns = {("c",): IndexedColumn(ValueKind.INT, pa.int32(), {BITMAP: None})}
    for predicate in (col("c") == 1, col("c") != 1, col("c").is_not_null(), col("c") < 1):
        assert matching_rows(predicate, columns) is False
    assert matching_rows(col("c").is_null(), columns) is True


def test_unknown_index_kinds_keep_all_rows() -> None:
    columns: Columns = {("c",): IndexedColumn(ValueKind.INT, pa.int32(), {"bsi": b"\1\2", "own": None})}
    assert matching_rows(col("c") == 1, columns, 5) is True


@settings(max_examples=examples(40))
@given(st.dictionaries(st.text(max_size=5), st.dictionaries(st.text(max_size=5), st.none() | st.binary())))
def test_containers_round_trip(indexes: dict[str, dict[str, bytes | None]]) -> None:
    assert read_container(write_container(indexes), "f.index") == indexes


@pytest.mark.parametrize("name", [BLOOM_FILTER, BITMAP, RANGE_BITMAP])
def test_damaged_bytes_raise_only_corrupt_file_error(name: str) -> None:
    """Any change of one byte raises CorruptFileError or nothing; a truncated container always raises it."""
    column = pa.array([None, *(f"value {n % 7}" for n in range(60)), "single"])
    whole = write_container({"c": {name: write_index(name, ValueKind.TEXT, column, None)}})
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x81
        with suppress(CorruptFileError), damage_named("f.index"):
            for result in read_container(bytes(damaged), "f.index").values():
                columns: Columns = {("c",): IndexedColumn(ValueKind.TEXT, pa.string(), result)}
                matching_rows(col("c").isin(["value 3", "single"]) | col("c").is_null(), columns, 62)
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(CorruptFileError):
            read_container(whole[:length], "f.index")


def test_an_index_with_another_row_count_is_refused() -> None:
    data = write_index(BITMAP, ValueKind.INT, pa.array([1, 2], pa.int32()))
    columns: Columns = {("c",): IndexedColumn(ValueKind.INT, pa.int32(), {BITMAP: data})}
    with pytest.raises(ValueError, match="of 2 rows, not of 3"):
        matching_rows(col("c") == 1, columns, 3)


def test_hashes_equal_known_answers() -> None:
    """XXH64 with seed 0 has these values for each remainder of the length."""
    hashes = {
        b"": 0xEF46DB3751D8E999,
        b"abc": 0x44BC2CF5AD770999,
        b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
    }
    result = hashes_of(ValueKind.BYTES, pa.array(list(hashes), pa.binary()))
    assert result.view(np.uint64).tolist() == list(hashes.values())


@pytest.mark.parametrize(
    ("kind", "column", "bloom", "ranges"),
    [
        (
            ValueKind.INT,
            pa.array([7, None, -1, 7], pa.int32()),
            "00000004909091",
            "00000015010000000400000002ffffffff00000007000000320000000d010000000100000004000000190000000001ffffffff"
            "000000000000000000000001000000040000000400000007000000120101000000160000000800000000000000143a30000001"
            "00000000000200100000000000020003003a30000001000000000001001000000000000300",
        ),
        (
            ValueKind.TEXT,
            pa.array(["b", None, "a", "b"]),
            "00000004782201",
            "0000001701000000040000000200000001610000000162000000380000000d0100000001000000040000001a00000000010000"
            "0001610000000000000000000000010000000400000005000000000000000162000000120101000000160000000800000000000"
            "000143a3000000100000000000200100000000000020003003a30000001000000000001001000000000000300",
        ),
    ],
)
def test_bytes_equal_paimons(kind: ValueKind, column: pa.Array, bloom: str, ranges: str) -> None:
    """Hashes of the bytes that the Java core of Paimon 1.4.2 writes."""
    assert write_index(BLOOM_FILTER, kind, column, {"items": 4, "fpp": 0.1}).hex() == bloom
    assert write_index(RANGE_BITMAP, kind, column).hex() == ranges
