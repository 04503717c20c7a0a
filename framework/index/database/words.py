"""The index kind `words`, for `match`: words of texts and pieces of unspaced runs."""

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
# Numbers and long hexadecimal words are excluded: nearly all of them are unique, and they would take more
# space than all other words.
_EXCLUDED = r"\A(?:[0-9]+|[0-9a-f]{8,})\z"


class Words:
    """Lower-case words, except numbers and hexadecimal words of eight or more digits, and pieces of runs."""

    # The first version indexed an unspaced run and the letters next to it as one word.
    version = 2

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values are texts without padding."""
        return data_type.kind is Kind.VARCHAR

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return the hashes of all words, and of all pieces of unspaced runs."""
        return _hashes(indexed_words(values.cast(pa.string())))

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the hashes of the indexed words and pieces of a search; None if there are none."""
        if comparison.op is not Op.MATCH or not comparison.literals[0].is_valid:
            return None
        texts = required_words(comparison.literals[0].as_py())
        hashes = np.unique(_hashes(pa.array(texts, pa.string())))
        return AskedKeys(hashes, every=True) if len(hashes) else None


def _hashes(words_array: pa.Array) -> npt.NDArray[np.uint64]:
    indexed = words_array.filter(pc.invert(pc.match_substring_regex(words_array, _EXCLUDED)))
    return hashed(ValueKind.TEXT, indexed.cast(pa.binary()))
