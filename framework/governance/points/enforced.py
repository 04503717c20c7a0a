"""Grants of rows as policies that engines of queries enforce: row filters, and masks of columns.

A point with rows, written by `policy_of`, opens nothing in a query. Here the same grants become an access
policy, a row filter and masks, so that a query shows what is granted and leaves out the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError
from lockgate.framework.governance.points.point import Point
from lockgate.framework.governance.points.policies import (
    Document,
    PointGrant,
    holders_json,
    resource_of,
    text_of,
)


@checked_arguments
def enforced_policies(
    grants: Sequence[PointGrant], *, number: int, service: str, catalog: str | None = None
) -> list[Document]:
    """Return grants of points of one table to the same holders as policies of Ranger that a query obeys.

    A query then shows the rows of which something is granted, and in each of them null in place of values
    that are not. The policies have the ids `number` and those that follow. A user with grants by several
    calls, such as one by a group, sees the rows of one of them and never more than all grant together: Ranger
    takes the first row filter and the first mask that match. Raises InputError for grants of several tables
    or holders, of a database, for names with wildcards, and for rows or names with `{`, which policies
    replace.
    """
    _check(grants)
    points = [each.point for each in grants]
    first = points[0]
    item = {"accesses": [{"type": "select", "isAllowed": True}], **holders_json(grants[0])}
    limited = [each for each in _columns(points) if _text(points, each) is not None]
    rows = _any_of(points)
    made: list[Document] = [
        _policy(0, first, catalog, _granted(points), {"policyItems": [item]}),
        *(
            _policy(
                1,
                first,
                catalog,
                each,
                {"dataMaskPolicyItems": [{**item, "dataMaskInfo": _mask(points, each)}]},
            )
            for each in limited
        ),
    ]
    if rows is not None:
        info = {"rowFilterInfo": {"filterExpr": rows}}
        made.append(_policy(2, first, catalog, None, {"rowFilterPolicyItems": [{**item, **info}]}))
    for offset, each in enumerate(made):
        each |= {
            "id": number + offset,
            "service": service,
            "name": f"rows {number + offset}: table {first.table}",
        }
    return made


def _check(grants: Sequence[PointGrant]) -> None:
    if not grants:
        raise InputError("give at least one grant")
    if any("{" in text for each in grants for text in (text_of(each.point), each.point.column or "")):
        raise InputError(
            "policies replace words in braces, so no constant and no column of rows may have a {: grant the "
            "rows by other columns"
        )
    tables = {(each.point.database, each.point.table) for each in grants}
    holders = {(frozenset(each.users), frozenset(each.groups), frozenset(each.roles)) for each in grants}
    if len(tables) > 1 or len(holders) > 1:
        raise InputError(
            "the grants are of several tables or holders: write the policies of each by its own call"
        )
    if grants[0].point.table is None:
        raise InputError("a grant of a database has no rows: write it by policy_of")


def _granted(points: Iterable[Point]) -> tuple[str, ...]:
    """Return the columns that some grant opens; `*` if one opens all."""
    named = {each.column for each in points}
    return ("*",) if None in named else tuple(sorted(each for each in named if each is not None))


def _columns(points: Sequence[Point]) -> list[tuple[str, ...] | frozenset[str]]:
    """Return the sets of columns with conditions of their own: each named one, and all but these."""
    named = sorted({each.column for each in points if each.column is not None})
    found: list[tuple[str, ...] | frozenset[str]] = [(name,) for name in named]
    return [*found, frozenset(named)] if any(each.column is None for each in points) else found


def _text(points: Sequence[Point], columns: tuple[str, ...] | frozenset[str]) -> str | None:
    """Return the condition under which values of columns are shown, None for always."""
    own = None if isinstance(columns, frozenset) else columns[0]
    return _any_of([each for each in points if each.column is None or each.column == own])


def _any_of(points: Iterable[Point]) -> str | None:
    texts = sorted({text_of(each) for each in points})
    return None if "" in texts else " OR ".join(f"({text})" for text in texts)


def _mask(points: Sequence[Point], columns: tuple[str, ...] | frozenset[str]) -> dict[str, str]:
    shown = f"CASE WHEN {_text(points, columns)} THEN {{col}} END"
    return {"dataMaskType": "CUSTOM", "valueExpr": shown}


def _policy(
    kind: int,
    point: Point,
    catalog: str | None,
    columns: tuple[str, ...] | frozenset[str] | None,
    items: dict[str, Any],
) -> Document:
    resources: dict[str, Any] = resource_of(point, catalog)
    if isinstance(columns, frozenset) and columns:
        resources["column"] = {"values": sorted(columns), "isExcludes": True}
    elif columns is not None:
        resources["column"] = {"values": list(columns) or ["*"]}
    return {"policyType": kind, "isEnabled": True, "resources": resources, **items}
