"""LIKE, ILIKE, RLIKE and MATCH as regular expressions that Arrow evaluates.

`%` matches any text, `_` one character, and a backslash makes the next character literal. ILIKE and MATCH
compare in lower case, letter by letter. MATCH finds whole words, and unspaced runs inside longer ones. RLIKE
finds its expression, in RE2's syntax, anywhere in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError
from lockgate.pushdown.texts.unspaced import AGREED, UNSPACED

ANY, ONE, ESCAPE = "%", "_", "\\"
# Characters of words: letters, their marks, and digits.
_WORD = rf"\p{{L}}\p{{M}}\p{{N}}{UNSPACED}"
_RUN = rf"[{UNSPACED}][{UNSPACED}\p{{M}}]*"
_UNICODE_DEPENDENT = f"[^{AGREED}]+"
# Word boundaries: what may stand before a word and after it.
_WORD_START = rf"(?:\A|[^{_WORD}]|[{UNSPACED}]\p{{M}}*)"
_MARK_START = rf"(?:\A|[^{_WORD}])"
_WORD_END = rf"(?:\z|[^{_WORD}]|[{UNSPACED}])"


def parts_of(pattern: str) -> Iterator[tuple[str, bool]]:
    """Yield the characters of a LIKE pattern, each with whether it is a wildcard.

    Raises InputError for a backslash before anything but a wildcard or a backslash, as Spark does.
    """
    characters = iter(pattern)
    for char in characters:
        if char != ESCAPE:
            yield char, char in (ANY, ONE)
            continue
        escaped = next(characters, "")
        if escaped not in (ANY, ONE, ESCAPE) or not escaped:
            raise InputError(
                f"pattern {pattern!r}: a backslash stands before {ANY}, {ONE} or another backslash, "
                f"not before {escaped!r}"
            )
        yield escaped, False


def with_escape(pattern: str, escape: str) -> str:
    """Return the pattern with backslashes in place of its escape character `escape`."""
    if len(escape) != 1:
        raise InputError(f"an escape character is one character, not {escape!r}")
    if escape == ESCAPE:
        return pattern
    characters, parts = iter(pattern), []
    for char in characters:
        if char == escape:
            escaped = next(characters, "")
            if escaped not in (ANY, ONE, escape) or not escaped:
                raise InputError(f"pattern {pattern!r}: {escape!r} stands before {ANY}, {ONE} or itself")
            parts.append(ESCAPE + escaped if escaped in (ANY, ONE, ESCAPE) else escaped)
        else:
            parts.append(ESCAPE + ESCAPE if char == ESCAPE else char)
    return "".join(parts)


@lru_cache(1024)
def like_regex(pattern: str) -> str:
    """Return a LIKE pattern as a regular expression."""
    wild = {ANY: ".*", ONE: "."}
    parts = [wild[char] if is_wild else quoted(char) for char, is_wild in parts_of(pattern)]
    return checked(rf"(?s)\A{''.join(parts)}\z")


@lru_cache(1024)
def word_regexes(terms: str) -> tuple[str, ...]:
    """Return a regular expression, for lower-case texts, for each word and unspaced run of `terms`."""
    return tuple(_word_regex(word) for word in words_of(terms))


def _word_regex(word: str) -> str:
    if is_run(word):
        return quoted(word)
    begins_with_mark = pc.match_substring_regex(pa.scalar(word), r"\A\p{M}").as_py()
    return f"{_MARK_START if begins_with_mark else _WORD_START}{quoted(word)}{_WORD_END}"


def words_of(terms: str) -> list[str]:
    """Return the distinct words and unspaced runs of a text, in lower case."""
    return list(dict.fromkeys(words(pa.array([terms], pa.string())).to_pylist()))


def words(texts: pa.Array) -> pa.Array:
    """Return all words and unspaced runs of texts, in lower case and in order."""
    return _words_of_lower(pc.utf8_lower(texts))


def _words_of_lower(texts: pa.Array) -> pa.Array:
    if not pc.all(pc.string_is_ascii(texts)).as_py():
        texts = pc.replace_substring_regex(texts, _RUN, r" \0 ")
    words = pc.list_flatten(pc.split_pattern_regex(texts, f"[^{_WORD}]+"))
    return words.filter(pc.not_equal(words, ""))


def words_of_any_engine(texts: pa.Array) -> pa.Array:
    """Return the words of texts by this and by older versions of Unicode.

    An older version treats letters that it does not define as blanks, so it may split words differently. A
    word of `agreed_words` is in the result if it is a word of the text by any version.
    """
    lower_texts = pc.utf8_lower(texts)
    dependent = lower_texts.filter(pc.match_substring_regex(lower_texts, _UNICODE_DEPENDENT))
    if not len(dependent):
        return _words_of_lower(lower_texts)
    return pa.concat_arrays(
        [
            _words_of_lower(lower_texts),
            _words_of_lower(pc.replace_substring_regex(dependent, _UNICODE_DEPENDENT, " ")),
        ]
    )


def agreed_words(terms: str) -> list[str]:
    """Return the words and runs of a text whose characters all versions of Unicode classify alike."""
    words = pa.array(words_of(terms), pa.string())
    return list(words.filter(pc.invert(pc.match_substring_regex(words, _UNICODE_DEPENDENT))).to_pylist())


def are_runs(words: pa.Array) -> pa.Array:
    """Return a mask of the unspaced runs among words and runs."""
    return pc.match_substring_regex(words, rf"\A[{UNSPACED}]")


def is_run(word: str) -> bool:
    """Return whether an item of `words_of` is an unspaced run."""
    return bool(are_runs(pa.scalar(word)).as_py())


def lower(text: str) -> str:
    """Return a text in lower case, converted letter by letter."""
    return str(pc.utf8_lower(pa.scalar(text)).as_py())


@lru_cache(1024)
def checked(regex: str) -> str:
    """Return the regular expression unchanged; InputError if Arrow cannot evaluate it."""
    try:
        pc.match_substring_regex(pa.scalar(""), regex)
    except pa.ArrowInvalid as error:
        raise InputError(f"{regex!r} is not a regular expression: {error}") from None
    return regex


def quoted(text: str) -> str:
    """Return a regular expression that matches exactly this text."""
    return "".join(_quoted(char) for char in text)


def _quoted(char: str) -> str:
    if char == "\0":
        return r"\x00"
    return char if char.isalnum() or ord(char) > 127 else f"\\{char}"
