"""Tokens in values of policies: `{USER}`, and expressions `${{...}}`, filled in for each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Names:
    """Values of a request for tokens: `tokens` by name, and what an expression comes to."""

    tokens: Mapping[str, object] = field(default_factory=dict)
    resolve: Callable[[str], str] | None = None


NO_NAMES = Names()


@dataclass(frozen=True)
class Delimiters:
    """Delimiters of tokens: their begin and end, what takes that meaning away, and how their names begin."""

    start: str = "{"
    end: str = "}"
    escape: str = "\\"
    prefix: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Delimiters | None:
        """Return the delimiters of a level's matcher options, None if it has no tokens."""
        if str(options.get("replaceTokens") or "true").lower() != "true":
            return None
        start, end, escape = (
            str(options.get(f"tokenDelimiter{name}") or default)[0]
            for name, default in (("Start", "{"), ("End", "}"), ("Escape", "\\"))
        )
        prefix = str(options.get("tokenDelimiterPrefix") or "")
        if escape in (start, end) or set(prefix) & {escape, start, end}:
            return None
        return cls(start, end, escape, prefix)

    def are_in(self, text: str) -> bool:
        """Return whether anything in a text would be replaced."""
        return self.escape in text or (self.start in text and self.end in text)

    def replaced(self, text: str, tokens: Mapping[str, object]) -> str:
        """Return a text with its tokens filled in; those without a value stay as they are."""
        return _Substitution(self, tokens).run(text) if self.are_in(text) else text

    def value(self, name: str, tokens: Mapping[str, object]) -> object:
        """Return the value of a token, None if it has none."""
        return tokens.get(name[len(self.prefix) :]) if name.startswith(self.prefix) else None


class _Substitution:
    """One walk over a text: `_token` holds the name that is being read, None outside a token."""

    def __init__(self, marks: Delimiters, tokens: Mapping[str, object]) -> None:
        self._marks, self._tokens = marks, tokens
        self._out: list[str] = []
        self._token: list[str] | None = None

    def run(self, text: str) -> str:
        letters = iter(text)
        for letter in letters:
            if letter == self._marks.escape:
                self._escaped(next(letters, ""))
            elif self._token is None:
                self._outside(letter)
            else:
                self._inside(letter)
        if self._token is not None:
            self._out.append(self._marks.start + "".join(self._token))
        return "".join(self._out)

    def _escaped(self, letter: str) -> None:
        mark = self._marks.start if self._token is None else self._marks.end
        # Between the delimiters only the end can be escaped, outside only the start.
        kept = "" if letter and letter in (self._marks.escape, mark) else self._marks.escape
        (self._out if self._token is None else self._token).append(kept + letter)

    def _outside(self, letter: str) -> None:
        if letter == self._marks.start:
            self._token = []
        else:
            self._out.append(letter)

    def _inside(self, letter: str) -> None:
        assert self._token is not None
        if letter != self._marks.end:
            self._token.append(letter)
            return
        name = "".join(self._token)
        value = self._marks.value(name, self._tokens)
        self._out.append(f"{self._marks.start}{name}{self._marks.end}" if value is None else str(value))
        self._token = None
