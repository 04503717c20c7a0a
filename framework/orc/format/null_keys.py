"""A check for maps with null keys: ORC can store them, but Arrow would abort the process.

Java writes such maps if their keys are encrypted with the mask `nullify`.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.errors import UnsupportedError
from lockgate.framework.orc.format.layout import StreamKind, TypeKind
from lockgate.framework.orc.format.stripe import Stream
from lockgate.framework.orc.format.tail import Tail


def refuse_null_keys(tail: Tail, streams: Iterable[Stream]) -> None:
    """Raise `UnsupportedError` if a map has null keys in these streams of a stripe."""
    keys = {
        int(type_.subtypes[0])
        for type_ in tail.types.types
        if type_.kind == TypeKind.MAP and len(type_.subtypes) == 2
    }
    for stream in streams:
        # Writers omit this stream if there are no nulls.
        if stream.column in keys and stream.kind == StreamKind.PRESENT and stream.length:
            raise UnsupportedError(
                f"column {tail.types.top_name(stream.column)!r} of {tail.name} has a map with null keys, "
                "as a mask writes them, and Arrow does not support such maps; omit the column, or read it "
                "with the encryption key of the map's keys"
            )
