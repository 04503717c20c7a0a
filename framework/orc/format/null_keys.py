"""Maps with null keys, which ORC can hold and Arrow cannot: it ends the process instead of raising an error.

Java writes such maps where keys are encrypted and their mask is `nullify`.
"""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.errors import UnsupportedError
from lockgate.framework.orc.format.layout import StreamKind, TypeKind
from lockgate.framework.orc.format.stripe import Stream
from lockgate.framework.orc.format.tail import Tail


def refuse_null_keys(tail: Tail, streams: Iterable[Stream]) -> None:
    """Raise `UnsupportedError` if keys of a map are null in these streams of a stripe."""
    keys = {
        int(type_.subtypes[0])
        for type_ in tail.types.types
        if type_.kind == TypeKind.MAP and len(type_.subtypes) == 2
    }
    for stream in streams:
        # Writers leave this stream out where nothing is null.
        if stream.column in keys and stream.kind == StreamKind.PRESENT and stream.length:
            raise UnsupportedError(
                f"column {tail.types.top_name(stream.column)!r} of {tail.name} holds a map with null keys, "
                "as a mask leaves them, and Arrow cannot hold such maps; leave the column out, or read it "
                "with the key of the map's keys"
            )
