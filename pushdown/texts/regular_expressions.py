"""Texts that every match of a regular expression must contain, in whatever syntax it is.

Only parts that Java, Python and RE2 read alike count; anything else requires nothing. So an answer may be
weak, but never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_REPEAT = re.compile(r"\{(\d+)(,\d*)?\}")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAME = re.compile(r"\?P?<[A-Za-z_]\w*>")
# Classes of characters, and places between them, by one letter; other letters mean different things.
_CLASSES = frozenset("dDsSwWbBAzZ")
_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_CALM_FLAGS = frozenset("imsu")


@dataclass(frozen=True)
class Text:
    """A text that is there; `folded`: in whatever case."""

    text: str
    folded: bool


@dataclass(frozen=True)
class Every:
    """All of these are there; none of them: nothing is required."""

    parts: tuple[Required, ...] = ()


@dataclass(frozen=True)
class Either:
    """One of these is there."""

    parts: tuple[Required, ...]


Required = Text | Every | Either
NOTHING = Every()


class _UnclearError(Exception):
    """Raised inside this module where syntaxes differ."""


@lru_cache(1024)
def required_of(regex: str) -> Required:
    """Return what a text must hold in which a regular expression is found."""
    try:
        reader = _Reader(regex)
        found = reader.alternatives(folded=False)
        if not reader.at_end():
            raise _UnclearError
    except (_UnclearError, RecursionError):
        return NOTHING
    return found


class _Run:
    """Characters that follow each other, and what is required so far."""

    def __init__(self) -> None:
        self.parts: list[Required] = []
        self._text = ""
        self._folded = False

    def add(self, text: str, *, folded: bool) -> None:
        if folded != self._folded:
            self.cut()
        self._folded = folded
        self._text += text

    def cut(self) -> None:
        if self._text:
            self.parts.append(Text(self._text, self._folded))
        self._text = ""

    def required(self) -> Required:
        self.cut()
        return self.parts[0] if len(self.parts) == 1 else Every(tuple(self.parts))


class _Reader:
    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0

    def at_end(self) -> bool:
        return self._at >= len(self._regex)

    def _next(self) -> str:
        if self.at_end():
            raise _UnclearError
        self._at += 1
        return self._regex[self._at - 1]

    def _sees(self, text: str) -> bool:
        return self._regex.startswith(text, self._at)

    def alternatives(self, *, folded: bool) -> Required:
        found = []
        while True:
            required, folded = self._sequence(folded=folded)
            found.append(required)
            if not self._sees("|"):
                break
            self._at += 1
        if len(found) == 1:
            return found[0]
        return NOTHING if NOTHING in found else Either(tuple(found))

    def _sequence(self, *, folded: bool) -> tuple[Required, bool]:
        """Return what a branch requires, and whether case counts after it."""
        run = _Run()
        while not self.at_end() and not self._sees("|") and not self._sees(")"):
            atom, folded = self._atom(folded=folded)
            least, once = self._repeats()
            if isinstance(atom, str):
                self._characters(run, atom, least, once=once, folded=folded)
                continue
            run.cut()
            if least and atom != NOTHING:
                run.parts.append(atom)
        return run.required(), folded

    @staticmethod
    def _characters(run: _Run, text: str, least: int, *, once: bool, folded: bool) -> None:
        """Take in a character, or a quoted text, whose last character repeats."""
        kept = text if least else text[:-1]
        if kept:
            run.add(kept, folded=folded)
        if not once:
            run.cut()

    def _repeats(self) -> tuple[int, bool]:
        """Return how often at least the atom before is there, and whether it is there once."""
        match = _REPEAT.match(self._regex, self._at)
        if match:
            self._at = match.end()
            found = int(match[1]), match[1] == "1" and match[2] is None
        elif self._sees("{"):
            raise _UnclearError
        elif self._regex[self._at : self._at + 1] in ("*", "+", "?"):
            found = (1 if self._next() == "+" else 0), False
        else:
            return 1, True
        if self._regex[self._at : self._at + 1] in ("?", "+"):
            self._at += 1
        return found

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
        # Folding may turn letters beyond ASCII into several, or into those of ASCII.
        return (NOTHING if folded and ord(char) > 127 else char), folded

    def _group(self, *, folded: bool) -> tuple[Required, bool]:
        inner, looks = folded, False
        if self._sees("?=") or self._sees("?!"):
            self._at += 2
            looks = True
        elif self._sees("?"):
            inner, is_open = self._opening(folded=folded)
            if not is_open:
                return NOTHING, inner
        found = self.alternatives(folded=inner)
        if self._next() != ")":
            raise _UnclearError
        return (NOTHING if looks else found), folded

    def _opening(self, *, folded: bool) -> tuple[bool, bool]:
        """Return whether case does not count in a group, and whether the group goes on: flags may end it."""
        name = _NAME.match(self._regex, self._at)
        if name:
            self._at = name.end()
            return folded, True
        match = _FLAGS.match(self._regex, self._at)
        if match is None or not _CALM_FLAGS.issuperset(match[1] + (match[2] or "")):
            raise _UnclearError
        self._at = match.end()
        inner = (folded or "i" in match[1]) and "i" not in (match[2] or "")
        return inner, match[3] == ":"

    def _class(self) -> None:
        self._at += self._sees("^")
        if self._sees("]"):
            raise _UnclearError
        while (char := self._next()) != "]":
            if char == "[" or (char == "&" and self._sees("&")) or (char == "\\" and self._sees("Q")):
                raise _UnclearError
            self._at += char == "\\"

    def _escaped(self) -> str | Required:
        char = self._next()
        if char in _CLASSES:
            return NOTHING
        if char in _CHARACTERS:
            return _CHARACTERS[char]
        if char in "pP" and self._sees("{"):
            while self._next() != "}":
                pass
            return NOTHING
        if char == "Q":
            return self._quotation()
        if char.isalnum() or ord(char) > 127:
            raise _UnclearError
        return char

    def _quotation(self) -> str | Required:
        end = self._regex.find("\\E", self._at)
        text = self._regex[self._at : end if end >= 0 else None]
        self._at = len(self._regex) if end < 0 else end + 2
        if not text:
            raise _UnclearError  # what a repetition behind it is about
        if not text.isascii():
            return NOTHING
        return text
