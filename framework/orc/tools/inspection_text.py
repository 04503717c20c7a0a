"""The inspection of an ORC file as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.framework.orc.tools.disclosure import count

if TYPE_CHECKING:
    from lockgate.framework.orc.tools.inspection import InspectedTags, Inspection

_MAX_CELL_LENGTH = 32


def text_of(report: Inspection, *, streams: bool) -> str:
    """Return the inspection as text without control characters, since names and values are untrusted."""
    layout = report.layout
    lines = [
        f"{report.name}: {count(layout.size, 'byte')}, {count(layout.rows, 'row')}, {layout.compression}, "
        f"written by {layout.writer}",
        f"tail: footer {layout.footer_bytes:,} bytes, statistics of stripes "
        f"{layout.metadata_bytes:,} in the clear and {layout.encrypted_statistics_bytes:,} encrypted",
        f"integrity: {_integrity(report.integrity)}",
    ]
    lines += _columns(report)
    if report.encrypted:
        lines += _encrypted(report)
    lines += _stripes(report)
    if streams:
        heads = ("column", "stream", "key", "bytes")
        rows = [(each.column, each.kind, each.key or "", f"{each.bytes:,}") for each in report.streams]
        lines += _table("Streams, over all stripes", heads, rows)
    lines += ["", "Without a key, anyone who has this file knows"]
    lines += [f"  * {sentence}" for sentence in report.reveals]
    return "\n".join(map(_printable, lines))


def _integrity(tags: InspectedTags) -> str:
    if tags.status == "absent":
        return "absent (the file has no tags: changes to it would not be noticed)"
    if tags.status == "damaged":
        return f"DAMAGED: {tags.damage}"
    keys = ", ".join(tags.checked_by)
    if tags.status == "unverified":
        return f"unverified ({count(tags.stripe_tags, 'tag')}; a holder of one of {keys} can check them)"
    return (
        f"the tail is as it was written; {count(tags.stripe_tags, 'tag')} of the rest are checked as it is "
        "read, or by: lockgate orc verify"
    )


def _columns(report: Inspection) -> list[str]:
    rows = [
        (
            each.name,
            each.type,
            "encrypted" if each.encrypted else "plain",
            _shown(each.minimum),
            _shown(each.maximum),
            _shown(each.null_count),
            "" if each.true_statistics else "(of the mask)",
        )
        for each in report.columns
    ]
    return _table("Columns", ("name", "type", "stored", "minimum", "maximum", "nulls", ""), rows)


def _encrypted(report: Inspection) -> list[str]:
    parts = [
        (
            each.column,
            each.key,
            each.cipher,
            each.mask,
            f"{each.stored_bytes:,}",
            "held" if each.open else "not held",
        )
        for each in report.encrypted
    ]
    keys = [
        (f"{each.name}@{each.version}", each.cipher, "yes" if each.held else "no") for each in report.keys
    ]
    return [
        *_table("Encrypted", ("column", "key", "cipher", "mask", "bytes", "key is"), parts),
        *_table("Keys", ("key", "cipher", "held"), keys),
    ]


def _stripes(report: Inspection) -> list[str]:
    heads = ("offset", "rows", "index", "data", "encrypted", "footer")
    rows = [tuple(f"{number:,}" for number in dataclasses.astuple(each)) for each in report.stripes]
    return _table("Stripes", heads, rows)


def _shown(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_CELL_LENGTH else f"{text[: _MAX_CELL_LENGTH - 1]}…"


def _printable(line: str) -> str:
    """Return a line without control characters for terminals."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in line)


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    return ["", title, *lines]
