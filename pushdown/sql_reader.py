"""A parser of SQL conditions into predicates.

It supports columns, texts with Spark's escapes, numbers, TRUE, FALSE, DATE '...', TIMESTAMP '...',
comparisons, IN, BETWEEN, IS NULL, LIKE, AND, OR, NOT and parentheses. Anything else raises InputError.
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
    """Parse a condition; raises InputError, whose message omits the text, if it is not supported."""
    try:
        return _Reader(text).condition()
    except (ValueError, ArithmeticError) as error:
        raise InputError(str(error)) from None


def _text_of(token: str) -> str:
    """Return the text of a string literal with Spark's escapes decoded; raw literals (`r'...'`) have none.

    Semantics: Spark's SparkParserUtils.unescapeSQLString.
    """
    if token[0] in "rR":
        return token[2:-1]
    return _with_surrogates_joined(_ESCAPED.sub(_unescaped, token[1:-1]))


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
    # The backslash before a wildcard of LIKE stays.
    return f"\\{char}" if char in "%_" else _ESCAPES.get(char, char)


def _with_surrogates_joined(text: str) -> str:
    """Return a text with its surrogate pairs, which come from 16-bit escapes, joined into characters."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise InputError("a text has half of a surrogate pair") from None


class _Reader:
    """A recursive-descent parser over the tokens of a condition."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        if "${" in text:
            # Spark would replace the variable by its value before parsing.
            raise InputError("a variable of Spark, ${...}, has no value here")
        position, text = 0, text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise InputError(f"unexpected character at position {position}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        self._tokens.append(("end", ""))
        self._position = self._depth = 0

    def condition(self) -> Predicate:
        predicate = self._disjunction()
        if self._token[0] != "end":
            raise InputError(f"unexpected text after token {self._position}")
        return predicate

    @property
    def _token(self) -> tuple[str, str]:
        return self._tokens[self._position]

    def _accept(self, *texts: str) -> str | None:
        kind, text = self._token
        if kind in ("word", "sign") and text.upper() in texts:
            self._position += 1
            return text.upper()
        return None

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise InputError(f"expected {text} at token {self._position}")

    def _disjunction(self) -> Predicate:
        children = [self._conjunction()]
        while self._accept("OR"):
            children.append(self._conjunction())
        return any_of(*children)

    def _conjunction(self) -> Predicate:
        children = [self._negation()]
        while self._accept("AND"):
            children.append(self._negation())
        return all_of(*children)

    def _negation(self) -> Predicate:
        is_negated = False
        while self._accept("NOT"):
            is_negated = not is_negated
        predicate = self._simple()
        return Not(predicate) if is_negated else predicate

    def _simple(self) -> Predicate:
        if self._accept("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise InputError(
                    f"parentheses nest deeper than {_MAX_DEPTH} levels at token {self._position}"
                )
            predicate = self._disjunction()
            self._expect(")")
            self._depth -= 1
            return predicate
        if self._accept("TRUE"):
            return AlwaysTrue()
        if self._accept("FALSE"):
            return AlwaysFalse()
        if self._token[0] in ("number", "text"):
            return self._constants()
        return self._comparison(self._column())

    def _constants(self) -> Predicate:
        """Parse a comparison of constants, such as `1 = 0`, the usual way to select all rows or none."""
        left = self._value()
        sign = self._accept("=", "==")
        right = self._value() if sign else None
        if sign is None or type(left) is not type(right):
            raise InputError("constants can only be compared by =, and with a constant of the same type")
        return AlwaysTrue() if left == right else AlwaysFalse()

    def _column(self) -> tuple[str, ...]:
        path = [self._name()]
        while self._accept("."):
            path.append(self._name())
        return tuple(path)

    def _name(self) -> str:
        kind, text = self._token
        if kind == "quoted":
            text = text[1:-1]
        elif kind != "word" or text.upper() in _RESERVED:
            raise InputError(f"expected a column at token {self._position}")
        self._position += 1
        return text

    def _comparison(self, column: tuple[str, ...]) -> Predicate:
        if self._accept("IS"):
            is_negated = self._accept("NOT")
            self._expect("NULL")
            return Comparison(Op.IS_NOT_NULL if is_negated else Op.IS_NULL, column)
        sign = self._accept(*_SIGNS)
        if sign:
            return Comparison(_SIGNS[sign], column, (literal(self._value()),))
        is_negated = self._accept("NOT")
        word = self._accept("IN", "BETWEEN", "LIKE")
        if word is None:
            raise InputError(f"expected a comparison at token {self._position}")
        predicate = _OPERATORS[word](self, column)
        return Not(predicate) if is_negated else predicate

    def _in(self, column: tuple[str, ...]) -> Predicate:
        self._expect("(")
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._expect(")")
        return Comparison(Op.IN, column, tuple(literal(value) for value in values))

    def _between(self, column: tuple[str, ...]) -> Predicate:
        low = Comparison(Op.GE, column, (literal(self._value()),))
        self._expect("AND")
        return all_of(low, Comparison(Op.LE, column, (literal(self._value()),)))

    def _like(self, column: tuple[str, ...]) -> Predicate:
        pattern = self._text()
        if self._accept("ESCAPE"):
            pattern = with_escape(pattern, self._text())
        parts = list(parts_of(pattern))
        wildcards = [index for index, (_, is_wild) in enumerate(parts) if is_wild]
        ends = {index for index in (0, len(parts) - 1) if index in wildcards and parts[index][0] == ANY}
        if not parts or set(wildcards) - ends or len(parts) == 1:
            return Comparison(Op.LIKE, column, (literal(pattern),))
        inner = "".join(char for index, (char, _) in enumerate(parts) if index not in ends)
        op = {
            (False, False): Op.EQ,
            (False, True): Op.STARTS_WITH,
            (True, False): Op.ENDS_WITH,
            (True, True): Op.CONTAINS,
        }[0 in ends, len(parts) - 1 in ends]
        return Comparison(op, column, (literal(inner),))

    def _value(self) -> Value:
        minuses = 0
        while self._accept("-"):
            minuses += 1
        if minuses:
            value = self._value()
            if isinstance(value, bool) or not isinstance(value, int | Decimal):
                raise InputError("a minus needs a number after it")
            return -value if minuses % 2 else value
        if self._accept("DATE"):
            return parse_iso_date(self._single_text())
        if self._accept("TIMESTAMP"):
            return parse_iso_datetime(self._single_text())
        word = self._accept("TRUE", "FALSE")
        if word:
            return word == "TRUE"
        if self._token[0] == "number":
            self._position += 1
            number = self._tokens[self._position - 1][1]
            return Decimal(number) if "." in number else int(number)
        return self._text()

    def _text(self) -> str:
        """Parse a text; adjacent texts are concatenated."""
        text = self._single_text(alone=False)
        while self._token[0] == "text":
            text += self._single_text(alone=False)
        return text

    def _single_text(self, *, alone: bool = True) -> str:
        kind, text = self._token
        if kind != "text":
            raise InputError(f"expected a constant at token {self._position}")
        self._position += 1
        if alone and self._token[0] == "text":
            raise InputError("two texts have no operator between them")
        return _text_of(text)


_OPERATORS: dict[str, Callable[[_Reader, tuple[str, ...]], Predicate]] = {
    "IN": _Reader._in,
    "BETWEEN": _Reader._between,
    "LIKE": _Reader._like,
}
