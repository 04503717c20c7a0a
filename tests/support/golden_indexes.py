"""Columns whose file indexes are compared with Paimon's, with parameters, values and questions.

Values are in the form of `exact_rows`. Paimon's answers and bytes are in `fixtures/paimon/file_indexes.json`;
`tests/interop/test_paimon_indexes.py` says whether they still are what Paimon writes.
"""

from __future__ import annotations

import base64
import datetime as dt
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lockgate.framework.store.schema.file_indexes import value_kind_of
from lockgate.framework.types import DataType, parse_type, to_arrow
from lockgate.pushdown import Comparison, Op
from lockgate.pushdown.index.container import read_container, write_container
from lockgate.pushdown.index.index_evaluation import IndexedColumn, matching_rows
from lockgate.pushdown.index.index_kinds import INDEX_KINDS, Answer, write_index
from lockgate.pushdown.index.value_kinds import ValueKind

FIXTURE = Path(__file__).parents[1] / "fixtures" / "paimon" / "file_indexes.json"
_EPOCH = dt.datetime(1970, 1, 1)

COLUMNS: dict[str, list[Any]] = {
    "BOOLEAN": [True, None, False, True],
    "TINYINT": [-128, 127, None, 0, 0],
    "SMALLINT": [-32768, 32767, 5, None, 5],
    "INT": [*range(0, 60, 3), None, -(2**31), 2**31 - 1],
    "BIGINT": [*range(-40, 40, 7), 2**63 - 1, -(2**63), None, 2],
    "FLOAT": [1.5, "NaN", "-0.0", 0.0, "Infinity", None, "-Infinity"],
    "DOUBLE": [1.5, "NaN", "-0.0", 0.0, "Infinity", None, "-Infinity", 5e-324],
    "DATE": [0, -1, 20000, None],
    "TIMESTAMP(3)": [n * 10**6 for n in (0, -1, 1_700_000_000_000)] + [None],
    "TIMESTAMP(6)": [n * 10**3 for n in (0, -1, 1_700_000_000_000_001)] + [None],
    "DECIMAL(9, 2)": ["1.10", "-2.00", None, "9999999.99"],
    "STRING": ["", "a", "ab", "ü", "投标", "😀", None, *(f"host-{n}" for n in range(20))],
    "BYTES": ["", "00", "ff", "ff00", None],
}
PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("bloom-filter", {"items": 50, "fpp": 0.05}),
    ("bitmap", {"version": 1}),
    ("bitmap", {"index-block-size": 64}),
    ("range-bitmap", {"chunk-size": 64}),
]


@dataclass(frozen=True)
class Column:
    """An index to be: `type` is Paimon's, `values` are as the referee takes them."""

    type: str
    kind: str
    parameters: dict[str, Any]
    values: list[Any]

    @property
    def data_type(self) -> DataType:
        return parse_type(self.type)

    @property
    def value_kind(self) -> ValueKind:
        found = value_kind_of(self.data_type)
        assert found is not None
        return found

    @property
    def questions(self) -> list[list[Any]]:
        """Each value asked for in each way that the kind answers."""
        values = [value for value in self.values if value is not None][:6]
        ops = ["="] if self.kind == "bloom-filter" else ["=", "<>"]
        ops += ["<", "<=", ">", ">="] if self.kind == "range-bitmap" else []
        asked: list[list[Any]] = [[op, [value]] for op, value in itertools.product(ops, values)]
        asked += [["IN", values[:2]]] if values else []
        return asked if self.kind == "bloom-filter" else [*asked, ["IS_NULL", []], ["IS_NOT_NULL", []]]

    def ask(self) -> dict[str, Any]:
        """What the referee takes to write the index."""
        options = {name: str(value) for name, value in self.parameters.items()}
        return {"type": self.type, "kind": self.kind, "options": options, "values": self.values}

    def container(self) -> bytes:
        """The container that Lockgate writes."""
        index = write_index(self.kind, self.value_kind, self._array(self.values), self.parameters)
        return write_container({"c": {self.kind: index}})

    def answers(self, container: bytes) -> list[Any]:
        """What Lockgate says of each question, in the referee's form."""
        indexes = read_container(container, "c")["c"]
        column = IndexedColumn(self.value_kind, to_arrow(self.data_type), indexes)
        asked = (Comparison(Op(op), ("c",), tuple(self._array(literals))) for op, literals in self.questions)
        return [_told(matching_rows(each, {("c",): column})) for each in asked]

    def _array(self, values: list[Any]) -> pa.Array:
        kind = to_arrow(self.data_type)
        return pa.array([_python(value, kind) for value in values], kind)


def columns() -> Iterator[Column]:
    """Every kind with every type that it can hold; all nulls and no row, too."""
    for name, values in COLUMNS.items():
        for (kind, parameters), rows in itertools.product(PARAMETERS, (values, [None, None], [])):
            found = Column(name, kind, parameters, rows)
            if found.value_kind in INDEX_KINDS[kind].values:
                yield found


def check_answers(column: Column, ours: list[Any], paimons: list[Any]) -> None:
    """The two say the same, but for three things that SQL says otherwise than Paimon's indexes.

    Bitmaps keep rows without a value for `<>`; the two zeros are two values; and a column of milliseconds may
    hold finer times, so that its order says less. There the rows of Lockgate may be others, and no row is
    missing that has to be there.
    """
    nulls = {row for row, value in enumerate(column.values) if value is None}
    for (op, literals), own, other in zip(column.questions, ours, paimons, strict=True):
        where = f"{column.type} {column.kind} {op} {literals}"
        mine, theirs = _rows(own), _rows(other)
        if op == "<>" and column.kind == "bitmap":
            theirs -= nulls
        is_zero = column.type in ("FLOAT", "DOUBLE") and any(float(each) == 0 for each in literals)
        if column.type == "TIMESTAMP(3)" and op in ("<>", "<", ">"):
            assert mine >= theirs, where
        elif not is_zero:
            assert mine == theirs, where


def _rows(answer: Any) -> set[Any]:
    return set(answer) if isinstance(answer, list) else {"any"} if answer else set()


def golden() -> list[tuple[Column, bytes, list[Any]]]:
    """The columns of the fixture with Paimon's bytes and answers."""
    return [
        (Column(*each["column"]), base64.b64decode(each["container"]), each["answers"])
        for each in json.loads(FIXTURE.read_text())
    ]


def _told(answer: Answer) -> Any:
    return answer.to_array().tolist() if isinstance(answer, BitMap) else answer


def _python(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_binary(kind):
        return bytes.fromhex(value)
    if pa.types.is_date(kind):
        return (_EPOCH + dt.timedelta(days=value)).date()
    if pa.types.is_timestamp(kind):
        return _EPOCH + dt.timedelta(microseconds=value // 1000)
    return value
