"""Unions of sets that rows hold in a library's layout: Roaring bitmaps, and sketches that estimate counts.

Sketches are those of Apache DataSketches, whose layout all its languages share. Source: Paimon's
`FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldHllSketchAgg` and `FieldThetaSketchAgg`.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from types import ModuleType
from typing import Any, ClassVar

from pyroaring import BitMap

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.store.codec.roaring64 import Roaring64
from lockgate.framework.store.merge.merge_values import Value

# The first byte of a theta sketch counts the words of its preamble; from the second on they have the share of
# values that it takes.
_PREAMBLE, _EMPTY, _SINGLE = 0x3F, 8, 0x20
_SAMPLED_ALL = struct.pack("<f", 1.0)


class Union(Value):
    """The union of two sets; `what` names their kind in messages."""

    what: ClassVar[str]

    def joined(self, older: Any, newer: Any) -> Any:
        """Put two sets together; InputError for bytes that are none."""
        if older is None or newer is None:
            return newer if older is None else older
        return self.union(self._read(older), self._read(newer))

    def _read(self, data: bytes) -> Any:
        try:
            return self.parsed(data)
        except UnsupportedError:
            raise
        except (ValueError, IndexError, RuntimeError):  # what the libraries raise, some of no bytes at all
            raise InputError(
                f"column {self._plan.name!r}: a value of {len(data)} bytes is not {self.what}, which merge "
                f"function {self._plan.function!r} needs"
            ) from None

    @abstractmethod
    def parsed(self, data: bytes) -> Any:
        """Return the set that bytes hold."""

    @abstractmethod
    def union(self, older: Any, newer: Any) -> bytes:
        """Return the bytes of a union."""


class Bitmaps(Union):
    """`rbm32`: Roaring bitmaps of 32 bits, in the format that all their libraries share."""

    what = "a Roaring bitmap"

    def parsed(self, data: bytes) -> Any:
        """Return a bitmap."""
        return BitMap.deserialize(data)

    def union(self, older: Any, newer: Any) -> bytes:
        """Return the numbers of both."""
        found = older | newer
        found.run_optimize()
        serialized: bytes = found.serialize()
        return serialized


class LongBitmaps(Union):
    """`rbm64`: Roaring bitmaps of 64 bits, in the layout of Java's `Roaring64Bitmap`."""

    what = "a Roaring bitmap of 64 bits"

    def parsed(self, data: bytes) -> Any:
        """Return a bitmap."""
        return Roaring64.deserialize(data)

    def union(self, older: Any, newer: Any) -> bytes:
        """Return the numbers of both."""
        found: Roaring64 = older | newer
        return found.serialize()


class HllSketches(Union):
    """`hll_sketch`: sketches of the HyperLogLog family, as precise as the newer one, in 4 bits a register."""

    what = "an HLL sketch"

    def parsed(self, data: bytes) -> Any:
        """Return a sketch."""
        return _datasketches().hll_sketch.deserialize(data)

    def union(self, older: Any, newer: Any) -> bytes:
        """Return the sketch of both."""
        library = _datasketches()
        found = library.hll_union(newer.lg_config_k)
        found.update(newer)
        found.update(older)
        serialized: bytes = found.get_result(library.tgt_hll_type.HLL_4).serialize_compact()
        return serialized


class ThetaSketches(Union):
    """`theta_sketch`: theta sketches, whose union is a compact one with up to 4096 entries."""

    what = "a theta sketch"

    def parsed(self, data: bytes) -> Any:
        """Return a sketch."""
        return _datasketches().compact_theta_sketch.deserialize(data)

    def union(self, older: Any, newer: Any) -> bytes:
        """Return the sketch of both."""
        found = _datasketches().theta_union()
        found.update(older)
        found.update(newer)
        serialized = bytearray(found.get_result().serialize())
        # As Java writes it: that no value was passed over by chance, or that there is one alone.
        if serialized[0] & _PREAMBLE >= 2:
            serialized[12:16] = _SAMPLED_ALL
        elif len(serialized) > _EMPTY:
            serialized[5] |= _SINGLE
        return bytes(serialized)


def _datasketches() -> ModuleType:
    try:
        import datasketches
    except ImportError:
        raise UnsupportedError(
            "sketches are merged by datasketches, which is not installed; run: "
            "pip install 'lockgate[sketches]'"
        ) from None
    module: ModuleType = datasketches
    return module
