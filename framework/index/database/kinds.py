"""Kinds of the index database that Lockgate brings: whole values, by their hashes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.framework.plugins import AskedKeys
from lockgate.framework.store.schema.file_indexes import value_kind_of
from lockgate.framework.types import DataType, to_arrow
from lockgate.pushdown import Comparison, Op
from lockgate.pushdown.index import ValueKind, hashes_of, keys_equal_to, keys_of_list
from lockgate.pushdown.index.value_kinds import Key, Keys

VALUES = "values"
# Of 64 bits of a hash the upper 40: of 10 million values, one in 100,000 absent ones seems to be there.
_CUT = np.uint64(24)
_EQUAL = (Op.EQ, Op.EQ_NULL_SAFE, Op.IN)


def hashed(kind: ValueKind, keys: Keys) -> npt.NDArray[np.uint64]:
    """Return keys of 40 bits."""
    return hashes_of(kind, keys).view(np.uint64) >> _CUT


class Values:
    """Whole values: `=`, `<=>` and IN, lists of thousands too."""

    def accepts(self, data_type: DataType) -> bool:
        """Say whether values of a type can be told apart by bytes or numbers that all writers agree on."""
        return value_kind_of(data_type) is not None

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return a hash of each value."""
        kind = _kind(data_type)
        return hashed(kind, kind.keys(values))

    def asked(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the hashes of the literals."""
        if comparison.op not in _EQUAL:
            return None
        kind = _kind(data_type)
        keys = keys_equal_to(comparison, kind, to_arrow(data_type))
        return None if keys is None else AskedKeys(_sorted(kind, keys))


def _sorted(kind: ValueKind, keys: Iterable[Key]) -> npt.NDArray[np.uint64]:
    return np.unique(hashed(kind, keys_of_list(kind, [*keys])))


def _kind(data_type: DataType) -> ValueKind:
    kind = value_kind_of(data_type)
    assert kind is not None, "types are checked before"
    return kind
