"""Decompression of index files with a limit against decompression bombs."""

from __future__ import annotations

import zlib

from lockgate.errors import CorruptFileError

# A directory of a million files takes a tenth of this.
MOST_BYTES = 2**30


def inflated(data: bytes, name: str) -> bytes:
    """Return decompressed bytes; CorruptFileError with `name` if they are damaged or too many."""
    inflater = zlib.decompressobj()
    try:
        inflated_data = inflater.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise CorruptFileError(f"{name} is damaged: {error}") from None
    if inflater.unconsumed_tail or not inflater.eof:
        raise CorruptFileError(f"{name} is damaged: it is cut off, or holds more than {MOST_BYTES:,} bytes")
    return inflated_data
