"""Texts, lists and maps combined from the values of several rows, one key after the other.

Values are Python's: a list for an ARRAY, a list of pairs for a MAP, a dict for a ROW. Sets and maps keep the
order in which their elements came first; Paimon's have none. Source: Paimon's `FieldListaggAgg`,
`FieldCollectAgg`, `FieldMergeMapAgg`, `FieldMergeMapWithKeyTimeAgg`,
`FieldNestedUpdateAgg` and `FieldNestedPartialUpdateAgg`.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lockgate.errors import InputError
from lockgate.framework.store.merge.group_codes import Codes

if TYPE_CHECKING:
    from lockgate.framework.store.merge.merge_plan import ColumnMerge

# The letters that Java's `Character.isWhitespace` accepts; a blank text has no others.
_BLANKS = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
_NO_LIMIT = 2**31 - 1


class Value(ABC):
    """A value a key; `plan` has the options of its function."""

    def __init__(self, plan: ColumnMerge, column: pa.ChunkedArray, keys: int) -> None:
        self._plan = plan
        self._column = column
        self._state = np.full(keys, None, dtype=object)

    def add(self, at: Codes, rows: Codes) -> None:
        """Take in a row."""
        for key, value in zip(at.tolist(), self._values(rows), strict=True):
            self._state[key] = self.joined(self._state[key], value)

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Take in a row that is older, in its group, than one before."""
        for key, value in zip(at.tolist(), self._values(rows), strict=True):
            self._state[key] = self.joined(value, self._state[key])

    def retract(self, at: Codes, rows: Codes) -> None:
        """Take back a row."""
        for key, value in zip(at.tolist(), self._values(rows), strict=True):
            self._state[key] = self.without(self._state[key], value)

    def retract_late(self, at: Codes, rows: Codes) -> None:
        """Take back a row that is older, in its group, than one before."""
        self.retract(at, rows)

    def replace(self, at: Codes, rows: Codes) -> None:
        """Begin with a row's value."""
        for key, value in zip(at.tolist(), self._values(rows), strict=True):
            self._state[key] = value

    def result(self) -> pa.Array:
        """Return the value of each key."""
        return pa.array(self._state.tolist(), self._column.type)

    def _values(self, rows: Codes) -> list[Any]:
        found: list[Any] = self._column.take(pa.array(rows)).to_pylist()
        return found

    @abstractmethod
    def joined(self, older: Any, newer: Any) -> Any:
        """Return what two values become."""

    def without(self, value: Any, gone: Any) -> Any:
        """Return what is left of a value when `gone` is taken back."""
        raise NotImplementedError(f"{self._plan.function} takes nothing back")


class ListAgg(Value):
    """`listagg`: texts behind each other; blank ones are passed over."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Put the newer text behind the older."""
        if newer is None or not newer.strip(_BLANKS):
            return older
        if older is None or not older.strip(_BLANKS):
            return newer
        if not self._plan.distinct:
            return older + self._plan.delimiter + newer
        parts = older.split(self._plan.delimiter)
        fresh = dict.fromkeys(
            part for part in newer.split(self._plan.delimiter) if part.strip(_BLANKS) and part not in parts
        )
        return self._plan.delimiter.join([older, *fresh])


class Collect(Value):
    """`collect`: the elements of all arrays, with `distinct` each once."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Put the newer elements behind the older."""
        if older is None and newer is None:
            return None
        if not self._plan.distinct:
            return newer if older is None else older if newer is None else [*older, *newer]
        found = {frozen(element): element for element in reversed([*(older or ()), *(newer or ())])}
        order = dict.fromkeys(frozen(element) for element in [*(older or ()), *(newer or ())])
        return [found[element] for element in order]

    def add_late(self, at: Codes, rows: Codes) -> None:
        """Put late elements behind as well, as Paimon does where retractions are not ignored."""
        if self._plan.ignore_retract:
            super().add_late(at, rows)
        else:
            self.add(at, rows)

    def without(self, value: Any, gone: Any) -> Any:
        """Take out one equal element for each."""
        if value is None or not gone:
            return value
        left = [frozen(element) for element in gone]
        kept = []
        for element in value:
            token = frozen(element)
            if token in left:
                left.remove(token)
            else:
                kept.append(element)
        return kept


class MergeMap(Value):
    """`merge_map`: the newest value of each key."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Set the newer entries."""
        if older is None or newer is None:
            return newer if older is None else older
        return _entries([*older, *newer])

    def without(self, value: Any, gone: Any) -> Any:
        """Remove the keys."""
        if value is None or not gone:
            return value
        keys = {frozen(key) for key, _ in gone}
        return [(key, inner) for key, inner in value if frozen(key) not in keys]


