"""Judgement of statements that write values of encrypted columns.

The connector says which output columns carry values of which columns. The option `encryption.on-plaintext` of
the written table, of the session and of the warehouse, in this order, says whether to warn, to refuse, or to
encrypt the target alike.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockgate.errors import PlaintextError, PlaintextWarning, warn_user
from lockgate.framework import options as table_options
from lockgate.framework.options import ON_PLAINTEXT
from lockgate.framework.orc import exposure_message, parse_encrypt, split, suggested_entries
from lockgate.framework.spark.context.operation_context import OperationContext, session_choice
from lockgate.framework.spark.messages.write_messages import FilesFlowRequest, FlowAnswer, FlowRequest
from lockgate.framework.store import Replacement, SetOption, encrypted_columns

if TYPE_CHECKING:
    from lockgate.framework.store import Table

Sources = Sequence[Mapping[str, Any]]

# Spark's sinks that keep nothing, or hand rows to the program, as collecting them does. Every other sink
# counts as one that keeps values in the clear, known or not. Names do not count: any sink may bear them.
_KEEP_NOTHING = frozenset(
    {
        "org.apache.spark.sql.execution.datasources.noop.NoopTable$",
        "org.apache.spark.sql.execution.streaming.sources.MemorySink",
        "org.apache.spark.sql.execution.streaming.sources.ForeachWriterTable",
    }
)

# The streams that users were warned of, so that not every batch warns. The oldest of very many are forgotten.
_told: deque[tuple[str, str, str]] = deque(maxlen=1024)
_lock = threading.Lock()


def check_flow(context: OperationContext, request: FlowRequest) -> FlowAnswer:
    """Judge a query that writes values of encrypted columns; `columns` maps its output columns to marks.

    Answers the schema to write under, if the table that the statement makes is now encrypted alike. Raises
    PlaintextError where the option says so, before a row is written.
    """
    columns: Mapping[str, Sources] = request["columns"]
    table = context.table()
    hidden = {name.lower() for name in encrypted_columns(table)}
    shown = {name: found for name, found in columns.items() if name.lower() not in hidden}
    if not shown:
        return {"schema_id": None}
    made = request["made"] or _is_made_for_stream(context, table, request)
    choice = _choice(context, table) or ("inherit" if made else "warn")
    if made and choice == "inherit":
        return _inherit(context, request, table, shown)
    _say(context, request, context.full_name(), shown, choice)
    return {"schema_id": None}


def check_flow_to_files(context: OperationContext, request: FilesFlowRequest) -> bool:
    """Judge a query that writes values of encrypted columns into files, or hands them to a sink."""
    encrypted = {split(path)[0].lower() for path in parse_encrypt(request["encrypt"])}
    shown = {name: found for name, found in request["columns"].items() if name.lower() not in encrypted}
    if shown and request["sink"] not in _KEEP_NOTHING:
        _say(context, request, request["path"], shown, session_choice(context), is_path=True)
    return True


def _choice(context: OperationContext, table: Table) -> str:
    """Return what the table, the session or the warehouse chooses; empty if none does."""
    own = table.options.get_option(ON_PLAINTEXT)
    return own or session_choice(context) or context.requested_catalog().on_plaintext


def _is_made_for_stream(context: OperationContext, table: Table, request: FlowRequest) -> bool:
    """Say whether a stream writes its first rows into a table that `toTable` has made."""
    made = request["stream"] and table.table_id in context.dispatcher.made_for_streams
    return bool(made) and table.latest_snapshot() is None


def _inherit(
    context: OperationContext, request: FlowRequest, table: Table, shown: Mapping[str, Sources]
) -> FlowAnswer:
    """Let the table that is being made encrypt the columns as those that their values come from."""
    schema, left = table.schema, {}
    for column, sources in shown.items():
        name = next(each for each in schema.field_names if each.lower() == column.lower())
        options = table.encrypted_alike(schema.options, name, sources[0]["entries"])
        if options is None:
            left[column] = sources
        else:
            schema = dataclasses.replace(schema, options=options)
    if left:
        # Such as the columns that rows are placed by: they cannot be encrypted.
        _say(context, request, context.full_name(), left, "warn")
    if schema is table.schema:
        return {"schema_id": None}
    return {"schema_id": _store(context, request, table, schema.options)}


def _store(context: OperationContext, request: FlowRequest, table: Table, options: Mapping[str, str]) -> int:
    if isinstance(table, Replacement) and request["replacement"] is not None:
        changed = dataclasses.replace(
            table.schema, options={table_options.ORC_INTEGRITY.key: "require", **options}
        )
        context.dispatcher.replacements[request["replacement"]] = Replacement.of(table.replaced, changed)
        return changed.id
    keys = (table_options.ORC_ENCRYPT.key, table_options.ORC_MASK.key)
    changes = [SetOption(key, options[key]) for key in keys if key in options]
    return context.requested_catalog().alter_table(context.identifier(), changes).schema.id


def _say(
    context: OperationContext,
    request: FlowRequest | FilesFlowRequest,
    target: str,
    shown: Mapping[str, Sources],
    choice: str,
    *,
    is_path: bool = False,
) -> None:
    """Raise PlaintextError, or warn: of a stream once."""
    text = _message(target, shown, is_path)
    if choice == "refuse":
        raise PlaintextError(f"{text}; refused by {ON_PLAINTEXT.key!r}")
    if not _was_told(request["query"], target, shown):
        warn_user(text, PlaintextWarning)


def _was_told(query: str | None, target: str, shown: Mapping[str, Sources]) -> bool:
    """Say whether a stream had this warning already, and note it; batch queries have it each time."""
    if query is None:
        return False
    exposure = (query, target, ",".join(sorted(shown)))
    with _lock:
        noted = exposure in _told
        if not noted:
            _told.append(exposure)
    return noted


def _message(target: str, shown: Mapping[str, Sources], is_path: bool) -> str:
    how = "write them to a table with 'orc.encrypt', or leave them out"
    if not is_path:
        how = f"to encrypt them, add '{suggested_entries(shown)}' to 'orc.encrypt' of the table first"
    return exposure_message(target, shown, how)


OPERATIONS = {"write.flow": check_flow, "write.flow_to_files": check_flow_to_files}
