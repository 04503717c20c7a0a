"""Lookup joins: streams enriched from dimension tables that are kept locally and follow their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.lookup.cache.cache_version import LookupResult
    from lockgate.lookup.cache.caches import CacheStatus, find_caches, remove_cache
    from lockgate.lookup.driver.lookup_registry import close_all, status, statuses, wait_for
    from lockgate.lookup.driver.lookup_tables import (
        LookupTable,
        LookupTableStatus,
        NoPrimaryKeyLookupTable,
        PrimaryKeyLookupTable,
        SecondaryIndexLookupTable,
        open_lookup,
    )
    from lockgate.lookup.join.join import lookup_join
    from lockgate.lookup.spec.lookup_spec import CacheStructure, LookupSpec
    from lockgate.lookup.spec.status import LookupStatus, Pin


__all__ = [
    "CacheStatus",
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
    "find_caches",
    "lookup_join",
    "open_lookup",
    "remove_cache",
    "status",
    "statuses",
    "wait_for",
]

# rocksdict and pyspark are loaded when something needs them, not with the package.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".cache.cache_version": "LookupResult",
        ".cache.caches": "CacheStatus find_caches remove_cache",
        ".driver.lookup_registry": "close_all status statuses wait_for",
        ".driver.lookup_tables": (
            "LookupTable LookupTableStatus NoPrimaryKeyLookupTable PrimaryKeyLookupTable "
            "SecondaryIndexLookupTable open_lookup"
        ),
        ".join.join": "lookup_join",
        ".spec.lookup_spec": "CacheStructure LookupSpec",
        ".spec.status": "LookupStatus Pin",
    },
)
