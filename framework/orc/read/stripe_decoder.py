"""Decoding of one stripe, or of its row groups that may match, into an Arrow table."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
import pyarrow.orc

from lockgate.errors import CorruptFileError, UnsupportedTypeError
from lockgate.framework.orc.encryption.stripe_keys import prove_stripe_keys
from lockgate.framework.orc.encryption.variants import Variants
from lockgate.framework.orc.format.layout import corrupt
from lockgate.framework.orc.format.null_keys import refuse_null_keys
from lockgate.framework.orc.format.stripe import Stripe, read_stripe
from lockgate.framework.orc.format.tail import Tail
from lockgate.framework.orc.isolation.decoder import ArrowDecoder, Decoder
from lockgate.framework.orc.read.image import Projection, stripe_image
from lockgate.framework.orc.read.predicate import RowFilter
from lockgate.framework.orc.read.read_report import CountedSource, ReadCounter
from lockgate.framework.orc.read.row_groups import StripeRowGroups
from lockgate.framework.orc.read.timestamps import decode_wide, finer_columns, to_microseconds
from lockgate.framework.orc.sources.file_source import MemorySource, Source

# Approximate number of stored bytes of a stripe that are decoded together.
PART_BYTES = 16 * 1024 * 1024

TimestampUnit = Literal["ns", "us"]


@dataclass(frozen=True)
class OpenFile:
    """An open file with its tail and proven keys, for decoding stripes.

    `source` is `stored`, or checks everything that it reads from it.
    """

    stored: Source
    source: Source
    tail: Tail
    variants: Variants
    decoder: Decoder
    unit: TimestampUnit

    @property
    def name(self) -> str:
        """The file's name in errors."""
        return self.source.name


