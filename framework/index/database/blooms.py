"""Kind of the index database for columns of few values: Bloom filters, whose bits are its keys."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.framework.plugins import AskedKeys
from lockgate.framework.store import value_kind_of
from lockgate.framework.types import DataType, to_arrow
from lockgate.pushdown import Comparison, Op
from lockgate.pushdown.index import Keys, ValueKind, distinct, hashes_of, keys_equal_to, keys_of_list

BLOOM = "bloom"
# Of 400 values in a block, one in 140 absent ones seems to be there, of 250 one in 1,600.
BITS = 4096
PROBES = 7
# Each value of a longer list would seem to be in some block.
_MOST_VALUES = 32
_EQUAL = (Op.EQ, Op.EQ_NULL_SAFE, Op.IN)
_LOW = np.uint64(2**32 - 1)


class Blooms:
    """Whole values by seven bits of 4,096 a block: for `=` and short lists on columns of few values."""

    keys_a_value = PROBES

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values of a type can be told apart by bytes or numbers that all writers agree on."""
        return value_kind_of(data_type) is not None

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return the bits of all values."""
        kind = _kind(data_type)
        return distinct(_bits(kind, kind.keys(values)).ravel())

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the bits of each literal; None for long lists."""
        if comparison.op not in _EQUAL or len(comparison.literals) > _MOST_VALUES:
            return None
        kind = _kind(data_type)
        keys = keys_equal_to(comparison, kind, to_arrow(data_type))
        if keys is None:
            return None
        # The bits of a value may be fewer: two probes may hit one bit.
        values = [distinct(bits) for bits in _bits(kind, keys_of_list(kind, keys))]
        if not values:
            return AskedKeys(np.zeros(0, np.uint64))
        first, *others = (AskedKeys(bits, every=True) for bits in values)
        return AskedKeys(first.keys, every=True, others=tuple(others))


def _bits(kind: ValueKind, keys: Keys) -> npt.NDArray[np.uint64]:
    """Return the bits of keys, a row for each. Source: Kirsch and Mitzenmacher, Less Hashing (2006)."""
    hashes = hashes_of(kind, keys).view(np.uint64)
    first, step = hashes & _LOW, hashes >> np.uint64(32) | np.uint64(1)
    probes = np.arange(PROBES, dtype=np.uint64)
    found: npt.NDArray[np.uint64] = (first[:, None] + probes * step[:, None]) % np.uint64(BITS)
    return found


def _kind(data_type: DataType) -> ValueKind:
    kind = value_kind_of(data_type)
    assert kind is not None, "types are checked before"
    return kind
