"""Redaction of text: each character is replaced by one for its class, as in Apache ORC's `redact`."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Unicode's general categories, in the order of the replacement characters in `redact`'s parameter.
CLASSES: Sequence[tuple[str, str, frozenset[str]]] = (
    ("upper-case letters", "X", frozenset({"Lu"})),
    ("lower-case letters", "x", frozenset({"Ll"})),
    ("digits", "9", frozenset({"Nd"})),
    ("symbols", "$", frozenset({"Sm", "Sc", "Sk", "So"})),
    # Without quotation marks like « and » (Pi, Pf), which Apache counts as "everything else".
    ("punctuation", ".", frozenset({"Pd", "Ps", "Pe", "Pc", "Po"})),
    ("separators", "_", frozenset({"Zs", "Zl", "Zp"})),
    ("other letters", "\N{FEMININE ORDINAL INDICATOR}", frozenset({"Lt", "Lm", "Lo"})),
    ("marks", "\N{DEVANAGARI SIGN VISARGA}", frozenset({"Mn", "Me", "Mc"})),
    ("other numbers", "\N{SUPERSCRIPT TWO}", frozenset({"Nl", "No"})),
    ("everything else", "\N{ARABIC END OF AYAH}", frozenset()),
)
KEEP = "_"
_NOT_ASCII = 255

Ranges = Mapping[int, int]
_Numbers = npt.NDArray[Any]


class TextRedaction:
    """Redacts strings by the replacement of each class; `KEEP` keeps the characters of a class.

    `ranges` keep characters by position, from a first to a last index; negative indexes count from the end.
    """

    def __init__(self, replacements: Sequence[str], ranges: Ranges) -> None:
        self._replacements = {
            category: replacement
            for (_, _, categories), replacement in zip(CLASSES, replacements, strict=True)
            for category in categories
        }
        self._other = replacements[-1]
        self._ranges = ranges
        table = [self._replacement(code) for code in range(128)]
        # Maps ASCII bytes to ASCII bytes; _NOT_ASCII marks those whose replacement is not ASCII.
        self._ascii = np.array([code if code < 128 else _NOT_ASCII for code in table], np.uint8)

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the redacted form of an array of strings."""
        if values.null_count:
            values = values.fill_null("")
        wide = pa.types.is_large_string(values.type)
        width = np.dtype(np.int64 if wide else np.int32)
        _, stored, data = values.buffers()
        offsets = np.frombuffer(stored, width)[values.offset : values.offset + len(values) + 1]
        if not len(values) or offsets[-1] == offsets[0]:
            return values
        text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        masked, ends = self._redact_ascii(text, offsets) or self._redact_code_points(text, offsets)
        return pa.Array.from_buffers(
            values.type, len(values), [None, pa.py_buffer(ends.astype(width)), pa.py_buffer(masked)]
        )

    def _redact_ascii(self, text: _Numbers, offsets: _Numbers) -> tuple[_Numbers, _Numbers] | None:
        if text.max() >= 128:
            return None
        masked = self._ascii[text]
        if self._ranges:
            masked = np.where(self._is_kept(offsets), text, masked)
        return (masked, offsets) if masked.max() < 128 else None

    def _redact_code_points(self, text: _Numbers, offsets: _Numbers) -> tuple[_Numbers, _Numbers]:
        starts = np.concatenate([[0], np.cumsum((text & 0xC0) != 0x80)])
        offsets = starts[offsets]
        codes = np.frombuffer(text.tobytes().decode().encode("utf-32-le"), "<u4")
        occurs = np.zeros(int(codes.max()) + 1, np.bool_)
        occurs[codes] = True
        table = np.zeros(len(occurs), "<u4")
        for code in np.flatnonzero(occurs).tolist():
            table[code] = self._replacement(code)
        masked = table[codes]
        if self._ranges:
            masked = np.where(self._is_kept(offsets), codes, masked)
        lengths = 1 + (masked > 0x7F).astype(np.int64) + (masked > 0x7FF) + (masked > 0xFFFF)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        encoded = masked.tobytes().decode("utf-32-le").encode()
        return np.frombuffer(encoded, np.uint8), ends[offsets]

    def _replacement(self, code: int) -> int:
        character = chr(code)
        replacement = self._replacements.get(unicodedata.category(character), self._other)
        return code if replacement == KEEP else ord(replacement)

    def _is_kept(self, offsets: _Numbers) -> npt.NDArray[np.bool_]:
        lengths = np.diff(offsets)
        positions = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
        size = np.repeat(lengths, lengths)
        kept = np.zeros(len(positions), np.bool_)
        for first, last in self._ranges.items():
            low = first if first >= 0 else size + first
            high = last if last >= 0 else size + last
            kept |= (positions >= low) & (positions <= high)
        return kept


def keeps(ranges: Ranges, index: int, length: int) -> bool:
    """Return whether `ranges` keep the character at `index` of a text of `length` characters."""
    return any(
        (first if first >= 0 else length + first) <= index <= (last if last >= 0 else length + last)
        for first, last in ranges.items()
    )
