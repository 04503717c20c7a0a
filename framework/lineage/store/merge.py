"""Merging of segments into the index: many shapes at a time, sorted, each shape once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from lockgate.framework.lineage.model.records import (
    WHOLE,
    Dataset,
    Run,
    Shape,
    run_from_json,
    shape_from_json,
)

# Details of so many runs are kept for each process; of the older ones the sums stay.
KEPT_RUNS = 100
_DROPS = ("DROP_TABLE",)


class Merger:
    """Merges lines of segments inside one transaction; numbers of vertices are kept for its time only."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._datasets: dict[Dataset, int] = {}
        self._fields: dict[int, dict[str, int]] = {}
        self._next_field = 1 + (database.execute("SELECT max(id) FROM field").fetchone()[0] or 0)
        self._new_fields: list[tuple[int, int, str]] = []
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
        write("INSERT INTO field(id, dataset, name) VALUES (?, ?, ?)", self._new_fields)
        write("INSERT OR IGNORE INTO back VALUES (?, ?, ?, ?)", sorted(self._edges))
        turned = sorted((source, target, process, kinds) for target, source, process, kinds in self._edges)
        write("INSERT OR IGNORE INTO forth VALUES (?, ?, ?, ?)", turned)
        write("INSERT OR IGNORE INTO row_edge VALUES (?, ?, ?)", sorted(self._row_edges))
        write("INSERT INTO run VALUES (?, ?, ?)", self._runs)
        self._forget_old_runs({process for process, _, _ in self._runs})

    # --- vertices ---

    def dataset(self, dataset: Dataset) -> int:
        """Return the number of a dataset, which is made if it is new."""
        number = self._datasets.get(dataset)
        if number is None:
            key = (dataset.namespace, dataset.name, dataset.id)
            found = self._database.execute(
                "SELECT id FROM dataset WHERE namespace = ? AND name = ? AND uid = ?", key
            ).fetchone()
            number = int(found[0]) if found else self._new_dataset(dataset)
            self._datasets[dataset] = number
        return number

    def _new_dataset(self, dataset: Dataset) -> int:
        made = self._database.execute(
            "INSERT INTO dataset(namespace, name, type, uid) VALUES (?, ?, ?, ?)",
            (dataset.namespace, dataset.name, dataset.type, dataset.id),
        ).lastrowid
        assert made is not None
        return made

    def field(self, dataset: int, name: str) -> int:
        """Return the number of a column of a dataset, which is made if it is new."""
        fields = self._fields.get(dataset)
        if fields is None:
            rows = self._database.execute("SELECT name, id FROM field WHERE dataset = ?", (dataset,))
            fields = self._fields[dataset] = dict(rows)
        number = fields.get(name)
        if number is None:
            number = fields[name] = self._next_field
            self._next_field += 1
            self._new_fields.append((number, dataset, name))
        return number

    # --- processes ---

    def _new(self, shape: Shape, shape_hash: str, runs: list[Run]) -> int:
        inputs = [self.dataset(each) for each in shape.inputs]
        target = None if shape.target is None else self.dataset(shape.target)
        process = self._insert(shape, shape_hash, target, runs)
        self._database.executemany(
            "INSERT OR IGNORE INTO input VALUES (?, ?, ?)",
            [(process, number, dataset) for number, dataset in enumerate(inputs)],
        )
        if target is not None:
            for name in shape.columns:
                self.field(target, name)
            self._add_edges(shape, process, target, inputs)
        for number, name, kinds in shape.rows:
            self._row_edges.append((process, self.field(inputs[number], name), kinds))
        return process

    def _add_edges(self, shape: Shape, process: int, target: int, inputs: list[int]) -> None:
        # A statement that sums up its edges by dataset only is known by its whole inputs.
        edges = shape.edges or (
            [(WHOLE, number, WHOLE, 4096) for number in range(len(inputs))] if shape.cut else ()
        )
        for name, number, source, kinds in edges:
            self._edges.append((self.field(target, name), self.field(inputs[number], source), process, kinds))

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
        seen = [(each, run.reads.get(number)) for number, each in enumerate(shape.inputs)]
        if shape.target is not None:
            seen.append((shape.target, run.written))
        for dataset, version in seen:
            self._database.execute(
                _SEE, {"at": run.ended, "user": user, "version": version, "id": self.dataset(dataset)}
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
  seen = max(coalesce(seen, :at), :at)
WHERE id = :id
"""
