"""A search of a whole table folder for values in the clear: raw bytes, and what is compressed in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lockgate.framework.orc.format.chunks import unframe
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.framework.store.codec.avro import read_container


def found_in(folder: str | Path, *needles: str) -> dict[str, list[str]]:
    """The files below a folder that hold one of the texts, with the texts that each holds."""
    root = Path(folder)
    found = {}
    for path in sorted(root.rglob("*")):
        contents = list(_contents(path)) if path.is_file() else []
        held = [text for text in needles if any(text.encode() in content for content in contents)]
        if held:
            found[str(path.relative_to(root))] = held
    return found


def _contents(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    if data.startswith(b"Obj\x01"):
        for record in read_container(data, str(path)):
            yield from _leaves(record)
    elif data.startswith(b"ORC"):
        yield from _streams(data)


def _leaves(value: object) -> Iterator[bytes]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif isinstance(value, bytes):
        yield value
    else:
        yield str(value).encode()


def _streams(data: bytes) -> Iterator[bytes]:
    source = open_source(data)
    tail = read_tail(source)
    end = len(data) - 1 - data[-1]
    places = [(tail.footer_offset, end), (tail.metadata_offset, tail.footer_offset)]
    for index in range(tail.stripes):
        for stream in read_stripe(source, tail, index).streams:
            places.append((stream.offset, stream.offset + stream.length))
    for first, last in places:
        try:
            yield unframe(tail.codec, data[first:last], tail.block_size)
        except ValueError:
            continue  # encrypted
