"""Operations on rights: what a query of Spark may see of the relations that it reads.

The connector describes a statement, and does with it what is answered here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, SqlDecision, Target
from lockgate.framework.plugins import Denied, plugins, publish
from lockgate.framework.spark.foreign_relations import refusal_of_path, target_of
from lockgate.framework.spark.grants import Grant
from lockgate.framework.spark.operations.context import Context

if TYPE_CHECKING:
    from lockgate.framework.store.table import Table

_WORD = re.compile(r"\w+")
Said = dict[str, Any]


def decide(context: Context, request: Said) -> Said:
    """Say of each relation what the one who asks sees of it."""
    return {
        "user": context.principal.user,
        "relations": [_relation(context, each) for each in request["relations"]],
    }


def refuse(context: Context, request: Said) -> None:
    """Raise AccessDeniedError with everything that a statement lacks.

    `relations` are those of which columns are used that are denied, or that may not be read at all.
    """
    missing: list[str] = []
    ask: list[str] = []
    names: list[str] = []
    for relation in request["relations"]:
        target = _target(context, relation)
        found = _decided(context, relation, records=True)[1]
        lacks = _lacks(target, relation, found)
        if lacks:
            columns = f" (columns {', '.join(sorted(relation['used']))})" if relation["used"] else ""
            names.append(f"{target}{columns}")
            missing += lacks
            ask += found.ask
            _publish(context, target, relation["used"], lacks)
    if not missing:
        raise AccessDeniedError(
            "policies changed while the statement was planned: run it again", ("the statement again",)
        )
    apply_for = tuple(dict.fromkeys([*missing, *ask]))
    user = context.principal.user
    raise AccessDeniedError(
        f"SELECT on {', '.join(names)} is denied to user {user!r}; apply for: {'; '.join(apply_for)}",
        apply_for,
    )


def _lacks(target: Target, relation: Said, found: SqlDecision) -> list[str]:
    """Return what would have to be granted for a relation, of which some columns are used."""
    lacks = [*found.apply_for]
    columns = {column["name"] for column in relation["columns"]}
    for column in relation["used"]:
        lacks += found.denied.get(column, ())
        if column not in columns and found.is_restricted:
            lacks.append(f"column {column} of {target}, which takes SELECT without row filter and masks")
    return lacks


def _publish(context: Context, target: Target, used: list[str], lacks: list[str]) -> None:
    publish(
        Denied(
            user=context.principal.user,
            action=Action.SELECT.value,
            target=str(target),
            columns=tuple(sorted(used)),
            apply_for=tuple(lacks),
        )
    )


# --- one relation ---


def _relation(context: Context, relation: Said) -> Said:
    table, found = _decided(context, relation, records=False)
    if not found.is_restricted:
        return {"restricted": False}
    answer: Said = {
        "restricted": True,
        "refused": bool(found.apply_for),
        "denied": sorted(found.denied),
        "masks": dict(found.masks),
        "rights": _fingerprint(context, found),
    }
    if found.row_filter is not None:
        answer["filter"] = found.row_filter
    if table is not None and not found.apply_for:
        answer["grant"] = _grant(context, table, relation, found)
    return answer


def _decided(context: Context, relation: Said, *, records: bool) -> tuple[Table | None, SqlDecision]:
    manager = plugins()
    if not manager.decides_access():
        return None, SqlDecision()
    types = {column["name"]: column["type"] for column in relation["columns"]}
    table = _table(context, relation)
    if table is None:
        refused = refusal_of_path(relation, context.dispatcher.catalogs.warehouses())
        if refused is not None:
            return None, refused
    names = {} if table is None else _policy_names(context, relation, table)
    request = AccessRequest(
        context.principal,
        Action.SELECT,
        _target(context, relation, table),
        frozenset(names.get(column, column) for column in types),
    )
    found = manager.authorize_sql(
        request, {names.get(column, column): kind for column, kind in types.items()}, records=records
    )
    return table, renamed(found, names)


def _table(context: Context, relation: Said) -> Table | None:
    return None if relation["kind"] != "lockgate" else context.about(relation["table"]).table()


def _target(context: Context, relation: Said, table: Table | None = None) -> Target:
    table = table or _table(context, relation)
    if table is None:
        return target_of(relation)
    identifier = table.identifier
    return Target("table", f"{identifier.namespace}.{identifier.table}", identifier.branch, table.location)


def _policy_names(context: Context, relation: Said, table: Table) -> dict[str, str]:
    """Return the names of today of columns that had another name in the schema that is read.

    A policy on a column holds for its past too.
    """
    about = context.about(relation["table"])
    newest = about.requested_catalog().load_table(about.identifier()).schema
    if newest.id == table.schema.id:
        return {}
    today = {field.id: field.name for field in newest.fields}
    ids = {field.name: field.id for field in table.schema.fields}
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
    )


def _grant(context: Context, table: Table, relation: Said, found: SqlDecision) -> str:
    types = {column["name"]: column["type"] for column in relation["columns"]}
    texts = [*found.masks.values(), found.row_filter or ""]
    # A filter may look at what its reader may not: these columns are read, and stay below.
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    readable = frozenset(name for name in types if name not in found.denied or name.lower() in words)
    return context.dispatcher.grants.token(
        Grant(
            context.principal,
            str(table.identifier),
            table.location,
            table.table_id,
            types,
            _policy_names(context, relation, table),
            found,
            readable,
        )
    )


def _fingerprint(context: Context, found: SqlDecision) -> str:
    """Return what tells plans of different rights apart, so that none is used in the place of another."""
    said = [context.principal.user, sorted(found.denied), sorted(found.masks.items()), found.row_filter]
    return hashlib.sha256(repr(said).encode()).hexdigest()


# --- scans ---


def check_grant(context: Context, table: Table, needed: Iterable[str], token: object) -> None:
    """Check that a scan of stored rows has a grant for them; AccessDeniedError if not."""
    grant = context.dispatcher.grants.find(token)
    if grant is None or grant.principal != context.principal or grant.table_id != table.table_id:
        raise _no_grant(table, "was not planned under the rights of the one who asks")
    target = Target("table", _name(table), table.identifier.branch, table.location)
    names = grant.policy_names
    request = AccessRequest(
        grant.principal,
        Action.SELECT,
        target,
        frozenset(names.get(column, column) for column in grant.types),
    )
    types = {names.get(column, column): kind for column, kind in grant.types.items()}
    now = renamed(plugins().authorize_sql(request, types, records=False), names)
    if now != grant.decision:
        raise _no_grant(table, "was planned under policies that have changed")
    more = sorted(set(needed) - grant.readable)
    if more:
        raise _no_grant(table, f"reads {', '.join(more)}, which is more than was decided about")


def withheld_keys(context: Context, encrypted: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """Return the keys of columns that a scan may not read and no column that it may read needs.

    `encrypted` has the names of the keys of each encrypted column.
    """
    grant = context.dispatcher.grants.find(context.request.get("grant"))
    if grant is None:
        return frozenset()
    closed = {key for column, keys in encrypted.items() if column not in grant.readable for key in keys}
    open_ = {key for column, keys in encrypted.items() if column in grant.readable for key in keys}
    return frozenset(closed - open_)


def _name(table: Table) -> str:
    return f"{table.identifier.namespace}.{table.identifier.table}"


def _no_grant(table: Table, why: str) -> AccessDeniedError:
    return AccessDeniedError(
        f"a scan of table {table.identifier} {why}: run the query again, or make its DataFrame again",
        (f"SELECT on table {table.identifier}",),
    )


OPERATIONS = {"governance.decide": decide, "governance.refuse": refuse}
