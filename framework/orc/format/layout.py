"""Constants of the ORC v1 format."""

from __future__ import annotations

from enum import IntEnum

from lockgate.errors import CorruptFileError

MAGIC = b"ORC"


class StreamKind(IntEnum):
    """Kinds of streams of a stripe."""

    PRESENT = 0
    DATA = 1
    LENGTH = 2
    DICTIONARY_DATA = 3
    DICTIONARY_COUNT = 4
    SECONDARY = 5
    ROW_INDEX = 6
    BLOOM_FILTER = 7
    BLOOM_FILTER_UTF8 = 8
    ENCRYPTED_INDEX = 9
    ENCRYPTED_DATA = 10
    # These two are no streams of stripes; the counters of encrypted statistics use them.
    STRIPE_STATISTICS = 100
    FILE_STATISTICS = 101


BLOOM_FILTERS = frozenset({StreamKind.BLOOM_FILTER, StreamKind.BLOOM_FILTER_UTF8})
INDEX_KINDS = frozenset(
    {
        StreamKind.DICTIONARY_COUNT,
        StreamKind.ROW_INDEX,
        StreamKind.ENCRYPTED_INDEX,
        *BLOOM_FILTERS,
    }
)
# These have only the length of a stripe's encrypted part.
PLACEHOLDERS = frozenset({StreamKind.ENCRYPTED_INDEX, StreamKind.ENCRYPTED_DATA})


class TypeKind(IntEnum):
    """The types of ORC."""

    BOOLEAN = 0
    BYTE = 1
    SHORT = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BINARY = 8
    TIMESTAMP = 9
    LIST = 10
    MAP = 11
    STRUCT = 12
    UNION = 13
    DECIMAL = 14
    DATE = 15
    VARCHAR = 16
    CHAR = 17
    TIMESTAMP_INSTANT = 18


class Compression(IntEnum):
    """The codecs of ORC."""

    NONE = 0
    ZLIB = 1
    SNAPPY = 2
    LZO = 3
    LZ4 = 4
    ZSTD = 5
    BROTLI = 6


def corrupt(name: str, offset: int, what: str) -> CorruptFileError:
    """Return the error for an invalid file, with the file's name, the offset and the reason."""
    return CorruptFileError(f"{name} is not a valid ORC file: at byte {offset}, {what}")


def check_text(name: str, offset: int, what: str, *values: object) -> None:
    """Raise `CorruptFileError` unless all `values` are text; protobuf returns invalid UTF-8 as bytes."""
    if not all(isinstance(value, str) for value in values):
        raise corrupt(name, offset, f"{what} is not text")
