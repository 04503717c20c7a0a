"""Tokens of scripts: numbers, strings, names and signs of the part of JavaScript that policies use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lockgate.errors import InputError

_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<number>(?:\d+\.?\d*|\.\d+)(?![\w.]))"
    r"|(?P<text>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<sign>===|!==|==|!=|<=|>=|&&|\|\||[-+!<>=().,;\[\]?:{}*/%])",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)


class ScriptError(InputError):
    """Raised for a script that uses more of JavaScript than is understood, or that fails."""


@dataclass(frozen=True)
class Token:
    """A token: its kind, its text as meant (strings without quotes), and where it begins."""

    kind: Literal["number", "text", "name", "sign", "end"]
    text: str
    position: int


def tokens_of(script: str) -> list[Token]:
    """Return the tokens of a script, the last one of kind `end`; raises ScriptError."""
    found: list[Token] = []
    position = 0
    while position < len(script):
        match = _TOKEN.match(script, position)
        if match is None:
            raise ScriptError(f"the script cannot be read at character {position}")
        if match.lastgroup in ("number", "text", "name", "sign"):
            text = _meant(match.group()) if match.lastgroup == "text" else match.group()
            found.append(Token(match.lastgroup, text, position))  # type: ignore[arg-type]  # a group matched
        position = match.end()
    return [*found, Token("end", "", position)]


def _meant(quoted: str) -> str:
    return _ESCAPED.sub(_escaped, quoted[1:-1])


def _escaped(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    if match[3] in "ux0123456789":
        raise ScriptError("an escape in a text of the script is not known")
    return _ESCAPES.get(match[3], match[3])
