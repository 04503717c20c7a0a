"""Operations on system tables: their columns when a query is analysed, their rows when it is planned.

The driver makes the rows of tables of metadata; few of them it reads itself, of many Spark's tasks read the
pages. Tables that show rows of a table, such as `t$audit_log`, are described like the table and read by its
scan.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import NotFoundError, OptionError, nearest
from lockgate.framework.access import Action
from lockgate.framework.plugins import SnapshotSource, plugins
from lockgate.framework.spark.context.operation_context import (
    SYSTEM_NAMESPACE,
    OperationContext,
    batch_properties,
    split_name,
)
from lockgate.framework.spark.messages.scan_messages import (
    SingleRowsRequest,
    SystemRowsAnswer,
    SystemRowsRequest,
)
from lockgate.framework.spark.messages.shared_messages import QualifiedName, RowsJson
from lockgate.framework.spark.messages.table_messages import LoadAnswer, SystemSpec, TableSpec, ViewSpec
from lockgate.framework.store import (
    METADATA_TABLES,
    ROW_TABLES,
    SNAPSHOT_SOURCE,
    Catalog,
    ReadRequest,
    Selection,
    check_readable,
    grant,
    require_unrestricted,
)
from lockgate.framework.types import to_spark_json, value_to_json

if TYPE_CHECKING:
    from lockgate.framework.plugins import SystemTable
    from lockgate.framework.store import Table
    from lockgate.framework.types import DataField

# So many rows go to the driver's Spark as they are; of more, each task reads a page.
_FEW_ROWS = 10_000
_PAGE_ROWS = 1 << 16

# Tables of one row that are asked at a time.
_MOST_ASKED = 16

# Tables that show each row with its kind, deletions too, so that a merge must keep these.
KEEP_DELETES = frozenset({"audit_log", "binlog"})


def system_table(suffix: str) -> SystemTable:
    """Return the system table that a plugin adds under `suffix`; NotFoundError offers the nearest names."""
    tables = plugins().system_tables()
    if suffix not in tables:
        hint = nearest(suffix, sorted({*tables, *METADATA_TABLES, *ROW_TABLES}))
        raise NotFoundError(f"there is no system table ${suffix}{hint}")
    return tables[suffix]


def snapshot_source(suffix: str) -> SnapshotSource:
    """Return the system table that chooses snapshots; OptionError for one that does not."""
    found = system_table(suffix)
    if not isinstance(found, SnapshotSource):
        raise OptionError(f"system table ${suffix} does not choose snapshots for {SNAPSHOT_SOURCE.key!r}")
    return found


def view_of(name: str) -> str | None:
    """Return the system table by which a name shows rows of a table; None for the table itself."""
    suffix = split_name(name)[1]
    return suffix if suffix in ROW_TABLES else None


def dotted_name(context: OperationContext) -> QualifiedName | None:
    """Return `lake.db.t.suffix` as `` lake.db.`t$suffix` ``, in the words of a request.

    None unless the name has three parts and the first two are those of a table.
    """
    namespace = list(context.request["namespace"])
    if len(namespace) != 2 or not context.requested_catalog().table_exists(".".join(namespace)):
        return None
    return {"namespace": namespace[:1], "name": f"{namespace[1]}${context.request['name']}"}


def loaded(
    *,
    missing: str | None = None,
    system: SystemSpec | None = None,
    table: TableSpec | None = None,
    view: ViewSpec | None = None,
) -> LoadAnswer:
    """Return what a name stands for."""
    return {"missing": missing, "named": None, "system": system, "table": table, "view": view}


def describe_of_warehouse(context: OperationContext) -> LoadAnswer:
    """Describe a table of the whole warehouse, such as `lake.sys.tables`."""
    try:
        columns = Catalog.system_columns(context.request["name"])
    except NotFoundError as error:
        return loaded(missing=str(error))
    return loaded(system=_system_spec(context, columns))


def _system_spec(
    context: OperationContext,
    columns: Sequence[DataField],
    *,
    single_row: bool = False,
    selects: Mapping[str, str] | None = None,
) -> SystemSpec:
    return {
        "name": context.full_name(),
        "schema": to_spark_json(columns, opaque=True),
        "single_row": single_row,
        "selects": dict(selects or {}),
    }


def describe_system(
    context: OperationContext, table: Table, suffix: str, snapshot_id: int | None
) -> SystemSpec:
    """Describe a system table of few rows, at a snapshot that time travel names."""
    if suffix in METADATA_TABLES and suffix not in plugins().system_tables():
        selects = Selection(snapshot_id).options
        return _system_spec(context, table.system_columns(suffix), selects=selects)
    made = system_table(suffix)
    single = getattr(made, "single_row", False)
    return _system_spec(context, made.schema(context, table), single_row=single)


def describe_view(table: Table, suffix: str, described: TableSpec) -> ViewSpec:
    """Describe a system table that shows rows of a table, which is described already."""
    check_readable(table.schema)
    fields = {field["name"]: field for field in described["schema"]["fields"]}
    shown = to_spark_json(table.system_columns(suffix), opaque=True)
    for field in shown["fields"]:
        # Marks of decrypted columns, and masks that may be null, go along with the values.
        of_table = fields.get(field["name"], {})
        field["metadata"] = {**field["metadata"], **of_table.get("metadata", {})}
        field["nullable"] = field["nullable"] or of_table.get("nullable", False)
    return {"suffix": suffix, "schema": shown}


def rows(context: OperationContext, request: SystemRowsRequest) -> SystemRowsAnswer:
    """Return the rows of a system table; asked once for each execution, in a stream for each micro-batch."""
    if request["namespace"] == [SYSTEM_NAMESPACE]:
        name = request["name"]
        found = context.requested_catalog().system(name, request["columns"])
        return _answer(request, Catalog.system_columns(name), found.to_batches())
    suffix, table = split_name(request["name"])[1], context.table()
    if suffix in METADATA_TABLES and suffix not in plugins().system_tables():
        wanted = ReadRequest(
            columns=tuple(request["columns"]), snapshot_id=_selected(context, table, request)
        )
        return _answer(request, table.system_columns(suffix), table.system_batches(suffix, wanted))
    made = system_table(suffix)
    if not getattr(made, "authorizes", False):
        require_unrestricted(table, grant(table, Action.SELECT, table.schema.field_names), f"${suffix}")
    properties = batch_properties(request["properties"])
    found = made.rows(context, table, request["options"], properties)
    return _answer(request, made.schema(context, table), found.to_batches())


def single_rows(context: OperationContext, request: SingleRowsRequest) -> RowsJson:
    """Return the row of each of several system tables, in order; asked once for each micro-batch.

    Each table is asked on a thread of its own: some wait for an object store, or for a cache to be built.
    """
    wanted = request["tables"]
    if len(wanted) == 1:
        return {"rows": rows(context.about(wanted[0]), wanted[0])["rows"]}
    with ThreadPoolExecutor(min(len(wanted), _MOST_ASKED), "lockgate-single-rows") as pool:
        asked = [pool.submit(copy_context().run, _rows_apart, context, each) for each in wanted]
        return {"rows": [row for each in asked for row in each.result()["rows"]]}


def _rows_apart(context: OperationContext, request: SystemRowsRequest) -> SystemRowsAnswer:
    with context.apart(request) as own:
        return rows(own, request)


def _selected(context: OperationContext, table: Table, request: SystemRowsRequest) -> int | None:
    options = request["options"]
    timed = any("timestamp" in key.lower() for key in options)
    zone = str(context.spark.conf.get("spark.sql.session.timeZone")) if timed else "UTC"
    selected = table.selection(options, zone)
    if selected.between is not None:
        raise OptionError(f"{context.full_name()} shows one snapshot, not the changes of a range")
    return selected.snapshot_id


def _answer(
    request: SystemRowsRequest, fields: Sequence[DataField], batches: Iterable[pa.RecordBatch]
) -> SystemRowsAnswer:
    types = {field.name: field.type for field in fields if field.name in request["columns"]}
    left = (batch.select(request["columns"]) for batch in batches)
    few, count = [], 0
    for batch in left:
        few.append(batch)
        count += batch.num_rows
        if count > _FEW_ROWS:
            return {"rows": [], "pages": list(_pages(chain(few, left)))}
    return {
        "rows": [
            [value_to_json(types[name], row[name]) for name in request["columns"]]
            for batch in few
            for row in batch.to_pylist()
        ],
        "pages": [],
    }


def _pages(batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    """Yield pages of about `_PAGE_ROWS` rows."""
    for first in batches:
        schema = pa.schema([field.with_type(_in_micros(field.type)) for field in first.schema])
        sink, count = pa.BufferOutputStream(), 0
        with pa.ipc.new_stream(sink, schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch.cast(schema))
                count += batch.num_rows
                if count >= _PAGE_ROWS:
                    break
        yield base64.b64encode(zlib.compress(sink.getvalue(), level=1)).decode()


def _in_micros(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type as Spark has it, whose times are microseconds."""
    return pa.timestamp("us", arrow_type.tz) if pa.types.is_timestamp(arrow_type) else arrow_type


OPERATIONS = {"system.rows": rows, "system.single_rows": single_rows}
