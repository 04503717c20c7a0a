"""Limits for metadata in memory: a small file can unpack to gigabytes, or claim that size.

Anyone who can write to a table's folder controls its metadata. So readers read and unpack metadata
only up to a limit: 256 MiB per file (real ones have a few MiB), 32 MiB of JSON, and for a compressed file 64
times its size or 32 MiB if that is more. The environment variable LOCKGATE_METADATA_LIMIT, a number of bytes,
replaces all of these limits.
"""

from __future__ import annotations

import os

from lockgate.errors import CorruptFileError, OptionError

LIMIT_VARIABLE = "LOCKGATE_METADATA_LIMIT"
_MOST = 256 * 2**20
_MOST_RATIO = 64
_MIN_LIMIT = 32 * 2**20
# Parsed JSON takes many times its size; a schema of thousands of columns has a few MiB.
_MOST_JSON = 32 * 2**20


def _configured_limit() -> int | None:
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"{LIMIT_VARIABLE} is {text!r}: give a number of bytes")
    return int(text)


def most_metadata() -> int:
    """Return the largest allowed size of a metadata file, in bytes."""
    return _configured_limit() or _MOST


def most_json() -> int:
    """Return the largest allowed size of a JSON metadata file, in bytes."""
    return _configured_limit() or _MOST_JSON


def most_unpacked(stored: int) -> int:
    """Return the largest allowed unpacked size of `stored` bytes of compressed metadata."""
    return _configured_limit() or min(_MOST, max(_MIN_LIMIT, stored * _MOST_RATIO))


def too_large(path: str, most: int, how: str = "has") -> CorruptFileError:
    """Return the error for a file that has, or unpacks to, more than `most` bytes."""
    return CorruptFileError(
        f"{path} {how} more than {most} bytes, more than metadata should have; if the file is genuine, set "
        f"{LIMIT_VARIABLE} to a larger number of bytes"
    )


def checked_size(data: bytes, path: str) -> bytes:
    """Return `data` if it is within the limit of metadata files; CorruptFileError otherwise."""
    if len(data) > most_metadata():
        raise too_large(path, most_metadata())
    return data
