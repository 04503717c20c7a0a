"""Lookups inside the JVM of the tasks, of caches in mapped files: no row goes to a Python worker and back.

The rows that a cache holds are machine words, which the connector (`io.lockgate.spark.lookup`) reads as well
as `row_codec` does. What it does not do is left to the workers: encrypted caches, nested columns, retries,
groups of buckets, and RocksDB, which answers many keys at once much faster than
one by one. A cache that outgrows mapped files while a stream runs is still answered, one by one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions

from lockgate.framework.spark import java_class
from lockgate.lookup.codec.row_codec import WIDE_DECIMAL, is_variable
from lockgate.lookup.partial.choice import guessed_bytes
from lockgate.lookup.spec.lookup_options import LookupOptions
from lockgate.lookup.spec.lookup_spec import cached_layout

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

    from lockgate.framework.store import Table
    from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec


def answers_in_jvm(table: Table, spec: LookupSpec, layout: CacheLayout, options: LookupOptions) -> bool:
    """Return whether the JVM can do this lookup, and is likely to find the cache in mapped files."""
    if not options.in_jvm or options.remote or cached_layout(table, spec).keys:
        return False
    keys, columns = (
        [_kind(kind) for kind in schema.types] for schema in (layout.key_schema, layout.row_schema)
    )
    # A key of microseconds is not one of milliseconds; the workers raise the error.
    if None in keys + columns or "millis" in keys:
        return False
    if options.cache == "auto":
        newest = table.newest_change()
        rows = 0 if newest is None else newest.total_record_count
        return guessed_bytes(layout, rows) <= options.memory_max
    return options.cache == "memory"


def _kind(data_type: pa.DataType) -> str | None:
    # The name by which the connector knows how a column is kept (RowShape.Kind); None: it does not know it.
    if pa.types.is_boolean(data_type):
        return "boolean"
    if pa.types.is_signed_integer(data_type):
        return f"int{data_type.bit_width}"
    if pa.types.is_floating(data_type):
        return {32: "float32", 64: "float64"}.get(data_type.bit_width)
    if pa.types.is_date32(data_type):
        return "int32"
    if pa.types.is_timestamp(data_type):
        return {"us": "int64", "ms": "millis"}.get(data_type.unit)
    if pa.types.is_decimal128(data_type):
        return "wide_decimal" if data_type.precision > WIDE_DECIMAL else "decimal"
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return "text"
    return "bytes" if is_variable(data_type) else None


@contextmanager
def jvm_function(
    spark: SparkSession,
    catalog: str,
    location: str,
    layout: CacheLayout,
    key_types: Sequence[DataType],
    answer_type: DataType,
    wait_seconds: float,
    *,
    everywhere: bool,
) -> Iterator[Callable[..., Column]]:
    """Offer `spark` the function of the batch's pin and mark and the key columns that gives a cache's answer.

    `location` is a folder, or, with `everywhere`, what each host turns into a folder of its own (see
    `cache_paths`). No statement can name it: the session finds the function by an unguessable name, and only
    inside the `with` block, in which a plan with the function must be made.
    """
    how = {
        "location": location,
        "everywhere": everywhere,
        "wait_seconds": wait_seconds,
        "keys": [_kind(kind) for kind in layout.key_schema.types],
        "columns": [_kind(kind) for kind in layout.row_schema.types],
        "answer": answer_type.jsonValue(),
        "answered": [layout.row_schema.get_field_index(name) for name in layout.columns],
    }
    session: Any = spark
    offers = java_class(session, "io.lockgate.spark.lookup.OfferedLookups")
    name = offers.offer(session._jsparkSession, json.dumps(how))

    def ask(pin: Column, mark: Column, *keys: Column) -> Column:
        # As one value: Spark compiles calls of functions of fixed types only.
        cast = (key.cast(kind) for key, kind in zip(keys, key_types, strict=True))
        key = functions.struct(*(each.alias(f"key{number}") for number, each in enumerate(cast)))
        return functions.call_function(f"`{catalog}`.{name}", pin, mark, key)

    try:
        yield ask
    finally:
        offers.withdraw(name)
