"""Kind of the index database for words of texts and pieces of unspaced runs, for `match`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.index.database.segment_kinds import hashed
from lockgate.framework.plugins import AskedKeys
from lockgate.framework.types import DataType, Kind
from lockgate.pushdown import Comparison, Op, indexed_words, required_words
from lockgate.pushdown.index import ValueKind

WORDS = "words"
# Digits of hashes, numbers and addresses: nearly each comes once, and all words together take less.
_LEFT_OUT = r"\A(?:[0-9]+|[0-9a-f]{8,})\z"


class Words:
    """Words in lower case, but for numbers and hexadecimal ones of eight digits or more; pieces of runs."""

    # The first version took a run for a word, and what is written next to it for a part of that.
    version = 2

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values are texts without padding."""
        return data_type.kind is Kind.VARCHAR

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return a hash of each word of each value, and of each piece of its runs."""
        return _hashes(indexed_words(values.cast(pa.string())))

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the hashes of the words and pieces that are indexed; None if there is none."""
        if comparison.op is not Op.MATCH or not comparison.literals[0].is_valid:
            return None
        texts = required_words(comparison.literals[0].as_py())
        found = np.unique(_hashes(pa.array(texts, pa.string())))
        return AskedKeys(found, every=True) if len(found) else None


def _hashes(found: pa.Array) -> npt.NDArray[np.uint64]:
    indexed = found.filter(pc.invert(pc.match_substring_regex(found, _LEFT_OUT)))
    return hashed(ValueKind.TEXT, indexed.cast(pa.binary()))
