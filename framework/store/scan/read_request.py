"""Requests to read: a query's columns, filters and snapshot, resolved and authorized."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import AccessDeniedError, InputError
from lockgate.framework.access import ALLOWED, Action, Decision, Principal
from lockgate.framework.options import check_names
from lockgate.framework.store.grants import grant
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.metadata.generations import check_generation
from lockgate.framework.store.metadata.references import held_snapshot
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.tag_files import load_tag
from lockgate.framework.store.scan.snapshot_selection import Between, Selection
from lockgate.framework.store.scan.table_selection import table_selection
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import (
    check_known_types,
    check_no_branch,
    check_readable,
)
from lockgate.pushdown import (
    AlwaysTrue,
    Predicate,
    SortKey,
    columns_of,
    normalize,
    to_arrow_expression,
)

# Arrow counts rows by 64 bits.
_MOST_ROWS = 2**63 - 1


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ReadRequest:
    """A query of one table.

    `columns` are top-level names, None for all. `snapshot_id` (0: the state before the first one), `tag` or
    `between` (the rows that a range of snapshots added; for each key, its newest row) selects what to read.
    Without them the table's options do, by default the newest snapshot. With `order`, the scan skips files
    that cannot hold one of the first `limit` rows. A `strict` read refuses masks. `principal` is the
    requesting user, None for the current one. A named snapshot is read with its own schema, or with the
    table's if not `own_schema`. With `read_optimized`, a read of a key table omits files that need a merge,
    and so the newest rows. `decided` is an earlier decision about the query, None to ask. `again`: the query
    has been planned before, as observers are told.

    Raises InputError for a negative limit, and for more than one way to name the snapshot.
    """

    columns: tuple[str, ...] | None = None
    predicate: Predicate = field(default_factory=AlwaysTrue)
    snapshot_id: int | None = None
    tag: str | None = None
    between: Between | None = None
    limit: int | None = None
    order: tuple[SortKey, ...] = ()
    strict: bool = False
    principal: Principal | None = None
    own_schema: bool = True
    read_optimized: bool = False
    decided: Decision | None = None
    again: bool = False

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", check_names("columns", self.columns))
        object.__setattr__(self, "order", tuple(self.order))
        if self.limit is not None and self.limit < 0:
            raise InputError(f"a limit cannot be negative: {self.limit}")
        if self.limit is not None:
            object.__setattr__(self, "limit", min(self.limit, _MOST_ROWS))
        if self.between is not None and self.names_a_snapshot:
            raise InputError("give either a snapshot or a range of snapshots to read, not both")
        if self.snapshot_id is not None and self.tag is not None:
            raise InputError(f"give either snapshot_id ({self.snapshot_id}) or tag ({self.tag!r}), not both")

    @property
    def names_a_snapshot(self) -> bool:
        """Say whether the request names one snapshot, by its number or by a tag."""
        return self.snapshot_id is not None or self.tag is not None

    def snapshot(self, table: TableHandle) -> Snapshot | None:
        """Return the snapshot to read, None if there is none yet.

        Raises SnapshotNotFoundError and TagNotFoundError; a tagged snapshot may have expired.
        """
        if self.between is not None:
            find = partial(held_snapshot, table) if self.between.states else table.snapshot
            return find(self.between.end) if self.between.end else None
        if self.tag is not None:
            return load_tag(table, self.tag).snapshot
        if self.snapshot_id is None:
            return table.latest_snapshot()
        return held_snapshot(table, self.snapshot_id) if self.snapshot_id else None

    def resolve(self, table: TableHandle, also: Iterable[str] = ()) -> ResolvedRead:
        """Look up the snapshot and its schema, check the request against them, and ask for access.

        `also` names further columns to read. Raises ColumnNotFoundError and UnsupportedTypeError for what
        does not fit the schema, UnsupportedError for features of the table that are not read,
        AccessDeniedError, and what `snapshot` raises.
        """
        if not self.names_a_snapshot and self.between is None:
            selected = table_selection(table)
            if selected != Selection():
                exact = replace(self, snapshot_id=selected.snapshot_id, between=selected.between)
                return exact.resolve(table, also)
        elif self.own_schema or self.between is not None:
            check_no_branch(table.schema)
        snapshot = self.snapshot(table)
        schema = table.schema
        if self.own_schema and self.names_a_snapshot and snapshot is not None:
            schema = table.schema_of(snapshot.schema_id)
        predicate = normalize(self.predicate)
        check_known_types(schema, {path[0] for path in columns_of(predicate)})
        to_arrow_expression(predicate, schema.arrow_schema)
        named = {*(self.columns or ()), *(key.field[0] for key in self.order), *also}
        for name in named:
            schema.field(name)
        check_readable(schema, table.schema)
        check_known_types(schema, (schema.field_names if self.columns is None else named))
        if snapshot is not None:
            check_generation(schema, table.schema_of(snapshot.schema_id), f"snapshot {snapshot.id}")
        read = named | {path[0] for path in columns_of(predicate)}
        if self.columns is None:
            read |= set(schema.field_names)
        decision = self.decided or grant(table, Action.SELECT, read, self.principal)
        if self.strict:
            require_unrestricted(table, decision, "a strict read")
        exact = self
        if self.between is not None and decision.is_restricted:
            exact = replace(self, between=replace(self.between, whole=True))
        return ResolvedRead(exact, snapshot, schema, predicate, decision)


@dataclass(frozen=True)
class ResolvedRead:
    """A request with its snapshot, the schema it is read with, and what its principal may see."""

    request: ReadRequest
    snapshot: Snapshot | None
    schema: TableSchema
    predicate: Predicate
    decision: Decision = ALLOWED

    @property
    def on_stored(self) -> Predicate:
        """Return what stored rows must meet."""
        return normalize(self.decision.on_stored(self.predicate))

    @property
    def on_masked(self) -> Predicate:
        """Return what rows must meet once values are masked."""
        return self.decision.on_masked(self.predicate)

    @property
    def orders_by_masks(self) -> bool:
        """Say whether the order is one of masked values, which nothing that is stored knows."""
        return bool(self.decision.masked(key.field[0] for key in self.request.order))


def request_of(given: ReadRequest | None, predicate: Predicate | None, **parts: Any) -> ReadRequest:
    """Return `given`, or a request made of its parts; InputError for both."""
    made = ReadRequest(predicate=AlwaysTrue() if predicate is None else predicate, **parts)
    if given is None:
        return made
    if made != ReadRequest():
        raise InputError(
            "a plan or request holds columns, predicate, snapshot and limit already; give either it or them"
        )
    return given


def require_unrestricted(table: TableHandle, decision: Decision, what: str) -> None:
    """Raise AccessDeniedError if rows or values are hidden and `what` would need all of them."""
    if decision.is_restricted:
        needed = f"SELECT on table {table.identifier} without row filter and masks"
        raise AccessDeniedError(
            f"{what} of table {table.identifier} cannot leave out the rows and values that are hidden from "
            f"you; apply for: {needed}",
            (needed,),
        )
