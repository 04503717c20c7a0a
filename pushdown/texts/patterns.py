"""LIKE, ILIKE, RLIKE and MATCH as regular expressions that Arrow evaluates.

`%` stands for any text, `_` for one character, a backslash takes away what the next character means. ILIKE
and MATCH compare in lower case, letter by letter. MATCH finds whole words, and unspaced runs within longer
ones. RLIKE finds its expression, of RE2's syntax, anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.pushdown.texts.unspaced import AGREED, UNSPACED

ANY, ONE, ESCAPE = "%", "_", "\\"
# The letters of words: letters, the marks that belong to them, and digits.
_WORD = rf"\p{{L}}\p{{M}}\p{{N}}{UNSPACED}"
_RUN = rf"[{UNSPACED}][{UNSPACED}\p{{M}}]*"
_DISPUTED = f"[^{AGREED}]+"
# What may stand before a word and after it.
_BEFORE = rf"(?:\A|[^{_WORD}]|[{UNSPACED}]\p{{M}}*)"
_BEFORE_MARK = rf"(?:\A|[^{_WORD}])"
_AFTER = rf"(?:\z|[^{_WORD}]|[{UNSPACED}])"


def parts_of(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield the characters of a pattern of LIKE, each with whether it is a wildcard.

    Raises InputError for a backslash before anything but a wildcard or a backslash, as Spark does.
    """
    rest = iter(pattern)
    for char in rest:
        if char != ESCAPE:
            yield char, char in (ANY, ONE)
            continue
        after = next(rest, "")
        if after not in (ANY, ONE, ESCAPE) or not after:
            raise InputError(
                f"pattern {pattern!r}: a backslash stands before {ANY}, {ONE} or another backslash, "
                f"not before {after!r}"
            )
        yield after, False


def with_escape(pattern: str, escape: str) -> str:
    """Return a pattern whose escape character is `escape` as one with backslashes."""
    if len(escape) != 1:
        raise InputError(f"an escape character is one character, not {escape!r}")
    if escape == ESCAPE:
        return pattern
    rest, found = iter(pattern), []
    for char in rest:
        if char == escape:
            after = next(rest, "")
            if after not in (ANY, ONE, escape) or not after:
                raise InputError(f"pattern {pattern!r}: {escape!r} stands before {ANY}, {ONE} or itself")
            found.append(ESCAPE + after if after in (ANY, ONE, ESCAPE) else after)
        else:
            found.append(ESCAPE + ESCAPE if char == ESCAPE else char)
    return "".join(found)


@lru_cache(1024)
def like_regex(pattern: str) -> str:
    """Return the regular expression of a pattern of LIKE."""
    wild = {ANY: ".*", ONE: "."}
    parts = [wild[char] if is_wild else quoted(char) for char, is_wild in parts_of(pattern)]
    return checked(rf"(?s)\A{''.join(parts)}\z")


@lru_cache(1024)
def word_regexes(terms: str) -> tuple[str, ...]:
    """Return a regular expression for each word and run of `terms`, of texts in lower case."""
    return tuple(_word_regex(each) for each in words_of(terms))


def _word_regex(word: str) -> str:
    if is_run(word):
        return quoted(word)
    begins_with_mark = pc.match_substring_regex(pa.scalar(word), r"\A\p{M}").as_py()
    return f"{_BEFORE_MARK if begins_with_mark else _BEFORE}{quoted(word)}{_AFTER}"


def words_of(terms: str) -> list[str]:
    """Return the words and unspaced runs of a text in lower case, each once."""
    return list(dict.fromkeys(words(pa.array([terms], pa.string())).to_pylist()))


def words(texts: pa.Array) -> pa.Array:
    """Return the words and unspaced runs of texts in lower case, one after the other."""
    return _words(pc.utf8_lower(texts))


def _words(small: pa.Array) -> pa.Array:
    if not pc.all(pc.string_is_ascii(small)).as_py():
        small = pc.replace_substring_regex(small, _RUN, r" \0 ")
    found = pc.list_flatten(pc.split_pattern_regex(small, f"[^{_WORD}]+"))
    return found.filter(pc.not_equal(found, ""))


def words_of_any_engine(texts: pa.Array) -> pa.Array:
    """Return what `words` does, and what an engine would find that takes letters it does not know for blanks.

    A word of `agreed_words` is among them if any version of Unicode makes it a word of the text.
    """
    small = pc.utf8_lower(texts)
    disputed = small.filter(pc.match_substring_regex(small, _DISPUTED))
    if not len(disputed):
        return _words(small)
    return pa.concat_arrays([_words(small), _words(pc.replace_substring_regex(disputed, _DISPUTED, " "))])


def agreed_words(terms: str) -> list[str]:
    """Return the words and runs of a text of which all versions of Unicode say the same."""
    found = pa.array(words_of(terms), pa.string())
    return list(found.filter(pc.invert(pc.match_substring_regex(found, _DISPUTED))).to_pylist())


def are_runs(found: pa.Array) -> pa.Array:
    """Return which of some words and runs are runs."""
    return pc.match_substring_regex(found, rf"\A[{UNSPACED}]")


def is_run(word: str) -> bool:
    """Return whether what `words_of` found is an unspaced run."""
    return bool(are_runs(pa.scalar(word)).as_py())


def lower(text: str) -> str:
    """Return a text in lower case, letter by letter."""
    return str(pc.utf8_lower(pa.scalar(text)).as_py())


@lru_cache(1024)
def checked(regex: str) -> str:
    """Return a regular expression as it is; InputError if it is none that Arrow evaluates."""
    try:
        pc.match_substring_regex(pa.scalar(""), regex)
    except pa.ArrowInvalid as error:
        raise InputError(f"{regex!r} is not a regular expression: {error}") from None
    return regex


def quoted(text: str) -> str:
    """Return a regular expression that matches a text alone."""
    return "".join(_quoted(char) for char in text)


def _quoted(char: str) -> str:
    if char == "\0":
        return r"\x00"
    return char if char.isalnum() or ord(char) > 127 else f"\\{char}"
