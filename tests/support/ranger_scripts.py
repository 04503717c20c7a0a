"""Random scripts of conditions, from the part of JavaScript that policies use."""

from __future__ import annotations

import random

VALUES = (
    *(
        "USER.dept",
        "USER.level",
        "USER.nothing",
        "USER._name",
        "UG.g1",
        "UG.g1.site",
        "UG.nobody",
        "UGA.sVal.site",
    ),
    *(
        "UGNAMES",
        "UGNAMES[0]",
        "UGNAMES[7]",
        "UGNAMES.length",
        "URNAMES",
        "TAGNAMES",
        "TAGS.PII.level",
        "TAGS.NO",
    ),
    *(
        "TAG.level",
        "RES.table",
        "RES.column",
        "RES._ownerUser",
        "REQ.accessType",
        "REQ.user",
        "REQ.action",
        "USER",
    ),
    *(
        "ctx.getUser()",
        "ctx.getUserGroups()",
        "ctx.getAction()",
        "ctx.getClientIPAddress()",
        "ctx.isInGroup('g1')",
    ),
    *(
        "ctx.getCurrentTagType()",
        "ctx.getAttributeValue('PII', 'level')",
        "ctx.getTagAttributes('NO')",
        "tag",
        "UG",
    ),
    *(
        "HAS_TAG('PII')",
        "HAS_ANY_TAG",
        "IS_IN_ROLE('r2')",
        "HAS_USER_ATTR('dept')",
        "GET_USER_ATTR('nothing', 'x')",
    ),
    *(
        "GET_UG_NAMES()",
        "GET_UG_NAMES_Q(null, '|')",
        "GET_TAG_ATTR('level')",
        "UG_NAMES_CSV",
        "USER_ATTR_NAMES_CSV",
    ),
    *("'eng'", "'5'", "''", "' 7 '", "'0x10'", "'g1'", "'high'", "null", "undefined", "true", "false", "NaN"),
    *("0", "1", "5", "2.5", "-1", "100", "[]", "['eng', 'ops']", "[1, 2]", "[null]", "[['g1']]"),
)
BINARY = ("==", "!=", "===", "!==", "<", ">", "<=", ">=", "+", "-", "*", "/", "%", "&&", "||")
METHODS = (
    *(
        "indexOf({})",
        "includes({})",
        "intersects({})",
        "contains({})",
        "equals({})",
        "startsWith({})",
        "split({})",
    ),
    *(
        "length",
        "toLowerCase()",
        "trim()",
        "join('-')",
        "substring(1)",
        "charAt(0)",
        "isEmpty()",
        "size()",
        "toString()",
    ),
)


def script(rnd: random.Random) -> str:
    """Return a script of up to three statements."""
    return "; ".join(_statement(rnd) for _ in range(rnd.choice((1, 1, 1, 2, 3))))


def _statement(rnd: random.Random) -> str:
    kind = rnd.randrange(12)
    if kind == 0:
        return f"ctx.result = {_expression(rnd, 2)}"
    if kind == 1:
        return f"var x = {_expression(rnd, 2)}; x"
    if kind == 2:
        return (
            f"if ({_expression(rnd, 2)}) {{ ctx.result = {_expression(rnd, 1)} }} else {_expression(rnd, 1)}"
        )
    return _expression(rnd, 3)


def _expression(rnd: random.Random, depth: int) -> str:
    if depth == 0 or rnd.random() < 0.2:
        return rnd.choice(VALUES)
    kind = rnd.randrange(8)
    one = _expression(rnd, depth - 1)
    if kind < 5:
        return f"({one} {rnd.choice(BINARY)} {_expression(rnd, depth - 1)})"
    if kind == 5:
        return f"!{one}"
    if kind == 6:
        return f"({one} ? {_expression(rnd, depth - 1)} : {_expression(rnd, depth - 1)})"
    return f"{one}.{rnd.choice(METHODS).format(_expression(rnd, 0))}"
