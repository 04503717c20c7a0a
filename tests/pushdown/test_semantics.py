"""All visitors agree with an oracle of SQL's rules, on random rows and predicates."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.acero as acero
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.pushdown import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    ColumnStatistics,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
    describe,
    evaluate,
    from_json,
    may_match,
    negate,
    normalize,
    residual,
    to_arrow_expression,
    to_json,
)

RELAXED = settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))


def order_key(value: object) -> object:
    """Return a sort key in Spark's order, exact across number types."""
    if isinstance(value, bool | bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float) and not math.isfinite(value):
        return (3 if math.isnan(value) else 2 if value > 0 else 0, 0)
    try:
        return (1, Fraction(value))  # type: ignore[arg-type]  # other types raise TypeError
    except TypeError:
        return value


def key_of(scalar: pa.Scalar) -> object:
    if pa.types.is_timestamp(scalar.type):
        return scalar.value * (1 if scalar.type.unit == "ns" else 1000)
    return order_key(scalar.as_py())


def oracle(node: Predicate, row: dict[str, pa.Scalar]) -> bool | None:  # noqa: C901 - one case for each operator
    match node:
        case AlwaysTrue():
            return True
        case AlwaysFalse():
            return False
        case Not(child):
            answer = oracle(child, row)
            return None if answer is None else not answer
        case And(children):
            answers = [oracle(child, row) for child in children]
            return False if False in answers else None if None in answers else True
        case Or(children):
            answers = [oracle(child, row) for child in children]
            return True if True in answers else None if None in answers else False
    assert isinstance(node, Comparison)
    cell = row[node.field[0]]
    value = key_of(cell) if cell.is_valid else None
    items = [key_of(item) if item.is_valid else None for item in node.literals]
    if node.op is Op.IS_NULL:
        return value is None
    if node.op is Op.IS_NOT_NULL:
        return value is not None
    if node.op is Op.EQ_NULL_SAFE:
        return bool(value == items[0])
    if node.op is Op.IN:
        if not items:
            return False
        if value is None:
            return None
        return True if value in items else None if None in items else False
    (item,) = items
    if value is None or item is None:
        return None
    compared = {
        Op.EQ: lambda: value == item,
        Op.NE: lambda: value != item,
        Op.LT: lambda: value < item,
        Op.LE: lambda: value <= item,
        Op.GT: lambda: value > item,
        Op.GE: lambda: value >= item,
        Op.STARTS_WITH: lambda: value.startswith(item),
        Op.ENDS_WITH: lambda: value.endswith(item),
        Op.CONTAINS: lambda: item in value,
    }
    return bool(compared[node.op]())


def answers(predicate: Predicate, table: pa.Table) -> list[bool | None]:
    rows = [{name: table[name][i] for name in table.column_names} for i in range(table.num_rows)]
    return [oracle(predicate, row) for row in rows]


def by_path(table: pa.Table, index: int) -> dict[tuple[str, ...], pa.Scalar]:
    return {(name,): table[name][index] for name in table.column_names}


def expression_answers(predicate: Predicate, table: pa.Table) -> list[bool | None]:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    expression = to_arrow_expression(predicate, table.schema)
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["answer"]), [source])
    return list(project.to_table(use_threads=False)["answer"].to_pylist())


@RELAXED
@given(data=st.data())
def test_every_visitor_agrees_with_sql(generated: SimpleNamespace, data: st.DataObject) -> None:
    predicate = data.draw(generated.predicates)
    table = pa.Table.from_pylist(data.draw(generated.rows), generated.schema)
    expected = answers(predicate, table)
    assert expression_answers(predicate, table) == expected
    assert [evaluate(predicate, by_path(table, i)) for i in range(table.num_rows)] == expected
    assert answers(normalize(predicate), table) == expected
    assert answers(negate(predicate), table) == [None if one is None else not one for one in expected]
    assert describe(predicate)


@RELAXED
@given(data=st.data())
def test_json_round_trip_keeps_the_meaning(generated: SimpleNamespace, data: st.DataObject) -> None:
    predicate = data.draw(generated.predicates)
    table = pa.Table.from_pylist(data.draw(generated.rows), generated.schema)
    try:
        text = to_json(predicate)
    except TypeError:  # nanoseconds, or a decimal wider than Spark's
        return
    back = from_json(text)
    assert back is not None
    assert answers(back, table) == answers(predicate, table)
    assert to_json(back) == text


@RELAXED
@given(data=st.data())
def test_residual_keeps_the_same_rows(generated: SimpleNamespace, data: st.DataObject) -> None:
    predicate = data.draw(generated.predicates)
    table = pa.Table.from_pylist(data.draw(generated.rows), generated.schema)
    field_names = data.draw(st.lists(st.sampled_from(table.column_names), unique=True))
    for index in range(table.num_rows):
        row = by_path(table, index)
        rest = residual(predicate, {(name,): row[(name,)] for name in field_names})
        assert bool(evaluate(rest, row)) is bool(evaluate(predicate, row))


def statistics(column: pa.ChunkedArray, *, lossy: bool) -> ColumnStatistics:
    values = [cell for cell in column if cell.is_valid]
    ranked = sorted(values, key=key_of)
    nulls = column.null_count
    if pa.types.is_floating(column.type):
        # As ORC writes them: the bounds omit NaN, or both are NaN if it was the first value.
        if values and math.isnan(values[0].as_py()):
            return ColumnStatistics(values[0], values[0], nulls)
        ranked = [cell for cell in ranked if not math.isnan(cell.as_py())]
    if not ranked:
        return ColumnStatistics(None, None, nulls)
    low, high = ranked[0], ranked[-1]
    if lossy and pa.types.is_string(column.type):
        cut = low.as_py()[:1]
        return ColumnStatistics(pa.scalar(cut), None, nulls)
    return ColumnStatistics(low, high, nulls)


@RELAXED
@given(data=st.data(), lossy=st.booleans())
def test_pruning_never_loses_a_row(generated: SimpleNamespace, data: st.DataObject, lossy: bool) -> None:
    predicate = data.draw(generated.predicates)
    table = pa.Table.from_pylist(data.draw(generated.rows), generated.schema)
    kept = data.draw(st.lists(st.sampled_from(table.column_names), unique=True))
    stats = {(name,): statistics(table[name], lossy=lossy) for name in kept}
    if True in answers(predicate, table):
        assert may_match(predicate, stats, table.num_rows)
        assert may_match(predicate, stats)
