"""The plan of a join by the cache.

The row of `dim$pin`, a scalar subquery, gives the batch its snapshot; a function on the key columns alone
asks the cache in the Python workers; its answer becomes columns next to the stream's own.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions
from pyspark.sql.pandas import functions as arrow_functions
from pyspark.sql.types import (
    ArrayType,
    CharType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from lockgate.framework.access import ALLOWED, MASKED
from lockgate.framework.orc import MARK
from lockgate.framework.spark import since_4_1
from lockgate.framework.store import column_marks, visibility
from lockgate.framework.types import to_arrow, to_spark_json
from lockgate.lookup.driver.batch_counts import SNAPSHOT_MASK
from lockgate.lookup.driver.cluster import executors_keep, warn_of_detached_cache_server
from lockgate.lookup.driver.lookup_tables import directory_for, location_of
from lockgate.lookup.driver.reports import REPORTS
from lockgate.lookup.join.jvm import answers_in_jvm, jvm_function
from lockgate.lookup.join.metrics import observed
from lockgate.lookup.join.pin_table import (
    ANSWER_OPTION,
    CACHE_OPTION,
    GROUPS_OPTION,
    MARK_MEMBER,
    SCHEMA_OPTION,
    SNAPSHOT_MEMBER,
    SPEC_OPTION,
    STATE_MEMBERS,
    TABLE_OPTION,
)
from lockgate.lookup.join.shuffle import buckets_for, grouped
from lockgate.lookup.join.task_lookup import SNAPSHOT_FIELD, TaskLookup, coalesce_batches, look_up_batches
from lockgate.lookup.join.worker_python import check_worker_python
from lockgate.lookup.spec.lookup_options import LookupOptions, lookup_options
from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec, cache_id

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from lockgate.framework.store import Table
    from lockgate.framework.types import DataField
    from lockgate.lookup.join.shuffle import Buckets

# The driver builds the state of a batch before its tasks run. They wait this long if it is lost by then.
_LOST_SECONDS = 60.0

# Metadata of an answer, by which the connector knows it: what is said of each of its members (`ColumnFlow`).
_LOOKED_UP = "lockgate.looked-up"
# Metadata of a column, by which lineage knows what it is made of: tables, each with the path of a column.
_MADE_OF = "lockgate.lineage"

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Join:
    """One lookup join as it was asked for, checked.

    `name` is the dimension's catalog, database and table; `keys` are the stream's columns, in the order of
    the spec's; `names` are the new columns, in the order of the spec's `columns`.
    """

    stream: DataFrame
    name: tuple[str, str, str]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    spec: LookupSpec
    layout: CacheLayout
    dimension: Table
    how: str
    snapshot_column: str | None

    def fields(self) -> tuple[DataField, ...]:
        """Return the dimension's columns that become the new ones."""
        return tuple(self.dimension.schema.field(column) for column in self.spec.columns)


def column_named(name: str) -> Column:
    """Return the column of exactly this name, whatever is in it."""
    return functions.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def next_number() -> int:
    """Return a number that makes the names of a join's inner columns its own."""
    return next(_numbers)


def pin_of(join: Join, *, by_spark: bool, groups: int | None = None) -> Column:
    """Return the struct that gives each batch its snapshot, the same for all of its rows (see
    `pin_table`).
    """
    catalog, database, table = join.name
    reader = join.stream.sparkSession.read.options(**pin_options(join, by_spark=by_spark))
    if groups is not None:
        reader = reader.option(GROUPS_OPTION, str(groups))
    return reader.table(f"`{catalog}`.`{database}`.`{table}$pin`").scalar()


def pin_options(join: Join, *, by_spark: bool) -> dict[str, str]:
    """Return the read options by which `pin_table` knows a join, and what it was planned with."""
    return {
        SPEC_OPTION: json.dumps(join.spec.asked()),
        CACHE_OPTION: cache_id(join.dimension, join.spec),
        TABLE_OPTION: join.dimension.table_id,
        SCHEMA_OPTION: str(join.dimension.schema.id),
        ANSWER_OPTION: "spark" if by_spark else "cache",
    }


