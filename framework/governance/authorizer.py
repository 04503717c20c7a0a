"""The authorizer: Ranger's policies as a plugin, which decides about the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import PolicyError
from lockgate.framework.access import (
    AccessRequest,
    Action,
    Caller,
    Decision,
    Mask,
    Principal,
    SqlDecision,
    Target,
    current_statement,
)
from lockgate.framework.governance.audit.record import Record
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.engine.engine import Engine
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.engine.table_decision import TableAnswer, decide_table, decide_whole
from lockgate.framework.governance.row_filters import parsed
from lockgate.framework.governance.sql_masks import sql_of
from lockgate.framework.plugins import hookimpl
from lockgate.pushdown import AlwaysTrue, Predicate

if TYPE_CHECKING:
    from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition
    from lockgate.framework.governance.requests.folder import RequestFolder

# The access types that stand for an action: the first that the service has counts.
_ACCESSES = {
    Action.SELECT: ("select",),
    Action.INSERT: ("insert", "update"),
    Action.UPDATE: ("update", "insert"),
    Action.DELETE: ("delete", "update", "insert"),
    Action.CREATE: ("create",),
    Action.ALTER: ("alter",),
    Action.DROP: ("drop",),
    Action.CALL: ("call", "alter"),
}
# Masks by Ranger's names, the same in every service; others mean something only to an engine of SQL.
_MASKS = {
    "MASK": Mask("redact"),
    "MASK_HASH": Mask("sha256"),
    "MASK_NULL": Mask("nullify"),
}
_NO_MASK = "MASK_NONE"


def access_of(service: ServiceDefinition, action: Action) -> str:
    """Return the access type that a service has for an action."""
    declared, wanted = set(service.accesses), _ACCESSES[action]
    return next((each for each in wanted if each in declared), wanted[0])


class PolicyProvider(Protocol):
    """Where the engine of the newest policies comes from."""

    def engine(self) -> Engine:
        """Return it; raises PolicyError if there are no policies to go by."""


@checked_arguments
@dataclass
class RangerAuthorizer:
    """Decides about the tables of one warehouse; register it as a plugin.

    `catalog` is the warehouse's name in policies. With `warehouse`, the location of its folder, it has no
    opinion about tables of other warehouses. The policies also decide about anything else that a Spark
    session reads (files, Hive, other catalogs), unless `governs_others` is false. A refusal ends with
    `apply_at`, where to apply for access. `audit` receives a Record of every decision that leaves one. With
    `requests`, users may ask for access by `CALL sys.request_access`, and refusals say so.
    """

    policies: PolicyProvider
    catalog: str = "paimon"
    warehouse: str | None = None
    governs_others: bool = True
    apply_at: str | None = None
    audit: Callable[[Record], None] | None = field(default=None, repr=False)
    requests: RequestFolder | None = None

    @hookimpl
    def lockgate_authorize(self, request: AccessRequest) -> Decision | None:
        """Return what the policies decide, None about tables of another warehouse."""
        if not self._is_ours(request.target):
            return None
        return _Question(self, self.policies.engine(), request).decision()

    @hookimpl
    def lockgate_authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], records: bool
    ) -> SqlDecision | None:
        """Return what the policies decide about a query of Spark, None about tables of another warehouse."""
        if not self._is_ours(request.target):
            return None
        return _Question(self, self.policies.engine(), request, records=records).sql_decision(types)

    @hookimpl
    def lockgate_principal(self, caller: Caller) -> Principal | None:
        """Return a caller with its groups in Ranger, None for a user that Ranger does not know."""
        engine = self.policies.engine()
        groups = engine.groups_of(caller.user)
        if groups is None:
            return None
        return Principal(caller.user, groups, engine.roles.of(caller.user, groups))

    def decides_at(self, location: str) -> bool:
        """Return whether tables at a location are those of the warehouse that this decides about."""
        return self.warehouse is None or f"{location}/".startswith(f"{self.warehouse.rstrip('/')}/")

    def resource_of(self, table: str) -> dict[str, str]:
        """Return the levels of a table of the warehouse, named `database.table`."""
        return resource_of(self.policies.engine(), self.catalog, Target("table", table))

    def _is_ours(self, target: Target) -> bool:
        if target.catalog is not None:
            return self.governs_others
        return target.location is None or self.decides_at(target.location)


def resource_of(engine: Engine, catalog: str, target: Target) -> dict[str, str]:
    """Return the levels of a target: those that the service has; PolicyError if there is none."""
    levels_there, kind, name = engine.service.levels, target.kind, target.name
    if kind in ("path", "statement"):
        return {kind: name}
    if "catalog" not in levels_there and target.catalog is not None:
        raise PolicyError(f"service {engine.service.name!r} has no level for {target}")
    named = [target.catalog or catalog, *(name.split(".", 1) if kind == "table" else [name])]
    levels = zip(("catalog", "database", "table"), named if kind != "procedure" else named[:1], strict=False)
    found = {level: value for level, value in levels if level in levels_there}
    if not found:
        raise PolicyError(f"service {engine.service.name!r} has no level for {target}")
    return found


class _Question:
    """One request, put to the engine of one version of the policies."""

    def __init__(
        self, authorizer: RangerAuthorizer, engine: Engine, request: AccessRequest, *, records: bool = True
    ) -> None:
        self._authorizer, self._engine, self._request = authorizer, engine, request
        self._records = records and authorizer.audit is not None
        self._access = access_of(engine.service, request.action)
        self._missing: list[str] = []

    def decision(self) -> Decision:
        request = self._request
        if (
            request.target.kind in ("path", "statement")
            and request.target.kind not in self._engine.service.levels
        ):
            return Decision.denied(*self._of_other())
        if request.target.kind == "table" and request.columns:
            found = self._of_columns(sorted(request.columns))
        else:
            found = self._of_whole()
        return self._denied() if self._missing else found

    def sql_decision(self, types: Mapping[str, str]) -> SqlDecision:
        if self._request.target.kind != "table":
            return SqlDecision(apply_for=self._of_other())
        asked = self._asked()
        answer = decide_table(self._engine, asked, sorted(types))
        denied = {}
        for column, result in answer.access.items():
            self._note(asked, result, column)
            if not result.allowed:
                denied[column] = (self._name({**asked.resource, "column": column}),)
        ask = self._where_to_ask()
        if len(denied) == len(types):
            return SqlDecision(apply_for=(self._name(asked.resource),), ask=ask)
        masks = {
            column: sql_of(self._engine.service, result.info, column, types[column])
            for column, result in answer.masks.items()
            if column not in denied and mask_name(result) is not None
        }
        row_filter = answer.row_filter.info.get("filterExpr") if answer.row_filter.allowed else None
        granted_by = {
            column: ("a super user's right" if result.policy < 0 else f"policy {result.policy}",)
            for column, result in answer.access.items()
            if result.allowed
        }
        return SqlDecision(
            denied=denied, masks=masks, row_filter=row_filter or None, ask=ask, granted_by=granted_by
        )

    def _of_other(self) -> tuple[str, ...]:
        """Decide about what is neither a table nor a part of one; return what to apply for."""
        kind, name = self._request.target.kind, self._request.target.name
        if kind not in self._engine.service.levels:
            why = f"service {self._engine.service.name} has no level {kind}"
            return (f"{self._access} on {kind} {name}: {why}", *self._where_to_ask())
        return self.decision().apply_for

    # --- what is asked for ---

    def _asked(self, **more: Any) -> RangerRequest:
        principal = self._request.principal
        attributes = {principal.user: principal.attributes} if principal.attributes else {}
        return RangerRequest(
            resource=resource_of(self._engine, self._authorizer.catalog, self._request.target),
            access=self._access,
            user=principal.user,
            groups=principal.groups,
            roles=principal.roles,
            action=self._request.action.value,
            users=attributes,
            **more,
        )

    # --- answers ---

    def _of_whole(self) -> Decision:
        """Decide about a target as a whole: it must be allowed, and no part of it denied."""
        asked = self._asked()
        whole, allowed = decide_whole(self._engine, asked)
        self._note(asked, whole)
        if not allowed:
            self._missing.append(self._name(asked.resource))
        return Decision()

    def _of_columns(self, columns: list[str]) -> Decision:
        asked = self._asked()
        found = decide_table(self._engine, asked, columns)
        for column, result in found.access.items():
            self._note(asked, result, column)
            if not result.allowed:
                self._missing.append(self._name({**asked.resource, "column": column}))
        if self._missing or self._request.action is not Action.SELECT:
            self._refuse_hidden(found)
            return Decision()
        masks = dict(self._masks(found.masks))
        return (
            Decision(row_filter=self._row_filter(found.row_filter), masks=masks)
            if not self._missing
            else Decision()
        )

    def _refuse_hidden(self, found: TableAnswer) -> None:
        """Refuse to change rows where rows or values are hidden: what is rewritten would lose them."""
        if self._request.action is Action.SELECT:
            return
        masked = any(mask_name(each) for each in found.masks.values())
        if masked or found.row_filter.allowed:
            self._missing.append(f"select on table {self._request.target.name} without row filter and masks")

    def _masks(self, results: Mapping[str, Result]) -> Iterator[tuple[str, Mask]]:
        for column, result in results.items():
            name = mask_name(result)
            if name is None:
                continue
            mask = _MASKS.get(name)
            if mask is None or result.info.get("maskCondition"):
                self._missing.append(
                    f"a mask that Python can apply to column {column} (policy {result.policy} has {name})"
                )
            else:
                yield column, mask

    def _row_filter(self, result: Result) -> Predicate:
        text = result.info.get("filterExpr") if result.allowed else None
        if not text:
            return AlwaysTrue()
        try:
            return parsed(text)
        except PolicyError:
            self._missing.append(
                f"a row filter that reads in Python can apply (not that of policy {result.policy})"
            )
            return AlwaysTrue()

    # --- words ---

    def _name(self, resource: Mapping[str, Any]) -> str:
        level = list(resource)[-1]
        path = ".".join(
            str(value) for key, value in resource.items() if key != "catalog" or len(resource) == 1
        )
        return f"{self._access} on {level} {path} in service {self._engine.service.name}"

    def _denied(self) -> Decision:
        return Decision.denied(*dict.fromkeys(self._missing), *self._where_to_ask())

    def _where_to_ask(self) -> tuple[str, ...]:
        authorizer, target = self._authorizer, self._request.target
        ways = [f"ask at {authorizer.apply_at}"] if authorizer.apply_at else []
        if authorizer.requests is not None and target.kind == "table" and target.catalog is None:
            ways.append(f"ask by CALL sys.request_access(table => '{target.name}')")
        return tuple(ways)

    def _note(self, asked: RangerRequest, result: Result, column: str | None = None) -> None:
        if self._authorizer.audit is None or not self._records or not result.audited:
            return
        resource = {**asked.resource, **({"column": column} if column else {})}
        self._authorizer.audit(
            Record(
                user=asked.user or "",
                access=self._access,
                resource="/".join(map(str, resource.values())),
                kind=list(resource)[-1],
                allowed=result.allowed,
                policy=result.policy,
                version=self._engine.version,
                zone=result.zone,
                reason=result.reason,
                action=self._request.action.value,
                statement=current_statement(),
                service_type=self._engine.service.id,
            )
        )


def mask_name(result: Result) -> str | None:
    """Return the name of a mask, None where values are shown."""
    name = result.info.get("maskType") if result.allowed else None
    return None if name is None or name.upper() in (_NO_MASK, "NONE") else name.upper()
