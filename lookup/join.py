"""`lookup_join`: each row of a Spark stream or batch with the matching rows of a dimension.

The plan: a one-row scan of `dim$pin` gives the batch its snapshot, broadcast to every task; a function on
the key columns alone asks the cache in the Python workers; its answer becomes columns beside the stream's
own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

from lockgate.errors import (
    BridgeError,
    ColumnNotFoundError,
    InputError,
    LockgateError,
    NotFoundError,
    nearest,
)
from lockgate.framework.types import from_spark_json, to_arrow, to_spark_json
from lockgate.lookup.keycodec import type_mismatch, widens
from lockgate.lookup.options import CACHE_MEMORY, lookup_options
from lockgate.lookup.pin import CACHE_OPTION, SNAPSHOT_COLUMN, SPEC_OPTION
from lockgate.lookup.spec import CacheLayout, LookupSpec, cache_id, layout_of, warn_of_masks
from lockgate.lookup.tables import directory_for
from lockgate.lookup.worker import answer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.table import Table
    from lockgate.framework.types import DataField
    from lockgate.pushdown import Predicate

_CATALOG_CLASS = "io.lockgate.spark.LockgateCatalog"
_numbers = itertools.count(1)


def lookup_join(
    stream: DataFrame,
    table: str,
    on: str | Sequence[str] | Mapping[str, str],
    *,
    how: str = "left",
    select: Sequence[str] | Mapping[str, str] | None = None,
    where: Predicate | None = None,
    options: Mapping[str, str] | None = None,
    snapshot_column: str | None = None,
) -> DataFrame:
    """Join a streaming or batch DataFrame with a dimension, kept in a local cache that follows the table.

    `table` is `catalog.database.table`. `on` names the columns to join by, or maps the stream's to the
    dimension's. `how` is `left` (rows without a match get nulls) or `inner`; several matches give several
    rows; null keys match nothing. `select` names the dimension's columns to add, or maps new names to them;
    without it, all but those joined by are added. `where` keeps rows of the dimension that do not meet it
    out. `options` are `lookup.*` options, winning over the table's. Each micro-batch is answered from one
    snapshot, whose id `snapshot_column` adds as a column.

    Raises ColumnNotFoundError and TableNotFoundError with the nearest names, InputError for columns whose
    types do not fit (naming both) or whose names clash, BridgeError if Lockgate is not attached to the
    session.
    """
    if how not in ("left", "inner"):
        raise InputError(f"how= is 'left' or 'inner', not {how!r}: a lookup keeps the stream's side")
    name = _full_name(table)
    catalog = _catalog_of(stream.sparkSession, name[0])
    dimension = catalog.load_table(f"{name[1]}.{name[2]}")
    pairs = _pairs(on)
    stream_keys = [_resolve(column, stream.columns, "the stream") for column in pairs]
    chosen = _selection(select, dimension, list(pairs.values()))
    spec = LookupSpec(
        f"{name[1]}.{name[2]}",
        tuple(pairs.values()),
        tuple(chosen.values()),
        where,
        {key: str(value) for key, value in (options or {}).items()},
    )
    layout = layout_of(spec, dimension.schema)
    warn_of_masks(dimension, layout)
    _check_types(stream, stream_keys, layout, dimension)
    _check_names(stream, [*chosen, *([snapshot_column] if snapshot_column else [])])
    return _joined(stream, name, stream_keys, list(chosen), spec, layout, dimension, how, snapshot_column)


# --- what is asked for -------------------------------------------------------------------------------


def _full_name(table: str) -> tuple[str, str, str]:
    parts = table.split(".")
    if len(parts) != 3 or not all(parts):
        raise InputError(f"a dimension is named catalog.database.table, as in lake.db.t, not {table!r}")
    return parts[0], parts[1], parts[2]


def _catalog_of(spark: SparkSession, name: str) -> Catalog:
    from lockgate.framework.spark.brain import brain

    session: Any = spark._jsparkSession
    manager = session.sessionState().catalogManager()
    if not manager.isCatalogRegistered(name):
        prefix = "spark.sql.catalog."
        known = [key[len(prefix) :] for key in spark.conf.getAll if key.startswith(prefix)]
        known = [key for key in known if "." not in key]
        raise NotFoundError(
            f"the Spark session has no catalog {name!r}{nearest(name, known)}; "
            "make one with lockgate.connect(warehouse, spark=spark)"
        )
    loaded = manager.catalog(name)
    if loaded.getClass().getName() != _CATALOG_CLASS:
        raise InputError(f"the catalog {name!r} is not a Lockgate catalog: only its tables can be looked up")
    try:
        return brain().catalogs.get(loaded.handle())
    except NotFoundError:
        raise BridgeError(
            f"the catalog {name!r} is not open in this process: call lockgate.attach(spark) before using it"
        ) from None


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(on, str):
        return {on: on}
    if isinstance(on, Mapping):
        pairs = dict(on)
    else:
        pairs = {column: column for column in on}
        if len(pairs) != len(on):
            raise InputError(f"on= names a column twice: {', '.join(on)}")
    if not pairs:
        raise InputError("a lookup join needs at least one column in on=")
    return pairs


def _resolve(name: str, known: Sequence[str], place: str) -> str:
    # As Spark does: exactly, else without regard to case if that is unambiguous.
    if name in known:
        return name
    alike = [column for column in known if column.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise ColumnNotFoundError(f"{place} has no column {name!r}{nearest(name, known)}")


def _selection(
    select: Sequence[str] | Mapping[str, str] | None, dimension: Table, keys: list[str]
) -> dict[str, str]:
    known = dimension.schema.field_names
    if select is None:
        return {name: name for name in known if name not in keys} or {name: name for name in keys}
    if isinstance(select, str):
        raise InputError(f"select= takes a list of columns: [{select!r}]")
    if isinstance(select, Mapping):
        chosen = dict(select)
    else:
        chosen = {name: name for name in select}
        if len(chosen) != len(select):
            raise InputError(f"select= names a column twice: {', '.join(select)}")
    for name in chosen.values():
        if name not in known:
            raise ColumnNotFoundError(f"{dimension.identifier} has no column {name!r}{nearest(name, known)}")
    if len(set(chosen.values())) != len(chosen):
        raise InputError("select= maps two names to one column")
    return chosen


def _check_types(stream: DataFrame, columns: Sequence[str], layout: CacheLayout, dimension: Table) -> None:
    for column, key in zip(columns, layout.key_schema, strict=True):
        kind = stream.schema[column].dataType
        try:
            struct = {"type": "struct", "fields": [stream.schema[column].jsonValue()]}
            fits = widens(to_arrow(from_spark_json(struct)[0].type), key.type)
        except LockgateError:  # a type of Spark's that no table has
            fits = False
        if not fits:
            wanted = dimension.schema.field(key.name).type
            shown = f"{column}' (dimension: '{key.name}" if column != key.name else column
            raise InputError(type_mismatch(shown, kind.simpleString(), str(wanted)))


def _check_names(stream: DataFrame, added: Sequence[str]) -> None:
    taken = {column.lower() for column in stream.columns}
    for name in added:
        if name.lower() in taken:
            raise InputError(
                f"the stream has a column {name!r} already: give the dimension's another name, "
                f"as in select={{'dim_{name}': '{name}'}}"
            )
        taken.add(name.lower())


# --- the plan ------------------------------------------------------------------------------------------


def _joined(
    stream: DataFrame,
    name: tuple[str, str, str],
    keys: Sequence[str],
    names: Sequence[str],
    spec: LookupSpec,
    layout: CacheLayout,
    dimension: Table,
    how: str,
    snapshot_column: str | None,
) -> DataFrame:
    number = next(_numbers)
    pinned, matched = f"__lockgate_pin_{number}", f"__lockgate_match_{number}"
    pin = (
        stream.sparkSession.read.option(SPEC_OPTION, json.dumps(spec.to_json()))
        .option(CACHE_OPTION, cache_id(dimension, spec))
        .table(f"`{name[0]}`.`{name[1]}`.`{name[2]}$pin`")
        .select(functions.col(SNAPSHOT_COLUMN).alias(pinned))
    )
    options = lookup_options(dimension.options, spec.options)
    kept = tuple(dimension.schema.field(column) for column in spec.columns)
    lookup = _function(
        str(directory_for(dimension, spec).path),
        [pa.field(name, to_arrow(field.type)) for name, field in zip(names, kept, strict=True)],
        _struct_type(names, kept),
        layout.many,
        options.get_option(CACHE_MEMORY),
    )
    columns = [functions.col(f"`{key}`") for key in keys]
    rows = stream.crossJoin(functions.broadcast(pin)).withColumn(
        matched, lookup(functions.col(pinned), *columns)
    )
    if layout.many:
        spread = functions.inline if how == "inner" else functions.inline_outer
        rows = rows.select("*", spread(functions.col(matched)))
    else:
        if how == "inner":
            rows = rows.where(functions.col(matched).isNotNull())
        rows = rows.withColumns({name: functions.col(matched).getField(name) for name in names})
    if snapshot_column is not None:
        rows = rows.withColumn(snapshot_column, functions.col(pinned))
    return rows.drop(pinned, matched)


def _struct_type(names: Sequence[str], fields: Sequence[DataField]) -> StructType:
    described = to_spark_json(fields)
    for name, field in zip(names, described["fields"], strict=True):
        # A row without a match is null in every column, whatever the dimension promises of its own rows.
        field["name"], field["nullable"] = name, True
    return StructType.fromJson(described)


def _function(
    path: str, fields: list[pa.Field], struct: StructType, many: bool, cache_bytes: int
) -> Callable[..., Column]:
    from pyspark.sql.types import ArrayType

    def look_up(*arrays: pa.Array) -> pa.Array:
        pins = arrays[0]
        snapshot_id = pins[0].as_py() if len(pins) else 0
        return answer(path, snapshot_id, arrays[1:], fields, many, cache_bytes)

    make: Any = arrow_udf  # its overloads know only fixed numbers of columns
    made = make(look_up, ArrayType(struct) if many else struct)
    # Its result is used several times: a deterministic function would be evaluated for each.
    unfolded: Callable[..., Column] = made.asNondeterministic()
    return unfolded
