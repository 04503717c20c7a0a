"""`lookup_join`: each row of a Spark stream or batch with the matching rows of a dimension.

This module checks the join and chooses the plan; the plans are in `plan` and `spark_join`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    BridgeError,
    ColumnNotFoundError,
    InputError,
    LockgateError,
    NotFoundError,
    nearest,
)
from lockgate.framework.access import Caller
from lockgate.framework.plugins import acting_as, plugins
from lockgate.framework.types import from_spark_json, to_arrow
from lockgate.lookup.codec.key_codec import type_mismatch, widens
from lockgate.lookup.join.plan import Join, by_cache
from lockgate.lookup.join.spark_join import by_spark
from lockgate.lookup.join.strategy import choose
from lockgate.lookup.partial.choice import is_partial
from lockgate.lookup.spec.lookup_options import option_texts
from lockgate.lookup.spec.lookup_rights import governed
from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec, layout_of, warn_of_masks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate.framework.store import Catalog, Table
    from lockgate.pushdown import Predicate

_CATALOG_CLASS = "io.lockgate.spark.LockgateCatalog"


@checked_arguments
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
    without it, all but the join columns. `where` excludes rows of the dimension that do not meet it.
    `options` are `lookup.*` options; they take precedence over the table's. Each micro-batch uses one
    snapshot, whose id `snapshot_column` adds as a column.

    Raises ColumnNotFoundError and TableNotFoundError with the nearest names, InputError for columns whose
    types do not fit (naming both) or whose names clash, BridgeError if Lockgate is not attached to the
    session, AccessDeniedError if the session's user may not read what is joined.
    """
    if how not in ("left", "inner"):
        raise InputError(f"how= must be 'left' or 'inner', not {how!r}: a lookup keeps the stream's side")
    name = _full_name(table)
    dimension = dimension_of(stream.sparkSession, table)
    pairs = _pairs(on)
    stream_keys = [_resolve(column, stream.columns, "the stream") for column in pairs]
    columns = dimension.schema.field_names
    keys = [_resolve(column, columns, str(dimension.identifier)) for column in pairs.values()]
    chosen = _selection(select, dimension, keys)
    spec = LookupSpec(
        f"{name[1]}.{name[2]}", tuple(keys), tuple(chosen.values()), where, option_texts(options or {})
    )
    cached = not choose(stream, dimension, spec).by_spark
    if cached:  # Spark's own join is a query, governed like any other
        spec = _governed(stream.sparkSession, dimension, spec)
        is_partial(dimension, spec, 0)  # refuses what a partial cache cannot do, before anything starts
    layout = layout_of(spec, dimension.schema)
    warn_of_masks(dimension, layout)
    _check_types(stream, stream_keys, layout, dimension)
    _check_names(stream, chosen, snapshot_column)
    join = Join(
        stream,
        name,
        tuple(stream_keys),
        tuple(chosen),
        spec,
        layout,
        dimension,
        how,
        snapshot_column,
    )
    return by_cache(join) if cached else by_spark(join)


def dimension_of(spark: SparkSession, table: str) -> Table:
    """Load `catalog.database.table`; raises as `lookup_join` does."""
    catalog, database, name = _full_name(table)
    return _catalog_of(spark, catalog).load_table(f"{database}.{name}")


# --- what is asked for -------------------------------------------------------------------------------


def _full_name(table: str) -> tuple[str, str, str]:
    parts = table.replace("`", "").split(".")
    if len(parts) != 3 or not all(parts):
        raise InputError(f"a dimension is named catalog.database.table, as in lake.db.t, not {table!r}")
    return parts[0], parts[1], parts[2]


def _catalog_of(spark: SparkSession, name: str) -> Catalog:
    from lockgate.framework.spark import dispatcher, loaded_catalog

    session: Any = spark._jsparkSession
    manager = session.sessionState().catalogManager()
    if not manager.isCatalogRegistered(name):
        prefix = "spark.sql.catalog."
        catalogs = [key[len(prefix) :] for key in spark.conf.getAll if key.startswith(prefix)]
        catalogs = [key for key in catalogs if "." not in key]
        raise NotFoundError(
            f"the Spark session has no catalog {name!r}{nearest(name, catalogs)}; "
            "make one with lockgate.connect(warehouse, spark=spark)"
        )
    loaded = loaded_catalog(spark, name)
    if loaded.getClass().getName() != _CATALOG_CLASS:
        raise InputError(f"the catalog {name!r} is not a Lockgate catalog: only its tables can be looked up")
    try:
        return dispatcher().catalogs.get(loaded.handle())
    except NotFoundError:
        raise BridgeError(
            f"the catalog {name!r} is not open in this process: call lockgate.attach(spark) before using it"
        ) from None


def _governed(spark: SparkSession, dimension: Table, spec: LookupSpec) -> LookupSpec:
    if not plugins().decides_access():
        return spec
    jvm: Any = spark.sparkContext._jvm
    session: Any = spark._jsparkSession
    bridge = jvm.io.lockgate.spark.bridge
    user = str(bridge.Users.of(session))
    with acting_as(Caller(user, "spark", str(bridge.RequestSessions.nameOf(session)))):
        return governed(dimension, spec)


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


def _resolve(name: str, names: Sequence[str], table: str) -> str:
    # As Spark does: exactly, else without regard to case if that is unambiguous.
    if name in names:
        return name
    alike = [column for column in names if column.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise ColumnNotFoundError(f"{table} has no column {name!r}{nearest(name, names)}")


def _selection(
    select: Sequence[str] | Mapping[str, str] | None, dimension: Table, keys: list[str]
) -> dict[str, str]:
    columns = dimension.schema.field_names
    if select is None:
        return {name: name for name in columns if name not in keys} or {name: name for name in keys}
    if isinstance(select, str):
        raise InputError(f"select= takes a list of columns: [{select!r}]")
    if isinstance(select, Mapping):
        chosen = dict(select)
    else:
        chosen = {name: name for name in select}
        if len(chosen) != len(select):
            raise InputError(f"select= names a column twice: {', '.join(select)}")
    chosen = {new: _resolve(name, columns, str(dimension.identifier)) for new, name in chosen.items()}
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
            shown = f"{column!r} ({key.name!r} in the dimension)" if column != key.name else repr(column)
            raise InputError(type_mismatch(shown, kind.simpleString(), str(wanted)))


def _check_names(stream: DataFrame, chosen: Mapping[str, str], snapshot_column: str | None) -> None:
    taken = {column.lower() for column in stream.columns}
    for name, column in chosen.items():
        if name.lower() in taken:
            raise InputError(
                f"the join has a column {name!r} already: give the dimension's another name, "
                f"as in select={{'dim_{column}': {column!r}}}"
            )
        taken.add(name.lower())
    if snapshot_column is not None and snapshot_column.lower() in taken:
        raise InputError(
            f"the join has a column {snapshot_column!r} already: choose another snapshot_column="
        )
