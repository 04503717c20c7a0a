"""Merging of segments into the index: many shapes at a time, sorted, each shape once."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lockgate.errors import CorruptFileError
from lockgate.framework.lineage.model.edge_kinds import EdgeKind
from lockgate.framework.lineage.model.lineage_records import (
    TARGET,
    WHOLE,
    Edge,
    Run,
    Shape,
    run_from_json,
    shape_from_json,
)
from lockgate.framework.lineage.store.edges import add_edges
from lockgate.framework.lineage.store.numbering import Numbering

# Details of so many runs are kept for each process; of the older ones the sums stay.
KEPT_RUNS = 100
_DROPS = ("DROP_TABLE", "DROP_VIEW")
# They give names, and no values.
_CHANGES = ("RENAME_TABLE", "RENAME_COLUMN", "DROP_COLUMNS", "ADD_COLUMNS")


class Merger:
    """Merges lines of segments inside one transaction.

    `numbers` are those of the transaction before, if nobody has written since.
    """

    def __init__(self, database: sqlite3.Connection, numbers: Numbering | None = None) -> None:
        self._database = database
        self._numbers = Numbering(database) if numbers is None else numbers
        # Four numbers for each, one after another.
        self._edges = array("i")
        self._processes: dict[str, tuple[Any, ...]] = {}
        self._next_process = 1 + (database.execute("SELECT max(id) FROM process").fetchone()[0] or 0)
        self._inputs: list[tuple[int, int, int]] = []
        self._row_edges: list[tuple[int, int, int]] = []
        self._runs: list[tuple[int, int, str]] = []
        self._sums: list[dict[str, Any]] = []
        self._seen: dict[int, Sighting] = {}

    def add(self, line: Mapping[str, Any]) -> None:
        """Merge one line; CorruptFileError if it is no record, of which no edge or run stays then."""
        try:
            self._add(line)
        except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise CorruptFileError(f"a record of lineage has no proper edges: {error!r}") from error

    def _add(self, line: Mapping[str, Any]) -> None:
        runs = [run_from_json(each) for each in line["runs"]]
        # Edges are most of a line, and are checked as they are numbered.
        values, edges = line["shape"], line["shape"].get("edges", ())
        shape = shape_from_json(values if values.get("kind") in _CHANGES else {**values, "edges": ()})
        number = self._number(line["hash"])
        process = self._new(shape, edges, str(line["hash"]), runs) if number is None else number
        for run, found in zip(runs, line["runs"], strict=True):
            self._note(process, shape, run, json.dumps(found, separators=(",", ":")))

    def _number(self, shape_hash: str) -> int | None:
        if shape_hash in self._processes:
            return int(self._processes[shape_hash][0])
        row = self._database.execute("SELECT id FROM process WHERE hash = ?", (shape_hash,)).fetchone()
        return None if row is None else int(row[0])

    def finish(self) -> None:
        """Write what was collected: together it takes a fraction of the time."""
        write = self._database.executemany
        self._numbers.finish()
        add_edges(self._database, np.asarray(self._edges).reshape(-1, 4))
        write(_PROCESS, self._processes.values())
        write("INSERT OR IGNORE INTO input VALUES (?, ?, ?)", self._inputs)
        write(_ADD_UP, self._sums)
        write(_SEE, [each.values(dataset) for dataset, each in self._seen.items()])
        write("INSERT OR IGNORE INTO row_edge VALUES (?, ?, ?)", sorted(self._row_edges))
        write("INSERT INTO run VALUES (?, ?, ?)", self._runs)
        self._forget_old_runs({process for process, _, _ in self._runs})

    # --- processes ---

    def _new(self, shape: Shape, edges: Sequence[Edge], shape_hash: str, runs: list[Run]) -> int:
        inputs = [self._numbers.dataset(each) for each in shape.inputs]
        target = None if shape.target is None else self._numbers.dataset(shape.target)
        process, columns = self._next_process, _Columns(self._numbers, shape, inputs, target, runs)
        # All that a wrong line could refuse comes before anything is kept of it.
        numbered = array("i", _numbered(shape, edges, process, columns, runs))
        rows = [(process, columns.number(number, name), kinds) for number, name, kinds in shape.rows]
        self._processes[shape_hash] = _values(shape, shape_hash, process, target, runs)
        self._next_process += 1
        self._edges += numbered
        self._row_edges += rows
        self._inputs += [(process, number, dataset) for number, dataset in enumerate(inputs)]
        return process

    def _note(self, process: int, shape: Shape, run: Run, text: str) -> None:
        self._runs.append((process, run.ended, text))
        self._add_up(process, run, text)
        if not run.dry and run.failed < run.count:
            self._see(shape, run)

    def _add_up(self, process: int, run: Run, text: str) -> None:
        """Add a run to the sums of its process; the order in which runs come does not matter."""
        first_written = run.written if run.first_written is None else run.first_written
        self._sums.append({
            "process": process, "count": run.count, "failed": run.failed, "first": run.started,
            "last": run.ended, "first_written": first_written, "written": run.written, "rows": run.rows,
            "bytes": run.bytes, "run": text, "user": run.who.get("user", ""),
        })  # fmt: skip

    def _see(self, shape: Shape, run: Run) -> None:
        user = run.who.get("user", "")
        if shape.kind in _DROPS and shape.target is not None:
            key = (shape.target.namespace, shape.target.name, run.ended)
            self._database.execute(
                "INSERT INTO dropped VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
                key,
            )
            return
        if shape.kind == "DROP_DATABASE" and shape.target is not None:
            key = (shape.target.namespace, f"{shape.target.name}.", run.ended)
            self._database.execute(
                "INSERT INTO dropped_database VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
                key,
            )
            return
        if shape.kind in _CHANGES:
            self._change(shape, run)
        seen = [(each, run.reads.get(number)) for number, each in enumerate(shape.inputs)]
        if shape.target is not None:
            seen.append((shape.target, run.written))
        for dataset, version in seen:
            sighting = Sighting(run.ended, user, version, dataset.name, run.ended)
            number = self._numbers.dataset(dataset)
            before = self._seen.get(number)
            self._seen[number] = sighting if before is None else before.and_later(sighting)

    def _change(self, shape: Shape, run: Run) -> None:
        """Note new names, the same process may have given them before, and columns that are gone."""
        if shape.target is None:
            return
        target = self._numbers.dataset(shape.target)
        ids = {name: uid for number, name, uid in shape.ids if number == TARGET}
        if shape.kind == "DROP_COLUMNS":
            for name in shape.columns:
                self._numbers.drop(target, name, ids.get(name, ""), run.ended)
        if shape.kind == "ADD_COLUMNS":
            for name, uid in ids.items():
                self._numbers.field(target, name, uid, run.ended)
        for name, _, _, _ in shape.edges if shape.kind == "RENAME_COLUMN" else ():
            self._numbers.field(target, name, ids.get(name, ""), run.ended)
        if shape.kind == "RENAME_TABLE" and shape.inputs:
            old = shape.inputs[0]
            self._database.execute(
                "INSERT OR REPLACE INTO former VALUES (?, ?, ?, ?)",
                (old.namespace, old.name, target, run.ended),
            )

    def _forget_old_runs(self, processes: set[int]) -> None:
        self._database.executemany(
            "DELETE FROM run WHERE process = ? AND rowid NOT IN "
            "(SELECT rowid FROM run WHERE process = ? ORDER BY ended DESC LIMIT ?)",
            [
                (process, process, KEPT_RUNS)
                for process in sorted(processes)
                if self._count(process) > KEPT_RUNS
            ],
        )

    def _count(self, process: int) -> int:
        found = self._database.execute("SELECT count(*) FROM run WHERE process = ?", (process,)).fetchone()
        return int(found[0])


class Sighting(NamedTuple):
    """What runs say of a dataset: when it was there first, who made it, its version, and its last name."""

    created: int
    creator: str
    version: int | None
    name: str
    seen: int

    def and_later(self, other: Sighting) -> Sighting:
        """Return what both say; `other` was merged later, whenever it ran."""
        first = other if other.created < self.created else self
        last = other if other.seen >= self.seen else self
        versions = [each.version for each in (self, other) if each.version is not None]
        return Sighting(first.created, first.creator, max(versions, default=None), last.name, last.seen)

    def values(self, dataset: int) -> dict[str, Any]:
        """Return the parameters of the statement that notes it."""
        return {**self._asdict(), "id": dataset}


class _Columns:
    """Numbers of the columns that one shape names; `at` is when."""

    def __init__(
        self,
        numbers: Numbering,
        shape: Shape,
        inputs: Sequence[int],
        target: int | None,
        runs: Iterable[Run],
    ) -> None:
        self._numbers, self._inputs, self._target = numbers, inputs, target
        self._at = max(run.ended for run in runs)
        self._ids: dict[int, dict[str, str]] = {}
        for number, name, uid in shape.ids:
            self._ids.setdefault(number, {})[name] = uid

    def number(self, dataset: int, name: str) -> int:
        """Return the number of one column."""
        return self._of(dataset, {name: None}, self._at)[name]

    def ends(
        self, edges: Iterable[Edge], *, is_former: bool
    ) -> tuple[Mapping[str, int], Mapping[int, Mapping[str, int]]]:
        """Return the numbers of the columns at the targets of edges, and at the sources, by input."""
        targets: dict[str, None] = {}
        sources: dict[int, dict[str, None]] = {}
        for name, number, source, _ in edges:
            targets[name] = None
            if number in sources:
                sources[number][source] = None
            else:
                sources[number] = {source: None}
        at = 0 if is_former else self._at
        near = self._of(TARGET, targets, self._at)
        return near, {number: self._of(number, names, at) for number, names in sources.items()}

    def _of(self, dataset: int, names: Iterable[str], at: int) -> dict[str, int]:
        number = self._target if dataset == TARGET else self._inputs[dataset]
        assert number is not None
        return self._numbers.fields(number, names, self._ids.get(dataset, {}), at)


def _numbered(
    shape: Shape, edges: Sequence[Edge], process: int, columns: _Columns, runs: Iterable[Run]
) -> list[int]:
    """Return the edges of a new process, four numbers each."""
    is_change = shape.kind in _CHANGES
    if shape.target is None or (is_change and all(run.failed >= run.count for run in runs)):
        return []
    for name in () if is_change else shape.columns:
        columns.number(TARGET, name)
    # A statement that sums up its edges by dataset only is known by its whole inputs.
    if shape.cut and not edges:
        edges = [(WHOLE, number, WHOLE, int(EdgeKind.OPAQUE)) for number in range(len(shape.inputs))]
    near, far = columns.ends(edges, is_former=is_change)
    ends = [(near[name], far[number][source], kinds) for name, number, source, kinds in edges]
    if is_change:  # what is renamed is still the same, and no source of itself
        ends = [each for each in ends if each[0] != each[1]]
    return [each for target, source, kinds in ends for each in (target, source, process, kinds)]


def _values(
    shape: Shape, shape_hash: str, process: int, target: int | None, runs: Iterable[Run]
) -> tuple[Any, ...]:
    first = min(runs, key=lambda run: run.started)
    return (
        *(process, shape_hash, shape.kind, shape.name, target, json.dumps(shape.views)),
        *(json.dumps(shape.opaque), shape.cut, first.started, first.who.get("user", "")),
    )


_PROCESS = """
INSERT INTO process(id, hash, kind, name, target, views, opaque, cut, created, creator, count, failed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
"""
_ADD_UP = """
UPDATE process SET
  count = count + :count, failed = failed + :failed,
  creator = CASE WHEN first IS NULL OR :first < first THEN :user ELSE creator END,
  created = min(coalesce(created, :first), :first),
  first = min(coalesce(first, :first), :first),
  run = CASE WHEN last IS NULL OR :last >= last THEN :run ELSE run END,
  last = max(coalesce(last, :last), :last),
  first_written = min(coalesce(first_written, :first_written), coalesce(:first_written, first_written)),
  written = max(coalesce(written, :written), coalesce(:written, written)),
  rows = CASE WHEN :rows IS NULL THEN rows ELSE coalesce(rows, 0) + :rows END,
  bytes = CASE WHEN :bytes IS NULL THEN bytes ELSE coalesce(bytes, 0) + :bytes END
WHERE id = :process
"""
_SEE = """
UPDATE dataset SET
  creator = CASE WHEN created IS NULL OR :created < created THEN :creator ELSE creator END,
  created = min(coalesce(created, :created), :created),
  version = max(coalesce(version, :version), coalesce(:version, version)),
  name = CASE WHEN :seen >= coalesce(seen, :seen) THEN :name ELSE name END,
  seen = max(coalesce(seen, :seen), :seen)
WHERE id = :id
"""
