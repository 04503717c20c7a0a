"""The index kinds `values`, hashes of values, and `ngrams`, pieces of texts."""

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
# Keys are the upper 36 of a hash's 64 bits: with 10 million values, 1 in 6,900 absent values is a false
# positive. Four bits more would enlarge the index by 15 %; with four bits less, a list of a thousand values
# would read files without a match.
_DROPPED_BITS = np.uint64(28)
_EQUAL = (Op.EQ, Op.EQ_NULL_SAFE, Op.IN)
_GRAM = 3
# Letters with the same case mapping in all engines: ASCII, and letters without case.
_SAME_CASES = re.compile(f"[\0-\x7f{UNSPACED}]+")
# Non-ASCII letters that some engine folds to an ASCII letter.
_FOLDED = {"İ": "i", "ı": "i", "ſ": "s", "\N{KELVIN SIGN}": "k"}
_HOLDS = (Op.CONTAINS, Op.STARTS_WITH, Op.ENDS_WITH, *_EQUAL)
# Maps the bytes A to Z to a to z; engines differ in lower case beyond ASCII.
_LOWER = np.array([each + 32 if 65 <= each <= 90 else each for each in range(256)], np.uint64)


def hashed(kind: ValueKind, keys: Keys) -> npt.NDArray[np.uint64]:
    """Return the 36-bit hashes of keys."""
    return hashes_of(kind, keys).view(np.uint64) >> _DROPPED_BITS


class Values:
    """Hashes of values, for `=`, `<=>` and IN, including long lists."""

    def accepts(self, data_type: DataType) -> bool:
        """Return whether all writers encode values of a type as the same keys."""
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
    """Lower-case pieces of texts, three bytes long, for searches of a text in them."""

    def accepts(self, data_type: DataType) -> bool:
        """Return whether values are texts without padding."""
        return data_type.kind is Kind.VARCHAR

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return the pieces of all values; letters that fold to ASCII are also indexed as ASCII."""
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
        """Return all pieces of the comparison's text; None if it is shorter than a piece."""
        if comparison.op in (Op.ILIKE, Op.RLIKE):
            return _every_piece(_SAME_CASES.findall(folded_text(comparison) or ""))
        literals = [literal.as_py() for literal in comparison.literals if literal.is_valid]
        if comparison.op not in _HOLDS or len(literals) != 1 or not isinstance(literals[0], str):
            return None
        return _every_piece(literals)


def _every_piece(texts: Sequence[str]) -> AskedKeys | None:
    raw = [text.encode() for text in texts]
    pieces = _grams(np.frombuffer(b"".join(raw), np.uint8), np.cumsum([len(each) for each in raw]))
    return AskedKeys(pieces, every=True) if len(pieces) else None


def _folded(values: pa.Array) -> pa.Array:
    """Return the values with non-ASCII letters that fold to ASCII, with these letters replaced."""
    folded = values.cast(pa.large_string())
    folded = folded.filter(pc.match_substring_regex(folded, f"[{''.join(_FOLDED)}]"))
    for letter, ascii_letter in _FOLDED.items():
        folded = pc.replace_substring(folded, letter, ascii_letter)
    return folded


def _grams(text: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the distinct pieces of concatenated texts, ascending."""
    if len(text) < _GRAM:
        return np.zeros(0, np.uint64)
    low = _LOWER[text]
    grams = low[:-2] << np.uint64(16) | low[1:-1] << np.uint64(8) | low[2:]
    is_inside = np.ones(len(grams), np.bool_)
    for back in (1, 2):  # a piece that begins in the last two bytes of a text reaches into the next text
        crossing = ends - back
        is_inside[crossing[(crossing >= 0) & (crossing < len(grams))]] = False
    return distinct(grams[is_inside])


def _sorted(kind: ValueKind, keys: Iterable[Key]) -> npt.NDArray[np.uint64]:
    return np.unique(hashed(kind, keys_of_list(kind, [*keys])))


def _kind(data_type: DataType) -> ValueKind:
    kind = value_kind_of(data_type)
    assert kind is not None, "types are checked before"
    return kind
