"""The storage of integrity tags in a file: two items of its user metadata, and an attribute of its root."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from lockgate.errors import IntegrityError
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.mac import GRANULE, TAG_LENGTH, WRAPPED_LENGTH, granules

# The name of the header's item and of the attribute on the root type. Both state that there are tags, so that
# damage to one of them cannot make a file look untagged.
ATTRIBUTE = "lockgate.integrity"
MARK = "1"
TAGS_ITEM = "lockgate.integrity.tags"
BLANK = bytes(TAG_LENGTH)

_VERSION = 1
_START = struct.Struct(">BIH")
_WRAP = struct.Struct(f">HH{WRAPPED_LENGTH}s")
_COUNT = struct.Struct(">I")


@dataclass(frozen=True)
class Wrap:
    """The file's MAC key, encrypted by the local key of `variant`, so that holders of `key` can open it."""

    key: int
    variant: int
    wrapped: bytes


@dataclass(frozen=True)
class Header:
    """The keys that open the tags, the number of tags of each stripe, and the tag of the tail."""

    wraps: tuple[Wrap, ...]
    counts: tuple[int, ...]
    tail_tag: bytes = BLANK

    def encode(self) -> bytes:
        """Return the value of the header's item."""
        parts = [_START.pack(_VERSION, GRANULE, len(self.wraps))]
        parts += [_WRAP.pack(wrap.key, wrap.variant, wrap.wrapped) for wrap in self.wraps]
        parts.append(_COUNT.pack(len(self.counts)))
        parts += [_COUNT.pack(count) for count in self.counts]
        return b"".join([*parts, self.tail_tag])

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Decode the value of the header's item; `ValueError` with the reason if it is invalid."""
        try:
            version, granule, wrap_count = _START.unpack_from(data)
            position = _START.size
            wraps = [
                Wrap(*_WRAP.unpack_from(data, position + index * _WRAP.size)) for index in range(wrap_count)
            ]
            position += wrap_count * _WRAP.size
            (stripes,) = _COUNT.unpack_from(data, position)
            position += _COUNT.size
            counts = struct.unpack_from(f">{stripes}I", data, position)
        except (struct.error, MemoryError, OverflowError) as error:
            raise ValueError("their header is cut off") from error
        if (version, granule) != (_VERSION, GRANULE):
            raise ValueError(
                f"their header names version {version} and granules of {granule} bytes, not version "
                f"{_VERSION} and {GRANULE}"
            )
        tail_tag = data[position + stripes * _COUNT.size :]
        if len(tail_tag) != TAG_LENGTH:
            raise ValueError(f"their header ends with {len(tail_tag)} bytes, not {TAG_LENGTH}")
        return cls(tuple(wraps), counts, tail_tag)

    def blanked(self) -> Header:
        """Return the header with zeros for the tail's tag, which is what that tag covers."""
        return replace(self, tail_tag=BLANK)


@dataclass(frozen=True)
class StoredTags:
    """The tags of a file with their header; consistent, but not yet checked by a key."""

    header: Header
    encoded: bytes
    tags: bytes


def find_header(tail: Tail) -> StoredTags | None:
    """Return the tags of a file; None if it has none.

    Raises `IntegrityError` if only some of the items are there: the file is damaged, or tags were removed.
    """
    marks = [each.value for each in tail.footer.types[0].attributes if each.key == ATTRIBUTE]
    headers = [each.value for each in tail.footer.metadata if each.name == ATTRIBUTE]
    tags = [each.value for each in tail.footer.metadata if each.name == TAGS_ITEM]
    if not (marks or headers or tags):
        return None
    if marks != [MARK] or len(headers) != 1 or len(tags) != 1:
        raise damaged_tags(
            tail, f"{len(headers)} headers, {len(tags)} lists and {len(marks)} marks instead of one each"
        )
    try:
        stored = StoredTags(Header.decode(headers[0]), headers[0], tags[0])
        _check(tail, stored)
    except ValueError as error:
        raise damaged_tags(tail, str(error)) from error
    return stored


def damaged_tags(tail: Tail, what: str) -> IntegrityError:
    """Return the error for tags that are inconsistent with each other or with the rest of the tail."""
    return IntegrityError(
        f"the tags of {tail.name} are damaged or were stripped: {what}. Restore the file from a copy"
    )


def first_variants(tail: Tail) -> dict[int, int]:
    """Return the first variant of each key; its local key wraps the MAC key."""
    variant_by_key: dict[int, int] = {}
    for number, variant in enumerate(tail.footer.encryption.variants):
        variant_by_key.setdefault(variant.key, number)
    return dict(sorted(variant_by_key.items()))


def _check(tail: Tail, stored: StoredTags) -> None:
    header = stored.header
    expected = list(first_variants(tail).items())
    if not expected or [(wrap.key, wrap.variant) for wrap in header.wraps] != expected:
        raise ValueError("their keys are not those of the encrypted columns")
    if len(header.counts) != tail.stripes:
        raise ValueError(f"they are for {len(header.counts)} stripes, not {tail.stripes}")
    if len(stored.tags) != sum(header.counts) * TAG_LENGTH:
        raise ValueError(
            f"there are {len(stored.tags)} bytes of tags, not {sum(header.counts)} tags of {TAG_LENGTH}"
        )
    for index, (stripe, count) in enumerate(zip(tail.footer.stripes, header.counts, strict=True)):
        if count < granules(stripe.footer_length):
            raise ValueError(f"stripe {index} has {count} tags, too few for its footer")


def mark(footer: proto.Message, encoded: bytes, tags: bytes) -> None:
    """Add the header, the tags and the attribute of the root type to a footer."""
    footer.types[0].attributes.add(key=ATTRIBUTE, value=MARK)
    footer.metadata.add(name=ATTRIBUTE, value=encoded)
    footer.metadata.add(name=TAGS_ITEM, value=tags)
