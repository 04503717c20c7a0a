"""LIKE, ILIKE, RLIKE and MATCH as regular expressions that Arrow evaluates.

`%` stands for any text, `_` for one character, a backslash takes away what the next character means. ILIKE
and MATCH compare in lower case, letter by letter. RLIKE finds its expression, of RE2's syntax, anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError

ANY, ONE, ESCAPE = "%", "_", "\\"
# The letters of words: letters, the marks that belong to them, and digits.
_WORD = r"\p{L}\p{M}\p{N}"


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
    """Return the regular expressions of the words of `terms`, in lower case, as whole words."""
    outside = f"[^{_WORD}]"
    return tuple(rf"(?:\A|{outside}){quoted(word)}(?:\z|{outside})" for word in words_of(terms))


def words_of(terms: str) -> list[str]:
    """Return the words of a text in lower case, each once."""
    return list(dict.fromkeys(words(pa.array([terms], pa.string())).to_pylist()))


def words(texts: pa.Array) -> pa.Array:
    """Return the words of texts in lower case, one after the other."""
    split = pc.split_pattern_regex(pc.utf8_lower(texts), f"[^{_WORD}]+")
    found = pc.list_flatten(split)
    return found.filter(pc.not_equal(found, ""))


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
