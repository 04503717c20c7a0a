"""Operations on writes: begun, written by tasks into files, then committed or aborted as a whole."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    OptionError,
    UnsupportedError,
    nearest,
)
from lockgate.framework.access import Action
from lockgate.framework.options.table_options import (
    ORC_HIDE_CARDINALITY,
    PARTITION_DEFAULT_NAME,
    PARTITION_LEGACY_NAME,
    SEQUENCE_ORDER,
    TARGET_FILE_SIZE,
)
from lockgate.framework.plugins import StreamProgressed, plugins, publish
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.messages.shared_messages import Committed
from lockgate.framework.spark.messages.write_messages import (
    BeginRequest,
    EndRequest,
    Kinds,
    StatisticsMode,
    WriteRequest,
    WriteSpec,
    WrittenStatistics,
)
from lockgate.framework.spark.operations import index_keys
from lockgate.framework.spark.operations.alterations import merges_schema
from lockgate.framework.spark.operations.java_encryption import java_options
from lockgate.framework.spark.operations.partition_operations import chosen_by, whole_partitions
from lockgate.framework.spark.operations.plans.file_rewrites import REWRITE, holder_of, written_table
from lockgate.framework.spark.operations.rewritten_rows import marked_rows, rewritten_files
from lockgate.framework.store import can_widen
from lockgate.framework.store.codec.binary_row import COMPACT_TIMESTAMP_PRECISION
from lockgate.framework.store.confidential.column_visibility import require_write_keys
from lockgate.framework.store.metadata.snapshot import BATCH_COMMIT_IDENTIFIER
from lockgate.framework.types import from_spark_type, to_spark_type

if TYPE_CHECKING:
    from lockgate.framework.store import CommitMessage, MergePlanJson, Overwrite, Table, TableSchema


# Options of a write that identify its commit, so that a repeated job commits nothing twice.
COMMIT_USER = "commit-user"
COMMIT_IDENTIFIER = "commit-identifier"
_OVERWRITE_MODE = "partitionoverwritemode"
_OF_SCANS = ("scan.", "incremental-between")

# Ways to write that replace partitions.
_PARTITIONS_REPLACED = frozenset({"overwrite", "dynamic"})

# Ways to write of which Spark's option `partitionOverwriteMode` says something.
_OVERWRITES = frozenset({*_PARTITIONS_REPLACED, "truncate"})

# Ways to write that leave the table as it is if there are no rows to write.
_NOTHING_WITHOUT_FILES = frozenset({"append", "delete", "dynamic", "rewrite"})


def begin(context: OperationContext, request: BeginRequest) -> WriteSpec:
    """Say where and how tasks write; refuses rows that do not fit and missing keys before any task runs."""
    from lockgate.framework.options.changelog_options import INPUT
    from lockgate.framework.store import grant
    from lockgate.framework.store.schema.written_formats import PARQUET, written_format
    from lockgate.framework.store.write.write import check_rows_writable

    table = written_table(context, request)
    schema = table.schema
    check_rows_writable(schema)
    if schema.moves_keys and request["mode"] in _PARTITIONS_REPLACED and not _replaces_all(request):
        raise UnsupportedError(
            f"partitions of {table.identifier} cannot be overwritten, because its keys move between them "
            "(the primary key lacks partition columns): overwrite the whole table, or use DELETE and INSERT"
        )
    _check_options(request)
    _check_rows(table, request)
    _check_keys(schema)
    require_write_keys(table)
    for action in sorted(_actions(context, request["mode"])):
        grant(table, action)
    options = table.options
    encrypt, mask = java_options(table)
    buckets = schema.bucket_count
    merge_plan, kinds = _merging(schema)
    written = written_format(options)
    # An overwrite writes no changelog, as in Paimon.
    adds = request["mode"] in ("append", "delete") and request["replacement"] is None
    return {
        "write_id": context.dispatcher.writes.begin(table, replace_all=_replaces_all(request)),
        "location": context.hadoop_path(table, table.paths.data_location),
        "schema_id": schema.id,
        "fields": [
            {
                "id": field.id,
                "name": field.name,
                "type": to_spark_type(field.type, field_ids=True),
                "nullable": field.type.nullable,
                "key": field.name in schema.primary_keys,
                "precision": field.type.precision,
            }
            for field in schema.fields
        ],
        "partition_keys": list(schema.partition_keys),
        "primary_key": list(schema.primary_keys),
        "bucket": {"columns": list(schema.bucket_keys), "count": buckets} if buckets > 0 else None,
        "dynamic_buckets": schema.has_dynamic_buckets,
        "moves_keys": schema.moves_keys,
        "records": schema.changelog_producer == INPUT and adds,
        "sequence": {
            "columns": list(schema.sequence_fields),
            "descending": options.get_option(SEQUENCE_ORDER) == "descending",
        },
        "first_sequence": _first_sequence(table),
        "merge_plan": merge_plan,
        "kinds": kinds,
        "stats": _statistics_modes(schema),
        "index_keys": index_keys.asked_keys(context, table),
        "encrypt": encrypt,
        "mask": mask,
        "key_scope": context.dispatcher.scopes.register(table.keys) if encrypt and table.keys else None,
        "dictionaries": not options.get_option(ORC_HIDE_CARDINALITY),
        "format": written.name,
        "parquet_footer": _parquet_footer(schema) if written.name == PARQUET else None,
        "compression": written.compression,
        "target_file_size": options.get_option(TARGET_FILE_SIZE),
        # If two parts named folders differently, nobody would find the files.
        "partition_default_name": options.get_option(PARTITION_DEFAULT_NAME),
        "partition_legacy_name": options.get_option(PARTITION_LEGACY_NAME),
    }


def _parquet_footer(schema: TableSchema) -> str:
    """Return the footer of an empty file, by which tasks write the schema that Python would."""
    from lockgate.framework.store.formats.parquet_output import empty_footer
    from lockgate.framework.store.rows.row_conversion import file_field_ids, file_schema

    return base64.b64encode(empty_footer(file_schema(schema), file_field_ids(schema))).decode()


def _actions(context: OperationContext, mode: str) -> frozenset[Action]:
    """Return what a write does: what Spark said when it loaded the table, else what its mode implies."""
    implied = {Action.INSERT} if mode == "append" else {Action.INSERT, Action.DELETE}
    return context.privileges or frozenset(implied)


def _merging(schema: TableSchema) -> tuple[MergePlanJson | None, Kinds | None]:
    """Say how rows of one key merge, and which rows are written by their kinds."""
    from lockgate.framework.store import merge_plan
    from lockgate.framework.store.rows.row_kinds import kind_policy

    plan = merge_plan(schema)
    if plan is None:
        return None, None
    kinds = kind_policy(schema)
    return plan.to_json(), {
        "column": kinds.column,
        "dropped": sorted(map(int, kinds.dropped)),
        "refused": {str(int(kind)): reason for kind, reason in kinds.refused.items()},
    }


def _statistics_modes(schema: TableSchema) -> dict[str, StatisticsMode]:
    """Return what tasks keep of each column; a column of which nothing is kept is left out."""
    from lockgate.framework.store.rows.file_statistics import stats_modes

    return {
        name: {"bounds": mode.bounds, "length": mode.length} for name, mode in stats_modes(schema).items()
    }


def _check_rows(table: Table, request: BeginRequest) -> None:
    """Check the rows of a stream, which Spark does not fit to the table; those of a batch pass anyway."""
    incoming = {field["name"].lower(): field for field in request["schema"]["fields"]}
    if not incoming and request["mode"] == "delete":
        return
    merges = request["epoch"] is not None and merges_schema(request["options"])
    columns = {field.name.lower(): field for field in table.schema.fields}
    for name, field in incoming.items():
        if name not in columns:
            raise ColumnNotFoundError(
                f"table {table.identifier} has no column {field['name']!r}"
                f"{nearest(field['name'], table.schema.field_names)}"
            )
    for name, column in columns.items():
        if name not in incoming:
            if merges and column.type.nullable:
                continue
            raise InputError(
                f"the rows for table {table.identifier} have no column {column.name!r}: "
                f"add it, for instance withColumn({column.name!r}, lit(None).cast(...))"
            )
        given, wanted = incoming[name]["type"], to_spark_type(column.type)
        fits = merges and can_widen(from_spark_type(given), column.type)
        if not fits and _storage(given) != _storage(wanted):
            raise InputError(
                f"column {column.name!r} of table {table.identifier} is of type {_text(wanted)}, "
                f"the rows have {_text(given)}: cast it"
            )


def _check_keys(schema: TableSchema) -> None:
    """Refuse keys that Spark's tasks would hash and order otherwise than the rest of the world.

    Spark has one precision of timestamps, microseconds; a coarser one has another binary form.
    """
    for name in dict.fromkeys((*schema.primary_keys, *schema.bucket_keys)):
        data_type = schema.field(name).type
        if data_type.is_timestamp and (data_type.precision or 0) <= COMPACT_TIMESTAMP_PRECISION:
            raise UnsupportedError(
                f"key column {name!r} is a {data_type}, which Spark cannot write: declare it with precision 6"
            )


def _storage(spark_type: str | Mapping[str, Any]) -> object:
    """Return what decides how values lie in memory: texts of any length alike, nullability aside."""
    if isinstance(spark_type, str):
        return "string" if spark_type.startswith(("char(", "varchar(")) else spark_type
    kind = spark_type["type"]
    if kind == "struct":
        return [(field["name"].lower(), _storage(field["type"])) for field in spark_type["fields"]]
    if kind == "array":
        return [kind, _storage(spark_type["elementType"])]
    if kind == "map":
        return [kind, _storage(spark_type["keyType"]), _storage(spark_type["valueType"])]
    return dict(spark_type)


def _text(spark_type: str | Mapping[str, Any]) -> str:
    return spark_type if isinstance(spark_type, str) else str(from_spark_type(spark_type))


def _first_sequence(table: Table) -> int:
    """Return a sequence number above those of all live files; tables without a key do not compare them."""
    if not table.schema.primary_keys:
        return 0
    live = table.manifests.live_files(table.latest_snapshot())
    return max((entry.file.max_sequence_number for entry in live), default=-1) + 1


def commit(context: OperationContext, request: EndRequest) -> Committed:
    """Make the files of a write visible at once; an epoch of a stream is never committed twice."""
    # The table as it was when the write began: the files have its schema, not that of a table made later.
    begun = context.dispatcher.writes.end(request["write_id"])
    table = begun.table if begun is not None else context.table()
    messages = _messages(table, request)
    if begun is not None:
        messages = begun.completed(index_keys.with_sent_keys(table, request, messages))
    if index_keys.has_files(request):
        index_keys.remove_keys(table, request["write_id"])
    marked, emptied = marked_rows(table, request)
    messages += emptied
    holder = holder_of(context, request)
    if holder is not None:
        holder.hold(messages)
        return {"snapshot_id": None}
    user, identifier = _named(request)
    rewritten = rewritten_files(table, request)
    if (
        not messages
        and not rewritten
        and not marked
        and identifier is None
        and request["mode"] in _NOTHING_WITHOUT_FILES
    ):
        return {"snapshot_id": None}
    before = table.latest_snapshot()
    snapshot = table.commit(
        [*messages, *rewritten],
        kind="APPEND" if request["mode"] in ("append", "delete") else "OVERWRITE",
        user=user,
        identifier=identifier,
        base_snapshot_id=request["base_snapshot_id"],
        base_commit_id=request["base_commit_id"],
        overwrite=_overwritten(table, request, messages),
        marked=marked,
    )
    if identifier is not None and before is not None and snapshot.id <= before.id:
        # An earlier run has committed it: the table has the files of that run.
        table.abort(messages)
    if request["epoch"] is not None:
        publish(
            StreamProgressed(
                query=request["query_id"],
                batch=request["epoch"],
                table=table.location,
                use="write",
                snapshot_id=snapshot.id,
            )
        )
    return {"snapshot_id": snapshot.id}


def _named(request: WriteRequest) -> tuple[str | None, int | None]:
    """Return the idempotency key of a commit: an epoch of a stream, or what the options give."""
    if request["epoch"] is not None:
        return request["query_id"], request["epoch"]
    options = {key.lower(): value for key, value in request["options"].items()}
    user, text = options.get(COMMIT_USER), options.get(COMMIT_IDENTIFIER)
    if (user is None) != (text is None):
        raise OptionError(
            f"{COMMIT_USER!r} and {COMMIT_IDENTIFIER!r} must be set together: a user, and a number "
            "that identifies one of the user's commits"
        )
    if text is not None and (not text.isdecimal() or int(text) >= BATCH_COMMIT_IDENTIFIER):
        raise OptionError(
            f"{COMMIT_IDENTIFIER!r} must be a whole number that grows from commit to commit, not {text!r}"
        )
    return user, None if text is None else int(text)


def _check_options(request: WriteRequest) -> None:
    """Refuse options that no write has; Spark adds its own to those of a stream, and scans have theirs."""
    own = (COMMIT_USER, COMMIT_IDENTIFIER)
    of_scans = {key.lower() for key in plugins().options("read")}
    for key, text in () if request["epoch"] is not None else request["options"].items():
        name = key.lower()
        if name == _OVERWRITE_MODE:
            _check_overwrite_mode(request["mode"], text)
        elif name not in {*own, REWRITE, *of_scans} and not name.startswith(_OF_SCANS):
            raise OptionError(f"a write has no option {key!r}{nearest(name, own)}")
    _named(request)


def _check_overwrite_mode(mode: str, text: str) -> None:
    """Refuse `partitionOverwriteMode`, which Spark reads for files alone, where it contradicts the write."""
    written = "dynamic" if mode == "dynamic" else "static"
    if mode not in _OVERWRITES or text.strip().lower() != written:
        does = f"is {written}" if mode in _OVERWRITES else "overwrites nothing"
        raise OptionError(
            f"option 'partitionOverwriteMode' is {text!r}, but this write {does}: leave it out, and set "
            "spark.sql.sources.partitionOverwriteMode, or use overwritePartitions() or overwrite(condition)"
        )


def _messages(table: Table, request: EndRequest) -> list[CommitMessage]:
    from lockgate.framework.store import CommitMessage

    messages: list[Any] = [message for message in request["messages"] if "file" in message]
    for message in messages:
        message["file"] |= {"stats": _kept_statistics(table, message["file"]["stats"])}
    return [CommitMessage.of_written(message, table.schema) for message in messages]


def _kept_statistics(table: Table, found: Mapping[str, WrittenStatistics]) -> dict[str, WrittenStatistics]:
    """Return of the statistics that tasks send what the table's options keep, whatever tasks were told."""
    modes = _statistics_modes(table.schema)
    return {
        name: column if modes[name]["bounds"] else {**column, "min": None, "max": None}
        for name, column in found.items()
        if name in modes
    }


