"""Scripts without blanks between words: `match` finds the same as LIKE, and the index has the pieces."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from unspaced_texts import RUNS, SCRIPTS, TEXTS

from lockgate.framework.index.database.words import Words
from lockgate.framework.types import STRING
from lockgate.pushdown import col, describe, filter_table
from lockgate.pushdown.conditions import necessary_condition
from lockgate.pushdown.texts.patterns import agreed_words, is_run, words_of, words_of_any_engine
from lockgate.pushdown.texts.unspaced import AGREED_RANGES, RANGES, pieces, required_pieces

FIXTURES = Path(__file__).parents[2] / "fixtures"
LETTERS = frozenset(chr(code) for first, last, _ in RANGES for code in range(first, last + 1))


def naive_pieces(run: str) -> set[str]:
    longest = [next((n for first, last, n in RANGES if first <= ord(each) <= last), 2) for each in run]
    spans = [(at, at + length) for at, most in enumerate(longest) for length in (most - 1, most)]
    return {run[start:end] for start, end in spans if end <= len(run)}


def found_in(texts: list[str], terms: str) -> list[str]:
    rows = pa.table({"c": pa.array(texts, pa.string())})
    return list(filter_table(rows, col("c").match(terms))["c"].to_pylist())


def test_ranges_equal_the_vectors() -> None:
    """The twin of `tests/integration/test_twins.py`."""
    vectors = json.loads((FIXTURES / "unspaced_letters.json").read_text())
    assert [list(each) for each in RANGES] == vectors["unspaced"]
    assert [list(each) for each in AGREED_RANGES] == vectors["agreed"]
    for ranges in (RANGES, AGREED_RANGES):
        assert all(before[1] < after[0] for before, after in pairwise(ranges))


def test_ranges_have_the_letters_of_their_scripts() -> None:
    for letter in "投㐀\U00020000\U0002a6df\U00031350々〇ー゙ｰﾞ가ᄀㄱﾡꥠㄅ" + "".join(SCRIPTS.values()):
        assert letter in LETTERS, unicodedata.name(letter)
    for letter in "a1éａ１・゠。、฿๏។၊　\u200b":
        assert letter not in LETTERS, unicodedata.name(letter)
    other = [each for each in LETTERS if unicodedata.category(each)[0] not in "LMNC"]
    assert {unicodedata.name(each).partition(" RADICAL")[0] for each in other} == {"CJK", "KANGXI"}


def test_unspaced_letters_have_no_case() -> None:
    """Engines differ in lower case, so the ranges must have only letters without case."""
    every = "".join(map(chr, range(0x110000)))
    for letter in every:
        cases = letter.lower() + letter.upper() + letter.casefold()
        assert cases == 3 * letter or LETTERS.isdisjoint(letter + cases), hex(ord(letter))


@settings(max_examples=examples(200))
@given(st.lists(TEXTS, min_size=1, max_size=4), RUNS, st.booleans())
@example(["か\u3099ん", "か\u0301abc"], "か", False)
@example(["Wi-Fi密码本"], "密码", False)
@example(["x\U00020bb7野家y"], "\U00020bb7野", True)
def test_match_finds_a_run_where_like_does(texts: list[str], run: str, is_inside: bool) -> None:
    values = [*texts, f"{texts[0]}{run}{texts[-1]}"] if is_inside else texts
    assert found_in(values, run) == [each for each in values if run in each]
    keys = [set(Words().keys(pa.array([each], pa.string()), STRING).tolist()) for each in values]
    asked = Words().lookup_keys(col("c").match(run), STRING)
    for value, own in zip(values, keys, strict=True):
        assert asked is None or run not in value or set(asked.keys.tolist()) <= own


@settings(max_examples=examples(200))
@given(TEXTS, st.lists(st.one_of(TEXTS, RUNS), min_size=1, max_size=3))
@example("か\u0301", ["\u0301"])
@example("a\u0301か\u0301b", ["\u0301b か b"])
@example("A股", ["a"])
def test_match_finds_words_and_runs(text: str, terms: list[str]) -> None:
    """Words match as whole words, even next to runs; runs match inside longer runs. The index misses none."""
    asked, small = " ".join(terms), text.lower()
    spaced = {each for each in words_of(text) if not is_run(each)}
    is_met = all(each in small if is_run(each) else each in spaced for each in words_of(asked))
    assert found_in([text], asked) == [text] * is_met
    keys = Words().lookup_keys(col("c").match(asked), STRING)
    own = set(Words().keys(pa.array([text], pa.string()), STRING).tolist())
    assert not is_met or keys is None or set(keys.keys.tolist()) <= own
    assert found_in([text], text) == [text]


@settings(max_examples=examples(100))
@given(st.lists(TEXTS, max_size=4))
def test_pieces_lie_inside_one_run(texts: list[str]) -> None:
    runs = [each for text in texts for each in words_of(text) if is_run(each)]
    found = set(pieces(pa.array(runs, pa.string())).to_pylist())
    assert found == set().union(*map(naive_pieces, runs))
    for run in runs:
        required = required_pieces(run)
        assert set(required) <= naive_pieces(run)
        assert all(any(piece in each for each in required) for piece in naive_pieces(run))


def test_pieces_by_script() -> None:
    assert required_pieces("投标书") == ["投标", "标书"]
    assert required_pieces("投") == ["投"]
    assert required_pieces("食べる") == ["食べ", "べる"]
    assert required_pieces("タワー") == ["タワー"]
    assert required_pieces("タワ") == ["タワ"]
    assert required_pieces("ー") == []
    assert required_pieces("ชื่อ") == ["ชื่อ"]
    assert required_pieces("한국어") == ["한국", "국어"]


NEWER = "\u0870\u0645\ua7f2\U0001e4d0\U00016d40"
AGREED_TEXTS = st.text("ab1投ー\u0301 -", max_size=3)


@settings(max_examples=examples(200))
@given(st.lists(st.one_of(AGREED_TEXTS, st.sampled_from(NEWER)), max_size=8), st.sets(st.sampled_from(NEWER)))
@example(["ab", "\u0870", "b"], {"\u0870"})
def test_agreed_words_are_indexed_for_every_unicode_version(parts: list[str], unknown: set[str]) -> None:
    """An engine treats letters that it does not define as blanks; the index still has its agreed words."""
    text = "".join(parts)
    theirs = "".join(" " if each in unknown else each for each in text)
    indexed = set(words_of_any_engine(pa.array([text], pa.string())).to_pylist())
    runs = [each for each in indexed if is_run(each)]
    for word in agreed_words(theirs):
        assert any(word in run for run in runs) if is_run(word) else word in indexed


def test_spark_conditions_require_only_agreed_words() -> None:
    def asked(terms: str) -> str:
        args = [{"col": ["c"]}, {"value": terms, "type": "string"}]
        return describe(necessary_condition({"op": "MATCH", "args": args}))

    assert asked("Foo 投标") == "match(c, 'Foo 投标')"
    assert asked("foo a\u0870b") == "match(c, 'foo') AND c ILIKE '%foo%' AND c ILIKE '%a\u0870b%'"
