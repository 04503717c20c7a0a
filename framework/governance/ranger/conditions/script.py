"""Scripts: the part of JavaScript that Ranger's conditions and macros use, interpreted here.

Expressions: literals, names, calls, members, indexes, lists, `! - && || ?:`, comparisons, `in`, `+ - * / %`.
Statements: expressions, `var x = ...`, `x = ...`, `ctx.result = ...`, `if`, blocks. All else raises
ScriptError when the script is compiled, so that a policy can be refused before it decides anything. A script
has a bounded length and depth, and its run bounded steps and values, because policies are texts of others.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from lockgate.framework.governance.ranger.conditions.environment import CONTEXT
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError, Token, tokens_of
from lockgate.framework.governance.ranger.conditions.script_values import (
    UNDEFINED,
    JavaList,
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
    size_of,
    strictly_equal,
)

RESULT = "ctx.result"
_MAX_LENGTH, _MAX_DEPTH = 1 << 15, 32
# Elements and letters that one run may read and write, all in all.
_MAX_STEPS = 1 << 23
# What may stand in `[[ ]]`; source: Ranger's JavaScriptEdits.
_BRACKETED = re.compile(r'[}{$"a-zA-Z0-9_.\[\]]*')
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
        self._steps = 0
        self.own: dict[str, object] = {}

    def __getitem__(self, name: str) -> object:
        return self.own[name] if name in self.own else self._given(name)

    def count(self, *values: object) -> None:
        """Count what an operation reads or writes; raises ScriptError beyond the bounds."""
        self._steps += sum(map(_steps_of, values))
        if self._steps > _MAX_STEPS:
            raise ScriptError(f"a script takes more than {_MAX_STEPS:,} steps")


def _steps_of(value: object) -> int:
    if isinstance(value, JavaList):
        return 1 + len(value.values)
    return size_of(value) if isinstance(value, str | list | tuple) else 1


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
        """Compile; raises ScriptError for what is not understood, too long or deep, and for unknown names."""
        if len(text) > _MAX_LENGTH:
            raise ScriptError(f"a script has {len(text):,} characters, more than {_MAX_LENGTH:,}")
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
    r"""Return a script with `[[USER.x]]` as Ranger reads it: the list of what commas divide in a text.

    Ranger's regular expression is `\[\[([}{$"a-zA-Z0-9_.\[\]]+)(,['"](.+?)['"])*\]\]`, which backtracks
    exponentially; this finds the same in one pass from each side.
    """
    start = text.find("[[")
    if start < 0:
        return text
    ends = _bracket_ends(text)
    found, place = [], 0
    while start >= 0:
        run_end = _BRACKETED.match(text, start + 2).end()  # type: ignore[union-attr]  # it matches nothing, too
        inner_end = next((end for end in range(run_end, start + 2, -1) if end in ends), None)
        if inner_end is None:
            start = text.find("[[", run_end)
            continue
        end, mark = ends[inner_end]
        found += [text[place:start], f'{text[start + 2 : inner_end]}.split("{mark or ","}")']
        place = end
        start = text.find("[[", place)
    return "".join([*found, text[place:]])


def _bracket_ends(text: str) -> dict[int, tuple[int, str | None]]:
    """Return the places where `(,'x')*]]` begins, each with its end and its last `x`."""
    ends: dict[int, tuple[int, str | None]] = {}
    # The next quote of a line, from each place on, after which such an end begins.
    closing: list[int | None] = [None] * (len(text) + 4)
    for place in range(len(text) - 1, -1, -1):
        is_quote = text[place] in "'\""
        closing[place] = place if is_quote and place + 1 in ends else closing[place + 1]
        if text[place] == "\n":
            closing[place] = None
        quote = closing[place + 3] if text[place + 2 : place + 3] != "\n" else None
        if text[place] == "," and text[place + 1 : place + 2] in ("'", '"') and quote is not None:
            end, mark = ends[quote + 1]
            ends[place] = end, mark or text[place + 2 : quote]
        elif text.startswith("]]", place):
            ends[place] = place + 2, None
    return ends


@lru_cache(maxsize=10_000)
def compiled(text: str, names: frozenset[str]) -> Script:
    """Return a script, compiled once."""
    return Script(text, names)


class _Compiler:
    """A recursive descent, one method a rule, each returning what computes its part."""

    def __init__(self, tokens: list[Token], names: frozenset[str]) -> None:
        self._tokens, self._place = tokens, 0
        self._depth = 0
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

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ScriptError(
                f"the script is nested deeper than {_MAX_DEPTH} levels at character {self._now.position}"
            )
        yield
        self._depth -= 1

    # --- statements ---

    def _statement(self) -> Run:
        if self._take(";"):
            return _nothing
        if self._take("{"):
            with self._deeper():
                return self._block()
        if self._take("if"):
            with self._deeper():
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
        cases: list[tuple[Run, Run]] = [self._case()]
        other: Run = _nothing
        while self._take("else"):
            if not self._take("if"):
                other = self._statement()
                break
            cases.append(self._case())

        choice = _choosing(cases, other)

        def run(names: ScriptNames) -> object:
            value = choice(names)
            return UNDEFINED if value is _EMPTY else value

        return run

    def _case(self) -> tuple[Run, Run]:
        self._need("(")
        test = self._expression()
        self._need(")")
        return test, self._statement()

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
        with self._deeper():
            cases, value = [], self._either()
            while self._take("?"):
                then = self._expression()
                self._need(":")
                cases.append((value, then))
                value = self._either()
            return _choosing(cases, value) if cases else value

    def _either(self) -> Run:
        values = [self._both()]
        while self._take("||"):
            values.append(self._both())
        return _first(values, wanted=True)

    def _both(self) -> Run:
        values = [self._binary(0)]
        while self._take("&&"):
            values.append(self._binary(0))
        return _first(values, wanted=False)

    def _binary(self, rank: int) -> Run:
        if rank == len(_BINARY):
            return self._unary()
        value = self._binary(rank + 1)
        rest = []
        while sign := self._take(*_BINARY[rank]):
            rest.append((_BINARY[rank][sign], self._binary(rank + 1)))
        return _operations(value, rest) if rest else value

    def _unary(self) -> Run:
        if self._take("!"):
            with self._deeper():
                value = self._unary()
            return lambda names: not is_true(value(names))
        if self._take("-"):
            with self._deeper():
                number = self._unary()
            return lambda names: -number_of(number(names))
        return self._postfix(self._primary())

    def _postfix(self, value: Run) -> Run:
        steps: list[Callable[[ScriptNames, object], object]] = []
        while sign := self._take(".", "[", "("):
            if sign == ".":
                steps.append(_member(_constant(self._member_name())))
            elif sign == "[":
                steps.append(_member(self._expression()))
                self._need("]")
            else:
                steps.append(_call(self._several(")")))
        return _stepping(value, steps) if steps else value

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
            return _list(self._several("]"))
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


def _choosing(cases: list[tuple[Run, Run]], other: Run) -> Run:
    def run(names: ScriptNames) -> object:
        return next((then for test, then in cases if is_true(test(names))), other)(names)

    return run


def _first(values: list[Run], *, wanted: bool) -> Run:
    """Return the first value that is as true as is wanted, else the last."""
    if len(values) == 1:
        return values[0]

    def run(names: ScriptNames) -> object:
        value: object = UNDEFINED
        for each in values:
            value = each(names)
            if is_true(value) is wanted:
                break
        return value

    return run


def _operations(first: Run, rest: list[tuple[Callable[[Any, Any], object], Run]]) -> Run:
    def run(names: ScriptNames) -> object:
        value = first(names)
        for operation, other in rest:
            operand = other(names)
            names.count(value, operand)
            value = operation(value, operand)
            names.count(value)
        return value

    return run


def _list(items: list[Run]) -> Run:
    def run(names: ScriptNames) -> object:
        value = [item(names) for item in items]
        names.count(value)
        return value

    return run


def _stepping(first: Run, steps: list[Callable[[ScriptNames, object], object]]) -> Run:
    def run(names: ScriptNames) -> object:
        value = first(names)
        for step in steps:
            names.count(value)
            value = step(names, value)
        names.count(value)
        return value

    return run


def _member(name: Run) -> Callable[[ScriptNames, object], object]:
    def step(names: ScriptNames, value: object) -> object:
        key = name(names)
        names.count(key)
        return member(value, key)

    return step


def _call(given: list[Run]) -> Callable[[ScriptNames, object], object]:
    def step(names: ScriptNames, function: object) -> object:
        if not callable(function):
            raise ScriptFailedError
        arguments = [each(names) for each in given]
        names.count(*arguments)
        try:
            return function(*arguments)
        except (AttributeError, IndexError, TypeError):
            raise ScriptError("the script calls a function with other arguments than it takes") from None

    return step
