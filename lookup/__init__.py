"""Lookup joins: streams enriched from dimension tables that are kept locally and follow their changes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockgate.lookup.generation import LookupResult
    from lockgate.lookup.join import lookup_join
    from lockgate.lookup.running import close_all, status, statuses, wait_for
    from lockgate.lookup.spec import Kind, LookupSpec
    from lockgate.lookup.standing import LookupStatus, Pin
    from lockgate.lookup.tables import (
        LookupTable,
        LookupTableStatus,
        NoPrimaryKeyLookupTable,
        PrimaryKeyLookupTable,
        SecondaryIndexLookupTable,
        open_lookup,
    )

_HOMES = {
    "Kind": "spec",
    "LookupResult": "generation",
    "LookupSpec": "spec",
    "LookupStatus": "standing",
    "LookupTable": "tables",
    "LookupTableStatus": "tables",
    "NoPrimaryKeyLookupTable": "tables",
    "Pin": "standing",
    "PrimaryKeyLookupTable": "tables",
    "SecondaryIndexLookupTable": "tables",
    "close_all": "running",
    "lookup_join": "join",
    "open_lookup": "tables",
    "status": "running",
    "statuses": "running",
    "wait_for": "running",
}

__all__ = [
    "Kind",
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


def __getattr__(name: str) -> Any:
    # rocksdict and pyspark are loaded when something needs them, not with the package.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
