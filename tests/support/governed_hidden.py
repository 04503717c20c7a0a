"""Random policies on a table, with the rows that they leave of it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ranger_world import allow, deny, mask, row_filter

Row = tuple[Any, ...]

# Zeros, nulls and texts that are no numbers, on which expressions of users fail.
COLUMNS = {
    "id": "BIGINT",
    "g": "INT",
    "n": "INT",
    "s": "STRING",
    "u": "STRING",
    "x": "DOUBLE",
    "b": "BOOLEAN",
}
ROWS: list[Row] = [
    (1, 1, 0, "7", "Ann-1", 0.5, True),
    (2, 2, 3, "x", "bob 22", 1.5, False),
    (3, 1, None, "12", "Cal", None, None),
    (4, 3, 5, None, "dan", 2.0, True),
    (5, 2, 2, "-3", None, 0.0, False),
    (6, 3, 7, "y9", "Eve", 4.25, True),
    (7, 1, 100, "300", "fay", -1.0, None),
    (8, None, 1, "0", "Gus", 3.0, False),
    (9, 2, -4, "", "hal", 8.0, True),
    (10, 3, 0, "ten", "Ann-1", 0.5, False),
]


# --- policies -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hidden:
    """What a policy hides; `shown` makes of each value of a column what its user sees."""

    row_filter: str | None = None
    kept: Callable[[Row], bool] = field(default=lambda row: True)
    masks: dict[str, str] = field(default_factory=dict)
    denied: frozenset[str] = frozenset()

    def policies(self, path: str, user: str) -> list[dict[str, Any]]:
        """Return it in Ranger's form, for a table named `catalog.database.table`."""
        who = {"users": [user]}
        found = [allow(f"{path}.*", **who)]
        found += [deny(f"{path}.{column}", **who) for column in sorted(self.denied)]
        for column, name in self.masks.items():
            kind, _, value = name.partition(":")
            found.append(mask(f"{path}.{column}", kind, value=value or None, **who))
        if self.row_filter is not None:
            found.append(row_filter(path, self.row_filter, **who))
        return found

    def rows(self, *, filled: int | None = None) -> list[Row]:
        """Return the rows that are seen, `filled` with a constant in place of values of denied columns."""
        return [self._row(row, filled) for row in ROWS if self.kept(row)]

    def _row(self, row: Row, filled: int | None) -> Row:
        named = zip(COLUMNS, row, strict=True)
        return tuple(
            _filling(COLUMNS[name], filled) if name in self.denied else self._value(name, value)
            for name, value in named
        )

    def _value(self, name: str, value: Any) -> Any:
        return _MASKS[self.masks[name]](value, COLUMNS[name]) if name in self.masks else value


def _filling(kind: str, filled: int | None) -> Any:
    fillings = {"STRING": str(filled), "BOOLEAN": bool(filled), "DOUBLE": float(filled or 0)}
    return None if filled is None else fillings.get(kind, filled)


def _redacted(value: Any, kind: str) -> Any:
    if value is None or kind == "DOUBLE":
        return None
    if kind == "BOOLEAN":
        return True
    if kind == "STRING":
        return re.sub(r"[0-9]", "9", re.sub(r"[a-z]", "x", re.sub(r"[A-Z]", "X", value))).replace("-", ".")
    number = int(re.sub(r"\d", "9", str(value)))
    return number if abs(number) < (2**31 if kind == "INT" else 2**63) else None


def _hashed(value: Any, kind: str) -> Any:
    hashed = kind == "STRING" and value is not None
    return hashlib.sha256(value.encode()).hexdigest().upper() if hashed else None


def _last(value: Any, kind: str) -> Any:
    if value is None or kind != "STRING":
        return None
    return re.sub(r"[A-Za-z0-9]", "x", value[:-4]) + value[-4:] if len(value) > 4 else value


_MASKS: dict[str, Callable[[Any, str], Any]] = {
    "MASK": _redacted,
    "MASK_HASH": _hashed,
    "MASK_NULL": lambda value, kind: None,
    "MASK_SHOW_LAST_4": _last,
    "CUSTOM:abs({col}) + 1": lambda value, kind: None if value is None else abs(value) + 1,
    "CUSTOM:concat('<', {col}, '>')": lambda value, kind: None if value is None else f"<{value}>",
    "CUSTOM:CASE WHEN {col} > 2 THEN {col} ELSE 0 END": lambda value, kind: (
        value if value is not None and value > 2 else 0.0 if kind == "DOUBLE" else 0
    ),
}
_OF_TEXT = ("MASK", "MASK_HASH", "MASK_NULL", "MASK_SHOW_LAST_4", "CUSTOM:concat('<', {col}, '>')")
_OF_NUMBER = (
    "MASK",
    "MASK_NULL",
    "CUSTOM:abs({col}) + 1",
    "CUSTOM:CASE WHEN {col} > 2 THEN {col} ELSE 0 END",
)

_FILTERS: list[tuple[str | None, Callable[[Row], bool]]] = [
    (None, lambda row: True),
    ("id > 4", lambda row: row[0] > 4),
    ("g = 1", lambda row: row[1] == 1),
    ("n <> 0", lambda row: row[2] not in (None, 0)),
    ("s IN ('7', '12', '300')", lambda row: row[3] in ("7", "12", "300")),
    ("n IS NULL OR n > 4", lambda row: row[2] is None or row[2] > 4),
    ("id % 2 = 0 AND NOT coalesce(b, false)", lambda row: row[0] % 2 == 0 and not row[6]),
    ("lower(u) LIKE '%a%'", lambda row: row[4] is not None and "a" in row[4].lower()),
    (
        "try_cast(s AS INT) IS NOT NULL",
        lambda row: row[3] is not None and bool(re.fullmatch(r"-?\d+", row[3])),
    ),
    ("current_user() = 'ann' AND x < 2", lambda row: row[5] is not None and row[5] < 2),
    ("false", lambda row: False),
]


def hidden(random: Random) -> Hidden:
    """Return a random policy."""
    text, kept = random.choice(_FILTERS)
    masks = {}
    for column in random.sample(list(COLUMNS), random.choice((0, 1, 1, 2, 3))):
        kind = COLUMNS[column]
        names = _OF_TEXT if kind == "STRING" else ("MASK", "MASK_NULL") if kind == "BOOLEAN" else _OF_NUMBER
        masks[column] = random.choice(names)
    left = [column for column in COLUMNS if column not in masks and column != "id"]
    denied = frozenset(random.sample(left, random.choice((0, 0, 1, 2))))
    return Hidden(text, kept, masks, denied)
