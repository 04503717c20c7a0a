"""Decompression of what an index file holds, up to a size that no honest one has."""

from __future__ import annotations

import zlib

from lockgate.errors import CorruptFileError

# A directory of a million files takes a tenth of this.
MOST_BYTES = 2**30


def inflated(data: bytes, name: str) -> bytes:
    """Return decompressed bytes; CorruptFileError, naming the file, if they are damaged or too many."""
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise CorruptFileError(f"{name} is damaged: {error}") from None
    if inflater.unconsumed_tail or not inflater.eof:
        raise CorruptFileError(f"{name} is damaged: it is cut off, or holds more than {MOST_BYTES:,} bytes")
    return found
