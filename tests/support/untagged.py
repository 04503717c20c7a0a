"""Encrypted files as others write them: without the tags that Lockgate checks by."""

from __future__ import annotations

from pathlib import Path

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import open_source


def without_tags(path: Path) -> None:
    """Take all statements of tags away, as one would who hides what was changed."""
    data = path.read_bytes()
    tail = read_tail(open_source(data))
    footer, postscript = proto.Footer(), proto.PostScript()
    footer.CopyFrom(tail.footer)
    postscript.CopyFrom(tail.postscript)
    del footer.metadata[:], footer.types[0].attributes[:]
    content = frame(tail.codec, footer.SerializeToString(), tail.block_size)
    postscript.footer_length = len(content)
    ending = postscript.SerializeToString()
    path.write_bytes(data[: tail.footer_offset] + content + ending + bytes([len(ending)]))
