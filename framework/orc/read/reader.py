"""The reader of ORC files, encrypted or not, into Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, MaskedDataWarning, warn_user
from lockgate.framework import access
from lockgate.framework.io import named_errors
from lockgate.framework.keys import KeyProvider, provider_from
from lockgate.framework.orc.encryption.decrypted_columns import Mark, file_mark, with_mark
from lockgate.framework.orc.encryption.variants import EncryptedColumn, Variants
from lockgate.framework.orc.format.column_paths import split
from lockgate.framework.orc.format.layout import corrupt
from lockgate.framework.orc.format.leaf_paths import top_level_of
from lockgate.framework.orc.format.orc_statistics import ColumnStatistics, column_statistics
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.integrity.authenticate import Mode, Status, authenticate, check_mode
from lockgate.framework.orc.isolation.isolation import Isolation, decoder_for
from lockgate.framework.orc.read.image import Projection, empty_image
from lockgate.framework.orc.read.predicate import RowFilter, distrusted_columns
from lockgate.framework.orc.read.read_report import ReadCounter, ReadReport
from lockgate.framework.orc.read.stripe_decoder import OpenFile, StripeDecoder, TimestampUnit, rows_only
from lockgate.framework.orc.read.stripe_statistics import stripe_statistics
from lockgate.framework.orc.read.timestamps import in_microseconds
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.framework.orc.sources.parallel import in_order, thread_count

MASKED = access.MASKED.encode()
# From this file size on, freed memory is returned to the system at once. Below, Arrow's allocator keeps it
# for a while, which saves up to a fifth of the time.
HUGE = 1 << 30


@checked_arguments
class EncryptedOrcFile:
    """An ORC file with or without encrypted columns.

    `source` is a path, bytes, a seekable file object, an object with `read_at(offset, length)` and `size`, or
    a pair (file system, path) with one of Arrow's or fsspec's file systems; of remote files it reads only the
    needed bytes. `keys` is a `KeyProvider` or an argument of `provider_from`.

    If a column's key is missing or denied, reads return its mask, with a `MaskedDataWarning`; the field's
    metadata `lockgate.masked` names the mask. With `strict`, opening such a file raises `KeyMissingError` or
    `KeyDeniedError` instead: code that rewrites what it reads must be strict, or it stores masks as values.

    Timestamps are nanoseconds, as in pyarrow, which end in the year 2262. `timestamp_unit="us"` gives
    microseconds, rounded down, for the years 1 to 9999.

    Files that Lockgate encrypted have tags (docs/integrity.md). With `integrity="verify"`, reads check such a
    file by its tags first; in a file without tags, damage shows only if values no longer decode. `"require"`
    refuses files that cannot be checked, `"ignore"` checks nothing. `file.integrity` has the result.

    Reads decode `threads` stripes at a time (None: one for each core). With `isolate` a child process does
    that, so a damaged file cannot crash this one.

    Raises `WrongKeyError` for a key that does not open the file, `KeyServiceError` if the key service does
    not answer, `IntegrityError` for bytes that do not match their tags, `CorruptFileError` for a damaged
    file, and `StorageDeniedError` for a file that this user may not read. Damage to the name of a file's only
    key looks like a missing key: it leads to masks and a warning, unless `strict` or `"require"`.
    """

    @named_errors
    def __init__(
        self,
        source: Any,
        keys: Any = None,
        strict: bool = False,
        *,
        timestamp_unit: TimestampUnit = "ns",
        name: str | None = None,
        threads: int | None = None,
        isolate: bool | Isolation = False,
        integrity: Mode = "verify",
    ) -> None:
        if timestamp_unit not in ("ns", "us"):
            raise InputError(f"timestamp_unit must be 'ns' or 'us', not {timestamp_unit!r}")
        check_mode(integrity)
        self._unit = timestamp_unit
        self._threads = thread_count(threads)
        provider: KeyProvider = provider_from(keys)
        self._decoder = decoder_for(isolate)
        self._stored = self._source = open_source(source, name)
        try:
            self._tail = read_tail(self._source)
            self._variants = Variants(self._tail, provider, strict=strict)
            self._source, self._integrity = authenticate(self._source, self._tail, self._variants, integrity)
        except BaseException:
            self._source.close()
            raise
        self._counter = ReadCounter(self._tail)

    def __enter__(self) -> EncryptedOrcFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        encrypted = ", ".join(f"{column.column} by {column.key}" for column in self.variants)
        return (
            f"EncryptedOrcFile({self._source.name!r}, {self.num_rows} rows, {self.num_stripes} stripes, "
            f"encrypted: {encrypted or 'nothing'})"
        )

    def close(self) -> None:
        """Release the file; tables already read stay valid."""
        self._source.close()

    @property
    def name(self) -> str:
        """The path, or a text in place of it for other sources."""
        return self._source.name

    @property
    def threads(self) -> int:
        """The number of stripes that are decoded at a time."""
        return self._threads

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return int(self._tail.footer.number_of_rows)

    @property
    def num_stripes(self) -> int:
        """The number of stripes."""
        return self._tail.stripes

    @property
    def variants(self) -> list[EncryptedColumn]:
        """The encrypted columns in the order of the schema, with key, mask, and whether the key was
        available.
        """
        return self._variants.columns()

    @property
    def masked_columns(self) -> list[str]:
        """The top-level columns that are read as masks, completely or in part."""
        return [self._tail.types.top_name(top) for top in sorted(self._masks(Projection.of(self._tail)))]

    @property
    def last_read(self) -> ReadReport:
        """The counts of the latest `read` or `iter_batches`; all are 0 before the first."""
        return self._counter.report()

    @property
    def integrity(self) -> Status:
        """The result of the tag check: "verified", "absent" (no tags), "unverified" (no key for the tags) or
        "ignored".
        """
        return self._integrity

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema; fields of masked columns have the metadata `lockgate.masked`."""
        return self._schema(Projection.of(self._tail))

    @cached_property
    def statistics(self) -> dict[str, ColumnStatistics]:
        """Statistics of each top-level column; without the key, the statistics of its mask."""
        footer, types = self._tail.footer, self._tail.types
        if not footer.statistics:
            return {}
        statistics_by_name: dict[str, ColumnStatistics] = {}
        for name, column in zip(types.names, types.top_levels(), strict=True):
            variant = self._variants.variant_of(column)
            message = footer.statistics[column]
            if variant is not None:
                message = self._variants.statistics[variant][column - self._variants.root(variant)]
            statistics_by_name[name] = column_statistics(types.types[column], message, self.num_rows)
        return statistics_by_name

    @cached_property
    def stripe_statistics(self) -> list[dict[str, ColumnStatistics]]:
        """The same for each stripe; an empty list if the file has none."""
        return stripe_statistics(self._source, self._tail, self._variants)

    @named_errors
    def read(self, columns: Sequence[str] | None = None, predicate: Any = None) -> pa.Table:
        """Read the rows for which `predicate` holds (all if None), with `columns` (all if None) in the
        requested order.

        A column may be a path to a part of it (`addr.zip`, `orders.price`); the read skips its other parts.

        `predicate` is a `lockgate.pushdown` predicate or a `pyarrow.compute.Expression`. A masked column is
        compared by its mask. Raises `ColumnNotFoundError` for an unknown column.
        """
        schema = self._selected(columns).output
        tables = list(self._tables(columns, predicate))
        if not schema.names:
            return rows_only(sum(table.num_rows for table in tables))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    @property
    def stripe_rows(self) -> list[int]:
        """The number of rows of each stripe."""
        return [int(stripe.number_of_rows) for stripe in self._tail.footer.stripes]

    @named_errors
    def iter_batches(
        self,
        columns: Sequence[str] | None = None,
        predicate: Any = None,
        stripes: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read stripe by stripe, one or more batches each, in the order of the file.

        `stripes` has the numbers of the stripes to read, ascending; None reads all.

        At most `threads + 1` stripes are in memory at a time; a generator that is closed early leaves no
        thread behind.
        """
        for table in self._tables(columns, predicate, stripes):
            batches = table.to_batches()
            del table
            while batches:
                yield batches.pop(0)
            if self._stored.size >= HUGE:
                pa.default_memory_pool().release_unused()

    @named_errors
    def nanosecond_columns(self) -> list[str]:
        """Return the top-level columns with times that have digits beyond microseconds.

        `timestamp_unit="us"` rounds those down, as Spark does. It reads only the columns with times.
        """
        names = [field.name for field in self.schema if _holds_timestamps(field.type)]
        if not names:
            return []
        projection = Projection.of(self._tail, names)
        stripes = list(range(self.num_stripes))
        self._variants.unlock(stripes, projection.numbers)
        schema = pa.schema([self.schema.field(index) for index in self._indexes(projection)])
        decoder = StripeDecoder(self._file, projection, schema, None, ReadCounter(self._tail))
        finer: set[str] = set()
        for part in in_order(decoder.nanosecond_columns, stripes, self._threads):
            finer |= part
        return [name for name in names if name in finer]

    def _tables(
        self, columns: Sequence[str] | None, predicate: Any, stripe_numbers: Sequence[int] | None = None
    ) -> Iterator[pa.Table]:
        rows = None
        if predicate is not None:
            rows = RowFilter(predicate, self.schema, distrusted_columns(self._tail))
        output = self._selected(columns)
        self._warn(output.projection)
        selection = output
        if rows is not None and columns is not None:
            selection = self._selected([*columns, *rows.columns])
        stripes = self._matching(rows)
        if stripe_numbers is not None:
            stripes = [stripe for stripe in stripes if stripe in set(stripe_numbers)]
        self._variants.unlock(stripes, selection.projection.numbers)
        counter = self._counter = ReadCounter(self._tail)
        decoder = StripeDecoder(self._file, selection.projection, selection.schema, rows, counter)
        for table in in_order(decoder.decode, stripes, self._threads):
            batch_table = output.to_output(table)
            del table
            yield batch_table
            del batch_table

    def _matching(self, rows: RowFilter | None) -> list[int]:
        """Return the stripes that may have matching rows, by the statistics of the file and its stripes."""
        stripes = range(self.num_stripes)
        if rows is None:
            return list(stripes)
        if self.statistics and not rows.may_match(self.statistics, self.num_rows):
            return []
        if not self.stripe_statistics:
            return list(stripes)
        return [
            index
            for index, statistics in enumerate(self.stripe_statistics)
            if rows.may_match(statistics, self._tail.footer.stripes[index].number_of_rows)
        ]

    @cached_property
    def _file(self) -> OpenFile:
        return OpenFile(self._stored, self._source, self._tail, self._variants, self._decoder, self._unit)

    def _selected(self, columns: Sequence[str] | None) -> Selected:
        if isinstance(columns, str):
            raise InputError(f"columns must be a list of names: [{columns!r}]")
        projection = Projection.of(self._tail, columns)
        if projection.whole:
            schema = pa.schema([self.schema.field(index) for index in self._indexes(projection)])
        else:
            schema = self._schema(projection)
        if columns is None:
            return Selected(projection, schema, tuple(range(len(schema))))
        tops = list(projection.types[0].subtypes)
        places = [top_level_of(self._tail.types, path) for path in columns]
        order = [tops.index(projection.numbers.index(position)) for position in dict.fromkeys(places)]
        return Selected(projection, schema, tuple(order))

    def _indexes(self, projection: Projection) -> list[int]:
        selected = set(projection.numbers)
        return [index for index, top in enumerate(self._tail.types.top_levels()) if top in selected]

    def _schema(self, projection: Projection) -> pa.Schema:
        try:
            schema = self._decoder.schema(empty_image(self._tail, projection))
        except (OSError, pa.ArrowException) as error:
            raise corrupt(
                self.name, self._tail.footer_offset, f"its types cannot be read ({error})"
            ) from error
        masks, marks = self._masks(projection), self._decrypted()
        if self._unit == "us":
            schema = pa.schema([field.with_type(in_microseconds(field.type)) for field in schema])
        tops = [projection.numbers[position] for position in projection.types[0].subtypes]
        return pa.schema(
            _mark(field, masks[top]) if top in masks else with_mark(field, marks.get(field.name))
            for field, top in zip(schema, tops, strict=True)
        )

    def _decrypted(self) -> dict[str, Mark]:
        """Return the marks of the columns that are decrypted, completely or in part."""
        parts: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for variant in self._variants.columns():
            if variant.open:
                parts.setdefault(variant.column, []).append((split(variant.path), variant.key.name))
        return {name: file_mark(self.name, name, paths) for name, paths in parts.items()}

    def _masks(self, projection: Projection) -> dict[int, str]:
        """Return the masks of the projection's top-level columns that are masked, completely or in part."""
        selected, masks = set(projection.numbers), dict[int, str]()
        for root, mask in self._variants.masked_roots().items():
            for top in self._tail.types.top_levels():
                if (
                    root in selected
                    and top in selected
                    and (root == 0 or root in self._tail.types.subtree(top))
                ):
                    masks.setdefault(top, mask)
        return masks

    def _warn(self, projection: Projection) -> None:
        if self._masks(projection):
            selected = set(projection.numbers)
            reasons = dict.fromkeys(
                str(error) for root, error in self._variants.failures.items() if root in selected
            )
            roots = [root for root in self._variants.masked_roots() if root in selected]
            names = ", ".join(self._tail.types.path(root) or "all columns" for root in roots)
            unverified = "; nothing in the file is verified" if self.integrity == "unverified" else ""
            warn_user(
                f"read as masks, not as values: {names} ({'; '.join(reasons)}){unverified}",
                MaskedDataWarning,
            )


@dataclass(frozen=True)
class Selected:
    """The requested columns or paths: their projection, its schema, and the order of the output columns."""

    projection: Projection
    schema: pa.Schema
    order: tuple[int, ...]

    @property
    def output(self) -> pa.Schema:
        """The schema of the output."""
        return pa.schema([self.schema.field(index) for index in self.order])

    def to_output(self, table: pa.Table) -> pa.Table:
        """Return the output columns of a table that may have more columns and more nested parts."""
        output = self.output
        if not output.names:
            return rows_only(table.num_rows)
        table = table.select(output.names)
        return table if table.schema.equals(output, check_metadata=True) else table.cast(output)


def _holds_timestamps(type_: pa.DataType) -> bool:
    if pa.types.is_timestamp(type_):
        return True
    return any(_holds_timestamps(type_.field(index).type) for index in range(type_.num_fields))


def _mark(field: pa.Field, mask: str) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), MASKED: mask.encode()})
