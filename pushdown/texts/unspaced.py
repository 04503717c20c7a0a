"""Scripts without blanks between words, such as Han, kana and Thai, and the indexed pieces of such texts.

An *unspaced run* is a longest sequence of such letters and their marks. It does not show where its words end,
so a search finds a run inside longer ones. Korean counts as unspaced, because particles follow its words
without a blank. The ranges are listed here, because versions of Unicode differ. The Java twin is
`UnspacedLetters`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Letters = npt.NDArray[np.uint32]

# First letter, last letter, and the length of the longest indexed piece that begins with such a letter. In
# scripts of thousands of letters pairs are selective; smaller scripts need longer pieces.
RANGES: tuple[tuple[int, int, int], ...] = (
    (0x0E00, 0x0E3E, 4),  # Thai
    (0x0E40, 0x0E4E, 4),
    (0x0E50, 0x0E59, 4),
    (0x0E5C, 0x0EFF, 4),  # Lao
    (0x1000, 0x1049, 4),  # Myanmar
    (0x1050, 0x109D, 4),
    (0x1100, 0x11FF, 3),  # Hangul jamo
    (0x1780, 0x17D3, 4),  # Khmer
    (0x17D7, 0x17D7, 4),
    (0x17DC, 0x17FF, 4),
    (0x1950, 0x19DD, 4),  # Tai Le, New Tai Lue
    (0x1A20, 0x1A9F, 4),  # Tai Tham
    (0x1AA7, 0x1AA7, 4),
    (0x1B00, 0x1B4D, 4),  # Balinese
    (0x1B50, 0x1B59, 4),
    (0x2E80, 0x2FD5, 2),  # radicals of Han
    (0x3005, 0x3007, 2),
    (0x3021, 0x3029, 2),
    (0x3031, 0x3035, 2),
    (0x3038, 0x303C, 2),
    (0x3041, 0x309A, 3),  # hiragana
    (0x309D, 0x309F, 3),
    (0x30A1, 0x30FA, 3),  # katakana
    (0x30FC, 0x30FF, 3),
    (0x3105, 0x318F, 3),  # bopomofo, and jamo for compatibility
    (0x31A0, 0x31BF, 3),
    (0x31F0, 0x31FF, 3),
    (0x3400, 0x4DBF, 2),  # Han
    (0x4E00, 0x9FFF, 2),
    (0xA000, 0xA48F, 2),  # Yi
    (0xA960, 0xA97F, 3),  # more jamo
    (0xA980, 0xA9C0, 4),  # Javanese
    (0xA9CF, 0xA9DD, 4),
    (0xA9E0, 0xA9FF, 4),  # more Myanmar
    (0xAA60, 0xAA76, 4),
    (0xAA7A, 0xAADD, 4),  # and Tai Viet
    (0xAC00, 0xD7A3, 2),  # Hangul syllables
    (0xD7B0, 0xD7FF, 3),
    (0xF900, 0xFAFF, 2),  # Han for compatibility
    (0xFF66, 0xFFDC, 3),  # kana and jamo of half width
    (0x116D0, 0x116FF, 4),
    (0x11700, 0x1173B, 4),  # Ahom
    (0x11740, 0x1174F, 4),
    (0x16FE0, 0x16FE1, 2),
    (0x16FE3, 0x18DFF, 2),  # Tangut, Khitan
    (0x1AFF0, 0x1B16F, 3),  # older kana
    (0x1B170, 0x1B2FF, 2),  # Nushu
    (0x20000, 0x2FFFD, 2),  # extensions of Han
    (0x30000, 0x3FFFD, 2),
)
# Other characters that all versions of Unicode classify alike: Latin to Cyrillic, general and CJK
# punctuation, full-width forms, and variation selectors.
AGREED_RANGES: tuple[tuple[int, int], ...] = (
    (0x0000, 0x0377),
    (0x037A, 0x037F),
    (0x0384, 0x038A),
    (0x038C, 0x038C),
    (0x038E, 0x03A1),
    (0x03A3, 0x052F),
    (0x2000, 0x2064),
    (0x2066, 0x206F),
    (0x3000, 0x303F),
    (0x309B, 0x309C),
    (0x30A0, 0x30A0),
    (0x30FB, 0x30FB),
    (0xFE00, 0xFE0F),
    (0xFF01, 0xFF65),
    (0xE0100, 0xE01EF),
)
UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last, _ in RANGES)
"""The unspaced letters, as a character class of a regular expression without its brackets."""
AGREED = "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in AGREED_RANGES) + UNSPACED
"""The characters that all engines classify alike, as a character class of RE2 without its brackets."""
_FIRSTS = np.array([first for first, _, _ in RANGES])
_LASTS = np.array([last for _, last, _ in RANGES])
_LENGTHS = np.array([length for _, _, length in RANGES])
# Length of pieces that begin with a mark from another block, as in the largest scripts.
_MARK_PIECE_LENGTH = 2
_MAX_PIECE_LENGTH = 4
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def pieces(runs: pa.Array) -> pa.Array:
    """Return the indexed pieces of runs: at each letter the longest piece, and the one a letter shorter.

    The result has few duplicates.
    """
    letters = _letters("\0".join(runs.to_pylist()))
    longest = np.where(letters == 0, 0, _longest_pieces(letters))
    pieces_by_length = [_pieces(letters, longest, length) for length in range(1, _MAX_PIECE_LENGTH + 1)]
    return pa.chunked_array(pieces_by_length, pa.string()).combine_chunks()


def _pieces(letters: Letters, longest: npt.NDArray[np.int64], length: int) -> pa.Array:
    if len(letters) < length:
        return pa.array([], pa.string())
    windows = np.lib.stride_tricks.sliding_window_view(letters, length)
    max_lengths = longest[: len(windows)]
    chosen = windows[((max_lengths == length) | (max_lengths == length + 1)) & (windows != 0).all(axis=1)]
    texts = np.ascontiguousarray(_nearly_distinct(chosen)).view(f"<U{length}")
    return pa.array(texts.ravel().tolist(), pa.string())


def _nearly_distinct(windows: Letters) -> Letters:
    """Return windows nearly without duplicates: sorted by hash, a collision can separate equal windows."""
    hashes = np.zeros(len(windows), np.uint64)
    for column in windows.T:
        hashes = hashes * _HASH_FACTOR + column
    ordered = windows[np.argsort(hashes)]
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[is_new]


def required_pieces(run: str) -> list[str]:
    """Return the indexed pieces that every text with a run has, without pieces that lie inside another."""
    pieces, covered = [], 0
    for start, longest in enumerate(_longest_pieces(_letters(run)).tolist()):
        end = min(start + longest, len(run))
        if end - start >= longest - 1 and end > covered:
            pieces.append(run[start:end])
            covered = end
    return pieces


def _letters(text: str) -> Letters:
    return np.frombuffer(text.encode("utf-32-le"), "<u4")


def _longest_pieces(letters: Letters) -> npt.NDArray[np.int64]:
    """Return, for each letter, the length of the longest piece that begins with it."""
    range_indexes = np.maximum(np.searchsorted(_FIRSTS, letters, "right") - 1, 0)
    is_unspaced = (letters >= _FIRSTS[range_indexes]) & (letters <= _LASTS[range_indexes])
    return np.where(is_unspaced, _LENGTHS[range_indexes], _MARK_PIECE_LENGTH)
