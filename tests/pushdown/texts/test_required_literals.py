"""Patterns match as Python's `re` does, and every matching text meets their required literals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.errors import InputError
from lockgate.pushdown import (
    Predicate,
    all_of,
    any_of,
    col,
    describe,
    evaluate,
    filter_table,
    may_match,
    required_literals,
    with_literals,
)
from lockgate.pushdown.statistics import ColumnStatistics
from lockgate.pushdown.texts.patterns import lower, with_escape, words_of

CASES = [
    (col("c").like("a%bc_d"), "startswith(c, 'a') AND contains(c, 'bc') AND endswith(c, 'd')"),
    (col("c").like(r"\%\_\\"), r"c = '%_\'"),
    (col("c").like("%"), "c IS NOT NULL"),
    (col("c").ilike("%Ab_é%"), "c ILIKE '%Ab%' AND c ILIKE '%é%'"),
    (col("c").rlike("ab+c"), "contains(c, 'ab') AND contains(c, 'c')"),
    (col("c").rlike("^abc$"), "contains(c, 'abc')"),
    (col("c").rlike("(abc|x(y|z)d)?e{2}f{0}g"), "contains(c, 'e') AND contains(c, 'g')"),
    (col("c").rlike("foo|b(ar|az)q"), None),
    (col("c").rlike("foo|[xy]"), "c IS NOT NULL"),
    (col("c").rlike(r"\d+\.exe\s"), "contains(c, '.exe')"),
    (col("c").rlike(r"\Qa.b\E*c"), "contains(c, 'a.') AND contains(c, 'c')"),
    (col("c").rlike("(?i)ab(?-i:cd)"), "c RLIKE '(?i)ab' AND contains(c, 'cd')"),
    (col("c").rlike("(?i:ab)cd"), "c RLIKE '(?i)ab' AND contains(c, 'cd')"),
    (col("c").match("Foo, bar"), "c ILIKE '%foo%' AND c ILIKE '%bar%'"),
    (~col("c").like("a%"), "c IS NOT NULL"),
    (~col("c").contains("a"), "c IS NOT NULL"),
    (~(col("c").like("a%") | (col("d") == 1)), "c IS NOT NULL AND d <> 1"),
    (col("c").like("%a%") | col("c").rlike("bcd"), "contains(c, 'a') OR contains(c, 'bcd')"),
]


@pytest.mark.parametrize(("predicate", "expected"), CASES)
def test_required_literals(predicate: Predicate, expected: str | None) -> None:
    expected = expected or (
        "contains(c, 'foo') OR "
        "contains(c, 'b') AND (contains(c, 'ar') OR contains(c, 'az')) AND contains(c, 'q')"
    )
    assert describe(required_literals(predicate)) == expected


@pytest.mark.parametrize(
    "regex",
    [
        *("a{,2}b", "[]a]b", "[a[b]]c", "[a-z&&[^b]]c", r"\x41b", r"\1", "(?x) a b", "(?=ab)c(?!d)"),
        *(
            r"\p{L}a?",
            "(?<=a)b",
            "(?P=n)",
            "a**",
            ")",
            "(",
            r"\Qa",
            r"a\Q\E*",
            "(?(1)a|b)",
            "x{2",
            "[\\Q]\\E]ab",
        ),
    ],
)
def test_ambiguous_syntax_requires_nothing_wrong(regex: str) -> None:
    """A literal is not required if one of the syntaxes reads the expression in another way."""
    found = describe(required_literals(col("c").rlike(regex)))
    assert found in ("c IS NOT NULL", "contains(c, 'c')", "contains(c, 'a')")


def test_invalid_patterns_are_refused() -> None:
    rows = pa.table({"c": ["a"]})
    with pytest.raises(InputError, match="a backslash stands before"):
        filter_table(rows, col("c").like(r"\a"))
    with pytest.raises(InputError, match="not a regular expression"):
        filter_table(rows, col("c").rlike("(a"))
    assert with_escape("a!%b\\%!!", "!") == r"a\%b\\%!"
    with pytest.raises(InputError, match="one character"):
        with_escape("a", "")
    with pytest.raises(InputError, match="stands before"):
        with_escape("a!b", "!")


def test_bounds_exclude_files_by_the_prefix_of_a_pattern() -> None:
    bounds = {("c",): ColumnStatistics(pa.scalar("m"), pa.scalar("p"), 0)}
    assert not may_match(col("c").like("abc%x"), bounds)
    assert not may_match(col("c").like("abc"), bounds)
    assert may_match(col("c").like("n%"), bounds)
    assert may_match(col("c").ilike("abc%"), bounds)
    assert may_match(~col("c").like("n%"), bounds)


# Few letters, so that patterns often match; some of them fold to ASCII.
LETTERS = st.sampled_from(
    [*"aAbBsSkKiI %_\\.()|*", "\n", "\0", "é", "É", "İ", "ı", "ſ", "\N{KELVIN SIGN}", "ß", "投", "😀"]
)
TEXTS = st.one_of(st.text(LETTERS, max_size=12), st.text(max_size=12))


def valid(text: str) -> bool:
    return all(not 0xD800 <= ord(char) < 0xE000 for char in text)


def is_true(predicate: Predicate, value: str | None) -> bool:
    found = evaluate(predicate, {("c",): pa.scalar(value, pa.string())})
    rows = pa.table({"c": pa.array([value], pa.string())})
    assert bool(filter_table(rows, predicate).num_rows) is (found is True)
    return found is True


def check(predicate: Predicate, value: str, *, is_met: bool) -> None:
    assert is_true(predicate, value) is is_met
    assert not is_true(predicate, None)
    if is_met:
        assert is_true(required_literals(predicate), value), describe(required_literals(predicate))
    assert is_true(with_literals(predicate), value) is is_met


@st.composite
def like_patterns(draw: st.DrawFn) -> tuple[str, str]:
    """A LIKE pattern, and the equivalent regular expression of Python."""
    parts = draw(st.lists(st.one_of(st.sampled_from(["%", "_"]), TEXTS.filter(valid)), max_size=5))
    pattern = "".join(p if p in ("%", "_") else re.sub(r"([%_\\])", r"\\\1", p) for p in parts)
    regex = "".join({"%": ".*", "_": "."}.get(p, re.escape(p)) for p in parts)
    return pattern, regex


@settings(max_examples=examples(200))
@given(like_patterns(), st.lists(TEXTS.filter(valid), max_size=4), st.booleans())
def test_like_matches_as_python_does(pattern: tuple[str, str], filling: list[str], lowers: bool) -> None:
    like, regex = pattern
    meeting = like
    for piece in filling:
        meeting = meeting.replace("%", piece, 1)
    for value in (*filling, re.sub(r"\\(.)", r"\1", meeting, flags=re.S), ""):
        if lowers:
            small = lower(value)
            expected = re.fullmatch(as_lower(regex, like), small, re.S) is not None
            check(col("c").ilike(like), value, is_met=expected)
        else:
            check(col("c").like(like), value, is_met=re.fullmatch(regex, value, re.S) is not None)


def as_lower(regex: str, like: str) -> str:
    """Return the regular expression of a LIKE pattern in lower case."""
    rest, parts = iter(lower(like)), []
    for char in rest:
        parts.append({"%": ".*", "_": "."}.get(char) or re.escape(next(rest) if char == "\\" else char))
    return "".join(parts)


ATOMS = st.one_of(
    st.text("abAskSKi", min_size=1, max_size=3),
    st.sampled_from(["é", "ſ", "İ", "投", r"\.", r"\d", r"\w+", ".", "[ab]", "[^s]", r"\n", "$", "^", r"\b"]),
)
REPEATS = st.sampled_from(["*", "+", "?", "{0}", "{1}", "{2}", "{0,1}", "{1,}", "*?", "+?"])


def takes_no_years(repeated: tuple[str, str]) -> bool:
    """Return whether Python's backtracking ends; with nested unbounded repetitions it may not."""
    inner, repeat = repeated
    return not (ENDLESS.search(inner) and ENDLESS.search(repeat))


