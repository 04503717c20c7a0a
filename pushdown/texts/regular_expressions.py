"""Texts that every match of a regular expression contains, whichever engine evaluates it.

Only parts with one meaning in Java, Python and RE2 are used; other parts require nothing. So a result may be
weaker than possible, but never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_REPEAT = re.compile(r"\{(\d+)(,\d*)?\}")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAME = re.compile(r"\?P?<[A-Za-z_]\w*>")
# One-letter character classes and anchors with one meaning in all three syntaxes.
_CLASSES = frozenset("dDsSwWbBAzZ")
_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_COMMON_FLAGS = frozenset("imsu")


@dataclass(frozen=True)
class Text:
    """A text that a match contains; with `folded`, in any case."""

    text: str
    folded: bool


@dataclass(frozen=True)
class Every:
    """Parts that a match contains all of; without parts, nothing is required."""

    parts: tuple[Required, ...] = ()


@dataclass(frozen=True)
class Either:
    """Parts that a match contains at least one of."""

    parts: tuple[Required, ...]


Required = Text | Every | Either
NOTHING = Every()


class _UnclearError(Exception):
    """Raised inside this module where the syntaxes differ."""


@lru_cache(1024)
def required_of(regex: str) -> Required:
    """Return what every text contains in which a regular expression finds a match."""
    try:
        reader = _Reader(regex)
        required = reader.alternatives(folded=False)
        if not reader.at_end():
            raise _UnclearError
    except (_UnclearError, RecursionError):
        return NOTHING
    return required


class _Run:
    """Collects adjacent characters into texts, and the requirements of a sequence."""

    def __init__(self) -> None:
        self.parts: list[Required] = []
        self._text = ""
        self._folded = False

    def add(self, text: str, *, folded: bool) -> None:
        if folded != self._folded:
            self.end_text()
        self._folded = folded
        self._text += text

    def end_text(self) -> None:
        if self._text:
            self.parts.append(Text(self._text, self._folded))
        self._text = ""

    def required(self) -> Required:
        self.end_text()
        return self.parts[0] if len(self.parts) == 1 else Every(tuple(self.parts))


class _Reader:
    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._position = 0

    def at_end(self) -> bool:
        return self._position >= len(self._regex)

    def _next(self) -> str:
        if self.at_end():
            raise _UnclearError
        self._position += 1
        return self._regex[self._position - 1]

    def _starts_with(self, text: str) -> bool:
        return self._regex.startswith(text, self._position)

    def alternatives(self, *, folded: bool) -> Required:
        branches = []
        while True:
            required, folded = self._sequence(folded=folded)
            branches.append(required)
            if not self._starts_with("|"):
                break
            self._position += 1
        if len(branches) == 1:
            return branches[0]
        return NOTHING if NOTHING in branches else Either(tuple(branches))

    def _sequence(self, *, folded: bool) -> tuple[Required, bool]:
        """Return what a branch requires, and whether text after it ignores case."""
        run = _Run()
        while not self.at_end() and not self._starts_with("|") and not self._starts_with(")"):
            atom, folded = self._atom(folded=folded)
            minimum, is_once = self._repeats()
            if isinstance(atom, str):
                self._characters(run, atom, minimum, is_once=is_once, folded=folded)
                continue
            run.end_text()
            if minimum and atom != NOTHING:
                run.parts.append(atom)
        return run.required(), folded

    @staticmethod
    def _characters(run: _Run, text: str, minimum: int, *, is_once: bool, folded: bool) -> None:
        """Add a character, or a quoted text, whose last character may repeat."""
        required_text = text if minimum else text[:-1]
        if required_text:
            run.add(required_text, folded=folded)
        if not is_once:
            run.end_text()

    def _repeats(self) -> tuple[int, bool]:
        """Return the preceding atom's minimum number of repetitions, and whether it stands exactly once."""
        match = _REPEAT.match(self._regex, self._position)
        if match:
            self._position = match.end()
            repeats = int(match[1]), match[1] == "1" and match[2] is None
        elif self._starts_with("{"):
            raise _UnclearError
        elif self._regex[self._position : self._position + 1] in ("*", "+", "?"):
            repeats = (1 if self._next() == "+" else 0), False
        else:
            return 1, True
        if self._regex[self._position : self._position + 1] in ("?", "+"):
            self._position += 1
        return repeats

    def _atom(self, *, folded: bool) -> tuple[str | Required, bool]:
        char = self._next()
        match char:
            case "(":
                return self._group(folded=folded)
            case "[":
                self._class()
                return NOTHING, folded
            case "\\":
                return self._escaped(), folded
            case "." | "^" | "$":
                return NOTHING, folded
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise _UnclearError
        # Case folding may turn a non-ASCII letter into several letters, or into an ASCII one.
        return (NOTHING if folded and ord(char) > 127 else char), folded

    def _group(self, *, folded: bool) -> tuple[Required, bool]:
        inner_folded, is_lookahead = folded, False
        if self._starts_with("?=") or self._starts_with("?!"):
            self._position += 2
            is_lookahead = True
        elif self._starts_with("?"):
            inner_folded, is_open = self._opening(folded=folded)
            if not is_open:
                return NOTHING, inner_folded
        required = self.alternatives(folded=inner_folded)
        if self._next() != ")":
            raise _UnclearError
        return (NOTHING if is_lookahead else required), folded

    def _opening(self, *, folded: bool) -> tuple[bool, bool]:
        """Return whether the group ignores case, and whether it has content: `(?i)` has flags only."""
        name = _NAME.match(self._regex, self._position)
        if name:
            self._position = name.end()
            return folded, True
        match = _FLAGS.match(self._regex, self._position)
        if match is None or not _COMMON_FLAGS.issuperset(match[1] + (match[2] or "")):
            raise _UnclearError
        self._position = match.end()
        inner_folded = (folded or "i" in match[1]) and "i" not in (match[2] or "")
        return inner_folded, match[3] == ":"

    def _class(self) -> None:
        self._position += self._starts_with("^")
        if self._starts_with("]"):
            raise _UnclearError
        while (char := self._next()) != "]":
            if (
                char == "["
                or (char == "&" and self._starts_with("&"))
                or (char == "\\" and self._starts_with("Q"))
            ):
                raise _UnclearError
            self._position += char == "\\"

    def _escaped(self) -> str | Required:
        char = self._next()
        if char in _CLASSES:
            return NOTHING
        if char in _CHARACTERS:
            return _CHARACTERS[char]
        if char in "pP" and self._starts_with("{"):
            while self._next() != "}":
                pass
            return NOTHING
        if char == "Q":
            return self._quotation()
        if char.isalnum() or ord(char) > 127:
            raise _UnclearError
        return char

    def _quotation(self) -> str | Required:
        end = self._regex.find("\\E", self._position)
        text = self._regex[self._position : end if end >= 0 else None]
        self._position = len(self._regex) if end < 0 else end + 2
        if not text:
            raise _UnclearError  # the syntaxes differ in what a repetition after it repeats
        if not text.isascii():
            return NOTHING
        return text
