"""The choice of `lookup.cache=partial`: which lookups it can answer, and which ones `auto` leaves to it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from lockgate.errors import AccessDeniedError, UnsupportedError
from lockgate.framework.store import encrypted_columns
from lockgate.lookup.codec.row_codec import is_variable
from lockgate.lookup.spec.cache_paths import local_root
from lockgate.lookup.spec.lookup_options import LookupOptions, lookup_options
from lockgate.lookup.spec.lookup_spec import CacheLayout, CacheStructure, LookupSpec, layout_of

if TYPE_CHECKING:
    from lockgate.framework.store import Table

PARTIAL = "partial"

_WORD_BYTES = 8
# A guess of the words for a row's hash, its key and the ends of both, and for a string.
_OVERHEAD_WORDS = 5
_STRING_WORDS = 4
# A load needs the rows' space twice: as sorted runs, and as what they become.
_LOAD_FACTOR = 2


def guessed_bytes(layout: CacheLayout, rows: int) -> int:
    """Guess the bytes of a cache of so many rows from the types of its columns."""
    kinds = [*layout.key_schema.types, *layout.row_schema.types]
    words = _OVERHEAD_WORDS + sum(_STRING_WORDS if is_variable(kind) else 1 for kind in kinds)
    return rows * words * _WORD_BYTES


def obstacle(table: Table, spec: LookupSpec) -> str | None:
    """Return why rows of this lookup cannot be read by their keys; None if they can."""
    schema, options = table.schema, lookup_options(table.options, spec.options)
    structure = layout_of(spec, schema).kind
    if structure is CacheStructure.NO_PRIMARY_KEY:
        return "it has no primary key"
    if structure is CacheStructure.SECONDARY_INDEX:
        return f"it is joined by {', '.join(spec.keys)}, and its key is {', '.join(schema.primary_keys)}"
    buckets = schema.options.get("bucket", "-1")
    if int(buckets) < 1:
        return f"it has bucket={buckets}, no fixed number of buckets"
    if spec.group is not None or options.shuffle:
        return "lookup.shuffle needs caches of whole buckets"
    if options.scan_partitions and not options.scan_partitions.fixed:
        return "scan.partitions follows the newest partitions"
    return _unknown_asker(table, spec) if options.remote else None


def _unknown_asker(table: Table, spec: LookupSpec) -> str | None:
    """Return why a query service must not answer this lookup; it knows who has its secret, not who asks."""
    if spec.rights is not None:
        return "policies hide rows or values of it from you, and a query service does not know who asks"
    encrypted = sorted({*layout_of(spec, table.schema).read_columns}.intersection(encrypted_columns(table)))
    if encrypted:
        return f"{', '.join(encrypted)} is encrypted, and a query service does not know who asks"
    return None


def check_plaintext(table: Table) -> None:
    """Refuse a query service for a table with an encrypted column, whichever columns are asked for."""
    encrypted = encrypted_columns(table)
    if encrypted:
        raise AccessDeniedError(
            f"a query service serves no table with encrypted columns, since it does not know who asks: "
            f"{table.identifier} encrypts {', '.join(sorted(encrypted))}"
        )


def check_servable(table: Table, spec: LookupSpec) -> None:
    """Check that a query service may answer a lookup; AccessDeniedError or UnsupportedError if not."""
    check_plaintext(table)
    reason = obstacle(table, spec)
    if reason is not None:
        raise UnsupportedError(
            f"a query service cannot answer for {table.identifier}: {reason}; it needs a table with a "
            "primary key and a fixed number of buckets, asked by the whole key"
        )


def is_partial(table: Table, spec: LookupSpec, rows: int) -> bool:
    """Say whether a lookup of a table of `rows` rows reads them by their keys.

    `lookup.cache=auto` does so if a whole cache would be larger than `lookup.memory-max-size` and than the
    disk that it may take. Raises UnsupportedError for `partial` where that cannot be.
    """
    options = lookup_options(table.options, spec.options)
    if options.cache not in (PARTIAL, "auto"):
        if options.remote:
            raise UnsupportedError(
                f"lookup.remote=true keeps the rows that were asked for, and lookup.cache={options.cache} a "
                "whole table: leave one of them out"
            )
        return False
    if options.cache == "auto" and not options.remote:
        size = guessed_bytes(layout_of(spec, table.schema), rows)
        return size > options.memory_max and size > _room(options) and obstacle(table, spec) is None
    reason = obstacle(table, spec)
    if reason is not None:
        wanted = "lookup.remote=true" if options.remote else "lookup.cache=partial"
        raise UnsupportedError(
            f"{wanted} cannot look up in {spec.identifier}: {reason}; it needs a join by the "
            "whole primary key of a table with fixed buckets. Use lookup.cache=full or auto"
        )
    return True


def _room(options: LookupOptions) -> int:
    if options.cache_disk:
        return options.cache_disk
    folder = local_root(options.cache_dir)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // _LOAD_FACTOR
