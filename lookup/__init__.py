"""Lookup joins: streams enriched from dimension tables that are kept locally and follow their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.lookup.cache.cached_state import LookupResult
    from lockgate.lookup.driver.registry import close_all, status, statuses, wait_for
    from lockgate.lookup.driver.tables import (
        LookupTable,
        LookupTableStatus,
        NoPrimaryKeyLookupTable,
        PrimaryKeyLookupTable,
        SecondaryIndexLookupTable,
        open_lookup,
    )
    from lockgate.lookup.join.join import lookup_join
    from lockgate.lookup.spec.spec import CacheStructure, LookupSpec
    from lockgate.lookup.spec.status import LookupStatus, Pin

_HOMES = {
    "CacheStructure": ".spec.spec",
    "LookupResult": ".cache.cached_state",
    "LookupSpec": ".spec.spec",
    "LookupStatus": ".spec.status",
    "LookupTable": ".driver.tables",
    "LookupTableStatus": ".driver.tables",
    "NoPrimaryKeyLookupTable": ".driver.tables",
    "Pin": ".spec.status",
    "PrimaryKeyLookupTable": ".driver.tables",
    "SecondaryIndexLookupTable": ".driver.tables",
    "close_all": ".driver.registry",
    "lookup_join": ".join.join",
    "open_lookup": ".driver.tables",
    "status": ".driver.registry",
    "statuses": ".driver.registry",
    "wait_for": ".driver.registry",
}

__all__ = [
    "CacheStructure",
    "LookupResult",
    "LookupSpec",
    "LookupStatus",
    "LookupTable",
    "LookupTableStatus",
    "NoPrimaryKeyLookupTable",
    "Pin",
    "PrimaryKeyLookupTable",
    "SecondaryIndexLookupTable",
    "close_all",
    "lookup_join",
    "open_lookup",
    "status",
    "statuses",
    "wait_for",
]

# rocksdict and pyspark are loaded when something needs them, not with the package.
__getattr__ = lazy_attributes(__name__, _HOMES)
