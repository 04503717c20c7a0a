"""Format of one segment: compressed lines of JSON, whose first line says how many follow and their digest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from lockgate.errors import CorruptFileError

FORMAT = 1
_KEYS = frozenset({"lockgate_lineage", "lines", "digest", "replaces", "replaces_digest"})


@dataclass(frozen=True)
class LineageSegment:
    """The content of a segment: its lines, and the names of the segments that it takes the place of."""

    lines: tuple[dict[str, Any], ...]
    replaces: tuple[str, ...] = ()


def encoded(lines: Iterable[Mapping[str, Any]], replaces: Sequence[str] = ()) -> bytes:
    """Return the bytes of a segment."""
    body = "".join(
        f"{json.dumps(line, separators=(',', ':'), ensure_ascii=False)}\n" for line in lines
    ).encode()
    header: dict[str, Any] = {"lockgate_lineage": FORMAT, "lines": body.count(b"\n"), "digest": _digest(body)}
    if replaces:
        header["replaces"] = list(replaces)
        header["replaces_digest"] = _digest("\n".join(replaces).encode())
    return bytes(pa.compress(json.dumps(header).encode() + b"\n" + body, codec="zstd", asbytes=True))


def decoded(data: bytes, name: str) -> LineageSegment:
    """Read the bytes of the segment `name`; CorruptFileError if they are not what was written."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            head, _, body = stream.read().partition(b"\n")
        header = json.loads(head)
        if header["lockgate_lineage"] != FORMAT:
            raise CorruptFileError(
                f"segment {name} of the lineage has format {header['lockgate_lineage']}, this version reads "
                f"{FORMAT}: update lockgate"
            )
        if header["digest"] != _digest(body):
            raise CorruptFileError(f"segment {name} of the lineage is damaged: its digest does not match")
        replaces = tuple(header.get("replaces", ()))
        names_digest = _digest("\n".join(replaces).encode())
        # Older segments have no digest of these names.
        if header.get("replaces_digest", names_digest) != names_digest:
            raise CorruptFileError(
                f"segment {name} of the lineage is damaged: the names that it replaces are not those written"
            )
        if not header.keys() <= _KEYS or header["lines"] != body.count(b"\n"):
            raise CorruptFileError(f"segment {name} of the lineage is damaged: its header is not as written")
        lines = tuple(json.loads(line) for line in body.split(b"\n") if line)
        return LineageSegment(lines, replaces)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFileError(f"segment {name} of the lineage is damaged: {error}") from error


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=16).hexdigest()
