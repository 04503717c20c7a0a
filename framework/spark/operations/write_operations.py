"""Operations on writes: begun, written by tasks into files, then committed or aborted as a whole."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    OptionError,
    UnsupportedError,
    nearest,
)
from lockgate.framework.access import Action
from lockgate.framework.options import (
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
    IndexKeys,
    WriteRequest,
    WriteSpec,
)
from lockgate.framework.spark.operations.alterations import merges_schema
from lockgate.framework.spark.operations.data_files import check_spark_types
from lockgate.framework.spark.operations.java_encryption import java_options
from lockgate.framework.spark.operations.partition_operations import static_partitions, whole_partitions
from lockgate.framework.spark.operations.plans.file_rewrites import REWRITE, holder_of, written_table
from lockgate.framework.store import (
    BaseSnapshot,
    CommitMessage,
    StreamEpoch,
    TaskFile,
    TaskResults,
    WriteOptions,
    WriteSession,
)
from lockgate.framework.types import can_widen, from_spark_type, to_spark_type

if TYPE_CHECKING:
    from lockgate.framework.store import Overwrite, Table, TableSchema, WritePlan


# Options of a write that identify its commit, so that a repeated job commits nothing twice.
COMMIT_USER = "commit-user"
COMMIT_IDENTIFIER = "commit-identifier"
_LAST_IDENTIFIER = 2**63 - 2  # the next one is that of all commits without a name
_OVERWRITE_MODE = "partitionoverwritemode"
# Timestamps up to this precision are milliseconds in the binary form of rows.
_COMPACT_PRECISION = 3
_OF_SCANS = ("scan.", "incremental-between")

# Ways to write of which Spark's option `partitionOverwriteMode` says something.
_OVERWRITES = frozenset({"overwrite", "dynamic", "truncate"})


def begin(context: OperationContext, request: BeginRequest) -> WriteSpec:
    """Say where and how tasks write; refuses rows that do not fit and missing keys before any task runs."""
    table = written_table(context, request)
    schema, options = table.schema, table.options
    _check_options(request)
    session = WriteSession.begin(table, _write_options(context, request))
    check_spark_types(schema, schema.field_names, [])
    _check_rows(table, request)
    _check_keys(schema)
    plan = session.plan()
    encrypt, mask = java_options(table)
    buckets = schema.bucket_count
    context.dispatcher.writes.add(session)
    return {
        "write_id": session.id,
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
        "records": plan.records,
        "sequence": {
            "columns": list(schema.sequence_fields),
            "descending": options.get_option(SEQUENCE_ORDER) == "descending",
        },
        "first_sequence": plan.first_sequence,
        "merge_plan": None if plan.merge is None else plan.merge.to_json(),
        "kinds": None if plan.kinds is None else plan.kinds.to_json(),
        "stats": {
            name: {"bounds": mode.bounds, "length": mode.length} for name, mode in plan.statistics.items()
        },
        "index_keys": _index_keys(context, table, plan),
        "encrypt": encrypt,
        "mask": mask,
        "key_scope": context.dispatcher.scopes.register(table.keys) if encrypt and table.keys else None,
        "dictionaries": not options.get_option(ORC_HIDE_CARDINALITY),
        "format": plan.format.name,
        "parquet_footer": None if plan.parquet_footer is None else _text_of(plan.parquet_footer),
        "compression": plan.format.compression,
        "target_file_size": options.get_option(TARGET_FILE_SIZE),
        # If two parts named folders differently, nobody would find the files.
        "partition_default_name": options.get_option(PARTITION_DEFAULT_NAME),
        "partition_legacy_name": options.get_option(PARTITION_LEGACY_NAME),
    }


def _text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _write_options(context: OperationContext, request: WriteRequest) -> WriteOptions:
    """Return how a write changes its table, and what it does: what Spark said when it loaded the table, else
    what its mode implies.
    """
    implied = {Action.INSERT} if request["mode"] == "append" else {Action.INSERT, Action.DELETE}
    return WriteOptions(
        request["mode"],
        actions=context.privileges or frozenset(implied),
        makes_table=request["replacement"] is not None,
    )


def _index_keys(context: OperationContext, table: Table, plan: WritePlan) -> IndexKeys | None:
    if plan.keys is None:
        return None
    return {
        "folder": context.hadoop_path(table, plan.keys_folder),
        "block_rows": plan.keys.block_rows,
        "inline_bytes": plan.keys_inline_bytes,
        "columns": [
            {"column": each.column, "kind": each.kind, "values": each.values} for each in plan.keys.columns
        ],
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
        if data_type.is_timestamp and (data_type.precision or 0) <= _COMPACT_PRECISION:
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


def commit(context: OperationContext, request: EndRequest) -> Committed:
    """Make the files of a write visible at once; an epoch of a stream is never committed twice."""
    session = context.dispatcher.writes.end(request["write_id"]) or _session(context, request)
    results = _results(session.table, request)
    holder = holder_of(context, request)
    if holder is not None:
        holder.hold(session.complete(results))
        return {"snapshot_id": None}
    read = request["base_snapshot_id"]
    snapshot = session.commit(
        results,
        epoch=_epoch(request),
        base=None if read is None else BaseSnapshot(read, request["base_commit_id"]),
        partitions=_partitions(session.table, request),
    )
    if request["epoch"] is not None and snapshot is not None:
        publish(
            StreamProgressed(
                query=request["query_id"],
                batch=request["epoch"],
                table=session.table.location,
                use="write",
                snapshot_id=snapshot.id,
            )
        )
    return {"snapshot_id": None if snapshot is None else snapshot.id}


def abort(context: OperationContext, request: EndRequest) -> bool:
    """Delete every file of a write that came to nothing; Spark denies tasks that still run their commit."""
    context.dispatcher.writes.end(request["write_id"])
    session = _session(context, request)
    session.abort(_results(session.table, request))
    return True


def _session(context: OperationContext, request: EndRequest) -> WriteSession:
    """Return a write of the table as it is, for one whose beginning is not remembered."""
    return WriteSession.resume(context.table(), _write_options(context, request), request["write_id"])


def _results(table: Table, request: EndRequest) -> TaskResults:
    files, deleted = [], []
    for message in request["messages"]:
        if "file" in message:
            keys = message["index_keys"]
            written = CommitMessage.of_written(message, table.schema)
            inline = None if keys is None else keys["inline"]
            files.append(TaskFile(written, inline, has_key_file=keys is not None and inline is None))
        else:
            deleted.append((message["marked"].rpartition("/")[2], base64.b64decode(message["positions"])))
    return TaskResults(files, deleted, frozenset(request["replaced"] or ()))


def _partitions(table: Table, request: EndRequest) -> Overwrite | None:
    """Return the partitions that an overwrite names."""
    if request["mode"] != "overwrite":
        return None
    return static_partitions(table, whole_partitions(table, request["filters"]))


def _epoch(request: WriteRequest) -> StreamEpoch | None:
    """Return the idempotency key of a commit: an epoch of a stream, or what the options give."""
    if request["epoch"] is not None:
        return StreamEpoch(request["query_id"], request["epoch"])
    options = {key.lower(): value for key, value in request["options"].items()}
    user, text = options.get(COMMIT_USER), options.get(COMMIT_IDENTIFIER)
    if (user is None) != (text is None):
        raise OptionError(
            f"{COMMIT_USER!r} and {COMMIT_IDENTIFIER!r} must be set together: a user, and a number "
            "that identifies one of the user's commits"
        )
    if text is not None and (not text.isdecimal() or int(text) > _LAST_IDENTIFIER):
        raise OptionError(
            f"{COMMIT_IDENTIFIER!r} must be a whole number that grows from commit to commit, not {text!r}"
        )
    return None if user is None or text is None else StreamEpoch(user, int(text))


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
    _epoch(request)


def _check_overwrite_mode(mode: str, text: str) -> None:
    """Refuse `partitionOverwriteMode`, which Spark reads for files alone, where it contradicts the write."""
    written = "dynamic" if mode == "dynamic" else "static"
    if mode not in _OVERWRITES or text.strip().lower() != written:
        does = f"is {written}" if mode in _OVERWRITES else "overwrites nothing"
        raise OptionError(
            f"option 'partitionOverwriteMode' is {text!r}, but this write {does}: leave it out, and set "
            "spark.sql.sources.partitionOverwriteMode, or use overwritePartitions() or overwrite(condition)"
        )


OPERATIONS = {
    "write.begin": begin,
    "write.commit": commit,
    "write.abort": abort,
}
