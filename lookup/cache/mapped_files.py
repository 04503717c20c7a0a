"""A cache in mapped files: a large sorted layer and a few small ones above it that hold what changed since.

A lookup asks the layers from the newest to the oldest, all keys of a batch at once. A step forward writes one
new layer of the changed keys only. Layers that have grown alike are merged, small ones at once, large ones by
a thread concurrent with the next steps; so a change costs the same whatever the size of the table.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from lockgate.errors import LookupCacheError
from lockgate.lookup.cache.backends import LAYERS_FILE, FoundRows, Piece, Storage
from lockgate.lookup.cache.budget import DiskBudget
from lockgate.lookup.cache.layers import PARTS, Layer, LayerWriter, hashes_of, merged
from lockgate.lookup.cache.prefetch import read_ahead
from lockgate.lookup.codec.byte_rows import Bools, Rows

_log = logging.getLogger("lockgate.lookup")

# A layer is merged with the one above it unless it is so many times larger; the last one when what lies above
# it is a quarter of it.
_GROWTH = 3
_SMALL_ROWS = 1 << 16
_BASE_GROWTH = 4
# Merges of more keys than this are made while the next steps run.
_INLINE_ROWS = 1 << 19


def _find(layers: Sequence[Layer], keys: Rows) -> list[FoundRows]:
    found: list[FoundRows] = []
    if len(keys) == 0:
        return found
    hashes = hashes_of(keys)
    open_: Bools = np.ones(len(keys), bool)
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        at = layer.find(keys, hashes)
        asked = np.flatnonzero(open_ & (at >= 0))
        if len(asked) == 0:
            continue
        open_[asked] = False
        values = layer.values(at[asked])
        if number or not values.lengths.all():
            there = np.flatnonzero(values.lengths)
            asked = asked[there]
            values = layer.values(at[asked])
        if len(asked):
            found.append(FoundRows(asked, values))
    return found


def _read_layers(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((path / LAYERS_FILE).read_text())
        _ = content["layers"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LookupCacheError(f"cannot open the lookup cache {path}: {error}") from None
    return content


def _open_layers(path: Path, content: Mapping[str, Any]) -> list[Layer]:
    sizes = content.get("bytes", {})  # the same check in Java: `MappedState`
    try:
        layers = [Layer(path, name) for name in content["layers"]]
        for layer in layers:
            if sizes.get(layer.name, layer.nbytes) != layer.nbytes:
                raise ValueError(f"a file of layer {layer.name} was cut")
        return layers
    except (OSError, ValueError) as error:
        raise LookupCacheError(f"cannot open the lookup cache {path}: {error}") from None


class MemoryReader:
    """The layers of one state, mapped for reading."""

    def __init__(self, path: Path) -> None:
        self._layers = _open_layers(path, _read_layers(path))

    def find(self, keys: Rows) -> list[FoundRows]:
        """Find the values of keys, which are sorted by their bytes and distinct."""
        return _find(self._layers, keys)

    def close(self) -> None:
        """Let go of the files."""
        self._layers = []


class MemorySink:
    """Takes in a load as one layer."""

    in_order = True

    def __init__(self, folder: Path, name: str) -> None:
        self._writer = LayerWriter(folder, name)

    def write(self, name: str, pieces: Iterable[Piece]) -> None:
        """Append pieces; all calls together must be ascending."""
        for keys, values in pieces:
            self._writer.put(keys, values)

    def finish(self) -> list[Path]:
        """Complete the layer."""
        return [self._writer.finish()]

    def close(self) -> None:
        """Release the files."""
        self._writer.close()


class MemoryStore:
    """The layers that are brought forward from snapshot to snapshot, by the one owner of a cache."""

    storage = Storage.MEMORY

    def __init__(self, path: Path, budget: DiskBudget) -> None:
        self.path = path
        self._budget = budget
        self._meta: dict[str, Any] | None = None
        self._layers: list[Layer] = []
        self._next = 0
        self._merge: Merge | None = None
        if (path / LAYERS_FILE).exists():
            content = _read_layers(path)
            self._meta, self._next = content["meta"], content["next"]
            self._layers = _open_layers(path, content)
        self._sweep()
        read_ahead(path for path in self.path.iterdir() if path.name != LAYERS_FILE)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Read the values of `keys`, None where there is none."""
        values: list[bytes | None] = [None] * len(keys)
        for found in _find(self._layers, Rows.from_values(list(keys))):
            for at, value in zip(found.at.tolist(), found.rows.gather().to_bytes(), strict=True):
                values[at] = value
        return values

    def meta(self) -> dict[str, Any] | None:
        """Return the record of the last step; None before the first."""
        return None if self._meta is None else dict(self._meta)

    def size(self) -> int:
        """Return the bytes of all layers."""
        return sum(layer.nbytes for layer in self._layers)

    def sink(self) -> MemorySink:
        """Begin to load sorted keys and values."""
        return MemorySink(self.path, self._name())

    def step_files(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> list[Path]:
        """Write the changes of a step as a layer; None deletes."""
        with closing(LayerWriter(self.path, self._name())) as writer:
            writer.put(Rows.from_values(list(keys)), Rows.from_values([value or b"" for value in values]))
            return [writer.finish()]

    def ingest(self, files: Iterable[Path], meta: dict[str, Any]) -> None:
        """Put layers above those there are and record `meta`, all or nothing."""
        fresh = _open_layers(self.path, {"layers": [path.name for path in files]})
        layers = [*self._merged(), *(layer for layer in fresh if len(layer))]
        self._commit(self._tidied(layers), meta)

    def checkpoint(self, path: Path) -> None:
        """Make a copy of the layers at `path` by hard links."""
        path.mkdir()
        for layer in self._layers:
            for part in PARTS:
                with contextlib.suppress(FileNotFoundError):  # keys of equal lengths have no ends
                    (path / f"{layer.name}.{part}").hardlink_to(self.path / f"{layer.name}.{part}")
        (path / LAYERS_FILE).write_text(self._content(self._layers, self._meta))

    def close(self) -> None:
        """Release the files."""
        self._stop_merge()
        self._layers = []

    # --- layers ----------------------------------------------------------------------------------

    def _name(self) -> str:
        self._next += 1
        return str(self._next)

    def _content(self, layers: Sequence[Layer], meta: dict[str, Any] | None) -> str:
        names = [layer.name for layer in layers]
        sizes = {layer.name: layer.nbytes for layer in layers}
        return json.dumps({"layers": names, "bytes": sizes, "next": self._next, "meta": meta})

    def _commit(self, layers: list[Layer], meta: dict[str, Any]) -> None:
        temporary = self.path / f".{LAYERS_FILE}"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(self._content(layers, meta))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path / LAYERS_FILE)
        self._layers, self._meta = layers, dict(meta)
        self._sweep()

    def _sweep(self) -> None:
        # Leftovers of a crash, and merged layers: states that need them have links of their own.
        kept = {layer.name for layer in self._layers}
        if self._merge is not None:
            kept |= {self._merge.name, *(layer.name for layer in self._merge.layers)}
        for path in self.path.iterdir():
            name, _, part = path.name.partition(".")
            if part in PARTS and name not in kept:
                path.unlink()

    def _tidied(self, layers: list[Layer]) -> list[Layer]:
        try:
            while (first := self._due(layers)) is not None:
                chosen = layers[first:]
                if sum(map(len, chosen)) > _INLINE_ROWS:
                    if self._merge is None:
                        self._merge = Merge(self.path, self._name(), chosen, self._budget, bottom=first == 0)
                    break
                merge = Merge(self.path, self._name(), chosen, self._budget, bottom=first == 0)
                layers = [*layers[:first], *merge.result()]
        except (LookupCacheError, OSError) as error:
            # No disk space for it: the layers stay good, if slower, and a later step tries again.
            _log.warning("layers of the lookup cache %s could not be merged: %s", self.path, error)
        return layers

    def _due(self, layers: Sequence[Layer]) -> int | None:
        # The first of the layers to merge; None: no merge is needed. Layers in a running merge are left
        # alone.
        busy = self._merge
        start = 0 if busy is None else layers.index(busy.layers[0]) + len(busy.layers)
        sizes = [len(layer) for layer in layers]
        if start == 0 and len(sizes) > 1 and sum(sizes[1:]) * _BASE_GROWTH > sizes[0]:
            return 0
        for first in range(max(start, 1), len(sizes) - 1):
            if sizes[first] <= max(_GROWTH * sum(sizes[first + 1 :]), _SMALL_ROWS):
                return first
        return None

    def _merged(self) -> list[Layer]:
        # The layers as they are once a merge that ran along with the steps has ended.
        merge = self._merge
        if merge is None or not merge.done:
            return self._layers
        self._merge = None
        first = self._layers.index(merge.layers[0])
        rest = self._layers[first + len(merge.layers) :]
        try:
            return [*self._layers[:first], *merge.result(), *rest]
        except (LookupCacheError, OSError) as error:
            _log.warning("layers of the lookup cache %s could not be merged: %s", self.path, error)
            return self._layers

    def _stop_merge(self) -> None:
        if self._merge is not None:
            self._merge.stop()
            self._merge = None


class Merge:
    """A merge of layers, by a thread of its own."""

    def __init__(
        self, folder: Path, name: str, layers: Sequence[Layer], budget: DiskBudget, *, bottom: bool
    ) -> None:
        self.name = name
        self.layers = list(layers)
        self._folder = folder
        self._budget = budget
        self._bottom = bottom
        self._error: Exception | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lockgate-merge", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Say whether it has ended, well or not."""
        return not self._thread.is_alive()

    def result(self) -> list[Layer]:
        """Wait for the layer that takes the place of the others; none if nothing is left of them.

        Raises what the merge failed with: LookupCacheError for want of disk, OSError.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        layer = Layer(self._folder, self.name)
        return [layer] if len(layer) else []

    def stop(self) -> None:
        """Give up."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._budget.writing(sum(layer.nbytes for layer in self.layers)):
                self._write()
        except Exception as error:  # any error: it is raised where the result is needed
            self._error = error

    def _write(self) -> None:
        with closing(LayerWriter(self._folder, self.name)) as writer:
            for keys, values in merged(self.layers, bottom=self._bottom):
                if self._stopped.is_set():
                    return
                writer.put(keys, values)
            writer.finish()