class MergeMapByTime(Value):
    """`merge_map_with_keytime`: of each key the ROW with the greatest text in its time field."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Set the entries whose time is later; a null removes its key."""
        if older is None or newer is None:
            return newer if older is None else older
        found = {frozen(key): (key, inner) for key, inner in _entries(older)}
        for key, inner in newer:
            token = frozen(key)
            if inner is None:
                found.pop(token, None)
            elif self._time(inner) is not None and self._is_later(inner, found.get(token)):
                found[token] = (key, inner)
        return list(found.values())

    def _is_later(self, row: dict[str, Any], entry: tuple[Any, Any] | None) -> bool:
        previous = None if entry is None or entry[1] is None else self._time(entry[1])
        # By UTF-16 units, as Java compares texts.
        return previous is None or self._time(row).encode("utf-16-be") > previous.encode("utf-16-be")

    def _time(self, row: dict[str, Any]) -> Any:
        return row[self._plan.time_field or list(row)[-1]]


def _entries(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    found: dict[Hashable, tuple[Any, Any]] = {}
    for key, value in pairs:
        token = frozen(key)
        found[token] = (found[token][0] if token in found else key, value)
    return list(found.values())


class NestedUpdate(Value):
    """`nested_update`: rows of an ARRAY, with `nested-key` the newest of each key."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Set the newer rows, as many new ones as the limit allows."""
        if newer is None:
            return older
        if not self._plan.nested_key:
            return self._appended(older, newer)
        found: dict[Hashable, Any] = {}
        self._set(found, older or (), _NO_LIMIT)
        self._set(found, newer, self._limit)
        return list(found.values())

    @property
    def _limit(self) -> int:
        return _NO_LIMIT if self._plan.limit is None else self._plan.limit

    def _appended(self, older: Any, newer: Any) -> Any:
        if older is not None and len(older) >= self._limit:
            return older
        room = self._limit - len(older or ())
        fresh = [row for row in newer if row is not None]
        return [*(row for row in older or () if row is not None), *fresh[: max(room, 0)]]

    def _set(self, found: dict[Hashable, Any], rows: Iterable[Any], limit: int) -> None:
        for row in rows:
            if row is None or not has_nested_key(self._plan, row):
                continue
            key = nested_key(self._plan, row)
            if key in found:
                if not _is_older(row, found[key], self._plan.nested_sequence):
                    found[key] = row
            elif len(found) < limit:
                found[key] = row

    def without(self, value: Any, gone: Any) -> Any:
        """Remove the rows, by their key if there is one."""
        if value is None or gone is None:
            return value
        rows = [row for row in value if row is not None]
        gone = [row for row in gone if row is not None]
        if not self._plan.nested_key:
            tokens = {frozen(row) for row in gone}
            return [row for row in rows if frozen(row) not in tokens]
        kept = {nested_key(self._plan, row): row for row in rows if has_nested_key(self._plan, row)}
        for row in gone:
            if has_nested_key(self._plan, row):
                kept.pop(nested_key(self._plan, row), None)
        return list(kept.values())


class NestedPartialUpdate(Value):
    """`nested_partial_update`: rows of an ARRAY by their key, whose values that are not null are set."""

    def joined(self, older: Any, newer: Any) -> Any:
        """Set the newer values."""
        if newer is None:
            return older
        found: dict[Hashable, dict[str, Any]] = {}
        for row in [*(older or ()), *newer]:
            if row is None or not has_nested_key(self._plan, row):
                continue
            merged = found.setdefault(nested_key(self._plan, row), dict.fromkeys(row))
            merged |= {name: value for name, value in row.items() if value is not None}
        return list(found.values())


def nested_key(plan: ColumnMerge, row: dict[str, Any]) -> Hashable:
    """Return the key of a nested row, as a value that can be looked up."""
    return tuple(frozen(row[name]) for name in plan.nested_key)


def has_nested_key(plan: ColumnMerge, row: dict[str, Any]) -> bool:
    """Say whether a nested row counts, by what is to be done with nulls in its key."""
    if plan.null_keys == "merge" or all(row[name] is not None for name in plan.nested_key):
        return True
    if plan.null_keys == "ignore":
        return False
    raise InputError(
        f"column {plan.name!r}: a nested row has a null in its key {', '.join(plan.nested_key)}, which "
        f"option 'fields.{plan.name}.nested-key-null-strategy' = 'error' forbids"
    )


def _is_older(row: dict[str, Any], than: dict[str, Any], sequence: tuple[str, ...]) -> bool:
    for name in sequence:
        left, right = _sortable(row[name]), _sortable(than[name])
        if left != right:
            return bool(left < right)
    return False


def _sortable(value: Any) -> tuple[Any, ...]:
    """Order values as Paimon's comparators do: nulls first, NaN last."""
    if value is None:
        return (0,)
    return (1, value != value, 0.0 if value != value else value)


def frozen(value: Any) -> Hashable:
    """Return a value as one that can be looked up: NaN is equal to NaN, and -0.0 is not to 0.0."""
    if isinstance(value, float):
        return "float", b"NaN" if value != value else struct.pack(">d", value)
    if isinstance(value, dict):
        return tuple(frozen(each) for each in value.values())
    if isinstance(value, list | tuple):
        return tuple(frozen(each) for each in value)
    found: Hashable = value
    return found
