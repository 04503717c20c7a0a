"""Masks of policies as SQL of Spark, of the column's type; null in doubt.

Ranger's service definitions name functions of Hive, which Spark does not have. So masks that every service
has are known by name; only others use the text of the definition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lockgate.framework.access import NULL, Mask, is_text, mask_sql
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition
from lockgate.pushdown import sql_name

ORC_MASKS = {"MASK": "redact", "MASK_HASH": "sha256", "MASK_NULL": "nullify"}
_SHOWN = 4
_LENGTH = re.compile(r"(?:VAR)?CHAR\((\d+)\)")


def sql_of(service: ServiceDefinition, info: Mapping[str, str], column: str, kind: str) -> str:
    """Return the expression of a mask of a policy, as `Result.info` has it, over a column of type `kind`."""
    text = _mask(service, info, column, kind.upper())
    length = _LENGTH.fullmatch(kind.upper())
    if length is not None:
        text = f"left(CAST(({text}) AS STRING), {length[1]})"
    condition = info.get("maskCondition")
    if not condition:
        return text
    # Where the condition is unknown, the value is masked.
    return f"CASE WHEN coalesce(({condition}), TRUE) THEN ({text}) ELSE {sql_name(column)} END"


def _mask(service: ServiceDefinition, info: Mapping[str, str], column: str, kind: str) -> str:
    name, quoted = info["maskType"].upper(), sql_name(column)
    if name in ORC_MASKS:
        return mask_sql(Mask(ORC_MASKS[name]), column, kind) or NULL
    if name in _PARTS:
        return _PARTS[name](quoted, kind)
    defined = service.mask_types.get(name) or {}
    text = info.get("maskedValue") if name == "CUSTOM" else defined.get("transformer")
    if not text:
        return NULL
    return text.replace("{col}", quoted).replace("{type}", kind)


def _last(column: str, kind: str) -> str:
    if not is_text(kind):
        return NULL
    hidden = f"left({column}, greatest(char_length({column}) - {_SHOWN}, 0))"
    return f"concat({_crossed(hidden)}, right({column}, {_SHOWN}))"


def _first(column: str, kind: str) -> str:
    if not is_text(kind):
        return NULL
    return f"concat(left({column}, {_SHOWN}), {_crossed(f'substring({column}, {_SHOWN + 1})')})"


def _crossed(text: str) -> str:
    return f"mask({text}, 'x', 'x', 'x', NULL)"


def _year(column: str, kind: str) -> str:
    if kind == "DATE":
        return f"trunc({column}, 'YEAR')"
    return f"date_trunc('YEAR', {column})" if kind.startswith("TIMESTAMP") else NULL


_PARTS = {"MASK_SHOW_LAST_4": _last, "MASK_SHOW_FIRST_4": _first, "MASK_DATE_SHOW_YEAR": _year}
