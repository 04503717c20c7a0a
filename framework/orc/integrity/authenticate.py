"""Authentication of an opened file: finds its tags and checks its tail."""

from __future__ import annotations

from typing import Literal

from lockgate.errors import InputError, IntegrityError, nearest
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.layout import MAGIC
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.header import StoredTags, damaged_tags, find_header
from lockgate.framework.orc.integrity.mac import Mac, unwrap_key
from lockgate.framework.orc.integrity.tail_tag import original_content, tail_message
from lockgate.framework.orc.integrity.verified_source import VerifyingSource
from lockgate.framework.orc.sources.file_source import Source

Mode = Literal["verify", "require", "ignore"]
Status = Literal["verified", "absent", "unverified", "ignored"]
MODES: tuple[Mode, ...] = ("verify", "require", "ignore")


def check_mode(mode: str) -> None:
    """Raise `InputError` unless `mode` is one of `MODES`."""
    if mode not in MODES:
        raise InputError(
            f"integrity must be 'verify', 'require' or 'ignore', not {mode!r}{nearest(mode, MODES)}"
        )


def authenticate(
    source: Source, tail: Tail, variants: Variants, mode: Mode = "verify"
) -> tuple[Source, Status]:
    """Check the tail by its tag; return the source from which to read the rest, and the status.

    With status "verified", the returned source checks everything read through it. Otherwise it is `source`
    itself, and the status is "absent" if the file has no tags, "unverified" without a key for its tags, or
    "ignored" for mode "ignore". `tail` was read from `source`, and `variants` have proven the keys.

    Raises `IntegrityError` if tags do not match or are incomplete and, with `mode="require"`, if they are
    absent or cannot be checked; `InputError` for an unknown mode.
    """
    check_mode(mode)
    if mode == "ignore":
        return source, "ignored"
    stored = find_header(tail)
    if stored is None:
        if mode == "require":
            raise IntegrityError(
                f"{tail.name} has no tags to check it by: it was written without them, or they were "
                'stripped. Read it with integrity="verify" if you trust its source'
            )
        return source, "absent"
    stripes_end = _end_of_stripes(tail)
    mac = open_mac(tail, variants, stored)
    if mac is None:
        if mode == "require":
            raise IntegrityError(
                f"{tail.name} cannot be checked: its tags open with the key of one of its encrypted columns, "
                "and you hold none"
            )
        return source, "unverified"
    tail_bytes = source.read_at(stripes_end, source.size - stripes_end)
    check_tail(source, tail, stored, mac, tail_bytes)
    return VerifyingSource(source, tail, stored, mac, tail_bytes), "verified"


def open_mac(tail: Tail, variants: Variants, stored: StoredTags) -> Mac | None:
    """Return the message authentication code of a file, opened by the first proven key; None without a
    key.
    """
    encryption = tail.footer.encryption
    for wrap in stored.header.wraps:
        if wrap.variant not in variants.statistics:
            continue
        name = encryption.key[wrap.key].key_name
        key = unwrap_key(wrap.wrapped, variants.footer_key(wrap.variant), name)
        if key is None:
            raise damaged_tags(tail, f"their key does not open with key {name!r}, which is the right one")
        return Mac(key)
    return None


def check_tail(source: Source, tail: Tail, stored: StoredTags, mac: Mac, ending: memoryview) -> None:
    """Raise `IntegrityError` unless the tail matches its tag."""
    tail_start = source.size - len(ending)
    start = tail.footer_offset - tail_start
    end = start + tail.postscript.footer_length
    content = original_content(tail.codec, ending[start:end])
    if content is None:
        raise damaged_tags(tail, "the footer is compressed, which files with tags never do")
    try:
        message = tail_message(ending[:start], content, stored.encoded, ending[end:])
    except ValueError as error:
        raise damaged_tags(tail, "their header is not in the footer as it should be") from error
    if not mac.tail_fits(stored.header.tail_tag, message):
        raise IntegrityError(
            f"{tail.name} is not as it was written: its tail, from byte {tail_start} on, does not fit its "
            "tag. The file was damaged or changed; restore it from a copy"
        )
    if not source.free and proto.Footer.FromString(content) != tail.footer:
        raise IntegrityError(f"{tail.name} changed while it was opened; open it again")


def _end_of_stripes(tail: Tail) -> int:
    """Return the end of the last stripe; `IntegrityError` unless the tail begins there."""
    stripes_end = len(MAGIC)
    if tail.stripes:
        last = tail.footer.stripes[-1]
        stripes_end = last.offset + last.index_length + last.data_length + last.footer_length
    if not stripes_end == tail.footer.content_length == tail.stripe_statistics_offset:
        raise damaged_tags(
            tail,
            f"the stripes end at byte {stripes_end}, their length is stated as {tail.footer.content_length}, "
            f"and what follows begins at {tail.stripe_statistics_offset}",
        )
    return int(stripes_end)
