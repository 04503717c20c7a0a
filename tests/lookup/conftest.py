"""A table in memory with the part of the store's interface that lookups use, and a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lookup_world import World

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.access import ALLOWED, Decision
from lockgate.framework.keys import KeyProvider
from lockgate.framework.options.table_options import TableOptions
from lockgate.framework.store import Table
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.schema.schema import Schema, TableSchema
from lockgate.lookup.join import lookup_worker

KINDS = {"+I": 0, "-U": 1, "+U": 2, "-D": 3}


@dataclass(frozen=True)
class FakeChange:
    snapshot_id: int
    kind: CommitKind
    rows: pa.Table

    @property
    def needs_reload(self) -> bool:
        return self.kind is CommitKind.OVERWRITE


@dataclass(frozen=True)
class FakePlan:
    """What is to be read; everybody may."""

    columns: list[str]
    snapshot_id: int
    decision: Decision = ALLOWED


@dataclass
class FakeTable:
    """Snapshots of rows in memory; every commit says what changed, as the store's changes do."""

    schema: TableSchema
    options: TableOptions = field(default_factory=TableOptions)
    keys: KeyProvider | None = None
    identifier: str = "db.t"
    table_id: str = "fake"
    copy_id: str = "fake"
    reads: list[int] = field(default_factory=list)
    _snapshots: dict[int, Snapshot] = field(default_factory=dict)
    _states: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _changes: dict[int, pa.Table] = field(default_factory=dict)
    _next: int = 1
    _stamp: int = 0

    @property  # type: ignore[misc]  # as mocks with a spec do it
    def __class__(self) -> type:
        """A table, to doors that check what they are given."""
        return Table

    # --- what a test does ------------------------------------------------------------------------

    def commit(self, changes: list[tuple[str, dict[str, Any]]], kind: CommitKind = CommitKind.APPEND) -> int:
        """Apply changes (kind of change, row) as one snapshot."""
        keys = self.schema.primary_keys
        rows = [] if kind is CommitKind.OVERWRITE else list(self._states.get(self._next - 1, []))
        for change, row in changes:
            if keys:
                rows = [old for old in rows if any(old[name] != row[name] for name in keys)]
            if KINDS[change] in (0, 2):
                rows.append(row)
        table = pa.Table.from_pylist([row for _, row in changes], schema=self.schema.arrow_schema)
        kinds = pa.array([KINDS[change] for change, _ in changes], pa.int8())
        return self._add(kind, rows, table.append_column("_VALUE_KIND", kinds))

    def compact(self) -> int:
        return self._add(CommitKind.COMPACT, self._states[self._next - 1], None)

    def _add(self, kind: CommitKind, rows: list[dict[str, Any]], changes: pa.Table | None) -> int:
        number = self._next
        self._stamp += 1
        mark = f"manifest-{self._stamp}"
        self._snapshots[number] = Snapshot(number, 0, mark, mark, "u", 1, kind, 0, len(rows), 0)
        self._states[number] = rows
        if changes is not None:
            self._changes[number] = changes
        self._next += 1
        return number

    def rollback(self, number: int) -> None:
        for later in range(number + 1, self._next):
            del self._snapshots[later]
        self._next = number + 1

    def expire(self, number: int) -> None:
        del self._snapshots[number]

    def state(self, number: int) -> list[dict[str, Any]]:
        return self._states[number]

    # --- what a lookup asks ----------------------------------------------------------------------

    def latest_snapshot(self) -> Snapshot | None:
        return self._snapshots[max(self._snapshots)] if self._snapshots else None

    def snapshot(self, number: int) -> Snapshot:
        if number not in self._snapshots:
            raise SnapshotNotFoundError(f"no snapshot {number}")
        return self._snapshots[number]

    newest_change = Table.newest_change
    masks_of = Table.masks_of

    def scan(self, predicate: object, *, columns: list[str], snapshot_id: int, own_schema: bool) -> FakePlan:
        return FakePlan(columns, snapshot_id)

    def read_batches(self, plan: FakePlan, *, threads: int | None = None) -> Iterator[pa.RecordBatch]:
        self.reads.append(plan.snapshot_id)
        rows = pa.Table.from_pylist(self._states[plan.snapshot_id], schema=self.schema.arrow_schema)
        yield from rows.select(plan.columns).to_batches(max_chunksize=7)

    def changes(self, after: int, upto: int, *, columns: list[str]) -> Iterator[FakeChange]:
        for number in range(after + 1, upto + 1):
            snapshot = self.snapshot(number)
            if snapshot.commit_kind is not CommitKind.COMPACT:
                rows = self._changes[number].select([*columns, "_VALUE_KIND"])
                yield FakeChange(number, snapshot.commit_kind, rows)


@pytest.fixture(autouse=True)
def no_states_stay_open() -> Iterator[None]:
    """Close what a test asked in this process, as a task does: its states would stay open."""
    yield
    lookup_worker.close_states()


@pytest.fixture(params=["full", "memory"])
def storage(request: pytest.FixtureRequest) -> str:
    """How caches are kept: tests that make tables run once for each."""
    return str(request.param)


@pytest.fixture
def make_table(tmp_path: Path, storage: str) -> Callable[..., Any]:
    """Make a table in memory whose caches lie in the test's folder."""

    def make(
        schema: pa.Schema,
        primary_keys: tuple[str, ...] = (),
        keys: KeyProvider | None = None,
        **options: str,
    ) -> FakeTable:
        given = Schema.from_arrow(schema, primary_keys=primary_keys)
        described = TableSchema(0, given.fields, len(given.fields), primary_keys=primary_keys)
        own = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.cache": storage}
        given_options = TableOptions({**own, **options})
        return FakeTable(described, given_options, keys)

    return make


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A warehouse with one dimension; the lookups on it end with the test."""
    made = World(tmp_path)
    yield made
    for lookup in made.lookups:
        lookup.close()
