"""Conditions in SQL: parses a part of the language into predicates.

Understood: columns, texts, numbers, TRUE, FALSE, DATE '...', TIMESTAMP '...', comparisons, IN, BETWEEN, IS
NULL, LIKE with `%` at its ends, AND, OR, NOT, parentheses. Anything else raises InputError.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal

from lockgate.errors import InputError
from lockgate.pushdown.iso_times import parse_iso_date, parse_iso_datetime
from lockgate.pushdown.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    Not,
    Op,
    Predicate,
    all_of,
    any_of,
    literal,
)

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.|'')*')|(?P<number>\d+(?:\.\d+)?)|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=>|<=|>=|<>|!=|==|=|<|>|\(|\)|,|\.|-))",
    re.DOTALL,
)
_SIGNS = {
    "=": Op.EQ,
    "==": Op.EQ,
    "<>": Op.NE,
    "!=": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
    "<=>": Op.EQ_NULL_SAFE,
}
_RESERVED = frozenset("AND OR NOT IN IS NULL BETWEEN LIKE TRUE FALSE CASE WHEN SELECT EXISTS".split())  # noqa: SIM905 - easier to read than 13 texts
Value = str | int | Decimal | bool | datetime.date | datetime.datetime


def parse_condition(text: str) -> Predicate:
    """Return the predicate of a condition; raises InputError, without the text, if it is not understood."""
    try:
        return _Reader(text).whole()
    except (ValueError, ArithmeticError) as error:
        raise InputError(str(error)) from None


class _Reader:
    """A recursive descent over the tokens of a filter."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise InputError(f"unexpected character at position {position}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._tokens.append(("end", ""))
        self._place = 0

    def whole(self) -> Predicate:
        found = self._either()
        if self._now[0] != "end":
            raise InputError(f"unexpected text after token {self._place}")
        return found

    @property
    def _now(self) -> tuple[str, str]:
        return self._tokens[self._place]

    def _take(self, *texts: str) -> str | None:
        kind, text = self._now
        if kind in ("word", "sign") and text.upper() in texts:
            self._place += 1
            return text.upper()
        return None

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise InputError(f"expected {text} at token {self._place}")

    def _either(self) -> Predicate:
        found = [self._both()]
        while self._take("OR"):
            found.append(self._both())
        return any_of(*found)

    def _both(self) -> Predicate:
        found = [self._negated()]
        while self._take("AND"):
            found.append(self._negated())
        return all_of(*found)

    def _negated(self) -> Predicate:
        return Not(self._negated()) if self._take("NOT") else self._simple()

    def _simple(self) -> Predicate:
        if self._take("("):
            found = self._either()
            self._need(")")
            return found
        if self._take("TRUE"):
            return AlwaysTrue()
        if self._take("FALSE"):
            return AlwaysFalse()
        if self._now[0] in ("number", "text"):
            return self._constants()
        return self._about(self._column())

    def _constants(self) -> Predicate:
        """Read a comparison of constants, such as `1 = 0`, the usual way to write all or nothing."""
        one = self._value()
        sign = self._take("=", "==")
        other = self._value() if sign else None
        if sign is None or type(one) is not type(other):
            raise InputError("constants are only compared by = and with their like")
        return AlwaysTrue() if one == other else AlwaysFalse()

    def _column(self) -> tuple[str, ...]:
        path = [self._name()]
        while self._take("."):
            path.append(self._name())
        return tuple(path)

    def _name(self) -> str:
        kind, text = self._now
        if kind == "quoted":
            text = text[1:-1]
        elif kind != "word" or text.upper() in _RESERVED:
            raise InputError(f"expected a column at token {self._place}")
        self._place += 1
        return text

    def _about(self, column: tuple[str, ...]) -> Predicate:
        if self._take("IS"):
            negated = self._take("NOT")
            self._need("NULL")
            return Comparison(Op.IS_NOT_NULL if negated else Op.IS_NULL, column)
        sign = self._take(*_SIGNS)
        if sign:
            return Comparison(_SIGNS[sign], column, (literal(self._value()),))
        negated = self._take("NOT")
        word = self._take("IN", "BETWEEN", "LIKE")
        if word is None:
            raise InputError(f"expected a comparison at token {self._place}")
        found = _WORDS[word](self, column)
        return Not(found) if negated else found

    def _in(self, column: tuple[str, ...]) -> Predicate:
        self._need("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._need(")")
        return Comparison(Op.IN, column, tuple(literal(value) for value in values))

    def _between(self, column: tuple[str, ...]) -> Predicate:
        low = Comparison(Op.GE, column, (literal(self._value()),))
        self._need("AND")
        return all_of(low, Comparison(Op.LE, column, (literal(self._value()),)))

    def _like(self, column: tuple[str, ...]) -> Predicate:
        pattern = self._value()
        inner = pattern.strip("%") if isinstance(pattern, str) else "_"
        if "_" in inner or "%" in inner or "\\" in inner or not isinstance(pattern, str):
            raise InputError("LIKE supports % only at the ends of a text, and no _")
        starts, ends = not pattern.startswith("%"), not pattern.endswith("%")
        op = {
            (True, True): Op.EQ,
            (True, False): Op.STARTS_WITH,
            (False, True): Op.ENDS_WITH,
            (False, False): Op.CONTAINS,
        }[starts, ends]
        return Comparison(op, column, (literal(inner),))

    def _value(self) -> Value:
        if self._take("-"):
            value = self._value()
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                raise InputError("a minus needs a number after it")
            return -value
        if self._take("DATE"):
            return parse_iso_date(self._text())
        if self._take("TIMESTAMP"):
            return parse_iso_datetime(self._text())
        word = self._take("TRUE", "FALSE")
        if word:
            return word == "TRUE"
        if self._now[0] == "number":
            self._place += 1
            number = self._tokens[self._place - 1][1]
            return Decimal(number) if "." in number else int(number)
        return self._text()

    def _text(self) -> str:
        kind, text = self._now
        if kind != "text":
            raise InputError(f"expected a constant at token {self._place}")
        self._place += 1
        if self._now[0] == "text":
            raise InputError("two texts have no operator between them")
        return re.sub(r"\\(.)|''", lambda match: match[1] or "'", text[1:-1], flags=re.DOTALL)


_WORDS: dict[str, Callable[[_Reader, tuple[str, ...]], Predicate]] = {
    "IN": _Reader._in,
    "BETWEEN": _Reader._between,
    "LIKE": _Reader._like,
}
