"""Computes the integrity tags of a file while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import Buffer
from lockgate.framework.orc.integrity.header import ATTRIBUTE, TAGS_ITEM, Header, Wrap, mark
from lockgate.framework.orc.integrity.mac import FOOTER_ORDINAL, GRANULE, Mac, new_mac_key, wrap_key
from lockgate.framework.orc.integrity.tail_tag import seal


class TagMaker:
    """Collects the tags of one file, stripe by stripe in order, and at the end tags the tail.

    A nonce must never be used twice, so use an instance for one file, and add each stripe once.
    """

    def __init__(self, key: bytes | None = None) -> None:
        """Create a random key; pass `key` for test vectors only."""
        self._key = new_mac_key() if key is None else key
        self._mac = Mac(self._key)
        self._tags: list[bytes] = []
        self._counts: list[int] = []
        self._ordinal = self._granule = -1

    def add_stripe(self, streams: Iterable[Buffer], footer: Buffer) -> None:
        """Tag a stripe: the stored bytes of each stream in physical order, including empty ones, and its
        footer.
        """
        self.start_stripe()
        for stream in streams:
            self.start_stream()
            self.add(stream)
        self.end_stripe(footer)

    def start_stripe(self) -> None:
        """Begin the next stripe."""
        self._counts.append(0)
        self._ordinal = -1

    def start_stream(self) -> None:
        """Begin the next stream of the stripe; empty streams count, too."""
        self._ordinal += 1
        self._granule = 0

    def add(self, data: Buffer) -> None:
        """Tag stored bytes of the stream; the length of all parts but the last is a multiple of `GRANULE`."""
        view = memoryview(data)
        stripe = len(self._counts) - 1
        for start in range(0, len(view), GRANULE):
            part = view[start : start + GRANULE]
            self._tags.append(self._mac.tag(stripe, self._ordinal, self._granule, part))
            self._granule += 1
            self._counts[-1] += 1

    def end_stripe(self, footer: Buffer) -> None:
        """Tag the stored footer of the stripe."""
        self._ordinal, self._granule = FOOTER_ORDINAL, 0
        self.add(footer)

    def describe(self, footer: proto.Message, local_keys: Sequence[bytes]) -> bytes:
        """Add the tags to an otherwise complete footer, and return the header for `seal`.

        `local_keys` are the decrypted footer keys of its variants, in order.
        """
        encryption = footer.encryption
        wraps: dict[int, Wrap] = {}
        for number, variant in enumerate(encryption.variants):
            if variant.key not in wraps:
                name = encryption.key[variant.key].key_name
                wrapped = wrap_key(self._key, local_keys[number], name)
                wraps[variant.key] = Wrap(variant.key, number, wrapped)
        header = Header(tuple(wraps[key] for key in sorted(wraps)), tuple(self._counts)).encode()
        mark(footer, header, b"".join(self._tags))
        return header

    def seal(self, statistics: Buffer, content: bytes, header: bytes, ending: Buffer) -> bytes:
        """Return the serialized footer `content` with the tail's tag in `header`, at unchanged length."""
        return seal(self._mac, statistics, content, header, ending)


def remove_tags(footer: proto.Message) -> None:
    """Remove the tags from a footer."""
    metadata = [item for item in footer.metadata if item.name not in (ATTRIBUTE, TAGS_ITEM)]
    attributes = [item for item in footer.types[0].attributes if item.key != ATTRIBUTE]
    _replace(footer.metadata, metadata)
    _replace(footer.types[0].attributes, attributes)


def _replace(field: proto.Message, messages: Sequence[proto.Message]) -> None:
    copies = []
    for message in messages:
        copy = type(message)()
        copy.CopyFrom(message)
        copies.append(copy)
    del field[:]
    field.extend(copies)
