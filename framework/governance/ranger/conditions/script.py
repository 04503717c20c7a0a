"""Scripts: the part of JavaScript that Ranger's conditions and macros use, interpreted here.

Expressions: literals, names, calls, members, indexes, lists, `! - && || ?:`, comparisons, `in`, `+ - * / %`.
Statements: expressions, `var x = ...`, `x = ...`, `ctx.result = ...`, `if`, blocks. All else raises
ScriptError when the script is compiled, so that a policy can be refused before it decides anything.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lockgate.framework.governance.ranger.conditions.environment import CONTEXT
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError, Token, tokens_of
from lockgate.framework.governance.ranger.conditions.script_values import (
    UNDEFINED,
    ScriptFailedError,
    added,
    compared,
    divided,
    is_member,
    is_true,
    loosely_equal,
    member,
    number_of,
    remainder,
    strictly_equal,
)

RESULT = "ctx.result"
# Source: Ranger's JavaScriptEdits.
_DOUBLE_BRACKETS = re.compile(r"""\[\[([}{$"a-zA-Z0-9_.\[\]]+)(,['"](.+?)['"])*\]\]""")
# What a statement gives that has no value: the value before it stays.
_EMPTY = object()
_CONSTANTS: Mapping[str, object] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNDEFINED,
    "NaN": math.nan,
    "Infinity": math.inf,
}
_RESERVED = frozenset(
    ("function", "new", "while", "for", "return", "try", "throw", "class", "delete", "typeof", "do", "switch")
)


class ScriptNames:
    """The names of one run: what the request gives, and what the script has set itself."""

    def __init__(self, given: Callable[[str], object]) -> None:
        self._given = given
        self.own: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        return self.own[name] if name in self.own else self._given(name)


Run = Callable[[ScriptNames], object]
_BINARY: tuple[dict[str, Callable[[Any, Any], object]], ...] = (
    {
        "==": loosely_equal,
        "!=": lambda one, other: not loosely_equal(one, other),
        "===": strictly_equal,
        "!==": lambda one, other: not strictly_equal(one, other),
    },
    {
        "<": lambda one, other: compared(one, other, operator.lt),
        ">": lambda one, other: compared(one, other, operator.gt),
        "<=": lambda one, other: compared(one, other, operator.le),
        ">=": lambda one, other: compared(one, other, operator.ge),
        "in": is_member,
    },
    {"+": added, "-": lambda one, other: number_of(one) - number_of(other)},
    {
        "*": lambda one, other: number_of(one) * number_of(other),
        "/": divided,
        "%": remainder,
    },
)


class Script:
    """A compiled script, which runs as often as it is asked."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        """Compile; raises ScriptError for what is not understood, and for names nobody knows."""
        self._run = _one_by_one(_Compiler(tokens_of(_without_double_brackets(text)), names).program())

    def value(self, given: Callable[[str], object]) -> object:
        """Return the value of the script, None if it has none or fails as in Ranger."""
        try:
            value = self._run(ScriptNames(given))
        except ScriptFailedError:
            return None
        return None if value is UNDEFINED or value is _EMPTY else value

    def holds(self, given: Callable[[str], object]) -> bool:
        """Return the value of the script if it is a Boolean, else what it set as `ctx.result`.

        Semantics: RangerRequestScriptEvaluator.evaluateConditionScript.
        """
        names = ScriptNames(given)
        try:
            value = self._run(names)
        except ScriptFailedError:
            value = None
        return value if isinstance(value, bool) else names.own.get(RESULT) is True


def _without_double_brackets(text: str) -> str:
    """Return a script with `[[USER.x]]` as Ranger reads it: the list of what commas divide in a text."""
    return _DOUBLE_BRACKETS.sub(lambda match: f'{match[1]}.split("{match[3] or ","}")', text)


@lru_cache(maxsize=10_000)
def compiled(text: str, names: frozenset[str]) -> Script:
    """Return a script, compiled once."""
    return Script(text, names)


class _Compiler:
    """A recursive descent, one method a rule, each returning what computes its part."""

    def __init__(self, tokens: list[Token], names: frozenset[str]) -> None:
        self._tokens, self._place = tokens, 0
        self._known = set(names)

    def program(self) -> list[Run]:
        statements = []
        while self._now.kind != "end":
            statements.append(self._statement())
        return statements

    # --- tokens ---

    @property
    def _now(self) -> Token:
        return self._tokens[self._place]

    def _next(self) -> Token:
        token = self._now
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def _take(self, *texts: str) -> str | None:
        token = self._now
        if token.kind in ("sign", "name") and token.text in texts:
            self._next()
            return token.text
        return None

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise ScriptError(f"{text!r} is expected at character {self._now.position} of the script")

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise ScriptError(f"a name is expected at character {token.position} of the script")
        return token.text

    # --- statements ---

    def _statement(self) -> Run:
        if self._take(";"):
            return _nothing
        if self._take("{"):
            return self._block()
        if self._take("if"):
            return self._condition()
        statement = self._assignment()
        if self._now.kind != "end" and self._now.text != "}":
            self._need(";")
        return statement

    def _block(self) -> Run:
        inside = []
        while not self._take("}"):
            if self._now.kind == "end":
                raise ScriptError("the script ends within { }")
            inside.append(self._statement())
        return _one_by_one(inside)

    def _condition(self) -> Run:
        self._need("(")
        test = self._expression()
        self._need(")")
        then = self._statement()
        other = self._statement() if self._take("else") else _nothing

        def run(names: ScriptNames) -> object:
            value = then(names) if is_true(test(names)) else other(names)
            return UNDEFINED if value is _EMPTY else value

        return run

    def _assignment(self) -> Run:
        if self._take("var", "let", "const"):
            name = self._name()
            value = self._expression() if self._take("=") else _constant(UNDEFINED)
            return _declaring(self._set(name, value))
        if [token.text for token in self._tokens[self._place : self._place + 4]] == [
            "ctx",
            ".",
            "result",
            "=",
        ]:
            self._place += 4
            return _setting(RESULT, self._expression())
        if self._now.kind == "name" and self._tokens[self._place + 1].text == "=":
            name = self._name()
            self._need("=")
            return self._set(name, self._expression())
        return self._expression()

    def _set(self, name: str, value: Run) -> Run:
        self._known.add(name)
        return _setting(name, value)

    # --- expressions ---

    def _expression(self) -> Run:
        test = self._either()
        if not self._take("?"):
            return test
        then = self._expression()
        self._need(":")
        other = self._expression()
        return lambda names: then(names) if is_true(test(names)) else other(names)

    def _either(self) -> Run:
        value = self._both()
        while self._take("||"):
            value = _or(value, self._both())
        return value

    def _both(self) -> Run:
        value = self._binary(0)
        while self._take("&&"):
            value = _and(value, self._binary(0))
        return value

    def _binary(self, rank: int) -> Run:
        if rank == len(_BINARY):
            return self._unary()
        value = self._binary(rank + 1)
        while sign := self._take(*_BINARY[rank]):
            value = _operation(_BINARY[rank][sign], value, self._binary(rank + 1))
        return value

    def _unary(self) -> Run:
        if self._take("!"):
            value = self._unary()
            return lambda names: not is_true(value(names))
        if self._take("-"):
            number = self._unary()
            return lambda names: -number_of(number(names))
        return self._postfix(self._primary())

    def _postfix(self, value: Run) -> Run:
        while sign := self._take(".", "[", "("):
            if sign == ".":
                value = _member(value, _constant(self._member_name()))
            elif sign == "[":
                value = _member(value, self._expression())
                self._need("]")
            else:
                value = _call(value, self._several(")"))
        return value

    def _member_name(self) -> str:
        """Return the name after a dot; one that `ctx` does not have is refused before it is used."""
        of_context = [token.text for token in self._tokens[max(0, self._place - 3) : self._place]][-2:]
        before = self._tokens[self._place - 3].text if self._place >= 3 else ""
        name = self._name()
        if of_context == ["ctx", "."] and before != "." and name not in CONTEXT:
            raise ScriptError(f"ctx has no {name!r}")
        return name

    def _several(self, end: str) -> list[Run]:
        found: list[Run] = []
        while not self._take(end):
            if found:
                self._need(",")
            found.append(self._expression())
        return found

    def _primary(self) -> Run:
        if self._take("("):
            value = self._expression()
            self._need(")")
            return value
        if self._take("["):
            items = self._several("]")
            return lambda names: [item(names) for item in items]
        token = self._next()
        if token.kind == "number":
            return _constant(_number(token))
        if token.kind == "text":
            return _constant(token.text)
        if token.kind == "name":
            return self._named(token)
        raise ScriptError(f"the script has a syntax error at character {token.position}")

    def _named(self, token: Token) -> Run:
        name = token.text
        if name in _CONSTANTS:
            return _constant(_CONSTANTS[name])
        if name in _RESERVED or name not in self._known:
            raise ScriptError(f"the name {name!r} at character {token.position} of the script is not known")
        return lambda names: names[name]


def _nothing(names: ScriptNames) -> object:
    return _EMPTY


def _number(token: Token) -> float:
    if len(token.text) > 1 and token.text.startswith("0") and token.text[1].isdecimal():
        raise ScriptError(f"the number at character {token.position} of the script is octal")
    return float(token.text)


def _constant(value: object) -> Run:
    return lambda names: value


def _one_by_one(statements: list[Run]) -> Run:
    def run(names: ScriptNames) -> object:
        value: object = _EMPTY
        for statement in statements:
            last = statement(names)
            value = value if last is _EMPTY else last
        return value

    return run


def _setting(name: str, value: Run) -> Run:
    def run(names: ScriptNames) -> object:
        given = value(names)
        # Ranger's `ctx` takes Booleans for a result, and lets everything else pass.
        if name != RESULT or isinstance(given, bool):
            names.own[name] = given
        return given

    return run


def _declaring(setting: Run) -> Run:
    def run(names: ScriptNames) -> object:
        setting(names)
        return _EMPTY

    return run


def _or(one: Run, other: Run) -> Run:
    def run(names: ScriptNames) -> object:
        value = one(names)
        return value if is_true(value) else other(names)

    return run


def _and(one: Run, other: Run) -> Run:
    def run(names: ScriptNames) -> object:
        value = one(names)
        return other(names) if is_true(value) else value

    return run


def _operation(operation: Callable[[Any, Any], object], one: Run, other: Run) -> Run:
    return lambda names: operation(one(names), other(names))


def _member(value: Run, name: Run) -> Run:
    return lambda names: member(value(names), name(names))


def _call(value: Run, given: list[Run]) -> Run:
    def run(names: ScriptNames) -> object:
        function = value(names)
        if not callable(function):
            raise ScriptFailedError
        try:
            return function(*(each(names) for each in given))
        except TypeError:
            raise ScriptError("the script calls a function with other arguments than it takes") from None

    return run