def by_cache(join: Join) -> DataFrame:
    """Plan a join that the cache answers."""
    warn_of_detached_cache_server(join.stream.sparkSession)
    number = next_number()
    pinned, matched = f"__lockgate_pin_{number}", f"__lockgate_match_{number}"
    marked, whole = f"__lockgate_mark_{number}", f"__lockgate_whole_{number}"
    stream, group, groups = join.stream, f"__lockgate_group_{number}", None
    buckets = buckets_for(join.dimension, join.spec)
    if buckets is not None:
        groups = min(buckets.count, join.stream.sparkSession.sparkContext.defaultParallelism)
        stream = _by_group(join, buckets, groups, group)
    options = lookup_options(join.dimension.options, join.spec.options)
    retried = options.retry is not None
    columns = [column_named(key) for key in ([group] if groups else []) + list(join.keys)]
    pin = pin_of(join, by_spark=False, groups=groups)
    if stream.isStreaming:
        # In no column: the connector puts the values of a micro-batch into its plan.
        rows, members = stream, []
        snapshot, mark = pin[SNAPSHOT_MEMBER], pin[MARK_MEMBER]
    else:
        # One subquery, whose members become columns: Spark optimizes and plans each subquery that it sees.
        rows, members = stream.withColumn(whole, pin), [pinned, marked]
        rows = rows.withColumns({pinned: rows[whole][SNAPSHOT_MEMBER], marked: rows[whole][MARK_MEMBER]})
        rows = rows.drop(whole)
        snapshot, mark = functions.col(pinned), functions.col(marked)
    # Its values are not those of the key, which may be of an encrypted column. What is said of the new
    # columns is said of the answer too: Spark forgets the columns where only expressions on them are wanted.
    marks = _marks(join)
    metadata = {_LOOKED_UP: json.dumps([marks[name] for name in join.names])}
    with _asking(join, options, groups) as lookup:
        answers = lookup(snapshot, mark, *columns)
        rows = rows.select("*", answers.alias(matched, metadata=metadata))
    snapshot = snapshot.bitwiseAND(functions.lit(SNAPSHOT_MASK))
    if stream.isStreaming:
        answer = functions.col(matched)
        found = (
            functions.count_if(functions.size(answer) > 0) if join.layout.many else functions.count(answer)
        )
        state = {member: pin[member] for member in STATE_MEMBERS}
        rows = observed(join, rows, found, snapshot, state)
    own = SNAPSHOT_FIELD.name
    if join.layout.many:
        spread = functions.inline if join.how == "inner" else functions.inline_outer
        rows = rows.select("*", spread(functions.col(matched)))
    else:
        if join.how == "inner":
            rows = rows.where(functions.col(matched).isNotNull())
        found_members = [*join.names, *([own] if retried else [])]
        rows = rows.withColumns({name: functions.col(matched).getField(name) for name in found_members})
    if retried:
        snapshot = functions.coalesce(functions.col(own), snapshot)
    if join.snapshot_column is not None:
        rows = rows.withColumn(join.snapshot_column, snapshot)
    for name, metadata in marks.items():
        rows = rows.withColumn(name, column_named(name).alias(name, metadata=metadata))
    return rows.drop(*members, matched, own, group)


def _marks(join: Join) -> dict[str, dict[str, Any]]:
    """Return metadata of the new columns: where they come from, which are masks, and which values are
    encrypted.
    """
    seen = visibility(join.dimension, ALLOWED if join.spec.rights is None else join.spec.rights.decision)
    encrypted = column_marks(join.dimension, seen)
    marks: dict[str, dict[str, Any]] = {}
    table = ".".join(map(_quoted, join.name))
    for name, column in zip(join.names, join.spec.columns, strict=True):
        marks[name] = {_MADE_OF: json.dumps([(table, [column])])}
        masked = seen.column(column).masked
        if masked is not None:
            marks[name][MASKED] = masked
        if column in encrypted:
            marks[name][MARK] = json.dumps(encrypted[column])
    return marks


def _by_group(join: Join, buckets: Buckets, groups: int, group: str) -> DataFrame:
    kinds = dict(zip(join.spec.keys, key_types(join), strict=True))
    stream_keys = dict(zip(join.spec.keys, join.keys, strict=True))
    # Of the dimension's types, for a bucket is chosen by the bytes of the key.
    columns = [column_named(stream_keys[key]).cast(kinds[key]) for key in buckets.keys]
    bucket = functions.call_function(f"`{join.name[0]}`.bucket", functions.lit(buckets.count), *columns)
    complete = functions.lit(True)
    for column in columns:
        complete = complete & column.isNotNull()
    # Null keys match nothing anywhere, so they stay where they are.
    number = functions.when(complete, bucket % groups).otherwise(functions.spark_partition_id() % groups)
    stream = join.stream.withColumn(group, number)
    repartition: Callable[..., DataFrame] = since_4_1(
        stream, "repartitionById", f"the lookup of {join.name[2]} by buckets (lookup.shuffle)"
    )
    return repartition(groups, functions.col(group))