class StripeDecoder:
    """Decodes the stripes of a file, for one projection and row filter; thread-safe.

    `schema` is the schema of the tables: the columns of `projection` in the order of the file. `counter`
    counts the reads.
    """

    def __init__(
        self,
        file: OpenFile,
        projection: Projection,
        schema: pa.Schema,
        rows: RowFilter | None,
        counter: ReadCounter,
    ) -> None:
        self._file = file
        self._source = CountedSource(file.source, counter)
        self._projection = projection
        self._schema = schema
        self._rows = rows
        self._counter = counter
        self._direct_reader = _DirectReader(file, projection)

    def decode(self, index: int) -> pa.Table:
        """Return the rows of stripe `index` that match the filter.

        Raises `CorruptFileError` if decoding fails, `WrongKeyError` if the stripe's key is wrong,
        `UnsupportedTypeError` for times out of the unit's range, and `UnsupportedError` for maps with null
        keys.
        """
        tail, variants = self._file.tail, self._file.variants
        if not self._schema.names:
            return rows_only(int(tail.footer.stripes[index].number_of_rows))
        stripe = read_stripe(self._source, tail, index)
        prove_stripe_keys(self._source, tail, variants, stripe, frozenset(self._projection.numbers[1:]))
        refuse_null_keys(tail, [stream for _, stream in self._projection.select(stripe.streams, variants)])
        if self._rows is None:
            return self._whole(stripe)
        groups = StripeRowGroups(self._source, tail, variants, stripe)
        runs = groups.select(self._rows, self._projection, self._counter)
        if runs is None:
            return self._rows.apply(self._whole(stripe))
        if not runs:
            return self._schema.empty_table()
        self._counter.add_stripe(index, runs)
        return pa.concat_tables([self._rows.apply(self._run(stripe, groups, run)) for run in runs])

    def nanosecond_columns(self, index: int) -> set[str]:
        """Return the columns of a stripe with digits beyond microseconds; raises as `decode`."""
        tail, variants = self._file.tail, self._file.variants
        stripe = read_stripe(self._source, tail, index)
        prove_stripe_keys(self._source, tail, variants, stripe, frozenset(self._projection.numbers[1:]))
        refuse_null_keys(tail, [stream for _, stream in self._projection.select(stripe.streams, variants)])
        try:
            return finer_columns(tail, stripe, self._projection, lambda part: self._in_parts(stripe, part))
        except (OSError, pa.ArrowException) as error:
            raise self._undecodable(index, error) from error

    def _in_parts(self, stripe: Stripe, projection: Projection) -> pa.Table:
        # If reads are free, decode a few columns at a time, to save memory: Arrow may hold a column twice
        # while it decodes it.
        max_bytes = PART_BYTES if self._source.free else sys.maxsize
        tables = [
            self._image(stripe, part)
            for part in projection.parts(stripe.streams, self._file.variants, max_bytes)
        ]
        columns = [column for table in tables for column in table.columns]
        return pa.Table.from_arrays(columns, [name for table in tables for name in table.schema.names])

    def _whole(self, stripe: Stripe) -> pa.Table:
        def decode(projection: Projection) -> pa.Table:
            return self._in_parts(stripe, projection)

        def direct(projection: Projection) -> pa.Table:
            if projection is not self._projection:
                return decode(projection)
            selection = projection.select(stripe.streams, self._file.variants)
            self._counter.add(bytes_read=sum(stream.length for _, stream in selection))
            table = self._direct_reader.read(stripe.index)
            self._release(stripe)
            return table

        self._counter.add_stripe(stripe.index)
        table = self._decoded(stripe, direct if self._direct_reader.is_possible else decode)
        return self._checked(stripe, table, stripe.rows)

    def _image(self, stripe: Stripe, projection: Projection) -> pa.Table:
        image = stripe_image(self._source, self._file.tail, self._file.variants, stripe, projection)
        self._release(stripe)
        return self._file.decoder.table(image)

    def _run(self, stripe: Stripe, groups: StripeRowGroups, run: range) -> pa.Table:
        """Return the rows of a run of row groups."""
        rows = 0

        def decode(projection: Projection) -> pa.Table:
            nonlocal rows
            image, rows = groups.image(projection, run)
            self._release(stripe)
            return self._file.decoder.table(image)

        return self._checked(stripe, self._decoded(stripe, decode), rows)

    def _decoded(self, stripe: Stripe, decode: Callable[[Projection], pa.Table]) -> pa.Table:
        """Return the decoded projection, with microseconds if its times are out of the range of
        nanoseconds.
        """
        try:
            try:
                return decode(self._projection)
            except pa.ArrowInvalid as error:
                if "nanosecond" not in str(error):
                    raise
            if self._file.unit == "us":
                return decode_wide(self._file.tail, stripe, self._projection, decode)
        except (OSError, pa.ArrowException) as error:
            raise self._undecodable(stripe.index, error) from error
        raise UnsupportedTypeError(
            f"{self._file.name} holds a time beyond the years 1677 to 2262, which nanoseconds cannot hold; "
            'open the file with timestamp_unit="us"'
        )

    def _checked(self, stripe: Stripe, table: pa.Table, rows: int) -> pa.Table:
        if table.num_rows != rows:
            raise self._undecodable(stripe.index, f"it has {table.num_rows} rows, not {rows}")
        for field, column in zip(self._schema, table.columns, strict=True):
            if _holds_text(field.type):
                self._check_text(stripe, field.name, column)
        columns = table.columns
        if self._file.unit == "us":
            columns = [
                to_microseconds(column, field.type)
                for column, field in zip(columns, self._schema, strict=True)
            ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _check_text(self, stripe: Stripe, name: str, column: pa.ChunkedArray) -> None:
        """Raise an error for text that is not UTF-8, as Arrow does for Parquet: later steps would fail on
        it.
        """
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise self._undecodable(stripe.index, f"column {name!r}: {error}") from error

    def _release(self, stripe: Stripe) -> None:
        """Release the memory of the stored bytes before decoding needs more."""
        extent = self._file.tail.footer.stripes[stripe.index]
        length = extent.index_length + extent.data_length + extent.footer_length
        self._file.stored.forget(extent.offset, length)

    def _undecodable(self, index: int, reason: object) -> CorruptFileError:
        offset = self._file.tail.footer.stripes[index].offset
        return corrupt(self._file.name, offset, f"stripe {index} does not decode ({reason})")


def _holds_text(data_type: pa.DataType) -> bool:
    """Return whether a type is text, or nested with text inside."""
    inner = (data_type.field(number).type for number in range(data_type.num_fields))
    return bool(pa.types.is_string(data_type)) or any(_holds_text(inner_type) for inner_type in inner)


class _DirectReader:
    """Arrow's reader of a file in memory without encryption, which avoids the copy into an image."""

    def __init__(self, file: OpenFile, projection: Projection) -> None:
        self._source = cast(MemorySource, file.stored)
        self._names = projection.names
        self._opened = threading.local()
        self.is_possible = (
            projection.plain
            and not len(file.variants)
            and isinstance(file.stored, MemorySource)
            and isinstance(file.decoder, ArrowDecoder)
        )

    def read(self, index: int) -> pa.Table:
        return pa.Table.from_batches([self._reader().read_stripe(index, self._names)])

    def _reader(self) -> Any:
        reader = getattr(self._opened, "reader", None)
        if reader is None:
            reader = self._opened.reader = pyarrow.orc.ORCFile(self._source.arrow_file())
        return reader


def rows_only(count: int) -> pa.Table:
    """Return a table of `count` rows without columns."""
    return pa.table({"": pa.nulls(count)}).select([])
