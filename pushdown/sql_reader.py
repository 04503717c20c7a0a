"""Conditions in SQL: parses a part of the language into predicates.

Understood: columns, texts as Spark reads them, numbers, TRUE, FALSE, DATE '...', TIMESTAMP '...',
comparisons, IN, BETWEEN, IS NULL, LIKE, AND, OR, NOT, parentheses. Anything else raises InputError.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable
from decimal import Decimal

from lockgate.checked_arguments import checked_arguments
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
from lockgate.pushdown.texts.patterns import ANY, parts_of, with_escape

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.|'')*'|[rR]'[^']*'|[rR]\"[^\"]*\")|(?P<number>\d+(?:\.\d+)?)|(?P<quoted>`[^`]+`)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<sign><=>|<=|>=|<>|!=|==|=|<|>|\(|\)|,|\.|-))",
    re.DOTALL,
)
_ESCAPED = re.compile(
    r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\([01][0-7]{2})|\\(.)|''",
    re.DOTALL,
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
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
_MAX_DEPTH = 64
_RESERVED = frozenset("AND OR NOT IN IS NULL BETWEEN LIKE TRUE FALSE CASE WHEN SELECT EXISTS".split())  # noqa: SIM905 - easier to read than 13 texts
Value = str | int | Decimal | bool | datetime.date | datetime.datetime


@checked_arguments
def parse_condition(text: str) -> Predicate:
    """Return the predicate of a condition; raises InputError, without the text, if it is not understood."""
    try:
        return _Reader(text).whole()
    except (ValueError, ArithmeticError) as error:
        raise InputError(str(error)) from None


def _text_of(token: str) -> str:
    """Return the text of a literal, with escapes as Spark reads them; raw ones (`r'...'`) have none.

    Semantics: Spark's SparkParserUtils.unescapeSQLString.
    """
    if token[0] in "rR":
        return token[2:-1]
    return _joined(_ESCAPED.sub(_unescaped, token[1:-1]))


def _unescaped(match: re.Match[str]) -> str:
    unit, point, octal, char = match.groups()
    if unit or octal:
        return chr(int(unit, 16) if unit else int(octal, 8))
    if point:
        number = int(point, 16)
        if number > sys.maxunicode:
            raise InputError("a text has an escape that is no character of Unicode")
        return chr(number)
    if char is None:
        return "'"
    # Before a wildcard of LIKE the backslash stays.
    return f"\\{char}" if char in "%_" else _ESCAPES.get(char, char)


def _joined(text: str) -> str:
    """Return a text whose pairs of surrogates, from escapes of 16 bits, are characters."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise InputError("a text has half of a surrogate pair") from None


class _Reader:
    """A recursive descent over the tokens of a filter."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        if "${" in text:
            # Spark puts the value of a variable there before it reads anything.
            raise InputError("a variable of Spark, ${...}, has no value here")
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise InputError(f"unexpected character at position {position}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._tokens.append(("end", ""))
        self._place = self._depth = 0

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
        is_negated = False
        while self._take("NOT"):
            is_negated = not is_negated
        found = self._simple()
        return Not(found) if is_negated else found

    def _simple(self) -> Predicate:
        if self._take("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise InputError(f"parentheses nest deeper than {_MAX_DEPTH} levels at token {self._place}")
            found = self._either()
            self._need(")")
            self._depth -= 1
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
        pattern = self._text()
        if self._take("ESCAPE"):
            pattern = with_escape(pattern, self._text())
        parts = list(parts_of(pattern))
        wild = [place for place, (_, is_wild) in enumerate(parts) if is_wild]
        ends = {place for place in (0, len(parts) - 1) if place in wild and parts[place][0] == ANY}
        if not parts or set(wild) - ends or len(parts) == 1:
            return Comparison(Op.LIKE, column, (literal(pattern),))
        inner = "".join(char for place, (char, _) in enumerate(parts) if place not in ends)
        op = {
            (False, False): Op.EQ,
            (False, True): Op.STARTS_WITH,
            (True, False): Op.ENDS_WITH,
            (True, True): Op.CONTAINS,
        }[0 in ends, len(parts) - 1 in ends]
        return Comparison(op, column, (literal(inner),))

    def _value(self) -> Value:
        minuses = 0
        while self._take("-"):
            minuses += 1
        if minuses:
            value = self._value()
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                raise InputError("a minus needs a number after it")
            return -value if minuses % 2 else value
        if self._take("DATE"):
            return parse_iso_date(self._single_text())
        if self._take("TIMESTAMP"):
            return parse_iso_datetime(self._single_text())
        word = self._take("TRUE", "FALSE")
        if word:
            return word == "TRUE"
        if self._now[0] == "number":
            self._place += 1
            number = self._tokens[self._place - 1][1]
            return Decimal(number) if "." in number else int(number)
        return self._text()

    def _text(self) -> str:
        """Read one text or several in a row, which are one."""
        found = self._single_text(alone=False)
        while self._now[0] == "text":
            found += self._single_text(alone=False)
        return found

    def _single_text(self, *, alone: bool = True) -> str:
        kind, text = self._now
        if kind != "text":
            raise InputError(f"expected a constant at token {self._place}")
        self._place += 1
        if alone and self._now[0] == "text":
            raise InputError("two texts have no operator between them")
        return _text_of(text)


_WORDS: dict[str, Callable[[_Reader, tuple[str, ...]], Predicate]] = {
    "IN": _Reader._in,
    "BETWEEN": _Reader._between,
    "LIKE": _Reader._like,
}