def key_types(join: Join) -> list[DataType]:
    """Return the dimension's types of the columns joined by."""
    fields = [join.dimension.schema.field(column) for column in join.spec.keys]
    return [field.dataType for field in StructType.fromJson(to_spark_json(fields)).fields]


def _struct_type(names: Sequence[str], fields: Sequence[DataField]) -> StructType:
    described = to_spark_json(fields)
    for name, field in zip(names, described["fields"], strict=True):
        # A row without a match is null in every column, even in columns that the dimension declares NOT NULL.
        field["name"], field["nullable"] = name, True
    struct = _without_lengths(StructType.fromJson(described))
    assert isinstance(struct, StructType)
    return struct


def _without_lengths(data_type: DataType) -> DataType:
    # Spark reads CHAR and VARCHAR columns as strings.
    if isinstance(data_type, CharType | VarcharType):
        return StringType()
    if isinstance(data_type, ArrayType):
        return ArrayType(_without_lengths(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(
            _without_lengths(data_type.keyType),
            _without_lengths(data_type.valueType),
            data_type.valueContainsNull,
        )
    if isinstance(data_type, StructType):
        fields = [
            StructField(field.name, _without_lengths(field.dataType), field.nullable, field.metadata)
            for field in data_type.fields
        ]
        return StructType(fields)
    return data_type


def _folder_of(dimension: Table, spec: LookupSpec) -> str:
    return str(directory_for(dimension, spec).path)


def _asking(
    join: Join, options: LookupOptions, groups: int | None
) -> AbstractContextManager[Callable[..., Column]]:
    if _in_jvm(join, options, groups):
        return _jvm_function(join, options)
    return nullcontext(_function(join, options, groups))


def _in_jvm(join: Join, options: LookupOptions, groups: int | None) -> bool:
    return (
        groups is None
        and options.retry is None
        and answers_in_jvm(join.dimension, join.spec, join.layout, options)
    )


def _jvm_function(join: Join, options: LookupOptions) -> AbstractContextManager[Callable[..., Column]]:
    REPORTS.counter(join.stream.sparkSession.sparkContext)  # which takes over what the JVM counts
    struct = _struct_type(join.names, join.fields())
    by_executors = executors_keep(join.stream.sparkSession)
    return jvm_function(
        join.stream.sparkSession,
        join.name[0],
        _finder(by_executors)(join.dimension, join.spec),
        join.layout,
        key_types(join),
        ArrayType(struct) if join.layout.many else struct,
        _wait_seconds(options, by_executors),
        everywhere=by_executors,
    )


def _finder(by_executors: bool) -> Callable[[Table, LookupSpec], str]:
    # Where the driver keeps the cache, its folder counts, not the environment of the executors.
    return location_of if by_executors else _folder_of


def _wait_seconds(options: LookupOptions, by_executors: bool) -> float:
    return min(options.timeout, math.inf if by_executors else _LOST_SECONDS)


def _function(join: Join, options: LookupOptions, groups: int | None) -> Callable[..., Column]:
    check_worker_python(join.stream.sparkSession)
    fields = join.fields()
    specs = [join.spec] if groups is None else grouped(join.spec, groups)
    by_executors = executors_keep(join.stream.sparkSession)
    find = _finder(by_executors)
    wanted = TaskLookup(
        locations=tuple(find(join.dimension, each) for each in specs),
        fields=tuple(
            pa.field(name, to_arrow(field.type)) for name, field in zip(join.names, fields, strict=True)
        ),
        many=join.layout.many,
        cache_bytes=options.cache_memory,
        retry=options.retry,
        wait_seconds=_wait_seconds(options, by_executors),
        everywhere=by_executors,
    )
    counter = REPORTS.counter(join.stream.sparkSession.sparkContext)
    struct = _struct_type(join.names, fields)
    if wanted.retry is not None:
        struct = struct.add(SNAPSHOT_FIELD.name, LongType())

    # The batches of the answer may differ in size from those of the question.
    def ask(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for pins, marks, *arrays in coalesce_batches(batches):
            if groups is None:
                yield from look_up_batches(wanted, counter, pins, arrays, marks=marks)
            else:
                yield from look_up_batches(wanted, counter, pins, arrays[1:], arrays[0], marks)

    make = since_4_1(
        arrow_functions,
        "arrow_udf",
        f"the lookup of {join.name[2]} by Python's workers (it is encrypted, nested, retried, kept by "
        "executors or too large for lookup.cache=memory, or has lookup.in-jvm=false)",
    )
    made = make(ask, ArrayType(struct) if join.layout.many else struct)
    # Its result is used several times: a deterministic function would be evaluated for each.
    unfolded: Callable[..., Column] = made.asNondeterministic()
    return unfolded
