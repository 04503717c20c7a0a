"""Kinds of the index database keep the promise of every kind, on odd texts too, and prune LIKE."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.framework.index.database.blooms import BITS, Blooms
from lockgate.framework.index.database.index_segments import entries_of, opened
from lockgate.framework.index.database.segment_kinds import Ngrams, Values
from lockgate.framework.index.database.words import Words
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.types import STRING, DataType
from lockgate.plugins import AskedKeys, IndexKindConformance, hookimpl
from lockgate.pushdown import Comparison, Op, col, to_arrow_expression

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
    "ſı\N{KELVIN SIGN}İab",
    "SIKIAB",
    "\N{KELVIN SIGN}投标İ",
    "WiFi密码本",
    "か\u3099ー・ｽｷ",
    "ชื่อเล่น๑",
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


class TestBlooms(IndexKindConformance):
    def kind(self) -> Blooms:
        return Blooms()

    def data_type(self) -> DataType:
        return STRING

    def values(self) -> Sequence[Any]:
        return ODD

    def predicates(self) -> Sequence[Comparison]:
        long = [str(each) for each in range(33)]
        some = [col("c").isin(ODD[:4]), col("c").isin([*ODD[:2], "no"]), col("c").isin(long)]
        return [*(col("c") == each for each in ODD), *some, col("c").starts_with("a")]


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
                col("c").ilike(f"%{each}%"),
                col("c").rlike(f"(?i){each}"),
            )
        ]


class TestWords(IndexKindConformance):
    def kind(self) -> Words:
        return Words()

    def data_type(self) -> DataType:
        return STRING

    def values(self) -> Sequence[Any]:
        return [*ODD, "The quick-brown FOX", "fox 12 deadbeef00", "deadbeef00"]

    def predicates(self) -> Sequence[Comparison]:
        terms = ["fox", "FOX quick", "fox, 12", "deadbeef00", "abc", "", "投标", "İSTANBUL", "Straße"]
        terms += ["密码", "码本 wifi", "标", "か", "ー", "ชื่อ", "อเล่น๑", "密本", "K"]
        return [col("c").match(each) for each in terms]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.text(), max_size=6), st.text(min_size=1), st.integers(0, 5))
@example(["ab", "cd"], "abcd", 0)
def test_texts_have_the_pieces_of_their_substrings(texts: list[str], piece: str, where: int) -> None:
    """Pieces lie within one text, whatever lies next to it; only a text that lacks one is left out."""
    kind, values = Ngrams(), list(texts)
    values.insert(min(where, len(values)), f"x{piece}y")
    keys = set(kind.keys(pa.array(["-", *values], pa.string()).slice(1), STRING).tolist())
    asked = kind.lookup_keys(col("c").contains(piece), STRING)
    assert asked is None or set(asked.keys.tolist()) <= keys
    raw = [each.encode() for each in values]
    lower = [bytes(b + 32 if 65 <= b <= 90 else b for b in each) for each in raw]
    pieces = {int.from_bytes(each[n : n + 3]) for each in lower for n in range(len(each) - 2)}
    assert pieces <= keys
    assert pieces == keys or any(letter in text for text in values for letter in "İıſ\N{KELVIN SIGN}")


def test_scans_skip_files_without_a_text(catalog: Catalog) -> None:
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


def test_patterns_skip_files_in_any_combination(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("command", pa.string())])
    options = {"index.ngrams.columns": "command", "index.words.columns": "command"}
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options=options))
    for n in range(4):
        commands = ["a first", f"run Tool{n}.EXE --number {n} abc{n}def", None, "z last"]
        table.append(pa.table({"id": range(4), "command": commands}))
    command = col("command")

    def files(predicate: Any) -> int:
        wanted = table.read().filter(to_arrow_expression(predicate, table.schema.arrow_schema))
        assert table.read(predicate=predicate).equals(wanted)
        return sum(len(split.files) for split in table.scan(predicate=predicate).splits)

    assert files(command.like("run%Tool2%abc_def")) == 1
    assert files(command.ilike("%TOOL1%NUMBER%")) == 1
    assert files(command.rlike(r"(?i)tool(1|3)\.exe\s")) == 4  # a digit apart: no text of three bytes tells
    assert files(command.rlike(r"abc1def|abc3def$")) == 2
    assert files(command.rlike(r"Tool[0-9]")) == 4
    assert files(command.like("%Tool1%") | command.match("EXE tool2")) == 2
    assert files(command.match("nowhere")) == 0
    assert files(command.match("number 2")) == 4  # numbers are no words of the index
    assert files(~command.like("%Tool1%") & command.match("abc1def")) == 1
    assert files(~(command.like("%Tool%") | command.is_null())) == 4


def test_unspaced_runs_skip_files_in_any_combination(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("title", pa.string())])
    options = {"index.words.columns": "title", "index.block-rows": "2"}
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options=options))
    of_files = ["招标公告WiFi密码", "投标书的格式", "東京タワーへ行く", "ชื่อเล่นภาษาไทย"]
    for title in of_files:
        titles = ["关于公告", f"2026年{title}第1版", None, "Wi-Fi"]
        table.append(pa.table({"id": range(4), "title": titles}))
    title = col("title")

    def files(predicate: Any) -> int:
        wanted = table.read().filter(to_arrow_expression(predicate, table.schema.arrow_schema))
        assert table.read(predicate=predicate).equals(wanted)
        return sum(len(split.files) for split in table.scan(predicate=predicate).splits)

    assert files(title.match("投标")) == 1
    assert files(title.match("标")) == 2
    assert files(title.match("投标 格式")) == 1
    assert files(title.match("公告")) == 4
    assert files(title.match("标公")) == 1  # runs have no words
    assert files(title.match("WIFI")) == 1
    assert files(title.match("wi 关于")) == 0  # no block has both
    assert files(title.match("タワー")) == 1
    assert files(title.match("タ")) == 4  # too short to tell
    assert files(title.match("เล่น")) == 1
    assert files(title.match("เล่น") | title.match("行く")) == 2
    assert files(~title.match("投标")) == 4
    assert files(~title.match("投标") & title.match("书的")) == 1
    assert table.read(predicate=~title.match("投标")).num_rows == 11
    plain = catalog.create_table(
        "db.plain", Schema.from_arrow(schema, options={"index.ngrams.columns": "title"})
    )
    for each in of_files:
        plain.append(pa.table({"id": [1], "title": [each]}))
    for predicate in (title.match("投标"), title.ilike("%タワー%大阪%") | title.ilike("%投标%")):
        assert sum(len(split.files) for split in plain.scan(predicate=predicate).splits) == 1


def test_blooms_of_few_values_skip_files(catalog: Catalog) -> None:
    schema = pa.schema([("id", pa.int64()), ("tool", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options={"index.bloom.columns": "tool"}))
    for n in range(4):
        tools = ["a", f"tool{n}", None, "z"]
        table.append(pa.table({"id": range(4), "tool": tools}))

    def files(predicate: Any) -> int:
        wanted = table.read().filter(to_arrow_expression(predicate, table.schema.arrow_schema))
        assert table.read(predicate=predicate).equals(wanted)
        return sum(len(split.files) for split in table.scan(predicate=predicate).splits)

    tool = col("tool")
    assert files(tool == "tool2") == 1
    assert files(tool.isin(["tool1", "nowhere", "tool3"])) == 2
    assert files(tool == "nowhere") == 0
    assert files(tool.isin([f"tool{n}" for n in range(3, 43)])) == 4  # too long a list for bits
    assert files((tool == "tool1") | (tool == "z")) == 4
    assert files(tool.is_null()) == 4


def test_blooms_have_few_false_positives() -> None:
    """One in 1,000 values a row of a block of 250,000: the bits of an absent value are seldom all there."""
    kind = Blooms()
    bits = kind.keys(pa.array([f"value {n}" for n in range(250)]), STRING)
    assert len(bits) < BITS / 2
    asked = [kind.lookup_keys(col("c") == f"absent {n}", STRING) for n in range(20_000)]
    wrong = sum(each is not None and each.are_in(bits) for each in asked)
    assert wrong < 20_000 / 400


def test_auto_chooses_blooms_by_the_rule(catalog: Catalog) -> None:
    schema = pa.schema([("few", pa.string()), ("many", pa.string())])
    rows = pa.table({"few": [f"v{n % 4}" for n in range(8000)], "many": [f"v{n % 40}" for n in range(8000)]})
    found = []
    for name, options in (("a", {}), ("b", {"index.bloom.max-distinct-share": "0.1"})):
        given = {"index.bloom.columns": "auto", **options}
        table = catalog.create_table(f"db.{name}", Schema.from_arrow(schema, options=given))
        table.append(rows)
        (entry,) = entries_of(table, table.latest_snapshot())
        segment = opened(table, entry)
        assert segment is not None
        found.append({part.field for part in segment.parts})
    assert found == [{0}, {0, 1}]


class Endings:
    """Last letters, for `ends_with`."""

    def accepts(self, data_type: DataType) -> bool:
        return data_type == STRING

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        return np.array([ord(value[-1]) for value in values.to_pylist() if value], np.uint64)

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        text = comparison.literals[0].as_py()
        if comparison.op is not Op.ENDS_WITH or not text:
            return None
        return AskedKeys(np.array([ord(text[-1])], np.uint64))


class TestEndings(IndexKindConformance):
    def kind(self) -> Endings:
        return Endings()

    def data_type(self) -> DataType:
        return STRING

    def values(self) -> Sequence[Any]:
        return ODD

    def predicates(self) -> Sequence[Comparison]:
        return [col("c").ends_with(each) for each in ODD if each]


def test_a_kind_is_its_class_and_one_line(catalog: Catalog) -> None:
    """As docs/how-to-change.md says; a plugin's line is the same."""
    named = "endings of a test"
    plugins().register(
        types.SimpleNamespace(lockgate_index_kinds=hookimpl(lambda: {"endings": Endings()})), named
    )
    try:
        schema = Schema.from_arrow(pa.schema([("c", pa.string())]), options={"index.endings.columns": "c"})
        table = catalog.create_table("db.t", schema)
        for texts in (["ab", "zz"], ["ac", "zy"]):
            table.append(pa.table({"c": texts}))
        plan = table.scan(predicate=col("c").ends_with("b"))
        assert [step.after.files for step in plan.report.steps if step.name == "index"] == [1]
        assert table.read(predicate=col("c").ends_with("b"))["c"].to_pylist() == ["ab"]
    finally:
        plugins().unregister(named)
