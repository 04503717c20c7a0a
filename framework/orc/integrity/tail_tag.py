"""The tag of a file's tail, which also covers all other tags."""

from __future__ import annotations

from lockgate.framework.orc.format.chunks import HEADER_LENGTH, Buffer
from lockgate.framework.orc.format.layout import Compression
from lockgate.framework.orc.integrity.header import BLANK
from lockgate.framework.orc.integrity.mac import TAG_LENGTH, Mac


def tail_message(statistics: Buffer, content: bytes, header: bytes, ending: Buffer) -> bytes:
    """Return the bytes that the tail's tag covers.

    `statistics` are the stored bytes from the end of the last stripe to the footer, `content` is the footer
    without chunk headers, and `header` the tags' header in it, which ends with the tag itself; that counts as
    zeros. `ending` is the stored postscript with its length byte. `ValueError` if the footer lacks the
    header.
    """
    end = content.index(header) + len(header)
    return b"".join([statistics, content[: end - TAG_LENGTH], BLANK, content[end:], ending])


def seal(mac: Mac, statistics: Buffer, content: bytes, blank: bytes, ending: Buffer) -> bytes:
    """Return `content` with the tail's tag in place of the zeros at the end of its header `blank`."""
    tag = mac.tail_tag(tail_message(statistics, content, blank, ending))
    end = content.index(blank) + len(blank)
    return b"".join([content[: end - TAG_LENGTH], tag, content[end:]])


def original_content(codec: Compression, stored: Buffer) -> bytes | None:
    """Return a footer without its chunk headers; None unless all its chunks are uncompressed.

    In a compressed footer, the length would depend on the tag that it contains.
    """
    if codec is Compression.NONE:
        return bytes(stored)
    view, parts, position = memoryview(stored), [], 0
    while position < len(view):
        start = position + HEADER_LENGTH
        length, original = divmod(int.from_bytes(view[position:start], "little"), 2)
        position = start + length
        if not original or position > len(view):
            return None
        parts.append(view[start:position])
    return b"".join(parts)