ENDLESS = re.compile(r"[*+]|,\}")
REGEXES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"({'|'.join(each)})"),
        st.tuples(inner, REPEATS).filter(takes_no_years).map(lambda each: f"(?:{each[0]}){each[1]}"),
        st.tuples(st.text("abs", min_size=1, max_size=1), st.sampled_from(["*", "+", "?", "{2}"])).map(
            "".join
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(200))
@given(REGEXES, st.data(), st.booleans())
@example("s+", None, True)
@example(r"s*(?:(?:\n)+?)+(\b)", None, True)
def test_matching_texts_contain_the_required_literals(
    regex: str, data: st.DataObject | None, folds: bool
) -> None:
    """A text in which Python or RE2 finds a match has the required literals."""
    flagged = f"(?i){regex}" if folds else regex
    values = (
        ["ſſ"]
        if data is None
        else [data.draw(st.one_of(TEXTS.filter(valid), st.from_regex(re.compile(flagged)).filter(valid)))]
    )
    predicate = col("c").rlike(flagged)
    for value in values:
        met = is_true(predicate, value)
        if met:
            assert is_true(required_literals(predicate), value), describe(required_literals(predicate))
        assert is_true(with_literals(predicate), value) is met
        if regex.isascii() and value.isascii():
            assert met is (re.search(flagged, value) is not None) or re.search(r"[$^]|\\b|\\w|\\d", regex)


@settings(max_examples=examples(20))
@given(st.lists(TEXTS.filter(valid), max_size=4), st.lists(TEXTS.filter(valid), max_size=2))
def test_match_finds_whole_words(texts: list[str], terms: list[str]) -> None:
    value, asked = " ".join(texts), " ".join(terms)
    check(col("c").match(asked), value, is_met=set(words_of(asked)) <= set(words_of(value)))
    assert is_true(col("c").match(" ".join(texts[:2])), value)


def test_words_equal_the_vectors() -> None:
    cases = json.loads((Path(__file__).parents[2] / "fixtures" / "words.json").read_text())
    assert [sorted(words_of(case["text"])) for case in cases] == [sorted(case["words"]) for case in cases]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(like_patterns(), st.booleans()), min_size=1, max_size=3), TEXTS.filter(valid))
def test_required_literals_of_combinations(parts: list[tuple[tuple[str, str], bool]], value: str) -> None:
    each = [col("c").like(like) if matching else ~col("c").like(like) for (like, _), matching in parts]
    for predicate in (all_of(*each), any_of(*each), ~any_of(*each), ~all_of(*each)):
        met = is_true(predicate, value)
        assert is_true(with_literals(predicate), value) is met
        assert not met or is_true(required_literals(predicate), value)
