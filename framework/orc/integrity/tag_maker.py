"""Maker of a file's tags while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import Buffer
from lockgate.framework.orc.integrity.header import ATTRIBUTE, TAGS_ITEM, Header, Wrap, mark
from lockgate.framework.orc.integrity.mac import FOOTER_ORDINAL, GRANULE, Mac, new_mac_key, wrap_key
from lockgate.framework.orc.integrity.tail_tag import seal


class TagMaker:
    """The tags of one file: its stripes are shown in order, and the tail is sealed at the end.

    A nonce must never serve twice, so a maker is for one file, and no stripe is shown again.
    """

    def __init__(self, key: bytes | None = None) -> None:
        """Take a fresh key; `key` is for test vectors only."""
        self._key = new_mac_key() if key is None else key
        self._mac = Mac(self._key)
        self._tags: list[bytes] = []
        self._counts: list[int] = []
        self._ordinal = self._granule = -1

    def add_stripe(self, streams: Iterable[Buffer], footer: Buffer) -> None:
        """Tag a stripe: the stored bytes of each stream in physical order, empty ones too, and its footer."""
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
        """Begin the next stream of the stripe; one that will stay empty counts as well."""
        self._ordinal += 1
        self._granule = 0

    def add(self, data: Buffer) -> None:
        """Tag bytes of the stream as they are stored; every part but the last is a multiple of `GRANULE`."""
        view = memoryview(data)
        stripe = len(self._counts) - 1
        for start in range(0, len(view), GRANULE):
            part = view[start : start + GRANULE]
            self._tags.append(self._mac.tag(stripe, self._ordinal, self._granule, part))
            self._granule += 1
            self._counts[-1] += 1

    def end_stripe(self, footer: Buffer) -> None:
        """Tag the stripe's footer as it is stored."""
        self._ordinal, self._granule = FOOTER_ORDINAL, 0
        self.add(footer)

    def describe(self, footer: proto.Message, local_keys: Sequence[bytes]) -> bytes:
        """Put the tags into a footer that is otherwise complete; returns the header for `seal`.

        `local_keys` are the plain footer keys of its variants, in order.
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


def forget_tags(footer: proto.Message) -> None:
    """Remove the tags from a footer."""
    metadata = [each for each in footer.metadata if each.name not in (ATTRIBUTE, TAGS_ITEM)]
    attributes = [each for each in footer.types[0].attributes if each.key != ATTRIBUTE]
    _keep(footer.metadata, metadata)
    _keep(footer.types[0].attributes, attributes)


def _keep(field: proto.Message, kept: Sequence[proto.Message]) -> None:
    copies = []
    for message in kept:
        copy = type(message)()
        copy.CopyFrom(message)
        copies.append(copy)
    del field[:]
    field.extend(copies)
