"""Sorting more rows than memory holds: rows go to runs by their hash, each run becomes a sorted file.

Runs cover disjoint ranges of keys, so their files are taken in without any compaction.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lockgate.lookup.keycodec import distinct
from lockgate.lookup.lists import pack
from lockgate.lookup.rows import Int64s, Rows, UInt64s, offsets_of
from lockgate.lookup.sealing import SpillCipher
from lockgate.lookup.storage import SortedFile

ROWS_PER_RUN = 1 << 19
SPILL_BYTES = 256 << 20
_MOST_RUNS = 1 << 10
# Keys and values become Python objects in slices of this many rows.
_WRITE_ROWS = 1 << 16

Part = tuple[Rows, Rows]


def hashes_of(keys: Rows) -> UInt64s:
    """The hashes that encoded keys begin with."""
    return keys.words[keys.offsets[:-1]].byteswap()


@dataclass(frozen=True)
class RunHooks:
    """How runs are written.

    `before_write` is told the bytes about to be written, and may refuse by raising; `new_file` begins a
    sorted file; with `cipher`, what is put aside meanwhile is encrypted.
    """

    before_write: Callable[[int], None]
    new_file: Callable[[Path], SortedFile]
    cipher: SpillCipher | None = None


class Runs:
    """Collects encoded keys and rows in any order and writes them as sorted files of distinct keys.

    With `many`, the rows of one key become a list in the order of their arrival; else the last one wins.
    """

    def __init__(self, folder: Path, name: str, expected_rows: int, *, many: bool, hooks: RunHooks) -> None:
        self._folder = folder
        self._name = name
        self._many = many
        self._hooks = hooks
        wanted = max(1, -(-expected_rows // ROWS_PER_RUN))
        self._bits = min(wanted, _MOST_RUNS).bit_length() - 1 + (wanted & (wanted - 1) != 0)
        self._parts: list[list[Part]] = [[] for _ in range(1 << self._bits)]
        self._spills: dict[int, BinaryIO] = {}
        self._held = 0
        self.rows = 0

    def add(self, keys: Rows, rows: Rows) -> None:
        """Add encoded keys with their rows."""
        if len(keys) == 0:
            return
        if self._bits == 0:
            self._parts[0].append((keys, rows))
        else:
            self._scatter(keys, rows)
        self._held += keys.nbytes + rows.nbytes
        if self._held > SPILL_BYTES:
            self._spill()

    def _scatter(self, keys: Rows, rows: Rows) -> None:
        # The top bit is the key space, the same in all keys of these runs.
        shift = np.uint64(63 - self._bits)
        runs = hashes_of(keys) >> shift & np.uint64((1 << self._bits) - 1)
        order = np.argsort(runs, kind="stable")
        edges = np.searchsorted(runs[order], np.arange((1 << self._bits) + 1, dtype=np.uint64))
        for run in range(1 << self._bits):
            chosen: Int64s = order[edges[run] : edges[run + 1]]
            if len(chosen):
                self._parts[run].append((keys.take(chosen), rows.take(chosen)))

    def _spill(self) -> None:
        self._hooks.before_write(self._held)
        for run, parts in enumerate(self._parts):
            if not parts:
                continue
            if run not in self._spills:
                path = self._folder / f"{self._name}-{run}.spill"
                self._spills[run] = open(path, "w+b")  # noqa: SIM115 - closed by _collect
            for keys, rows in parts:
                for piece in (keys, rows):
                    self._save(self._spills[run], piece.words[piece.offsets[0] : piece.offsets[-1]])
                    self._save(self._spills[run], piece.lengths)
            parts.clear()
        self._held = 0

    def _save(self, file: BinaryIO, array: Any) -> None:
        if self._hooks.cipher is None:
            np.save(file, array)
            return
        plain = io.BytesIO()
        np.save(plain, array)
        sealed = self._hooks.cipher.seal(plain.getvalue())
        file.write(len(sealed).to_bytes(8, "little"))
        file.write(sealed)

    def _saved(self, file: BinaryIO) -> Any:
        if self._hooks.cipher is None:
            return np.load(file)
        length = int.from_bytes(file.read(8), "little")
        return np.load(io.BytesIO(self._hooks.cipher.open(file.read(length))))

    def _collect(self, run: int) -> Part:
        parts: list[Part] = []
        spill = self._spills.pop(run, None)
        if spill is not None:
            end = spill.tell()
            spill.seek(0)
            while spill.tell() < end:
                arrays = [self._saved(spill) for _ in range(4)]
                parts.append((Rows(arrays[0], offsets_of(arrays[1])), Rows(arrays[2], offsets_of(arrays[3]))))
            spill.close()
            (self._folder / f"{self._name}-{run}.spill").unlink()
        parts += self._parts[run]
        self._parts[run] = []
        return Rows.concatenate([keys for keys, _ in parts]), Rows.concatenate([rows for _, rows in parts])

    def finish(self) -> list[Path]:
        """Write the sorted files; `rows` counts what they hold."""
        files = []
        for run in range(1 << self._bits):
            keys, rows = self._collect(run)
            if len(keys):
                files.append(self._write(self._folder / f"{self._name}-{run}.sst", keys, rows))
        return files

    def close(self) -> None:
        """Release what a load that failed had put aside."""
        for spill in self._spills.values():
            spill.close()
        self._spills.clear()

    def _write(self, path: Path, keys: Rows, rows: Rows) -> Path:
        self._hooks.before_write(keys.nbytes + rows.nbytes)
        groups = distinct(keys, hashes_of(keys))
        firsts, lasts = groups.first, groups.last
        edges = np.append(groups.starts, len(groups.order))
        self.rows += len(keys) if self._many else len(groups)
        file = self._hooks.new_file(path)
        for start in range(0, len(groups), _WRITE_ROWS):
            end = min(start + _WRITE_ROWS, len(groups))
            if self._many:
                members = groups.order[edges[start] : edges[end]]
                values = pack(rows.take(members), np.diff(edges[start : end + 1]))
            else:
                values = rows.take(lasts[start:end])
            file.put(keys.take(firsts[start:end]).to_bytes(), values.to_bytes())
        return file.finish()
