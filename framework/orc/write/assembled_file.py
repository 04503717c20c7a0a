"""Assembling an ORC file, encrypted or not, from plain files that Arrow writes in memory.

Arrow writes the rows once, in their wide form, so that masks and true values share stripes and row groups.
Then the streams of the true values are encrypted and moved to their place in the format. Unencrypted values
stay in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc

from lockgate.errors import UnsupportedError
from lockgate.framework.keys import KeyProvider
from lockgate.framework.orc.encryption.encryption_options import Encryption
from lockgate.framework.orc.encryption.stream_cipher import MAX_STRIPE, SLACK, stream_cipher
from lockgate.framework.orc.format import proto
from lockgate.framework.orc.format.chunks import frame
from lockgate.framework.orc.format.layout import INDEX_KINDS, MAGIC, StreamKind
from lockgate.framework.orc.format.stripe import Stream, Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail, read_tail
from lockgate.framework.orc.format.text_kinds import patch_kinds
from lockgate.framework.orc.integrity.tag_maker import TagMaker
from lockgate.framework.orc.read.pre_1970 import EarlyTimes, StreamReplacements
from lockgate.framework.orc.read.stripe_statistics import read_metadata
from lockgate.framework.orc.sources.file_source import MemorySource
from lockgate.framework.orc.write.arrow_slices import unsliced
from lockgate.framework.orc.write.assembled_tail import WrittenStripes, write_tail
from lockgate.framework.orc.write.masked_table import MaskedColumn, WideTable
from lockgate.framework.orc.write.output import Output

_Streams = list[tuple[MaskedColumn | None, Stream]]


class AssembledFile:
    """A file with encrypted columns, or with times or types that Arrow does not write correctly."""

    def __init__(
        self,
        output: Output,
        schema: pa.Schema,
        encryption: Encryption,
        keys: KeyProvider,
        settings: Mapping[str, Any],
        bloom: Sequence[str],
        metadata: Mapping[str, bytes],
    ) -> None:
        self._output = output
        self._wide = WideTable(schema, encryption, keys)
        self._settings = {**settings, "bloom_filter_columns": self._wide.bloom_numbers(bloom) or None}
        # Rows are collected until they fill about a compressed stripe.
        self._chunk = 2 * int(settings["stripe_size"])
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        # Reused for each stripe: the first access to new memory costs more than encryption.
        self._scratch = memoryview(b"")
        self._copy_of = {
            number + column.shift: column for column in self._wide.columns for number in column.columns
        }
        self._written = WrittenStripes(TagMaker() if self._wide.columns else None)
        self._written.metadata = metadata
        output.write(MAGIC)

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        step = max(1, table.num_rows * self._chunk // max(table.nbytes, 1))
        for start in range(0, table.num_rows, step):
            part = table.slice(start, step)
            self._pending.append(part)
            self._pending_bytes += part.nbytes
            if self._pending_bytes >= self._chunk:
                self._flush()

    def finish(self) -> None:
        """Write the pending rows and the tail."""
        if self._pending or self._written.sample is None:
            self._flush()
        write_tail(self._output, self._wide, self._written)

    def abort(self) -> None:
        """Discard the pending rows."""
        self._pending, self._pending_bytes = [], 0

    def _flush(self) -> None:
        rows = pa.concat_tables(self._pending) if self._pending else self._wide.schema.empty_table()
        self._pending, self._pending_bytes = [], 0
        times = EarlyTimes(unsliced(self._wide.widen(rows)), self._wide.numbers, self._wide.names)
        sink = pa.BufferOutputStream()
        pyarrow.orc.write_table(times.table, sink, **self._settings)
        source = MemorySource(sink.getvalue(), "the file in memory")
        tail = read_tail(source)
        patch_kinds(tail.footer.types)
        row = 0
        for index in range(tail.stripes):
            stripe = read_stripe(source, tail, index)
            stripe, replaced = times.patch_stripe(source, tail, stripe, row) if times else (stripe, {})
            self._move_stripe(source, tail, stripe, replaced)
            row += stripe.rows
        metadata = read_metadata(source, tail)
        times.patch_statistics(tail, metadata)
        self._written.add(tail, metadata)

    def _move_stripe(
        self, source: MemorySource, tail: Tail, stripe: Stripe, replaced: StreamReplacements
    ) -> None:
        number = len(self._written.stripes) + 1
        if number >= MAX_STRIPE:
            raise UnsupportedError(
                f"an encrypted file has at most {MAX_STRIPE} stripes; use a larger stripe_size"
            )
        footer = self._footer(stripe)
        buffer = self._encryption_buffer(stripe)
        lengths: list[int] = []
        pieces: list[memoryview] = []
        for is_index in (True, False):
            streams = self._sorted(stripe, is_index)
            for column, stream in streams:
                new = replaced.get((stream.column, stream.kind))
                data = source.read_at(stream.offset, stream.length) if new is None else memoryview(new)
                if column is not None and stream.length:
                    cipher = stream_cipher(
                        column.local_key.plain, stream.column - column.shift, stream.kind, number
                    )
                    cipher.update_into(data, buffer[: stream.length + SLACK])
                    data, buffer = buffer[: stream.length], buffer[stream.length :]
                pieces.append(data)
            self._add_streams(footer, streams, is_index)
            lengths.append(sum(stream.length for _, stream in streams))
        offset = self._output.size
        footer_bytes = frame(tail.codec, footer.SerializeToString(), tail.block_size)
        for piece in (*pieces, footer_bytes):
            self._output.write(piece)
        self._written.add_stripe(
            offset, lengths[0], lengths[1], stripe.rows, streams=pieces, stored_footer=footer_bytes
        )

    def _sorted(self, stripe: Stripe, is_index: bool) -> _Streams:
        """Return the index or data streams in file order: unencrypted ones, then encrypted ones by column."""
        plain: _Streams = []
        encrypted: dict[int, _Streams] = {column.root: [] for column in self._wide.columns}
        for stream in stripe.streams:
            if (stream.kind in INDEX_KINDS) is not is_index:
                continue
            column = self._copy_of.get(stream.column)
            if column is not None:
                encrypted[column.root].append((column, stream))
            elif stream.column < self._wide.width:
                plain.append((None, stream))
        return plain + [stream for column in self._wide.columns for stream in encrypted[column.root]]

    def _footer(self, stripe: Stripe) -> proto.Message:
        footer = proto.StripeFooter()
        if stripe.footer.writer_timezone:
            footer.writer_timezone = stripe.footer.writer_timezone
        footer.columns.extend(stripe.footer.columns[: self._wide.width])
        for column in self._wide.columns:
            variant = footer.encryption.add()
            variant.encoding.extend(stripe.footer.columns[number + column.shift] for number in column.columns)
        return footer

    def _add_streams(self, footer: proto.Message, streams: _Streams, is_index: bool) -> None:
        """Add streams to a stripe footer; one placeholder without column stands for all encrypted streams."""
        variants = {column.root: number for number, column in enumerate(self._wide.columns)}
        encrypted_length = 0
        for column, stream in streams:
            if column is None:
                footer.streams.add(kind=stream.kind, column=stream.column, length=stream.length)
            else:
                encrypted_length += stream.length
                variant_streams = footer.encryption[variants[column.root]].streams
                variant_streams.add(
                    kind=stream.kind, column=stream.column - column.shift, length=stream.length
                )
        if encrypted_length:
            footer.streams.add(
                kind=StreamKind.ENCRYPTED_INDEX if is_index else StreamKind.ENCRYPTED_DATA,
                length=encrypted_length,
            )

    def _encryption_buffer(self, stripe: Stripe) -> memoryview:
        """Return a buffer for all encrypted streams of a stripe."""
        size = sum(stream.length for stream in stripe.streams if stream.column in self._copy_of) + SLACK
        if len(self._scratch) < size:
            # Not a bytearray, which would fill the memory with zeros.
            self._scratch = np.empty(size + size // 8, np.uint8).data
        return self._scratch
