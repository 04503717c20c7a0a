"""Operations on catalogs, databases and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lockgate.errors import (
    InputError,
    LockgateError,
    NamespaceNotFoundError,
    NotFoundError,
    TableNotFoundError,
)
from lockgate.framework.access import MASKED
from lockgate.framework.options import TARGET_FILE_SIZE
from lockgate.framework.orc import MARK
from lockgate.framework.plugins import check_session_options, plugins
from lockgate.framework.spark.context.driver_jvm import hadoop_confs
from lockgate.framework.spark.context.operation_context import SYSTEM_NAMESPACE, OperationContext, split_name
from lockgate.framework.spark.enforcement.catalog_rights import check_rights
from lockgate.framework.spark.enforcement.statements import refuse_unseen
from lockgate.framework.spark.messages.catalog_messages import (
    AlterNamespaceRequest,
    CreateNamespaceRequest,
    DropNamespaceRequest,
    HelloAnswer,
    HelloRequest,
    OpenAnswer,
    OpenRequest,
)
from lockgate.framework.spark.messages.shared_messages import NamespaceRequest, TableRequest
from lockgate.framework.spark.messages.table_messages import (
    CreateLikeRequest,
    CreateRequest,
    Definition,
    LoadAnswer,
    LoadRequest,
    RenameRequest,
    TableSpec,
)
from lockgate.framework.spark.operations.plans.scan_metrics import scan_metrics
from lockgate.framework.spark.operations.system_operations import (
    describe_of_warehouse,
    describe_system,
    describe_view,
    dotted_name,
    loaded,
)
from lockgate.framework.store import (
    METADATA_TABLES,
    ROW_TABLES,
    Identifier,
    Schema,
    Selection,
    check_readable,
    column_marks,
    grant,
    visibility,
    whole_refusal,
)
from lockgate.framework.types import SPARK_DEFAULT, to_spark_json
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

if TYPE_CHECKING:
    from lockgate.framework.store import Table

# The properties that Spark adds to every table it creates.
_SPARK_PROPERTIES = frozenset({"provider", "owner", "location", "external", "is_managed_location", "type"})
# The tables are Paimon's, so statements made for Paimon may say so.
_PROVIDERS = ("lockgate", "paimon")


def hello(context: OperationContext, request: HelloRequest) -> HelloAnswer:
    """Tell the versions of the Python side."""
    return {"version": VERSION, "protocol": BRIDGE_PROTOCOL}


def open_catalog(context: OperationContext, request: OpenRequest) -> OpenAnswer:
    """Open a catalog by the confs of a session; answers the handle that later requests carry."""
    name, options = request["catalog"], request["options"]
    check_rights(context.dispatcher.scopes, name, options, request, context.session)
    check_session_options()
    opened = context.dispatcher.catalogs.open(name, options, lambda: hadoop_confs(context.spark))
    opened.catalog.make_warehouse()
    return {"handle": opened.handle}


# --- namespaces ----------------------------------------------------------------------------------


def list_namespaces(context: OperationContext, request: NamespaceRequest) -> list[list[str]]:
    """List the databases; there are none inside a database."""
    if request["namespace"]:
        return []
    names = {*context.requested_catalog().list_namespaces(), SYSTEM_NAMESPACE}
    return [[name] for name in sorted(names)]


def load_namespace(context: OperationContext, request: NamespaceRequest) -> dict[str, str] | None:
    """Return the properties of a database, null if there is none."""
    namespace = request["namespace"]
    if not namespace:
        return {}
    if namespace == [SYSTEM_NAMESPACE]:
        return {"comment": "procedures: SHOW PROCEDURES, CALL"}
    catalog = context.requested_catalog()
    if len(namespace) != 1 or namespace[0] not in catalog.list_namespaces():
        return None
    return {
        **catalog.namespace_properties(namespace[0]),
        "location": catalog.namespace_location(namespace[0]),
    }


def create_namespace(context: OperationContext, request: CreateNamespaceRequest) -> bool:
    """Create a database."""
    if request["namespace"] == [SYSTEM_NAMESPACE]:
        raise InputError(f"the database name {SYSTEM_NAMESPACE!r} is reserved for the procedures")
    context.requested_catalog().create_namespace(context.namespace(), request["properties"])
    return True


def alter_namespace(context: OperationContext, request: AlterNamespaceRequest) -> bool:
    """Set properties of a database, or remove those whose value is null."""
    if request["namespace"] == [SYSTEM_NAMESPACE]:
        raise InputError(f"the database {SYSTEM_NAMESPACE!r} holds the procedures and cannot be altered")
    context.requested_catalog().alter_namespace(context.namespace(), request["changes"])
    return True


def drop_namespace(context: OperationContext, request: DropNamespaceRequest) -> bool:
    """Drop a database, with its tables if the request says so."""
    context.requested_catalog().drop_namespace(context.namespace(), cascade=request["cascade"])
    return True


# --- tables --------------------------------------------------------------------------------------


def list_tables(context: OperationContext, request: NamespaceRequest) -> list[str]:
    """List the tables of a database."""
    if not request["namespace"]:
        return []
    if request["namespace"] == [SYSTEM_NAMESPACE]:
        return context.requested_catalog().system_tables()
    return context.requested_catalog().list_visible_tables(context.namespace())


def load_table(context: OperationContext, request: LoadRequest) -> LoadAnswer:
    """Describe a table at its newest snapshot, or at the one that a time travel names."""
    if request["namespace"] == [SYSTEM_NAMESPACE]:
        return describe_of_warehouse(context)
    named = dotted_name(context)
    if named is not None:
        about = context.about(named)
        return {**load_table(about, {**request, **named}), "named": named}
    try:
        table = context.table()
    except (TableNotFoundError, NamespaceNotFoundError) as error:
        return loaded(missing=str(error))
    suffix = split_name(request["name"])[1]
    if context.privileges and plugins().decides_access() and whole_refusal(context.principal, table):
        for action in sorted(context.privileges):
            grant(table, action)  # before Spark's errors name columns
    travels = request["version"] is not None or request["timestamp"] is not None
    if suffix in METADATA_TABLES:
        refuse_unseen(context, table)
    if suffix and suffix not in ROW_TABLES:
        asked = _requested_snapshot_id(context, table, request) if travels else None
        return loaded(system=describe_system(context, table, suffix, asked))
    spec = _describe_at(context, table, request, travels=travels)
    return loaded(table=spec, view=describe_view(table, suffix, spec) if suffix else None)


def _describe_at(
    context: OperationContext, table: Table, request: LoadRequest, *, travels: bool
) -> TableSpec:
    snapshot_id = _requested_snapshot_id(context, table, request)
    if not travels:
        # The scan raises the error of an option that selects nothing: the user can then take the option away.
        with suppress(LockgateError):
            own = Selection() if context.privileges else table.selection()
            if own.snapshot_id:
                table = table.with_schema(table.held_snapshot(own.snapshot_id).schema_id)
        return describe(context, table, snapshot_id)
    check_readable(table.schema)
    table = table.with_schema(table.held_snapshot(snapshot_id).schema_id)
    return {**describe(context, table, snapshot_id), "time_travel": True}


def _requested_snapshot_id(context: OperationContext, table: Table, request: LoadRequest) -> int:
    """Return the snapshot id to read; 0 is the state before the first snapshot."""
    if request["version"] is not None:
        try:
            return table.held_snapshot(table.number_called(request["version"])).id
        except NotFoundError:
            refuse_unseen(context, table)  # the error names tags
            raise
    if request["timestamp"] is not None:
        return table.snapshot_at(request["timestamp"] // 1000)
    latest = table.latest_snapshot()
    return 0 if latest is None else latest.id


def describe(context: OperationContext, table: Table, snapshot_id: int) -> TableSpec:
    """Return what Spark must know of a table."""
    schema = table.schema
    # Policies act on each user's plans; this holds for all users.
    seen = visibility(table)
    marks = column_marks(table, seen)
    struct, defaults = to_spark_json(schema.fields, opaque=True), table.defaults
    for field in struct["fields"]:
        if field["name"] in defaults:
            field["metadata"][SPARK_DEFAULT] = defaults[field["name"]]
        if field["name"] in marks:
            # Spark carries it with the column, even where a plan does not show the column's origin.
            field["metadata"][MARK] = json.dumps(marks[field["name"]])
        masked = seen.column(field["name"]).masked
        if masked is not None:
            field["metadata"][MASKED] = masked
            field["nullable"] = True  # the mask may be null, and Spark believes NOT NULL
    buckets = schema.bucket_count
    properties = table.own_options
    if schema.primary_keys:
        properties["primary-key"] = ",".join(schema.primary_keys)
    if schema.comment:
        properties["comment"] = schema.comment
    return {
        "name": context.full_name(),
        "table_id": str(table.table_id),
        "schema": struct,
        "partitioning": list(schema.partition_keys),
        "primary_key": list(schema.primary_keys),
        "sequence_fields": list(schema.sequence_fields),
        "clustering": list(table.clustering_columns),
        "marks_rows": schema.has_vectors and not schema.has_primary_key,
        "refused_statements": table.refused_statements,
        "bucket": {"columns": list(schema.bucket_keys), "count": buckets} if buckets > 0 else None,
        # Spark would write a LOCATION into SHOW CREATE TABLE if the catalog did not choose it.
        "properties": {
            **properties,
            "provider": "lockgate",
            "location": table.location,
            "is_managed_location": "true",
        },
        "location": table.location,
        "scan_metrics": scan_metrics(table),
        "target_file_size": table.options.get_option(TARGET_FILE_SIZE),
        "snapshot_id": snapshot_id,
        "commit_id": table.held_snapshot(snapshot_id).commit_id if snapshot_id else None,
        "schema_id": schema.id,
        "time_travel": False,
        "compares_states": _compares_states(table),
    }


def _compares_states(table: Table) -> bool:
    """Say whether options of the table ask for the difference of two states."""
    try:
        between = table.selection().between
    except LockgateError:  # the scan raises it
        return False
    return between is not None and between.states == "diff"


def create_table(context: OperationContext, request: CreateRequest) -> TableSpec:
    """Create a table of a Spark schema, partition columns and table properties."""
    schema = requested_schema(context, request)
    made = context.requested_catalog().create_table(context.identifier(), schema)
    if request["for_stream"]:
        context.dispatcher.made_for_streams.append(made.table_id)
    return describe(context, made, 0)


def create_table_like(context: OperationContext, request: CreateLikeRequest) -> TableSpec:
    """Create an empty table with the columns, keys and options of another one, and options of its own."""
    _check_free(context, [*request["namespace"], request["name"]])
    like = OperationContext(context.dispatcher, request["source"]).table().schema
    own, comment = _options(context, request["properties"]), request["properties"].get("comment")
    made = context.requested_catalog().create_like(context.identifier(), like, own, comment)
    return describe(context, made, 0)


def _check_free(context: OperationContext, name: list[str]) -> None:
    if name[0] == SYSTEM_NAMESPACE or "$" in name[-1] or Identifier(name[0], name[-1]).is_hidden:
        full = ".".join([context.catalog_name(), *name])
        raise InputError(f"a table cannot be called {full}: the name is reserved for Lockgate")


def requested_schema(context: OperationContext, request: Definition) -> Schema:
    """Return the schema of a table to create."""
    _check_free(context, [*request["namespace"], request["name"]])
    return Schema.from_spark_json(
        request["schema"],
        partition_keys=request["partitioning"],
        options=_options(context, request["properties"], default_format=request["default_format"]),
        comment=request["properties"].get("comment"),
    )


def _options(
    context: OperationContext, given: Mapping[str, str], *, default_format: bool = False
) -> dict[str, str]:
    """Return the options among the properties that Spark gives to a new table."""
    properties = dict(given)
    provider = properties.get("provider", "lockgate").lower()
    # DataFrameWriter.saveAsTable names the session's default format where the user names none.
    default = context.spark.conf.get("spark.sql.sources.default")
    implied = default_format and provider == default
    if provider not in _PROVIDERS and not implied:
        raise InputError(
            f"USING {provider} is not possible in catalog {context.catalog_name()!r}, whose tables are "
            "Paimon's with ORC files: leave USING (or format, or using) out, or name spark_catalog.db.table"
        )
    if str(properties.get("external", "")).lower() == "true":
        raise InputError("CREATE EXTERNAL TABLE is not possible in a Lockgate catalog: leave EXTERNAL out")
    if "location" in properties or "path" in properties:
        raise InputError("LOCATION is not possible in a Lockgate catalog: tables live in its warehouse")
    properties.pop("comment", None)
    options = {key: value for key, value in properties.items() if key not in _SPARK_PROPERTIES}
    # Spark repeats every OPTIONS(...) entry with this prefix.
    return {key: value for key, value in options.items() if not key.startswith("option.")}


def rename_table(context: OperationContext, request: RenameRequest) -> bool:
    """Give a table another name; the new one may leave out the database, and may begin with the catalog."""
    namespace, name = list(request["to"]["namespace"]), request["to"]["name"]
    if len(namespace) == 2 and namespace[0] == context.catalog_name():
        namespace = namespace[1:]
    _check_free(context, [*namespace, name])
    if len(namespace) > 1:
        raise InputError(f"a table cannot be moved out of its catalog, to {'.'.join([*namespace, name])}")
    target = f"{namespace[0] if namespace else context.namespace()}.{name}"
    context.requested_catalog().rename_table(context.identifier(), target)
    return True


def drop_table(context: OperationContext, request: TableRequest) -> bool:
    """Drop a table; false if there is none, for Spark words that itself."""
    catalog = context.requested_catalog()
    if not catalog.table_exists(context.identifier()):
        return False
    catalog.drop_table(context.identifier())
    return True


OPERATIONS = {
    "bridge.hello": hello,
    "catalog.open": open_catalog,
    "namespace.list": list_namespaces,
    "namespace.load": load_namespace,
    "namespace.create": create_namespace,
    "namespace.alter": alter_namespace,
    "namespace.drop": drop_namespace,
    "table.list": list_tables,
    "table.load": load_table,
    "table.create": create_table,
    "table.create_like": create_table_like,
    "table.rename": rename_table,
    "table.drop": drop_table,
}
