"""Copying an ORC file with other keys, or without encryption, without decoding values.

Encryption is the outermost layer of a stream and keeps its length. So the bytes of values, their compression,
row indexes and Bloom filters stay the same; only footers and statistics are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.errors import UnsupportedError
from lockgate.framework.keys import KeyMetadata, LocalKey
from lockgate.framework.orc.encryption.stream_cipher import MAX_STRIPE, SLACK, crypt, stream_cipher
from lockgate.framework.orc.encryption.stripe_keys import prove_stripe_keys
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import INDEX_KINDS, MAGIC, StreamKind
from lockgate.framework.orc.format.stripe import Stream, Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.mac import GRANULE
from lockgate.framework.orc.integrity.tag_maker import TagMaker, remove_tags
from lockgate.framework.orc.read.image import ENCRYPTION_ATTRIBUTES
from lockgate.framework.orc.read.stripe_statistics import decrypted_statistics, read_metadata
from lockgate.framework.orc.sources.file_source import Source
from lockgate.framework.orc.write.assembled_tail import FileEnd, end_file
from lockgate.framework.orc.write.output import Output

# Small enough to stay in the processor's cache for both ciphers; each piece has one tag.
_PIECE = GRANULE


@dataclass(frozen=True)
class NewKey:
    """The new key of a variant."""

    key: KeyMetadata
    local_key: LocalKey


class Restreamer:
    """Copies one file; all variants must be open.

    `new_keys` has a key for each variant; None writes the copy without encryption.
    """

    def __init__(
        self,
        source: Source,
        tail: Tail,
        variants: Variants,
        output: Output,
        new_keys: Sequence[NewKey] | None,
    ) -> None:
        self._source = source
        self._tail = tail
        self._variants = variants
        self._output = output
        self._new_keys = new_keys
        numbers = range(len(variants))
        # The format orders variants by the name of their key, which may have changed.
        self._order = (
            []
            if new_keys is None
            else sorted(numbers, key=lambda each: (new_keys[each].key.name, variants.root(each)))
        )
        self._rank = {variant: rank for rank, variant in enumerate(self._order)}
        self._footer = proto.Footer()
        self._footer.CopyFrom(tail.footer)
        self._tags = None if new_keys is None else TagMaker()
        self._rooms = [memoryview(bytearray(_PIECE + SLACK)) for _ in range(2)]

    def run(self) -> None:
        """Write the copy."""
        remove_tags(self._footer)
        self._output.write(MAGIC)
        for index in range(self._tail.stripes):
            stripe = read_stripe(self._source, self._tail, index)
            prove_stripe_keys(self._source, self._tail, self._variants, stripe)
            self._copy_stripe(stripe)
        self._footer.content_length = self._output.size
        if self._new_keys is None:
            statistics, metadata = b"", self._plain_statistics()
            self._remove_encryption()
        else:
            statistics, metadata = self._stripe_statistics(self._new_keys), self._stored_metadata()
            self._describe_encryption(self._new_keys)
        self._finish(statistics, metadata)

    # --- stripes ---

    def _copy_stripe(self, stripe: Stripe) -> None:
        number = stripe.index + 1
        if self._new_keys is not None and number >= MAX_STRIPE:
            raise UnsupportedError(f"an encrypted file has at most {MAX_STRIPE} stripes")
        streams = self._arranged(stripe)
        stored = self._source.read_ranges([(stream.offset, stream.length) for stream in streams])
        offset, index_length = self._output.size, 0
        if self._tags is not None:
            self._tags.start_stripe()
        for stream, data in zip(streams, stored, strict=True):
            self._copy_stream(stripe.index, stream, data)
            if stream.kind in INDEX_KINDS:
                index_length = self._output.size - offset
        data_length = self._output.size - offset - index_length
        footer = self._stripe_footer(stripe, streams)
        written = frame(self._tail.codec, footer.SerializeToString(), self._tail.block_size)
        if self._tags is not None:
            self._tags.end_stripe(written)
        information = self._footer.stripes[stripe.index]
        information.offset = offset
        information.index_length = index_length
        information.data_length = data_length
        information.footer_length = self._output.write(written)

    def _arranged(self, stripe: Stripe) -> list[Stream]:
        """Return the streams of the copy: index before data, and in each the encrypted ones last."""
        if self._new_keys is None:
            kept_streams = [
                stream
                for stream in stripe.streams
                if self._variants.variant_of(stream.column) == stream.variant
            ]
            return sorted(kept_streams, key=lambda stream: (stream.kind not in INDEX_KINDS, stream.column))

        def rank(stream: Stream) -> tuple[bool, int]:
            variant = stream.variant
            return stream.kind not in INDEX_KINDS, -1 if variant is None else self._rank[variant]

        return sorted(stripe.streams, key=rank)

    def _copy_stream(self, stripe: int, stream: Stream, data: memoryview) -> None:
        variant = stream.variant
        if self._tags is not None:
            self._tags.start_stream()
        if variant is None:
            self._write(data)
            return
        key, number = self._variants.stripe_key(variant, stripe), self._variants.stripe_id(stripe)
        ciphers = [stream_cipher(key, stream.column, stream.kind, number)]
        if self._new_keys is not None:
            new_keys = self._new_keys[variant].local_key.plain
            ciphers.append(stream_cipher(new_keys, stream.column, stream.kind, stripe + 1))
        for start in range(0, stream.length, _PIECE):
            piece = data[start : start + _PIECE]
            for cipher, room in zip(ciphers, self._rooms, strict=False):
                written = cipher.update_into(piece, room)
                piece = room[:written]
            self._write(piece)

    def _write(self, data: memoryview) -> None:
        """Write stored bytes of a stream, at once or in pieces."""
        if self._tags is not None:
            self._tags.add(data)
        self._output.write(data)

    def _stripe_footer(self, stripe: Stripe, streams: Sequence[Stream]) -> proto.Message:
        footer = proto.StripeFooter()
        footer.CopyFrom(stripe.footer)
        del footer.encryption[:]
        if self._new_keys is not None:
            footer.encryption.extend(stripe.footer.encryption[variant] for variant in self._order)
            return footer
        del footer.streams[:]
        for stream in streams:
            footer.streams.add(kind=stream.kind, column=stream.column, length=stream.length)
        for column, encoding in enumerate(footer.columns):
            variant = self._variants.variant_of(column)
            if variant is not None:
                described = stripe.footer.encryption[variant].encoding
                encoding.CopyFrom(described[column - self._variants.root(variant)])
        return footer

    # --- statistics ---

    def _stripe_statistics(self, new_keys: Sequence[NewKey]) -> bytes:
        """Return the stripe statistics, encrypted with the new keys."""
        number_in_file, offset = self._tail.stripes + 1, self._tail.stripe_statistics_offset
        parts_by_variant: dict[int, list[bytes]] = {}
        for variant in range(len(self._variants)):
            old_key, new_key = self._variants.footer_key(variant), new_keys[variant].local_key.plain
            parts_by_variant[variant] = []
            for stream in self._variants.stripe_statistics(variant):
                stored = bytes(self._source.read_at(offset, stream.length))
                offset += stream.length
                plain = crypt(old_key, stream.column, StreamKind.STRIPE_STATISTICS, number_in_file, stored)
                parts_by_variant[variant].append(
                    crypt(new_key, stream.column, StreamKind.STRIPE_STATISTICS, number_in_file, plain)
                )
        return b"".join(part for variant in self._order for part in parts_by_variant[variant])

    def _stored_metadata(self) -> bytes:
        return bytes(self._source.read_at(self._tail.metadata_offset, self._tail.postscript.metadata_length))

    def _plain_statistics(self) -> bytes:
        """Set the true statistics in the footer, and return the metadata with those of the stripes."""
        for column, message in enumerate(self._footer.statistics):
            variant = self._variants.variant_of(column)
            if variant is not None:
                true = self._variants.statistics[variant]
                message.CopyFrom(true[column - self._variants.root(variant)])
        metadata = read_metadata(self._source, self._tail)
        if metadata is None:
            return self._stored_metadata()
        for column, messages in decrypted_statistics(self._source, self._tail, self._variants).items():
            for stripe, message in zip(metadata.stripe_stats, messages, strict=True):
                if column < len(stripe.col_stats):
                    stripe.col_stats[column].CopyFrom(message)
        return frame(self._tail.codec, metadata.SerializeToString(), self._tail.block_size)

    # --- the tail ---

    def _remove_encryption(self) -> None:
        self._footer.ClearField("encryption")
        for type_ in self._footer.types:
            kept = [each for each in type_.attributes if each.key not in ENCRYPTION_ATTRIBUTES]
            copies = [proto.StringPair(key=each.key, value=each.value) for each in kept]
            del type_.attributes[:]
            type_.attributes.extend(copies)
        for stripe in self._footer.stripes:
            stripe.ClearField("encrypt_stripe_id")
            del stripe.encrypted_local_keys[:]

    def _describe_encryption(self, new_keys: Sequence[NewKey]) -> None:
        encryption, number_in_file = self._footer.encryption, self._tail.stripes + 1
        keys = sorted({each.key for each in new_keys})
        del encryption.key[:], encryption.variants[:]
        for key in keys:
            encryption.key.add(key_name=key.name, key_version=key.version, algorithm=key.algorithm)
        for number in self._order:
            old, local_key = self._tail.footer.encryption.variants[number], new_keys[number].local_key
            variant = encryption.variants.add()
            variant.CopyFrom(old)
            variant.key = keys.index(new_keys[number].key)
            variant.encrypted_key = local_key.encrypted
            stored, kind = old.file_statistics, StreamKind.FILE_STATISTICS
            plain = crypt(self._variants.footer_key(number), old.root, kind, number_in_file, stored)
            variant.file_statistics = crypt(local_key.plain, old.root, kind, number_in_file, plain)
            for attribute in self._footer.types[old.root].attributes:
                if attribute.key == "encrypt":
                    attribute.value = new_keys[number].key.name
        for stripe in self._footer.stripes:
            stripe.ClearField("encrypt_stripe_id")
            del stripe.encrypted_local_keys[:]
        if self._footer.stripes:
            # Later stripes use the same keys, and their numbers continue from this one.
            first = self._footer.stripes[0]
            first.encrypt_stripe_id = 1
            first.encrypted_local_keys.extend(new_keys[number].local_key.encrypted for number in self._order)

    def _finish(self, statistics: bytes, metadata: bytes) -> None:
        postscript = proto.PostScript()
        postscript.CopyFrom(self._tail.postscript)
        postscript.ClearField("stripe_statistics_length")
        local_keys: list[bytes] = []
        if self._new_keys is not None:
            postscript.stripe_statistics_length = len(statistics)
            local_keys = [self._new_keys[number].local_key.plain for number in self._order]
        end = FileEnd(statistics, metadata, self._footer, postscript)
        end_file(self._output, end, self._tags, local_keys)
