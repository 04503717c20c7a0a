"""Compaction of segments: those of one day become one, with one line for each shape."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lockgate.errors import CorruptFileError, LineageError
from lockgate.framework.io import join
from lockgate.framework.lineage.model.lineage_records import Run, folded, run_from_json
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_merge import KEPT_RUNS

_LOCK = "compacting"
_STALE_SECONDS = 3600.0
_DAY_MILLIS = 86_400_000


@dataclass(frozen=True)
class Compacted:
    """Counts of what a compaction did, or would do: days, segments before and after, shapes and runs kept."""

    days: int = 0
    segments_before: int = 0
    segments_after: int = 0
    processes: int = 0
    runs: int = 0
    damaged: int = 0


def compact(segments: Segments, *, retain_days: int, dry_run: bool = False) -> Compacted:
    """Make one segment of each day's; runs older than `retain_days` keep their sums, not their details.

    A damaged segment stays as it is. Raises LineageError if somebody else is compacting just now.
    """
    total = Compacted()
    oldest = int(time.time() * 1000) - retain_days * _DAY_MILLIS
    for day in segments.days():
        if dry_run:
            total = _sum(total, _Day(segments, day, oldest).counts())
            continue
        with _locked(segments, day):
            total = _sum(total, _Day(segments, day, oldest).compact())
    return total


class _Day:
    """The segments of one day, read."""

    def __init__(self, segments: Segments, day: str, oldest: int) -> None:
        self._segments, self._day, self._oldest = segments, day, oldest
        self._listed = segments.names(day)
        self._damaged = 0
        self._is_thinner = False
        self._lines: dict[str, dict[str, Any]] = {}
        self._good: list[str] = []
        self._replaced: list[str] = []
        self._read()

    def _read(self) -> None:
        found = {}
        for name in self._listed:
            try:
                found[name] = self._segments.read(name)
            except CorruptFileError:
                self._damaged += 1
        self._replaced = sorted({name for segment in found.values() for name in segment.replaces})
        for name, segment in found.items():
            self._good.append(name)
            if name not in self._replaced:
                for line in segment.lines:
                    self._add(line)
        for line in self._lines.values():
            thinned = _thinned(line["runs"], self._oldest)
            self._is_thinner |= len(thinned) < len(line["runs"])
            line["runs"] = [run.to_json() for run in thinned]

    def _add(self, line: Mapping[str, Any]) -> None:
        merged = self._lines.setdefault(
            line["hash"], {"hash": line["hash"], "shape": line["shape"], "runs": []}
        )
        merged["runs"].extend(map(run_from_json, line["runs"]))

    @property
    def _is_compact(self) -> bool:
        return len(self._good) < 2 and not self._is_thinner

    def counts(self) -> Compacted:
        if self._is_compact:
            return Compacted(segments_before=len(self._listed), segments_after=len(self._listed))
        runs = sum(len(line["runs"]) for line in self._lines.values())
        return Compacted(1, len(self._listed), 1 + self._damaged, len(self._lines), runs, self._damaged)

    def compact(self) -> Compacted:
        done = self.counts()
        if self._is_compact:
            return done
        replaces = sorted({*self._good, *self._replaced})
        self._segments.write(self._lines.values(), "lineage", day=self._day, replaces=replaces)
        for name in self._good:
            self._segments.delete(name)
        return done


def _thinned(runs: Iterable[Run], oldest: int) -> list[Run]:
    """Return the newest runs with details, and one run for all others."""
    order = sorted(runs, key=lambda run: run.ended)
    kept = [run for run in order[-KEPT_RUNS:] if run.ended >= oldest]
    rest = order[: len(order) - len(kept)]
    if not rest:
        return kept
    whole = rest[0]
    for run in rest[1:]:
        whole = folded(whole, run)
    return [whole, *kept]


def _sum(one: Compacted, other: Compacted) -> Compacted:
    return Compacted(*(getattr(one, name) + getattr(other, name) for name in Compacted.__dataclass_fields__))


@contextmanager
def _locked(segments: Segments, day: str) -> Iterator[None]:
    """Let one process at a time compact a day; the lock of one that was killed is taken after an hour."""
    path = join(segments.folder, day, _LOCK)
    who = json.dumps({"host": socket.gethostname(), "process": os.getpid(), "at": time.time()})
    try:
        segments.file_system.write_new(path, who.encode())
    except FileExistsError:
        _take_over(segments, path, who)
    try:
        yield
    finally:
        segments.file_system.delete(path)


def _take_over(segments: Segments, path: str, who: str) -> None:
    try:
        holder = json.loads(segments.file_system.read_bytes(path))
    except (FileNotFoundError, ValueError):
        holder = {}
    if time.time() - float(holder.get("at", time.time())) < _STALE_SECONDS:
        raise LineageError(
            f"the lineage is being compacted by process {holder.get('process')} on {holder.get('host')}: "
            f"wait, or delete {path} if that was killed"
        )
    segments.file_system.delete(path)
    segments.file_system.write_new(path, who.encode())
