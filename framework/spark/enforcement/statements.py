"""Decisions about actions of statements other than reading rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import (
    AccessRequest,
    Action,
    SqlDecision,
    Target,
    answering_statement,
)
from lockgate.framework.plugins import authorize, plugins, session_conf
from lockgate.framework.spark.context.operation_context import OperationContext
from lockgate.framework.spark.enforcement.foreign_relations import (
    SESSION_CATALOG,
    decide_links,
    plain_path,
    refusal_of_path,
    targets_of,
)
from lockgate.framework.spark.enforcement.plan_nodes import (
    ACTIONS,
    COPYING,
    FILE_SOURCES,
    FREE,
    FREE_OPTIONS,
    FREE_SINKS,
    INSERT_ONLY_MERGE,
    NAME_ALONE,
    READ_OPTIONS,
    RELATIONS,
    SETTINGS,
    SHOWING,
    STREAM,
    TARGET_OF,
)
from lockgate.framework.spark.enforcement.session_settings import (
    CHECKED_ELSEWHERE,
    is_entered,
    is_fenced,
    kind_of,
)
from lockgate.framework.spark.messages.rights_messages import (
    NodeJson,
    RefuseRequest,
    RelationJson,
    StatementTarget,
)
from lockgate.framework.store import grant, hidden_from, require_full_visibility, whole_refusal

if TYPE_CHECKING:
    from lockgate.framework.store import Table

_CHANGES = frozenset({Action.UPDATE, Action.DELETE, Action.ALTER})
TEMPORARY = "temporary"
_WITH_ZONE = re.compile(r"\bTIMESTAMP(_LTZ)?\b", re.IGNORECASE)
_KINDS: dict[str, Literal["table", "database", "path"]] = {
    "table": "table",
    "database": "database",
    "path": "path",
}


def record_reads(context: OperationContext, request: RefuseRequest) -> bool:
    """Leave records of the columns that a permitted query reads of files and of other catalogs."""
    warehouses = context.dispatcher.catalogs.warehouses()
    for used in request["used"] if plugins().decides_access() else ():
        kinds = {column["name"]: column["type"] for column in used["relation"]["columns"]}
        types = {column: kinds[column] for column in used["columns"]}
        with answering_statement(request["statement"]):
            decided = [_recorded(context, types, each) for each in targets_of(used["relation"])]
            # Decided again, now that the files are known: links may have come, and lead out of a table.
            linked = list(decide_links(used["relation"], warehouses, partial(_recorded, context, types)))
            if used["whole"]:
                inner = refusal_of_path(used["relation"], warehouses)
                linked += [*decided, *([] if inner is None else [inner])]
            _check_links(context, linked)
    return True


def _recorded(context: OperationContext, types: Mapping[str, str], target: Target) -> SqlDecision:
    request = AccessRequest(context.principal, Action.SELECT, target, frozenset(types))
    return plugins().authorize_sql(request, types, records=True)


def _check_links(context: OperationContext, decided: Iterable[SqlDecision]) -> None:
    for found in decided:
        if found.is_restricted:
            raise _refused(context, "files that a link leads to", found.apply_for)


def check_nodes(context: OperationContext, nodes: Iterable[NodeJson]) -> list[str]:
    """Return which of the nodes of a plan are free to everybody.

    Raises AccessDeniedError with all that may not be done.
    """
    if not plugins().decides_access():
        return []
    refused = [error for node in nodes for error in _refusals(context, node)]
    if refused:
        apply_for = tuple(dict.fromkeys(text for error in refused for text in error.apply_for))
        raise AccessDeniedError("; ".join(dict.fromkeys(map(str, refused))), apply_for)
    return sorted({node["node"] for node in nodes} & FREE)


def check_settings(
    context: OperationContext, changed: Iterable[str], hidden: Iterable[RelationJson] = ()
) -> list[str]:
    """Return which of the settings that a session has changed are free to everybody.

    `hidden` are the relations of the statement with a row filter or a mask. Raises AccessDeniedError where a
    setting is the server's, and where one would give such a relation other rows or values.
    """
    if not plugins().decides_access():
        return []
    checked_here = set(changed) - CHECKED_ELSEWHERE
    names = sorted(name for name in checked_here if not is_entered(name, session_conf))
    fenced = [name for name in names if is_fenced(name)]
    if fenced:
        raise AccessDeniedError(
            f"the session of user {context.principal.user!r} has changed {', '.join(fenced)}, which only the "
            "server sets: unset it, or use another session",
            _of_server(fenced),
        )
    relations = list(hidden)
    bad = {"meaning", "zone"} if any(map(_has_text_of_times, relations)) else {"meaning"}
    unfit = [name for name in names if kind_of(name) in bad]
    if relations and unfit:
        raise AccessDeniedError(
            f"the session of user {context.principal.user!r} has changed {', '.join(unfit)}, under which row "
            "filters and masks of this statement could give something else: RESET it, or use another session",
            _of_server(unfit),
        )
    return sorted(set(changed) & CHECKED_ELSEWHERE | {name for name in names if kind_of(name) == "free"})


def _of_server(settings: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"the setting {name} in the server's configuration" for name in settings)


def _has_text_of_times(relation: RelationJson) -> bool:
    """Say whether a relation may hold times as text without a zone, which are times of the session's zone."""
    if relation["kind"] == "lockgate":
        return False
    return any(_WITH_ZONE.search(column["type"]) for column in relation["columns"])


