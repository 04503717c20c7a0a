"""The tail of an assembled file: encrypted stripe statistics, metadata, footer and postscript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockgate.framework.orc.encryption.stream_cipher import crypt
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import DEFAULT_BLOCK_SIZE, Buffer, frame
from lockgate.framework.orc.format.layout import MAGIC, Compression, StreamKind
from lockgate.framework.orc.format.merge_statistics import merge_statistics
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.integrity.tag_maker import TagMaker
from lockgate.framework.orc.write.masked_table import WideTable
from lockgate.framework.orc.write.output import Output

_HADOOP = 1  # Apache's writers always state this kind of key provider.


@dataclass
class WrittenStripes:
    """The written stripes; statistics have the columns of the wide file.

    `tags` computes the tags of a file with encrypted columns, and is None for other files. `metadata` is the
    user's metadata.
    """

    tags: TagMaker | None = None
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    sample: Tail | None = None
    stripes: list[dict[str, int]] = field(default_factory=list)
    stripe_statistics: list[proto.Message] = field(default_factory=list)
    file_statistics: list[list[proto.Message]] = field(default_factory=list)
    rows: int = 0

    def add(self, tail: Tail, metadata: proto.Message | None) -> None:
        """Add the rows and statistics of a wide file."""
        self.sample = self.sample or tail
        self.rows += tail.footer.number_of_rows
        self.file_statistics.append(list(tail.footer.statistics))
        if metadata is not None:
            self.stripe_statistics.extend(metadata.stripe_stats)

    def add_stripe(
        self,
        offset: int,
        index: int,
        data: int,
        rows: int,
        *,
        streams: Sequence[Buffer],
        stored_footer: bytes,
    ) -> None:
        """Record a written stripe and tag it.

        Lengths are in bytes; `streams` are in physical order, including empty ones.
        """
        if self.tags is not None:
            self.tags.add_stripe(streams, stored_footer)
        self.stripes.append(
            {
                "offset": offset,
                "index_length": index,
                "data_length": data,
                "footer_length": len(stored_footer),
                "number_of_rows": rows,
            }
        )


def write_tail(output: Output, wide: WideTable, written: WrittenStripes) -> None:
    """Write everything after the last stripe."""
    sample = written.sample
    assert sample is not None
    footer = _footer(wide, written, sample, output.size)
    statistics = [merge_statistics(parts) for parts in zip(*written.file_statistics, strict=True)]
    footer.statistics.extend(statistics[: wide.width])
    encrypted = _encrypt_statistics(footer, wide, written, statistics)
    metadata = frame(sample.codec, _metadata(wide, written).SerializeToString(), sample.block_size)
    postscript = proto.PostScript()
    postscript.CopyFrom(sample.postscript)
    if wide.columns:
        postscript.stripe_statistics_length = len(encrypted)
    local_keys = [column.local_key.plain for column in wide.columns]
    end_file(output, FileEnd(encrypted, metadata, footer, postscript), written.tags, local_keys)


def _encrypt_statistics(
    footer: proto.Message, wide: WideTable, written: WrittenStripes, statistics: list[proto.Message]
) -> bytes:
    """Add the file statistics of encrypted columns to their variants, and return the encrypted stripe
    statistics.
    """
    assert written.sample is not None
    codec, block = written.sample.codec, written.sample.block_size
    number_in_file, parts = len(written.stripes) + 1, list[bytes]()
    for number, column in enumerate(wide.columns):
        variant = footer.encryption.variants[number]
        key = column.local_key.plain
        for copy_number in column.columns:
            message = proto.ColumnarStripeStatistics(
                col_stats=[
                    stripe.col_stats[copy_number + column.shift] for stripe in written.stripe_statistics
                ]
            )
            content = frame(codec, message.SerializeToString(), block)
            parts.append(crypt(key, copy_number, StreamKind.STRIPE_STATISTICS, number_in_file, content))
            variant.stripe_statistics.add(
                kind=StreamKind.STRIPE_STATISTICS, column=copy_number, length=len(content)
            )
        column_statistics = proto.FileStatistics(
            column=[statistics[copy_number + column.shift] for copy_number in column.columns]
        )
        content = frame(codec, column_statistics.SerializeToString(), block)
        variant.file_statistics = crypt(key, column.root, StreamKind.FILE_STATISTICS, number_in_file, content)
    return b"".join(parts)


@dataclass(frozen=True)
class FileEnd:
    """The end of a file, after the last stripe: two stored parts, and two messages to complete."""

    statistics: bytes
    metadata: bytes
    footer: proto.Message
    postscript: proto.Message


def end_file(output: Output, end: FileEnd, tags: TagMaker | None, local_keys: Sequence[bytes]) -> None:
    """Write the end of a file, tagged by `tags`; `local_keys` are the footer keys of its variants, in order.

    Everything in it must be final, except the lengths of metadata and footer, which this function sets.
    """
    footer, postscript = end.footer, end.postscript
    codec = Compression(postscript.compression)
    block = postscript.compression_block_size or DEFAULT_BLOCK_SIZE
    header = None if tags is None else tags.describe(footer, local_keys)
    content = footer.SerializeToString()
    postscript.metadata_length = len(end.metadata)
    postscript.footer_length = len(frame(codec, content, block))
    stored = postscript.SerializeToString()
    stored += bytes([len(stored)])
    before = end.statistics + end.metadata
    if tags is not None and header is not None:
        content = tags.seal(before, content, header, stored)
    output.write(before)
    output.write(frame(codec, content, block))
    output.write(stored)


def _footer(wide: WideTable, written: WrittenStripes, sample: Tail, content_length: int) -> proto.Message:
    footer = proto.Footer(
        header_length=len(MAGIC),
        content_length=content_length,
        number_of_rows=written.rows,
        row_index_stride=sample.footer.row_index_stride,
        stripes=[proto.StripeInformation(**stripe) for stripe in written.stripes],
        types=_types(wide, sample),
    )
    for name, value in written.metadata.items():
        footer.metadata.add(name=name, value=value)
    for name in ("writer", "calendar", "software_version"):
        if sample.footer.HasField(name):
            setattr(footer, name, getattr(sample.footer, name))
    if footer.stripes and wide.columns:
        # Later stripes use the same keys, and their numbers continue from this one.
        footer.stripes[0].encrypt_stripe_id = 1
        footer.stripes[0].encrypted_local_keys.extend(column.local_key.encrypted for column in wide.columns)
    if wide.columns:
        _describe_encryption(footer.encryption, wide)
    return footer


def _types(wide: WideTable, sample: Tail) -> list[proto.Message]:
    types: list[proto.Message] = []
    for type_ in sample.footer.types[: wide.width]:
        copy = proto.Type()
        copy.CopyFrom(type_)
        types.append(copy)
    count = len(wide.schema)
    del types[0].subtypes[count:]
    del types[0].field_names[count:]
    for column in wide.columns:
        types[column.root].attributes.add(key="encrypt", value=column.key.name)
    for number, mask in sorted(wide.masks.items()):
        types[number].attributes.add(key="mask", value=str(mask))
    return types


def _describe_encryption(encryption: proto.Message, wide: WideTable) -> None:
    encryption.key_provider = _HADOOP
    for mask in sorted(set(wide.masks.values())):
        columns = sorted(number for number, other in wide.masks.items() if other == mask)
        encryption.mask.add(name=mask.name, mask_parameters=mask.parameters, columns=columns)
    keys = sorted({column.key for column in wide.columns})
    for key in keys:
        encryption.key.add(key_name=key.name, key_version=key.version, algorithm=key.algorithm)
    for column in wide.columns:
        encryption.variants.add(
            root=column.root, key=keys.index(column.key), encrypted_key=column.local_key.encrypted
        )


def _metadata(wide: WideTable, written: WrittenStripes) -> proto.Message:
    metadata = proto.Metadata()
    for stripe in written.stripe_statistics:
        metadata.stripe_stats.add(col_stats=stripe.col_stats[: wide.width])
    return metadata
