"""The tail of an ORC file: postscript, footer and metadata, checked before use."""

from __future__ import annotations

from dataclasses import dataclass

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE, unframe
from lockgate.framework.orc.format.layout import MAGIC, Compression, check_text, corrupt
from lockgate.framework.orc.format.types import TypeTree
from lockgate.framework.orc.sources.file_source import Source

# Size of the first read of a remote file; most tails, with their stripe statistics, fit.
TAIL_LENGTH = 64 * 1024


@dataclass(frozen=True)
class Tail:
    """The tail of a file; offsets are bytes from the start of the file."""

    name: str
    postscript: proto.Message
    footer: proto.Message
    types: TypeTree
    codec: Compression
    block_size: int
    stripe_statistics_offset: int
    metadata_offset: int
    footer_offset: int

    @property
    def stripes(self) -> int:
        """The number of stripes."""
        return len(self.footer.stripes)


def read_tail(source: Source) -> Tail:
    """Read and check the tail; `CorruptFileError` with file, offset and reason if it is inconsistent."""
    name, size = source.name, source.size
    if size < len(MAGIC) + 2:
        raise corrupt(name, 0, f"the file has {size} bytes, too few for an ORC file")
    source.expect_tail(TAIL_LENGTH)
    # The postscript has the magic letters, too; reading those at the start would cost a remote request.
    if source.free or size <= TAIL_LENGTH:
        check_magic(source)
    length = source.read_at(size - 1, 1)[0]
    start = size - 1 - length
    if length == 0 or start < len(MAGIC):
        raise corrupt(
            name, size - 1, f"the postscript cannot have {length} bytes; the file is probably cut off"
        )
    postscript = _postscript(name, bytes(source.read_at(start, length)), start)
    if not postscript.magic:  # Hive before 0.12 wrote the magic letters only at the start.
        check_magic(source)
    return _footer(source, postscript, start)


def check_magic(source: Source) -> None:
    """Raise `CorruptFileError` unless a file begins with ORC's magic letters; `read_tail` may skip this."""
    if bytes(source.read_at(0, len(MAGIC))) != MAGIC:
        raise corrupt(source.name, 0, "it does not start with the letters ORC")


def parse(message: proto.Message, data: bytes, name: str, offset: int, what: str) -> proto.Message:
    """Parse a protobuf message; `CorruptFileError` that `what` at `offset` is damaged if that fails."""
    try:
        return message.FromString(data)
    except (proto.DecodeError, UnicodeDecodeError) as error:
        raise corrupt(name, offset, f"{what} cannot be parsed") from error


def _postscript(name: str, data: bytes, offset: int) -> proto.Message:
    postscript = parse(proto.PostScript, data, name, offset, "the postscript")
    if postscript.magic not in ("", MAGIC.decode("ascii")):
        raise corrupt(name, offset, "the postscript has no ORC mark; the file is cut off or not ORC")
    if postscript.compression not in list(Compression):
        raise corrupt(name, offset, f"there is no compression number {postscript.compression}")
    if postscript.compression in (Compression.LZO, Compression.BROTLI):
        raise UnsupportedFormatError(
            f"{name} is compressed with {Compression(postscript.compression).name}, which is not supported; "
            "rewrite it with ZSTD, ZLIB, SNAPPY or LZ4"
        )
    if postscript.compression_block_size > MAX_BLOCK_SIZE:
        raise corrupt(
            name, offset, f"a compression block cannot have {postscript.compression_block_size} bytes"
        )
    if list(postscript.version) not in ([], [0, 11], [0, 12]):
        version = ".".join(map(str, postscript.version))
        raise UnsupportedFormatError(
            f"{name} has ORC version {version}; versions 0.11 and 0.12 are supported"
        )
    return postscript


