"""Kinds of the index database keep the promise of every kind, on odd texts too, and prune LIKE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.framework.index.database.kinds import Ngrams, Values
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.types import STRING, DataType
from lockgate.plugins import IndexKindConformance
from lockgate.pushdown import Comparison, col

ODD = [
    "",
    "a",
    "ab",
    "abc",
    "ABC",
    "xabcx",
    "İstanbul",
    "straße",
    "STRASSE",
    "投标",
    "投标书",
    "\0\0\0",
    "a😀b",
    "é",
]


class TestValues(IndexKindConformance):
    def kind(self) -> Values:
        return Values()

    def data_type(self) -> DataType:
        return STRING

    def values(self) -> Sequence[Any]:
        return ODD

    def predicates(self) -> Sequence[Comparison]:
        return [*(col("c") == each for each in ODD), col("c").isin(ODD[:4]), col("c").starts_with("a")]


class TestNgrams(IndexKindConformance):
    def kind(self) -> Ngrams:
        return Ngrams()

    def data_type(self) -> DataType:
        return STRING

    def values(self) -> Sequence[Any]:
        return ODD

    def predicates(self) -> Sequence[Comparison]:
        return [
            question
            for each in ODD
            for question in (
                col("c").contains(each),
                col("c").starts_with(each),
                col("c").ends_with(each),
                col("c") == each,
            )
        ]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.text(), max_size=6), st.text(min_size=1), st.integers(0, 5))
@example(["ab", "cd"], "abcd", 0)
def test_texts_have_the_pieces_of_what_they_hold(texts: list[str], piece: str, where: int) -> None:
    """Pieces lie within one text, whatever lies next to it; only a text that lacks one is left out."""
    kind, values = Ngrams(), list(texts)
    values.insert(min(where, len(values)), f"x{piece}y")
    keys = set(kind.keys(pa.array(["-", *values], pa.string()).slice(1), STRING).tolist())
    asked = kind.asked(col("c").contains(piece), STRING)
    assert asked is None or set(asked.keys.tolist()) <= keys
    raw = [each.encode() for each in values]
    lower = [bytes(b + 32 if 65 <= b <= 90 else b for b in each) for each in raw]
    assert keys == {int.from_bytes(each[n : n + 3]) for each in lower for n in range(len(each) - 2)}


def test_scans_leave_out_files_without_a_text(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("command", pa.string())])
    options = {"index.ngrams.columns": "command"}
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options=options))
    for n in range(4):
        commands = ["a first", f"run Tool{n}.EXE /x", None, "z last"]
        table.append(pa.table({"id": range(4), "command": commands}))

    def files(predicate: Any) -> int:
        return sum(len(split.files) for split in table.scan(predicate=predicate).splits)

    assert files(col("command").contains("Tool2")) == 1
    assert files(col("command").contains("Tool2") | col("command").ends_with("3.EXE /x")) == 2
    assert files(col("command").contains("nowhere")) == 0
    assert files(col("command").starts_with("run Tool1")) == 1
    assert files(col("command").contains("To")) == 4  # too short to tell
    assert files(~col("command").contains("Tool2")) == 4
    assert table.read(predicate=col("command").contains("tool2")).num_rows == 0
    assert table.read(predicate=col("command").contains("Tool2")).num_rows == 1
