"""Points as policies: grants of points in Ranger's documents, and read from them.

A point is a policy on exactly its database, table and column; `*` stands for all tables or columns. Its rows
are a condition `ROWS("id IN (1, 2) AND day IN ('mon')")`. To an engine of policies that is a script with an
unknown function, which never holds: so no engine takes a point with rows for access to all rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, PolicyError
from lockgate.framework.governance.points.point import Constant, Point
from lockgate.framework.governance.row_filters import parsed
from lockgate.pushdown import Comparison, Op, Predicate, conjuncts, sql_name

Document = dict[str, Any]
# Ranger's type of conditions that every service has.
_SCRIPT = "_expression"
_ROWS = re.compile(r"ROWS\((\".*\")\)", re.DOTALL)
_EVERY = "*"
_WHO = ("users", "groups", "roles")
_DENYING = ("denyPolicyItems", "denyExceptions", "allowExceptions")


@checked_arguments
@dataclass(frozen=True)
class PointGrant:
    """A point and its holders; raises InputError if there are none."""

    point: Point
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.users or self.groups or self.roles):
            raise InputError("a grant of a point needs a user, a group or a role")

    def is_of(self, user: str, groups: Iterable[str] = (), roles: Iterable[str] = ()) -> bool:
        """Return whether a user with these groups and roles has it."""
        public = ("public" in self.groups, user in self.users)
        return any(public) or bool({*groups} & {*self.groups} or {*roles} & {*self.roles})


@checked_arguments
def policy_of(granted: PointGrant, *, number: int, service: str, catalog: str | None = None) -> Document:
    """Return a grant as a policy of `service`, with the id `number`; `catalog` if the service has that level.

    Raises InputError for names with wildcards and for a row limit that is null.
    """
    point = granted.point
    item: Document = {"accesses": [{"type": "select", "isAllowed": True}], **holders_json(granted)}
    if point.rows:
        item["conditions"] = [{"type": _SCRIPT, "values": [f"ROWS({json.dumps(text_of(point))})"]}]
    return {
        "id": number,
        "service": service,
        "name": f"point {number}: {point}",
        "policyType": 0,
        "isEnabled": True,
        "resources": {
            **resource_of(point, catalog),
            "column": {"values": [point.column or _EVERY]},
        },
        "policyItems": [item],
    }


def holders_json(granted: PointGrant) -> Document:
    """Return the holders of a grant as an item of a policy has them."""
    return {name: list(getattr(granted, name)) for name in _WHO}


def resource_of(point: Point, catalog: str | None) -> Document:
    """Return the database and table of a point as a policy has them; InputError for names with wildcards."""
    levels = {"catalog": {"values": [catalog]}} if catalog is not None else {}
    database = _checked("database", point.database, point.database)
    table = _checked("table", point.table or _EVERY, point.table)
    _checked("column", point.column or _EVERY, point.column)
    return {**levels, "database": {"values": [database]}, "table": {"values": [table]}}


def _checked(level: str, value: str, name: str | None) -> str:
    if name is not None and set(name) & {"*", "?"}:
        raise InputError(f"{level} {name!r} has a wildcard, so a policy would be about others too")
    return value


def text_of(point: Point) -> str:
    """Return the rows of a point as SQL, empty for all; InputError for a limit that is null."""
    return " AND ".join(
        f"{sql_name(column)} IN ({', '.join(sorted(map(_constant, values)))})"
        for column, values in sorted(point.rows.items())
    )


def _constant(value: Constant) -> str:
    if value is None:
        raise InputError("the rows of a point are limited to constants, and null is none")
    if isinstance(value, bool):
        return str(value).upper()
    return (
        "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if isinstance(value, str) else str(value)
    )


@checked_arguments
def points_of(policies: Iterable[Mapping[str, Any]], catalog: str | None = None) -> list[PointGrant]:
    """Return the grants of points in policies, those of `catalog` if they name one.

    Policies of masks and row filters, and disabled ones, say nothing about points. Raises PolicyError for
    denials, exceptions, wildcards in names, and conditions other than `ROWS(...)`: these are no points.
    """
    documents = list(policies)
    if not all(isinstance(each, Mapping) for each in documents):
        raise InputError("points_of: policies takes JSON objects, such as json.loads makes of policies.json")
    return [
        found
        for each in documents
        if each.get("policyType", 0) == 0 and each.get("isEnabled", True)
        for found in _of_policy(each, catalog)
    ]


def _of_policy(policy: Mapping[str, Any], catalog: str | None) -> Iterator[PointGrant]:
    name = f"policy {policy.get('id')}"
    if any(policy.get(each) for each in _DENYING) or policy.get("isDenyAllElse"):
        raise PolicyError(f"{name} denies or has exceptions: a point only allows; write it without them")
    levels = {level: _values(name, level, each) for level, each in policy.get("resources", {}).items()}
    if catalog is not None and catalog not in levels.get("catalog", [catalog]):
        return
    for item in policy.get("policyItems") or ():
        if not any(each.get("type") in ("select", "all") for each in item.get("accesses") or ()):
            continue
        who = {kind: tuple(item.get(kind) or ()) for kind in _WHO}
        rows = _rows(name, item.get("conditions") or ())
        for database in levels.get("database", []):
            for table in levels.get("table", [_EVERY]):
                for column in levels.get("column", [_EVERY]):
                    point = Point(database, _part(table), _part(column), rows)
                    yield PointGrant(point, **who)


def _part(name: str) -> str | None:
    return None if name == _EVERY else name


def _values(policy: str, level: str, resource: Mapping[str, Any]) -> list[str]:
    values = [str(each) for each in resource.get("values") or ()]
    named = level in ("table", "column", "catalog")
    wild = [each for each in values if set(each) & {"*", "?"} and not (named and each == _EVERY)]
    if resource.get("isExcludes") or wild:
        raise PolicyError(f"{policy} has wildcards or exclusions in level {level}: a point names one thing")
    return values


def _rows(policy: str, conditions: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[Constant]]:
    rows: dict[str, frozenset[Constant]] = {}
    for condition in conditions:
        for value in condition.get("values") or [""]:
            found = _ROWS.fullmatch(str(value)) if condition.get("type") == _SCRIPT else None
            if found is None:
                raise PolicyError(f"{policy} has a condition that is not ROWS(...), the only one of points")
            for part in conjuncts(parsed(json.loads(found[1]))):
                column, values = _limit(policy, part)
                rows[column] = rows.get(column, values) & values
    return rows


def _limit(policy: str, part: Predicate) -> tuple[str, frozenset[Constant]]:
    # The text is not shown: its constants may be values of encrypted columns.
    if not isinstance(part, Comparison) or part.op not in (Op.EQ, Op.IN) or len(part.field) != 1:
        raise PolicyError(f"{policy} has rows that are no constants of columns: write column IN (1, 2)")
    values = [item.as_py() for item in part.literals]
    if not all(isinstance(each, str | int | bool) for each in values):
        raise PolicyError(f"{policy} has rows with other constants than texts, whole numbers and booleans")
    return part.field[0], frozenset(values)
