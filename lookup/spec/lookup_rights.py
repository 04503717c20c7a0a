"""The rights that a cache is built under: rows left out and masks, the same for all users who have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict

from lockgate.errors import AccessDeniedError, InputError
from lockgate.framework.access import Action, Decision, Mask
from lockgate.framework.store import grant
from lockgate.pushdown import AlwaysTrue, Predicate, columns_of, from_json, to_json

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.lookup.spec.lookup_spec import LookupSpec


class RightsJson(TypedDict):
    """A `CacheRights` in JSON: a predicate of `pushdown.json_codec`, and masks with their parameters."""

    filter: Any
    masks: dict[str, list[str]]


@dataclass(frozen=True)
class CacheRights:
    """What a cache leaves out: rows that do not meet `row_filter`, and the values of masked columns."""

    # Not shown, since a filter may hold values of encrypted columns.
    row_filter: Predicate = field(repr=False)
    masks: Mapping[str, Mask] = field(default_factory=dict, hash=False)

    @property
    def filtered_by(self) -> frozenset[str]:
        """The columns that the row filter looks at."""
        return frozenset(path[0] for path in columns_of(self.row_filter))

    @property
    def decision(self) -> Decision:
        """The decision that the cache is built under."""
        return Decision(row_filter=self.row_filter, masks=self.masks)

    def to_json(self) -> RightsJson:
        """Return the form that goes to the cache's owner, and of which the cache is named."""
        masks = {name: [mask.name, *mask.parameters] for name, mask in sorted(self.masks.items())}
        return {"filter": to_json(self.row_filter), "masks": masks}

    @classmethod
    def from_json(cls, content: RightsJson) -> CacheRights:
        """Return the reverse of `to_json`; raises InputError for a filter that cannot be evaluated."""
        row_filter = from_json(content["filter"])
        if row_filter is None:
            raise InputError("the row filter of a lookup cache cannot be evaluated")
        masks = {name: Mask(first, tuple(rest)) for name, (first, *rest) in content["masks"].items()}
        return cls(row_filter, masks)


def governed(table: Table, spec: LookupSpec) -> LookupSpec:
    """Return the lookup with the rights of the current user, of which a cache holds no more.

    Raises AccessDeniedError if a column of it is denied, or if what is hidden cannot be left out of a cache:
    the values of a masked key find other rows.
    """
    decision = grant(table, Action.SELECT, _read(spec))
    if not decision.is_restricted:
        return replace(spec, rights=None)
    _check_keys(table, spec, decision)
    return replace(spec, rights=CacheRights(decision.row_filter, dict(decision.masks)))


def _read(spec: LookupSpec) -> set[str]:
    where = AlwaysTrue() if spec.where is None else spec.where
    return {*spec.keys, *spec.columns, *(path[0] for path in columns_of(where))}


def _check_keys(table: Table, spec: LookupSpec, decision: Decision) -> None:
    masked = decision.masked({*spec.keys, *table.schema.primary_keys})
    if masked:
        needed = tuple(
            f"SELECT on column {name} of table {table.identifier} without a mask" for name in masked
        )
        raise AccessDeniedError(
            f"a lookup cache of table {table.identifier} finds rows by {', '.join(masked)}, whose values are "
            f"masked for you: join with lookup.strategy=spark, or apply for: {'; '.join(needed)}",
            needed,
        )