def _refusals(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    name = node["node"]
    if name in FREE or name in RELATIONS:
        return
    if name in SETTINGS:
        yield from _refused_setting(context, node)
        return
    if name.startswith(TARGET_OF):
        yield from _unknown(context, node, ACTIONS.get(name.removeprefix(TARGET_OF)))
        return
    if name in (NAME_ALONE, READ_OPTIONS):
        yield from (_unnamed if name == NAME_ALONE else _refused_options)(context, node)
        return
    for action, target in _needed(node):
        yield from _denied(action, target)
    if ACTIONS.get(name) is Action.SELECT or name in COPYING:
        yield from _unseen(context, node)
    if name in SHOWING or name == INSERT_ONLY_MERGE or ACTIONS.get(name) in _CHANGES:
        yield from _hidden(context, node)
    yield from _of_warehouse(context, node)
    yield from _unreadable(context, node)


def _of_warehouse(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield the refusal of files in a warehouse that a statement writes: its tables are written by name."""
    paths = [named["name"] for named in node["targets"] if named["kind"] == "path"]
    inner = refusal_of_path({"kind": "path", "paths": paths}, context.dispatcher.catalogs.warehouses())
    if inner is not None:
        yield AccessDeniedError(
            f"user {context.principal.user!r} may not write files of a warehouse; apply for: "
            f"{'; '.join(inner.apply_for)}",
            inner.apply_for,
        )
        return

    def decide(target: Target) -> SqlDecision:
        authorize(Action.INSERT, target)
        return SqlDecision()

    try:
        warehouses = context.dispatcher.catalogs.warehouses()
        _check_links(context, decide_links({"kind": "path", "paths": paths}, warehouses, decide))
    except AccessDeniedError as error:
        yield error


def _hidden(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield refusals of tables of which something is hidden.

    The store judges changes of its own tables, but a MERGE that only inserts is an append to it: rows that
    match a hidden row would be inserted once more.
    """
    for named in node["targets"]:
        if named["table"] is not None and node["node"] == INSERT_ONLY_MERGE:
            try:
                require_full_visibility(context.about(named["table"]).table(), Action.INSERT)
            except AccessDeniedError as error:
                yield error
        if named["kind"] != "table" or named["ours"] or named["columns"] is None:
            continue
        target = _target(named)
        types = {column["name"]: column["type"] for column in named["columns"]}
        request = AccessRequest(context.principal, Action.SELECT, target, frozenset(types))
        seen = plugins().authorize_sql(request, types, records=False)
        if seen.is_restricted:
            yield hidden_from(context.principal, ACTIONS[node["node"]], str(target), seen)


def _unreadable(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield refusals of files and sources to which a statement binds a name: under that name, anyone who may
    read it reads them, so it takes the rights to read and to write them. A stream reads and writes its
    checkpoint, where other streams may have kept values.
    """
    warehouses = context.dispatcher.catalogs.warehouses()
    relation = {"kind": "path", "paths": node["locations"]}
    inner = refusal_of_path(relation, warehouses)
    if inner is not None:
        yield AccessDeniedError(
            f"user {context.principal.user!r} may not give files of a warehouse another name; apply for: "
            f"{'; '.join(inner.apply_for)}",
            inner.apply_for,
        )
        return
    targets = targets_of(relation)
    source = node["source"]
    if source is not None and source.lower() not in FILE_SOURCES:
        targets.append(Target("path", source, catalog=SESSION_CATALOG))
    for target in targets:
        for action in (Action.SELECT, Action.INSERT):
            yield from _denied(action, target)
    try:
        _check_links(context, decide_links(relation, warehouses, partial(_recorded, context, {})))
    except AccessDeniedError as error:
        yield error


def _unnamed(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield refusals of tables and views that Spark's catalog describes, and of which nothing may be read."""
    yield from _unseen(context, node)
    for named in node["targets"]:
        if named["ours"]:
            continue
        target, columns = _target(named), named["columns"]
        if columns is None:  # a view
            yield from _denied(Action.SELECT, target)
            continue
        types = {column["name"]: column["type"] for column in columns}
        request = AccessRequest(context.principal, Action.SELECT, target, frozenset(types))
        apply_for = plugins().authorize_sql(request, types, records=False).apply_for
        if apply_for:
            yield _refused(context, target, apply_for)


def _unknown(context: OperationContext, node: NodeJson, action: Action | None) -> Iterator[AccessDeniedError]:
    """Yield refusals of a statement on a table of which its user may read nothing.

    Who may change what they may not read knows its columns.
    """
    unnamed = [] if action is None else list(_unnamed(context, node))
    if action is Action.SELECT:
        yield from unnamed
    elif action is not None and unnamed:
        for named in node["targets"]:
            yield from _unchanged(context, named, action)


def _unchanged(
    context: OperationContext, named: StatementTarget, action: Action
) -> Iterator[AccessDeniedError]:
    if named["table"] is None:
        yield from _denied(action, _target(named))
        return
    try:
        grant(context.about(named["table"]).table(), action)
    except AccessDeniedError as error:
        yield error


def _refused_options(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield the refusal of options of a read: by them the source of a table may find other rows and values.

    Of Spark's own tables of files it stays the same files, but they are read in another way, as with another
    separator of columns. That is free where nothing is hidden.
    """
    given = [
        name
        for name in (node["setting"] or "").split(",")
        if name not in FREE_OPTIONS and not name.startswith("lockgate.")
    ]
    for named in node["targets"] if given else ():
        target = _target(named)
        types = {column["name"]: column["type"] for column in named["columns"] or ()}
        request = AccessRequest(context.principal, Action.SELECT, target, frozenset(types))
        seen = plugins().authorize_sql(request, types, records=False)
        if node["source"] == "files" and not seen.is_restricted:
            continue
        for error in _denied(Action.CALL, Target("statement", READ_OPTIONS, catalog=SESSION_CATALOG)):
            yield AccessDeniedError(
                f"user {context.principal.user!r} may not read {target} with the options {', '.join(given)}, "
                f"by which it could show what is hidden; apply for: {'; '.join(error.apply_for)}",
                error.apply_for,
            )


def _denied(action: Action, target: Target) -> Iterator[AccessDeniedError]:
    try:
        authorize(action, target)
    except AccessDeniedError as error:
        yield error


def _unseen(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    """Yield refusals of tables of ours that are described, and of which nothing may be read."""
    for named in node["targets"]:
        if named["table"] is not None:
            try:
                refuse_unseen(context, context.about(named["table"]).table())
            except AccessDeniedError as error:
                yield error


def _refused(context: OperationContext, what: object, apply_for: tuple[str, ...]) -> AccessDeniedError:
    return AccessDeniedError(
        f"SELECT on {what} is denied to user {context.principal.user!r}; apply for: {'; '.join(apply_for)}",
        apply_for,
    )


def refuse_unseen(context: OperationContext, table: Table) -> None:
    """Raise AccessDeniedError, which names no column, where nothing of a table may be read."""
    apply_for = whole_refusal(context.principal, table) if plugins().decides_access() else ()
    if apply_for:
        raise _refused(context, f"table {table.identifier}", apply_for)


def _needed(node: NodeJson) -> Iterator[tuple[Action, Target]]:
    action = ACTIONS.get(node["node"])
    for needed, named in actions_of(node):
        # The store is asked about its own, and nobody about views of the session.
        is_free = node["node"] == STREAM and named["name"] in FREE_SINKS
        if not named["ours"] and not is_free and named["kind"] != TEMPORARY:
            yield needed, _target(named)
    if action is None or not node["targets"]:
        yield action or Action.CALL, Target("statement", node["node"], catalog=SESSION_CATALOG)


def actions_of(node: NodeJson) -> Iterator[tuple[Action, StatementTarget]]:
    """Yield what a statement does to each thing that it names, in the order of the statement."""
    action = ACTIONS.get(node["node"])
    if action is None:
        return
    for number, named in enumerate(node["targets"]):
        yield Action.SELECT if number and node["node"] in COPYING else action, named


def _target(named: StatementTarget) -> Target:
    kind = _KINDS[named["kind"]]
    name = plain_path(named["name"]) if kind == "path" else named["name"]
    return Target(kind, name, catalog=named["catalog"] or SESSION_CATALOG)


def _refused_setting(context: OperationContext, node: NodeJson) -> Iterator[AccessDeniedError]:
    setting = node["setting"]
    if setting is None and node["node"] == "SetCommand":
        return
    if setting is None or is_fenced(setting):
        what = "all settings at once" if setting is None else setting
        yield AccessDeniedError(
            f"user {context.principal.user!r} may not change {what} by a statement: the server sets it",
            (f"the setting {what} in the server's configuration",),
        )
