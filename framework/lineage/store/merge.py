"""Merging of segments into the index: many shapes at a time, sorted, each shape once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockgate.framework.lineage.model.records import (
    TARGET,
    WHOLE,
    Run,
    Shape,
    run_from_json,
    shape_from_json,
)
from lockgate.framework.lineage.store.numbering import Numbering

# Details of so many runs are kept for each process; of the older ones the sums stay.
KEPT_RUNS = 100
_DROPS = ("DROP_TABLE",)
# They give names, and no values.
_CHANGES = ("RENAME_TABLE", "RENAME_COLUMN", "DROP_COLUMNS")


class Merger:
    """Merges lines of segments inside one transaction; numbers of vertices are kept for its time only."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._numbers = Numbering(database)
        self._edges: list[tuple[int, int, int, int]] = []
        self._row_edges: list[tuple[int, int, int]] = []
        self._runs: list[tuple[int, int, str]] = []

    def add(self, line: Mapping[str, Any]) -> None:
        """Merge one line; raises CorruptFileError if it is no record."""
        runs = [run_from_json(each) for each in line["runs"]]
        row = self._database.execute("SELECT id FROM process WHERE hash = ?", (line["hash"],)).fetchone()
        shape = shape_from_json(line["shape"])
        process = self._new(shape, str(line["hash"]), runs) if row is None else int(row[0])
        self._note(process, shape, runs, is_new=row is None)

    def finish(self) -> None:
        """Write what is sorted first: edges go in six times faster in the order of the index."""
        write = self._database.executemany
        self._numbers.finish()
        write("INSERT OR IGNORE INTO back VALUES (?, ?, ?, ?)", sorted(self._edges))
        turned = sorted((source, target, process, kinds) for target, source, process, kinds in self._edges)
        write("INSERT OR IGNORE INTO forth VALUES (?, ?, ?, ?)", turned)
        write("INSERT OR IGNORE INTO row_edge VALUES (?, ?, ?)", sorted(self._row_edges))
        write("INSERT INTO run VALUES (?, ?, ?)", self._runs)
        self._forget_old_runs({process for process, _, _ in self._runs})

    # --- processes ---

    def _new(self, shape: Shape, shape_hash: str, runs: list[Run]) -> int:
        inputs = [self._numbers.dataset(each) for each in shape.inputs]
        target = None if shape.target is None else self._numbers.dataset(shape.target)
        process = self._insert(shape, shape_hash, target, runs)
        self._database.executemany(
            "INSERT OR IGNORE INTO input VALUES (?, ?, ?)",
            [(process, number, dataset) for number, dataset in enumerate(inputs)],
        )
        columns = _Columns(self._numbers, shape, inputs, target, max(run.ended for run in runs))
        if target is not None:
            for name in () if shape.kind in _CHANGES else shape.columns:
                columns.number(TARGET, name)
            if shape.kind not in _CHANGES or any(run.failed < run.count for run in runs):
                self._add_edges(shape, process, columns)
        for number, name, kinds in shape.rows:
            self._row_edges.append((process, columns.number(number, name), kinds))
        return process

    def _add_edges(self, shape: Shape, process: int, columns: _Columns) -> None:
        # A statement that sums up its edges by dataset only is known by its whole inputs.
        edges = shape.edges or (
            [(WHOLE, number, WHOLE, 4096) for number in range(len(shape.inputs))] if shape.cut else ()
        )
        for name, number, source, kinds in edges:
            near = columns.number(TARGET, name)
            far = columns.number(number, source, is_former=shape.kind in _CHANGES)
            # What is renamed is still the same, and no source of itself.
            if shape.kind not in _CHANGES or near != far:
                self._edges.append((near, far, process, kinds))

    def _insert(self, shape: Shape, shape_hash: str, target: int | None, runs: list[Run]) -> int:
        first = min(runs, key=lambda run: run.started)
        made = self._database.execute(
            "INSERT INTO process"
            "(hash, kind, name, target, views, opaque, cut, created, creator, count, failed) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)",
            (
                *(shape_hash, shape.kind, shape.name, target, json.dumps(shape.views)),
                *(json.dumps(shape.opaque), shape.cut, first.started, first.who.get("user", "")),
            ),
        ).lastrowid
        assert made is not None
        return made

    def _note(self, process: int, shape: Shape, runs: Iterable[Run], *, is_new: bool) -> None:
        for run in runs:
            text = json.dumps(run.to_json(), separators=(",", ":"))
            self._runs.append((process, run.ended, text))
            self._add_up(process, run, text)
            if not run.dry and run.failed < run.count:
                self._see(shape, run)

    def _add_up(self, process: int, run: Run, text: str) -> None:
        """Add a run to the sums of its process; the order in which runs come does not matter."""
        first_written = run.written if run.first_written is None else run.first_written
        self._database.execute(_ADD_UP, {
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
        if shape.kind in _CHANGES:
            self._change(shape, run)
        seen = [(each, run.reads.get(number)) for number, each in enumerate(shape.inputs)]
        if shape.target is not None:
            seen.append((shape.target, run.written))
        for dataset, version in seen:
            self._database.execute(
                _SEE,
                {
                    "at": run.ended,
                    "user": user,
                    "version": version,
                    "name": dataset.name,
                    "id": self._numbers.dataset(dataset),
                },
            )

    def _change(self, shape: Shape, run: Run) -> None:
        """Note new names, the same process may have given them before, and columns that are gone."""
        if shape.target is None:
            return
        target = self._numbers.dataset(shape.target)
        ids = {name: uid for number, name, uid in shape.ids if number == TARGET}
        if shape.kind == "DROP_COLUMNS":
            for name in shape.columns:
                self._numbers.drop(target, name, ids.get(name, ""), run.ended)
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
            "DELETE FROM run WHERE process = ?1 AND rowid NOT IN "
            "(SELECT rowid FROM run WHERE process = ?1 ORDER BY ended DESC LIMIT ?2)",
            [(process, KEPT_RUNS) for process in sorted(processes) if self._count(process) > KEPT_RUNS],
        )

    def _count(self, process: int) -> int:
        found = self._database.execute("SELECT count(*) FROM run WHERE process = ?", (process,)).fetchone()
        return int(found[0])


class _Columns:
    """Numbers of the columns that one shape names; `at` is when."""

    def __init__(
        self, numbers: Numbering, shape: Shape, inputs: Sequence[int], target: int | None, at: int
    ) -> None:
        self._numbers, self._inputs, self._target, self._at = numbers, inputs, target, at
        self._ids = {(number, name): uid for number, name, uid in shape.ids}

    def number(self, dataset: int, name: str, *, is_former: bool = False) -> int:
        number = self._target if dataset == TARGET else self._inputs[dataset]
        assert number is not None
        uid = self._ids.get((dataset, name), "")
        return self._numbers.field(number, name, uid, 0 if is_former else self._at)


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
  creator = CASE WHEN created IS NULL OR :at < created THEN :user ELSE creator END,
  created = min(coalesce(created, :at), :at),
  version = max(coalesce(version, :version), coalesce(:version, version)),
  name = CASE WHEN :at >= coalesce(seen, :at) THEN :name ELSE name END,
  seen = max(coalesce(seen, :at), :at)
WHERE id = :id
"""
