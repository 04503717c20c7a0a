"""Kinds of the index database in Lockgate itself: hashes of whole values, and pieces of texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.framework.plugins import AskedKeys
from lockgate.framework.store import value_kind_of
from lockgate.framework.types import DataType, Kind, to_arrow
from lockgate.pushdown import UNSPACED, Comparison, Op, folded_text
from lockgate.pushdown.index import Key, Keys, ValueKind, distinct, hashes_of, keys_equal_to, keys_of_list

VALUES = "values"
NGRAMS = "ngrams"
# Of 64 bits of a hash the upper 36: of 10 million values, one in 6,900 absent ones seems to be there. Four
# bits more would make an index of hashes larger by 15 %, four less a list of a thousand keep files in vain.
_CUT = np.uint64(28)
_EQUAL = (Op.EQ, Op.EQ_NULL_SAFE, Op.IN)
_GRAM = 3
# Letters of which all engines agree what they are in another case: ASCII's, and those that have none.
_SAME_CASES = re.compile(f"[\0-\x7f{UNSPACED}]+")
# Letters beyond ASCII that are one of ASCII in another case, by some engine or other.
_FOLDED = {"İ": "i", "ı": "i", "ſ": "s", "\N{KELVIN SIGN}": "k"}
_HOLDS = (Op.CONTAINS, Op.STARTS_WITH, Op.ENDS_WITH, *_EQUAL)
# Bytes of texts with A to Z as a to z. Engines differ in what lower case is beyond ASCII.
_LOWER = np.array([each + 32 if 65 <= each <= 90 else each for each in range(256)], np.uint64)


def hashed(kind: ValueKind, keys: Keys) -> npt.NDArray[np.uint64]:
    """Return keys of 36 bits."""
    return hashes_of(kind, keys).view(np.uint64) >> _CUT


class Values:
    """Whole values: `=`, `<=>` and IN, lists of thousands too."""

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values of a type can be told apart by bytes or numbers that all writers agree on."""
        return value_kind_of(data_type) is not None

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return a hash of each value."""
        kind = _kind(data_type)
        return hashed(kind, kind.keys(values))

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the hashes of the literals."""
        if comparison.op not in _EQUAL:
            return None
        kind = _kind(data_type)
        keys = keys_equal_to(comparison, kind, to_arrow(data_type))
        return None if keys is None else AskedKeys(_sorted(kind, keys))


class Ngrams:
    """Pieces of texts, three bytes long and in lower case: what contains, begins or ends with a text."""

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values are texts without padding."""
        return data_type.kind is Kind.VARCHAR

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return each piece of each value, and of those with letters that fold to ASCII's as if they were."""
        return np.concatenate([self._pieces(values), self._pieces(_folded(values))])

    def _pieces(self, values: pa.Array) -> npt.NDArray[np.uint64]:
        texts = values.cast(pa.large_binary())
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = texts.buffers()[2]
        if data is None or not len(offsets):
            return np.zeros(0, np.uint64)
        first, end = int(offsets[0]), int(offsets[-1])
        return _grams(np.frombuffer(data, np.uint8)[first:end], offsets[1:] - first)

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return all pieces of the one text of the comparison; None if it is shorter than a piece."""
        if comparison.op in (Op.ILIKE, Op.RLIKE):
            return _every_piece(_SAME_CASES.findall(folded_text(comparison) or ""))
        literals = [literal.as_py() for literal in comparison.literals if literal.is_valid]
        if comparison.op not in _HOLDS or len(literals) != 1 or not isinstance(literals[0], str):
            return None
        return _every_piece(literals)


def _every_piece(texts: Sequence[str]) -> AskedKeys | None:
    raw = [text.encode() for text in texts]
    found = _grams(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(each) for each in raw]))
    return AskedKeys(found, every=True) if len(found) else None


def _folded(values: pa.Array) -> pa.Array:
    """Return the values that have letters beyond ASCII that fold to ASCII's, with those instead."""
    found = values.cast(pa.large_string())
    found = found.filter(pc.match_substring_regex(found, f"[{''.join(_FOLDED)}]"))
    for letter, plain in _FOLDED.items():
        found = pc.replace_substring(found, letter, plain)
    return found


def _grams(text: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the pieces of texts that lie one behind the other, ascending and each once."""
    if len(text) < _GRAM:
        return np.zeros(0, np.uint64)
    low = _LOWER[text]
    grams = low[:-2] << np.uint64(16) | low[1:-1] << np.uint64(8) | low[2:]
    within = np.ones(len(grams), np.bool_)
    for back in (1, 2):  # pieces that begin in the last two bytes of a text reach into the next
        across = ends - back
        within[across[(across >= 0) & (across < len(grams))]] = False
    return distinct(grams[within])


def _sorted(kind: ValueKind, keys: Iterable[Key]) -> npt.NDArray[np.uint64]:
    return np.unique(hashed(kind, keys_of_list(kind, [*keys])))


def _kind(data_type: DataType) -> ValueKind:
    kind = value_kind_of(data_type)
    assert kind is not None, "types are checked before"
    return kind
