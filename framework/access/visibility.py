"""Visibility: what one principal sees of each column of a table, by policies and by keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from lockgate.framework.access.mask import Mask

MASKED = "lockgate.masked"
"""The metadata attribute of a column that holds masks: the name of the mask, or of the missing key."""


class Sight(StrEnum):
    """What a principal sees of one column; of several reasons the last one here counts."""

    CLEAR = "clear"
    MASKED_BY_KEY = "masked because a key is missing"
    MASKED_BY_POLICY = "masked by a policy"
    DENIED = "denied"


@dataclass(frozen=True)
class ColumnVisibility:
    """What a principal sees of one top-level column, and why.

    `keys` are the names of the keys that the column, or a part of it, is encrypted under; `missing` are those
    that are not held or are denied. `mask` is the mask of a policy.
    """

    keys: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    mask: Mask | None = None
    is_denied: bool = False

    @property
    def sight(self) -> Sight:
        """Return what the principal sees."""
        if self.is_denied:
            return Sight.DENIED
        if self.mask is not None:
            return Sight.MASKED_BY_POLICY
        return Sight.MASKED_BY_KEY if self.missing else Sight.CLEAR

    @property
    def masked(self) -> str | None:
        """Return the value of the attribute `MASKED`; None for a column in the clear and a denied one."""
        if self.sight is Sight.MASKED_BY_POLICY:
            return str(self.mask)
        return self.missing[0] if self.sight is Sight.MASKED_BY_KEY else None


@dataclass(frozen=True)
class Visibility:
    """What one principal sees of the columns of a table.

    `encrypted` maps each encrypted column to the names of its keys, and `held` are the usable ones of these:
    without it all encrypted columns are masked. `masks` are those of a decision, and `denied` the columns
    that it refuses.
    """

    encrypted: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    held: frozenset[str] = frozenset()
    masks: Mapping[str, Mask] = field(default_factory=dict, hash=False)
    denied: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "encrypted", MappingProxyType(dict(self.encrypted)))
        object.__setattr__(self, "held", frozenset(self.held))
        object.__setattr__(self, "masks", MappingProxyType(dict(self.masks)))
        object.__setattr__(self, "denied", frozenset(self.denied))

    def column(self, name: str) -> ColumnVisibility:
        """Return what the principal sees of a column."""
        keys = self.encrypted.get(name, ())
        missing = tuple(key for key in keys if key not in self.held)
        return ColumnVisibility(keys, missing, self.masks.get(name), name in self.denied)

    def missing_keys(self, columns: Iterable[str] | None = None) -> dict[str, str]:
        """Return, by column, the name of a missing key; without `columns`, of all encrypted columns.

        Policies do not matter here: their masks are computed from the stored values.
        """
        asked = self.encrypted if columns is None else columns
        missing = {name: self.column(name).missing for name in asked}
        return {name: keys[0] for name, keys in missing.items() if keys}

    @property
    def decrypted(self) -> tuple[str, ...]:
        """The encrypted columns with a held key, for themselves or for a part of them."""
        return tuple(name for name, keys in self.encrypted.items() if self.held.intersection(keys))
