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
    """What a principal sees of one column; if several apply, the last one listed here counts."""

    CLEAR = "clear"
    MASKED_BY_KEY = "masked because a key is missing"
    MASKED_BY_POLICY = "masked by a policy"
    DENIED = "denied"


@dataclass(frozen=True)
class ColumnVisibility:
    """What a principal sees of one top-level column, with the reason.

    `keys` are the names of the keys that the column, or a part of it, is encrypted under; `missing` are those
    that the principal cannot use. `mask` is the mask of a policy.
    """

    keys: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    mask: Mask | None = None
    is_denied: bool = False

    @property
    def sight(self) -> Sight:
        """How the principal sees the column."""
        if self.is_denied:
            return Sight.DENIED
        if self.mask is not None:
            return Sight.MASKED_BY_POLICY
        return Sight.MASKED_BY_KEY if self.missing else Sight.CLEAR

    @property
    def masked(self) -> str | None:
        """The value of the attribute `MASKED`; None for a column in the clear and for a denied one."""
        if self.sight is Sight.MASKED_BY_POLICY:
            return str(self.mask)
        return self.missing[0] if self.sight is Sight.MASKED_BY_KEY else None


@dataclass(frozen=True)
class Visibility:
    """What one principal sees of each column of a table.

    `encrypted` maps each encrypted column to the names of its keys, and `held` are the keys that the
    principal can use, by default none. `masks` and `denied` are the masked and the denied columns of a
    decision.
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
        """Return the visibility of one column."""
        keys = self.encrypted.get(name, ())
        missing = tuple(key for key in keys if key not in self.held)
        return ColumnVisibility(keys, missing, self.masks.get(name), name in self.denied)

    def missing_keys(self, columns: Iterable[str] | None = None) -> dict[str, str]:
        """Return, by column, the name of a missing key; without `columns`, for all encrypted columns.

        Policies do not matter here: their masks are computed from the stored values.
        """
        names = self.encrypted if columns is None else columns
        missing = {name: self.column(name).missing for name in names}
        return {name: keys[0] for name, keys in missing.items() if keys}

    @property
    def decrypted(self) -> tuple[str, ...]:
        """The encrypted columns of which the principal can decrypt all or a part."""
        return tuple(name for name, keys in self.encrypted.items() if self.held.intersection(keys))
