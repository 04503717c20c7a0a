"""Operations on rights: what a query of Spark may see of the relations that it reads.

The connector describes a statement, and changes its plan as the answer says.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import (
    ALLOWED,
    AccessRequest,
    Action,
    Decision,
    SqlDecision,
    Target,
    answering_statement,
    columns_named,
    combined_sql,
)
from lockgate.framework.plugins import Denied, plugins, publish
from lockgate.framework.spark.context.operation_context import SYSTEM_NAMESPACE, OperationContext
from lockgate.framework.spark.enforcement.foreign_relations import decide_links, refusal_of_path, targets_of
from lockgate.framework.spark.enforcement.scan_grants import ScanGrant, ScanRights
from lockgate.framework.spark.enforcement.statements import check_nodes, check_settings, record_reads
from lockgate.framework.spark.messages.rights_messages import (
    DecideAnswer,
    DecideRequest,
    OurRelation,
    PolicyRequest,
    RefuseRequest,
    RelationAnswer,
    RelationJson,
    SystemRelation,
    UsedColumns,
)
from lockgate.framework.store import needed_columns, whole_refusal, withheld_keys

if TYPE_CHECKING:
    from lockgate.framework.access import Principal
    from lockgate.framework.store import KeyUse, Table, TableSchema

_WORD = re.compile(r"\w+")


def decide(context: OperationContext, request: DecideRequest) -> DecideAnswer:
    """Say of each relation what the current user sees of it; AccessDeniedError for what may not be done."""
    with answering_statement(request["statement"]):
        free = check_nodes(context, request["nodes"])
        relations = [_answer(context, each) for each in request["relations"]]
        hidden = [
            each
            for each, answer in zip(request["relations"], relations, strict=True)
            if answer["filter"] is not None or answer["masks"]
        ]
        free_settings = check_settings(context, request["settings"], [*hidden, *request["guarded"]])
        return {"free_settings": free_settings, "free": free, "relations": relations}


def refuse(context: OperationContext, request: RefuseRequest) -> bool:
    """Raise AccessDeniedError with everything that a statement lacks; False if that is nothing any more."""
    missing: list[str] = []
    ask: list[str] = []
    names: list[str] = []
    for used in request["used"]:
        relation, columns = used["relation"], sorted(used["columns"])
        target = target_of(context, relation)
        with answering_statement(request["statement"]):
            found = _decided(context, relation, records=True)
        lacks = _lacks(target, used, found)
        if lacks:
            names.append(f"{target} (columns {', '.join(columns)})" if columns else str(target))
            missing += lacks
            ask += found.ask
            _publish(context, target, columns, lacks)
    if not missing:
        return False
    raise denied(context, ", ".join(names), [*missing, *ask])


def denied(context: OperationContext, what: str, apply_for: Iterable[str]) -> AccessDeniedError:
    """Return the refusal of a query, with all that has to be granted for it."""
    needed = tuple(dict.fromkeys(apply_for))
    user = context.principal.user
    return AccessDeniedError(
        f"SELECT on {what} is denied to user {user!r}; apply for: {'; '.join(needed)}", needed
    )


def _lacks(target: Target, used: UsedColumns, found: SqlDecision) -> list[str]:
    """Return what would have to be granted for a relation, of which some columns are used."""
    lacks = [*found.apply_for]
    if used["whole"] and found.is_restricted:
        lacks.append(f"SELECT on {target} with nothing hidden, as a stream needs that keeps names of files")
    columns = {column["name"] for column in used["relation"]["columns"]}
    for column in used["columns"]:
        lacks += found.denied.get(column, ())
        if column not in columns and found.is_restricted:
            lacks.append(f"column {column} of {target}, which takes SELECT without row filter and masks")
    return lacks


def _publish(context: OperationContext, target: Target, used: list[str], lacks: list[str]) -> None:
    publish(
        Denied(
            user=context.principal.user,
            action=Action.SELECT.value,
            target=str(target),
            columns=tuple(used),
            apply_for=tuple(lacks),
        )
    )


# --- one relation ---


def _answer(context: OperationContext, relation: RelationJson) -> RelationAnswer:
    if relation["kind"] == "system":
        return _answer_own(context, relation)
    found = _decided(context, relation, records=False)
    grant = None
    if relation["kind"] == "lockgate" and found.is_restricted and not found.apply_for:
        grant = _grant(context, relation, found)
    return {
        "restricted": found.is_restricted,
        "refused": bool(found.apply_for),
        "denied": sorted(found.denied),
        "masks": dict(found.masks),
        "rights": fingerprint(context, found),
        "filter": found.row_filter,
        "grant": grant,
        "own": False,
        "removable": grant is not None and _is_removable(context, relation, found),
    }


def _is_removable(context: OperationContext, relation: RelationJson, found: SqlDecision) -> bool:
    """Say whether a relation hides nothing from a query that uses no hidden column: no row, and no value in
    the names of its files, which plans and errors of other catalogs' tables show as well.
    """
    if relation["kind"] != "lockgate" or found.row_filter is not None:
        return False
    return not {*found.masks, *found.denied}.intersection(_table(context, relation).schema.partition_keys)


def _answer_own(context: OperationContext, relation: SystemRelation) -> RelationAnswer:
    """Answer about a system table, which is decided about when it is asked for rows: only the word for
    rights counts.
    """
    return {
        "restricted": False,
        "refused": False,
        "denied": [],
        "masks": {},
        "rights": fingerprint(context, _decided(context, relation, records=False)),
        "filter": None,
        "grant": None,
        "own": True,
        "removable": False,
    }


def decision_about(context: OperationContext, relation: RelationJson) -> SqlDecision:
    """Return what the current user sees of a relation; the question leaves no record."""
    return _decided(context, relation, records=False)


def _decided(context: OperationContext, relation: RelationJson, *, records: bool) -> SqlDecision:
    if not plugins().decides_access():
        return SqlDecision()
    types = {column["name"]: column["type"] for column in relation["columns"]}
    if relation["kind"] == "system":
        return _decided_own(context, relation)
    if relation["kind"] == "lockgate":
        names = _policy_names(context, relation)
        of_today = {names.get(column, column): kind for column, kind in types.items()}
        return renamed(_asked(context, target_of(context, relation), of_today, records=records), names)
    refused = refusal_of_path(relation, context.dispatcher.catalogs.warehouses())
    if refused is not None:
        return refused
    asked = [_asked(context, target, types, records=records) for target in targets_of(relation)]
    if not any(each.apply_for for each in asked):
        warehouses = context.dispatcher.catalogs.warehouses()
        asked += decide_links(
            relation, warehouses, lambda target: _asked(context, target, types, records=records)
        )
    return combined_sql(asked)


def _decided_own(context: OperationContext, relation: SystemRelation) -> SqlDecision:
    """Return what the current user sees of the table whose system table it is; all, if it is of none."""
    about = context.about(relation["table"])
    if about.request["namespace"] == [SYSTEM_NAMESPACE]:
        return SqlDecision()
    table = about.table()
    types = {field.name: str(field.type) for field in table.schema.fields}
    return _asked(context, _target_of(table), types, records=False)


def _asked(
    context: OperationContext, target: Target, types: Mapping[str, str], *, records: bool
) -> SqlDecision:
    request = AccessRequest(context.principal, Action.SELECT, target, frozenset(types))
    return plugins().authorize_sql(request, types, records=records)


def target_of(context: OperationContext, relation: RelationJson) -> Target:
    """Return what a relation is called in messages; several paths are one text."""
    if relation["kind"] != "lockgate":
        targets = targets_of(relation)
        return replace(targets[0], name=", ".join(target.name for target in targets))
    return _target_of(_table(context, relation))


def _target_of(table: Table) -> Target:
    named = table.identifier
    return Target("table", named.policy_name, named.branch, table.location)


def _table(context: OperationContext, relation: OurRelation) -> Table:
    return context.loaded(relation)[0]


def _policy_names(context: OperationContext, relation: OurRelation) -> dict[str, str]:
    """Return the names of today of columns that had another name in the schema that is read.

    A policy on a column holds for its past too.
    """
    table, newest = context.loaded(relation)
    read = table.schema
    if newest.id == read.id:
        return {}
    today = {field.id: field.name for field in newest.fields}
    ids = {field.name: field.id for field in read.fields}
    names = {
        column["name"]: today.get(ids.get(column["name"], -1), column["name"])
        for column in relation["columns"]
    }
    return {column: name for column, name in names.items() if column != name}


def renamed(found: SqlDecision, names: Mapping[str, str]) -> SqlDecision:
    """Return a decision about columns of today for those that are read, by `names` from these to those.

    What cannot be said of the columns that are read, a filter or a mask over other names, refuses.
    """
    if not names:
        return found
    texts = [*found.masks.values(), *([found.row_filter] if found.row_filter else [])]
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    if words & {name.lower() for pair in names.items() for name in pair}:
        what = "the table as it is now: its row filter or masks name columns that had other names"
        return replace(found, apply_for=(*found.apply_for, what), row_filter=None, masks={})
    back = {name: column for column, name in names.items()}
    return replace(
        found,
        denied={back.get(name, name): texts for name, texts in found.denied.items()},
        masks={back.get(name, name): text for name, text in found.masks.items()},
        granted_by={back.get(name, name): texts for name, texts in found.granted_by.items()},
    )


def _grant(context: OperationContext, relation: OurRelation, found: SqlDecision) -> str:
    types = _types(relation)
    texts = [*found.masks.values(), found.row_filter or ""]
    # A filter may look at columns that its reader may not see. They are read, and stay below the filter.
    readable = columns_named(texts, types) | (types.keys() - found.denied.keys())
    table, names = _table(context, relation), _policy_names(context, relation)
    return _token(context, table, types, names, found, readable)


def _types(relation: OurRelation | PolicyRequest) -> dict[str, str]:
    return {column["name"]: column["type"] for column in relation["columns"]}


def _token(
    context: OperationContext,
    table: Table,
    types: Mapping[str, str],
    names: Mapping[str, str],
    found: SqlDecision,
    readable: frozenset[str],
    *,
    of_policy: bool = False,
) -> str:
    """Return the token of a grant for the user of the request."""
    named = (str(table.identifier), table.location, table.table_id)
    grant = ScanGrant(context.principal, *named, types, names, found, readable, context.session, of_policy)
    return context.dispatcher.grants.token(grant)


def fingerprint(context: OperationContext, found: SqlDecision) -> str:
    """Return what tells plans of different rights apart, so that none is used in the place of another."""
    parts = [context.principal.user, sorted(found.denied), sorted(found.masks.items()), found.row_filter]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def of_policy(context: OperationContext, request: PolicyRequest) -> str:
    """Return a grant for a table that a policy itself looks at, the same for every user of the policy."""
    table, types = context.about(request["table"]).table(), _types(request)
    return _token(context, table, types, {}, SqlDecision(), frozenset(types), of_policy=True)


# --- scans ---


def check_grant(context: OperationContext, table: Table, needed: Collection[str], token: object) -> None:
    """Check that a scan of stored rows has a grant for them, and leave records; AccessDeniedError if not."""
    grant = context.dispatcher.grants.find(token)
    place = (table.table_id, table.location)  # a copy of the folder has the same id
    if grant is None or grant.principal != context.principal or (grant.table_id, grant.location) != place:
        raise _no_grant(table.identifier, "was not planned under the rights of the current user")
    names = grant.policy_names
    types = {names.get(column, column): kind for column, kind in grant.types.items()}
    now = renamed(_asked(context, _target_of(table), types, records=False), names)
    if now != grant.decision and not grant.of_policy:
        raise _no_grant(table.identifier, "was planned under policies that have changed")
    more = sorted(set(needed) - grant.readable)
    lacks = [text for column in more for text in now.denied.get(column, ())]
    if lacks:  # the scan of a subquery is planned before the statement's columns are looked at
        target = _target_of(table)
        _publish(context, target, more, lacks)
        raise denied(context, f"{target} (columns {', '.join(more)})", [*lacks, *now.ask])
    if more:
        raise _no_grant(table.identifier, f"reads {', '.join(more)}, which is more than was decided about")
    if not grant.of_policy:
        # A denied column is read by a row filter at most. Rows are counted by the right to all others.
        seen = grant.types.keys() - now.denied.keys()
        read = {names.get(column, column) for column in seen.intersection(needed) or seen}
        _asked(context, _target_of(table), {column: types[column] for column in read}, records=True)


@contextmanager
def whole_refusal_without_columns(context: OperationContext, table: Table) -> Iterator[None]:
    """Name no column in a refusal to a user who may read nothing of a table.

    Spark plans the scan of a subquery before the statement is refused, and the store's refusal names columns.
    """
    try:
        yield
    except AccessDeniedError:
        if lacks := whole_refusal(context.principal, table):
            raise denied(context, str(_target_of(table)), lacks) from None
        raise


def decision_as_stored(context: OperationContext, table: Table, columns: Collection[str]) -> Decision | None:
    """Return the decision of a query that its grant hides nothing from: it sees all rows, and `columns` as
    they are stored; None if there is no such grant, so that the store asks.
    """
    grant = context.dispatcher.grants.find(context.request["grant"])
    if grant is None or not plugins().decides_access():
        return None
    hidden = {*grant.decision.masks, *grant.decision.denied}
    if not grant.of_policy and (grant.decision.row_filter is not None or hidden & {*columns}):
        return None
    check_grant(context, table, columns, context.request["grant"])
    return ALLOWED


def readable_columns(context: OperationContext) -> frozenset[str] | None:
    """Return the columns that the scan of a request may read, None for all if it has no grant."""
    grant = context.dispatcher.grants.find(context.request["grant"])
    return None if grant is None else grant.readable


def rights_of_scan(
    context: OperationContext, table: Table, uses: Collection[KeyUse], merged: TableSchema | None
) -> tuple[ScanRights | None, frozenset[str]]:
    """Return by which rights a scan gets keys, and the keys that it does not get; None if nobody decides."""
    if not plugins().decides_access():
        return None, frozenset()
    grant = context.dispatcher.grants.find(context.request["grant"])
    if grant is not None and grant.of_policy:
        return None, frozenset()
    names = grant.policy_names if grant else {}
    types = grant.types if grant else {field.name: str(field.type) for field in table.schema.fields}
    found = grant.decision if grant else SqlDecision()
    needed = needed_columns(found, types, uses, merged)
    columns: dict[str, set[str]] = {}
    for use in uses:
        if use.column is not None and use.column in needed and use.column not in found.denied:
            columns.setdefault(use.key, set()).add(names.get(use.column, use.column))
    today = {names.get(column, column): kind for column, kind in types.items()}
    decided = renamed(found, {new: old for old, new in names.items()})
    by_key = {key: frozenset(each) for key, each in columns.items()}
    rights = ScanRights(_target_of(table), today, decided, by_key)
    return rights, withheld_keys(uses, needed) if grant else frozenset()


def check_key(rights: ScanRights, principal: Principal, key: str) -> None:
    """Raise AccessDeniedError if a reader by `rights` may no longer see the values under a key."""
    if not plugins().decides_access():
        return
    request = AccessRequest(principal, Action.SELECT, rights.target, frozenset(rights.types))
    now = plugins().authorize_sql(request, rights.types, records=False)
    if rights.hides_more(key, now):
        raise _no_grant(rights.target.name, "was planned under policies that have changed")


def _no_grant(table: object, why: str) -> AccessDeniedError:
    return AccessDeniedError(
        f"a scan of table {table} {why}: run the query again, or create its DataFrame again",
        (f"SELECT on table {table}",),
    )


OPERATIONS = {
    "governance.decide": decide,
    "governance.refuse": refuse,
    "governance.record": record_reads,
    "governance.of_policy": of_policy,
}
