"""Kind of the index database for words of texts, for `match`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.index.database.segment_kinds import hashed
from lockgate.framework.plugins import AskedKeys
from lockgate.framework.types import DataType, Kind
from lockgate.pushdown import Comparison, Op, words, words_of
from lockgate.pushdown.index import ValueKind

WORDS = "words"
# Digits of hashes, numbers and addresses: nearly each comes once, and all words together take less.
_LEFT_OUT = r"\A(?:[0-9]+|[0-9a-f]{8,})\z"


class Words:
    """Words in lower case, but for numbers and hexadecimal ones of eight digits or more."""

    def accepts(self, data_type: DataType) -> bool:
        """Say whether values are texts without padding."""
        return data_type.kind is Kind.VARCHAR

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return a hash of each word of each value."""
        return _hashes(words(values.cast(pa.string())))

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the hashes of the words that are indexed; None if there is none."""
        if comparison.op is not Op.MATCH or not comparison.literals[0].is_valid:
            return None
        found = np.unique(_hashes(pa.array(words_of(comparison.literals[0].as_py()), pa.string())))
        return AskedKeys(found, every=True) if len(found) else None


def _hashes(found: pa.Array) -> npt.NDArray[np.uint64]:
    distinct = pc.unique(found)
    indexed = distinct.filter(pc.invert(pc.match_substring_regex(distinct, _LEFT_OUT)))
    return hashed(ValueKind.TEXT, indexed.cast(pa.binary()))
