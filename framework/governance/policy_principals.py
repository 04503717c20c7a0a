"""Holders of rights: the users, groups and roles that policies name, and what each may do with a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from lockgate.framework.access import Action, Principal
from lockgate.framework.governance.authorizer import access_of, mask_name
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.table_decision import decide_table, decide_whole
from lockgate.framework.governance.ranger.policies.item import EVERY_USER, OWNER, PUBLIC, Item
from lockgate.framework.governance.ranger.policies.policy import Policy

# Actions on a table as a whole.
_OF_TABLES = (Action.INSERT, Action.UPDATE, Action.DELETE, Action.ALTER, Action.DROP)
# The store refuses these to anyone from whom policies hide rows or values; an upsert is one of them.
_OF_ALL_ROWS = frozenset({Action.UPDATE, Action.DELETE})
_OF_ALL_ROWS_BY_KEY = _OF_ALL_ROWS | {Action.INSERT}


@dataclass(frozen=True, order=True)
class PolicyPrincipal:
    """A user, a group or a role. A user has groups; a user or a group has roles."""

    kind: Literal["user", "group", "role"]
    name: str
    groups: frozenset[str] = field(default=frozenset(), compare=False)
    roles: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Rights:
    """What a holder may do with a table now.

    `readable` and `masked` are columns; `row_filter` is None if all rows are visible. `actions` are those on
    the table as a whole. `whole_masks` maps masked columns to Ranger's names of their masks, without those
    that have a condition.
    """

    principal: PolicyPrincipal
    readable: frozenset[str]
    masked: frozenset[str]
    # Not shown, since a filter and the values of masks may hold values of encrypted columns.
    row_filter: str | None = field(repr=False)
    mask_texts: tuple[str, ...] = field(repr=False)
    actions: tuple[Action, ...] = ()
    whole_masks: Mapping[str, str] = field(default_factory=dict, hash=False)


def policy_principal(principal: Principal) -> PolicyPrincipal:
    """Return a principal as a holder."""
    return PolicyPrincipal("user", principal.user, principal.groups, principal.roles)


def policy_principals(engine: Engine, resource: Mapping[str, str]) -> list[PolicyPrincipal]:
    """Return everyone whom policies name that may be about a table, and the super users, sorted."""
    users, groups = set(engine.settings.super_users), set(engine.settings.super_groups)
    roles = set[str]()
    for policy in engine.policies_about(resource):
        for item in _items(policy):
            users |= item.users
            groups |= item.groups
            roles |= item.roles
    if EVERY_USER in users:
        groups.add(PUBLIC)
    found = [PolicyPrincipal("user", name, engine.groups_of(name) or frozenset()) for name in users]
    found = [each for each in found if each.name not in (EVERY_USER, OWNER)]
    found += [PolicyPrincipal("group", name, frozenset({name})) for name in groups]
    found += [PolicyPrincipal("role", name, roles=engine.roles.within([name])) for name in roles]
    return sorted(found)


def _items(policy: Policy) -> Iterable[Item]:
    return (
        *policy.allows,
        *policy.denies,
        *policy.allow_exceptions,
        *policy.deny_exceptions,
        *policy.transforms,
    )


def rights_of(
    engine: Engine,
    principal: PolicyPrincipal,
    resource: Mapping[str, str],
    columns: Sequence[str],
    *,
    has_key: bool,
) -> Rights:
    """Return what a holder may do with a table and its columns; the question leaves no record."""
    asked = RangerRequest(
        resource=resource,
        access=access_of(engine.service, Action.SELECT),
        user=principal.name if principal.kind == "user" else None,
        groups=principal.groups,
        roles=principal.roles,
        action=Action.SELECT.value,
    )
    answer = decide_table(engine, asked, columns)
    readable = frozenset(column for column, result in answer.access.items() if result.allowed)
    masks = {column: result for column, result in answer.masks.items() if mask_name(result) is not None}
    row_filter = (answer.row_filter.info.get("filterExpr") if answer.row_filter.allowed else None) or None
    hides = bool(readable & masks.keys()) or row_filter is not None
    of_all_rows = _OF_ALL_ROWS_BY_KEY if has_key else _OF_ALL_ROWS
    actions = (each for each in _OF_TABLES if not (hides and each in of_all_rows))
    return Rights(
        principal,
        readable,
        readable & masks.keys(),
        row_filter,
        tuple(text for result in masks.values() for text in result.info.values()),
        tuple(each for each in actions if decide_whole(engine, _about(engine, asked, each))[1]),
        {
            column: str(mask_name(each))
            for column, each in masks.items()
            if not each.info.get("maskCondition")
        },
    )


def _about(engine: Engine, asked: RangerRequest, action: Action) -> RangerRequest:
    return replace(asked, access=access_of(engine.service, action), action=action.value)
