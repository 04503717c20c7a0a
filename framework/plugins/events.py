"""Events: frozen records of what happened, which observers receive afterwards.

An event names tables, columns, keys and numbers; it never holds a value of a row, a literal of a query or a
key's bytes. Plugins observe events by the hook `lockgate_event`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event; `at` is the time, in UTC, at which this process noticed it."""

    at: datetime = field(default_factory=_now)


@dataclass(frozen=True, kw_only=True)
class ScanPlanned(Event):
    """A scan of a table was planned: its files are chosen, no row is read yet.

    `table` is the folder of the table, `columns` the columns that the scan reads, None for all.
    `files` and `size` (bytes) count what the scan reads after all skipping. `searched` are the columns
    that the query compares, each with an operator and without values. `again`: the query has
    already planned this scan: before later filters arrived, or for the other side of a join.
    """

    table: str
    snapshot_id: int | None
    columns: tuple[str, ...] | None
    files: int
    size: int
    searched: tuple[tuple[str, str], ...] = ()
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class RowsCommitted(Event):
    """A commit became visible as the snapshot `snapshot_id`.

    `kind` is the commit's kind in the snapshot (APPEND, OVERWRITE, COMPACT). `writer` and `identifier` are
    those of the commit: a stream has one writer and counts its batches by `identifier`. `rows` is the change
    in the number of stored rows (negative: fewer), None if unknown.
    """

    table: str
    snapshot_id: int
    kind: str
    writer: str
    identifier: int
    rows: int | None


@dataclass(frozen=True, kw_only=True)
class StreamProgressed(Event):
    """A streaming query wrote its batch `batch` to a table, or chose the snapshot that the batch reads from
    or looks up in.

    `query` is Spark's id of the query, which a restart keeps. `table` is the folder of the table. Spark runs
    an unfinished batch again: the event then comes again too, with the same `snapshot_id`.
    """

    query: str
    batch: int
    table: str
    use: Literal["read", "write", "lookup"]
    snapshot_id: int


@dataclass(frozen=True, kw_only=True)
class TableChanged(Event):
    """A table was created, altered, renamed, replaced or dropped.

    `table` is the folder of the table (the new folder, if renamed), `schema_id` the number of its current
    schema, None for a renamed or dropped table.
    """

    table: str
    change: Literal["created", "altered", "renamed", "replaced", "dropped"]
    schema_id: int | None


@dataclass(frozen=True, kw_only=True)
class ProcedureCalled(Event):
    """A procedure ended after `seconds`; `error` is the name of the error's class, or None for success.

    `arguments` are the names of the call's arguments, without values; `table` is the value of the argument
    `table`, if any. `warehouse` is the folder of the warehouse, `user` the caller. Observers that write there
    can use `catalog`, the warehouse as the call reached it. `description` is that of the Spark job, if it has
    one; `confs` are settings of lineage in the calling session.
    """

    procedure: str
    table: str | None
    description: str | None = None
    confs: Mapping[str, str] = field(default_factory=dict, repr=False)
    warehouse: str | None = None
    catalog: Catalog | None = field(default=None, repr=False, compare=False)
    user: str | None = None
    arguments: tuple[str, ...]
    dry_run: bool
    seconds: float
    error: str | None


@dataclass(frozen=True, kw_only=True)
class KeyUnwrapped(Event):
    """A reader requested the local key of a file for `user`; `granted`: it received the key."""

    user: str
    key: str
    version: int
    granted: bool


@dataclass(frozen=True, kw_only=True)
class Denied(Event):
    """An action was denied to `user`; `apply_for` names the missing grants.

    `action` and `target` are texts, such as SELECT and `table hr.people`; `columns` are those of the request,
    sorted, or None if it named none.
    """

    user: str
    action: str
    target: str
    columns: tuple[str, ...] | None
    apply_for: tuple[str, ...]