def _footer(source: Source, postscript: proto.Message, end: int) -> Tail:
    name = source.name
    footer_offset = end - postscript.footer_length
    metadata_offset = footer_offset - postscript.metadata_length
    statistics_offset = metadata_offset - postscript.stripe_statistics_length
    if postscript.footer_length == 0 or statistics_offset < len(MAGIC):
        raise corrupt(
            name,
            end,
            f"footer ({postscript.footer_length} bytes), metadata ({postscript.metadata_length}) and "
            f"encrypted statistics ({postscript.stripe_statistics_length}) do not fit before the postscript",
        )
    codec = Compression(postscript.compression)
    block_size = postscript.compression_block_size or DEFAULT_BLOCK_SIZE
    raw = source.read_at(footer_offset, postscript.footer_length)
    try:
        content = unframe(codec, raw, block_size)
    except ValueError as error:
        raise corrupt(name, footer_offset, f"the footer is damaged: {error}") from error
    footer = parse(proto.Footer, content, name, footer_offset, "the footer")
    check_text(name, footer_offset, "the version of the writing software", footer.software_version)
    types = TypeTree.of(name, footer_offset, footer.types)
    tail = Tail(
        name, postscript, footer, types, codec, block_size, statistics_offset, metadata_offset, footer_offset
    )
    _check_stripes(tail)
    _check_statistics(tail)
    _check_encryption(tail)
    return tail


def _check_stripes(tail: Tail) -> None:
    rows, end = 0, len(MAGIC)
    for index, stripe in enumerate(tail.footer.stripes):
        if stripe.offset < end:
            raise corrupt(
                tail.name, tail.footer_offset, f"stripe {index} starts at {stripe.offset}, before {end}"
            )
        end = stripe.offset + stripe.index_length + stripe.data_length + stripe.footer_length
        if end > tail.stripe_statistics_offset or stripe.footer_length == 0:
            raise corrupt(
                tail.name, tail.footer_offset, f"stripe {index} ends at {end}, which is not inside the file"
            )
        rows += stripe.number_of_rows
    if rows != tail.footer.number_of_rows:
        raise corrupt(
            tail.name,
            tail.footer_offset,
            f"the stripes have {rows} rows, but the footer says {tail.footer.number_of_rows}",
        )


def _check_statistics(tail: Tail) -> None:
    count = len(tail.footer.statistics)
    if count not in (0, len(tail.types)):
        raise corrupt(
            tail.name,
            tail.footer_offset,
            f"there are statistics of {count} columns, but {len(tail.types)} columns",
        )


def _check_encryption(tail: Tail) -> None:
    encryption, name, offset = tail.footer.encryption, tail.name, tail.footer_offset
    for key in encryption.key:
        key_name = key.key_name
        check_text(name, offset, "the name of a key", key_name)
        if not key_name:
            raise corrupt(name, offset, "a key has no name")
        if key.algorithm not in (1, 2):
            raise UnsupportedFormatError(
                f"{name} uses cipher number {key.algorithm} for key {key_name!r}; AES-CTR is supported"
            )
    for variant in encryption.variants:
        if not 0 < variant.root < len(tail.types) and not (variant.root == 0 and len(tail.types)):
            raise corrupt(
                name,
                offset,
                f"an encrypted column has number {variant.root}, but there are {len(tail.types)}",
            )
        if variant.key >= len(encryption.key):
            raise corrupt(
                name,
                offset,
                f"column {variant.root} is encrypted with key number {variant.key}, which is not listed",
            )
        for stream in variant.stripe_statistics:
            if stream.column not in tail.types.subtree(variant.root):
                raise corrupt(
                    name,
                    offset,
                    f"encrypted statistics of column {variant.root} are of column {stream.column}",
                )
    for index, stripe in enumerate(tail.footer.stripes):
        if len(stripe.encrypted_local_keys) not in (0, len(encryption.variants)) or (
            index == 0 and encryption.variants and not stripe.encrypted_local_keys
        ):
            raise corrupt(
                name,
                offset,
                f"stripe {index} has {len(stripe.encrypted_local_keys)} keys, not {len(encryption.variants)}",
            )