def abort(context: OperationContext, request: EndRequest) -> bool:
    """Delete every file of a write that came to nothing.

    That includes files of tasks that ended while the job was failing, whose messages never reached the
    driver. A task that still runs deletes its own: Spark denies it the commit.
    """
    from lockgate.framework.store.maintenance.orphans import data_files_in
    from lockgate.framework.store.write.abort import live_names

    context.dispatcher.writes.end(request["write_id"])
    table = context.table()
    table.abort(_messages(table, request))
    live = live_names(table)
    for file in list(data_files_in(table)):
        if file.name.startswith(_own_names(request)) and file.name not in live:
            table.file_system.delete(file.path)
    index_keys.remove_keys(table, request["write_id"])
    return True


def _own_names(request: EndRequest) -> tuple[str, ...]:
    """Return what the names of all files of a write start with."""
    return tuple(f"{kind}-{request['write_id']}-" for kind in ("data", "changelog"))


# --- overwriting whole partitions ----------------------------------------------------------------


def _replaces_all(request: WriteRequest) -> bool:
    """Say whether a write replaces all rows of the table, or the table itself."""
    return request["mode"] == "truncate" or request["replacement"] is not None


def _overwritten(table: Table, request: EndRequest, messages: Sequence[CommitMessage]) -> Overwrite | None:
    """Say which partitions a write replaces, whatever is in them when it lands."""
    mode = request["mode"]
    if mode == "truncate":
        return {}
    if mode == "overwrite":
        return chosen_by(table, whole_partitions(table, request["filters"]))
    if mode == "dynamic":
        return {message.partition for message in messages}.__contains__
    return None


OPERATIONS = {
    "write.begin": begin,
    "write.commit": commit,
    "write.abort": abort,
}
