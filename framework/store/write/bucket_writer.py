"""Writes the data files of one bucket, starting a new file where one has reached its target size."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, LockgateError
from lockgate.framework import options as table_options
from lockgate.framework.orc import OrcWriter
from lockgate.framework.store.codec.simple_stats import EMPTY_STATS
from lockgate.framework.store.commit.file_collectors import collections_of
from lockgate.framework.store.commit.file_index_placement import with_index
from lockgate.framework.store.formats.parquet_output import ParquetOutput
from lockgate.framework.store.manifests.manifest import DataFileMeta, FileSource
from lockgate.framework.store.merge.merge import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from lockgate.framework.store.metadata.paths import new_data_file_name
from lockgate.framework.store.rows.file_statistics import FileStatistics, StatsMode, stats_modes
from lockgate.framework.store.rows.row_conversion import (
    check_key_types,
    file_field_ids,
    file_schema,
    refuse_masks,
    writes_value,
)
from lockgate.framework.store.schema.schema import wall_clock_millis
from lockgate.framework.store.schema.written_formats import PARQUET, WrittenFormat, written_format

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_STRIPE_SIZE = 64 * 2**20
_LEAST_STRIPE_SIZE = 64 * 2**10
_SLICE_ROWS = 64 * 1024


class BucketWriter:
    """Writes rows of one partition and bucket as data files, encrypted as the table's options say.

    Rows have the columns of `file_schema`: for key tables with `_KEY_*`, `_SEQUENCE_NUMBER` and
    `_VALUE_KIND`, sorted by key over all calls of `write`. For append tables, `first_sequence` is the number
    of the first row. `collected` is what collectors made of each file; they see no file of a `changelog`,
    whose rows no query reads. Used as a context manager, an error deletes what was written.
    """

    def __init__(
        self,
        table: TableHandle,
        partition: tuple[Any, ...],
        bucket: int,
        *,
        level: int = 0,
        file_source: FileSource = FileSource.APPEND,
        first_sequence: int = 0,
        changelog: bool = False,
    ) -> None:
        check_key_types(table.schema)
        self._table = table
        self._partition = partition
        self._bucket = bucket
        self._level = level
        self._source = file_source
        self._sequence = first_sequence
        self._changelog = changelog
        self._schema = file_schema(table.schema)
        self._target = table.schema.table_options.get_option(table_options.TARGET_FILE_SIZE)
        self._current: _OneFile | None = None
        self._done: list[DataFileMeta] = []
        self.collected: dict[str, dict[str, bytes]] = {}

    def __enter__(self) -> BucketWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self.abort()

    def write(self, rows: pa.Table) -> None:
        """Write rows; InputError if their columns are not those of the table's files, or hold masks."""
        refuse_masks(rows.schema)
        if rows.column_names != self._schema.names:
            raise InputError(f"the rows have columns {rows.column_names}, not {self._schema.names}")
        # A null STRUCT with NOT NULL members cannot be cast, not even to its own type.
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(rows.columns, self._schema, strict=True)
        ]
        rows = pa.Table.from_arrays(columns, schema=self._schema)
        for start in range(0, rows.num_rows, _SLICE_ROWS):
            part = rows.slice(start, _SLICE_ROWS)
            if self._current is None:
                self._current = self._open()
            self._current.write(part)
            if self._current.size >= self._target:
                self._finish()

    def close(self) -> tuple[DataFileMeta, ...]:
        """Finish and describe the files; none if there were no rows."""
        if self._current is not None:
            self._finish()
        return tuple(self._done)

    def abort(self) -> None:
        """Delete what was written."""
        if self._current is not None:
            self._current.abort()
            self._current = None
        for file in self._done:
            self._table.file_system.delete(self._path(file))
            for path in self._table.paths.extra_files(self._partition, self._bucket, file):
                self._table.file_system.delete(path)
        self._done.clear()

    def _path(self, file: DataFileMeta) -> str:
        return self._table.paths.data_file(self._partition, self._bucket, file)

    def _open(self) -> _OneFile:
        written = written_format(self._table.schema.table_options, self._level)
        prefix = "changelog-" if self._changelog else "data-"
        name = new_data_file_name(len(self._done), prefix=prefix, suffix=f".{written.name}")
        path = self._path(DataFileMeta(name, 0, 0, schema_id=self._table.schema.id))
        stripe_size = min(_STRIPE_SIZE, max(self._target // 2, _LEAST_STRIPE_SIZE))
        return _OneFile(self._table, path, name, written, stripe_size, collects=not self._changelog)

    def _finish(self) -> None:
        assert self._current is not None
        current, self._current = self._current, None
        file = current.finish(self._level, self._source, self._sequence)
        self._sequence += file.row_count
        if current.index is not None:
            file = with_index(self._table, self._partition, self._bucket, file, current.index)
        self._done.append(file)
        if current.collected:
            self.collected[file.file_name] = current.collected


class _CountedSink:
    """A sink that counts what goes through it."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self.size = 0

    def write(self, data: Any) -> int:
        written = memoryview(data).nbytes
        self._sink.write(data)
        self.size += written
        return written


class _Output(Protocol):
    """The writer of one format."""

    def write(self, rows: pa.Table) -> None: ...

    def close(self) -> object: ...

    def abort(self) -> None: ...


def _output(table: TableHandle, sink: _CountedSink, written: WrittenFormat, stripe_size: int) -> _Output:
    schema, options = table.schema, table.schema.table_options
    columns, field_ids = file_schema(schema), file_field_ids(schema)
    if written.name == PARQUET:
        return ParquetOutput(
            sink, columns, compression=written.compression, field_ids=field_ids, group_bytes=stripe_size
        )
    return OrcWriter(
        sink,
        columns,
        encrypt=options.get_option(table_options.ORC_ENCRYPT) or None,
        mask=options.get_option(table_options.ORC_MASK) or None,
        keys=table.keys,
        compression=written.compression,
        field_ids=field_ids,
        stripe_size=stripe_size,
        hide_cardinality=options.get_option(table_options.ORC_HIDE_CARDINALITY),
    )


class _OneFile:
    """One data file in the making."""

    def __init__(
        self,
        table: TableHandle,
        path: str,
        name: str,
        written: WrittenFormat,
        stripe_size: int,
        *,
        collects: bool,
    ) -> None:
        schema = table.schema
        self._schema = schema
        self._name = name
        self._keys = (
            [KEY_PREFIX + key for key in schema.trimmed_primary_keys] if schema.has_primary_key else []
        )
        types = {field.name: field.type for field in schema.fields}
        modes = stats_modes(schema)
        self._values = FileStatistics(types, modes)
        # A key is never encrypted, and its bounds serve every lookup by key.
        kept = StatsMode.parse("full")
        self._key_values = FileStatistics(
            types, {key: modes.get(key, kept) for key in schema.trimmed_primary_keys} if self._keys else {}
        )
        self._collections = collections_of(table) if collects else None
        self.collected: dict[str, bytes] = {}
        self.index: bytes | None = None
        self._rows = 0
        self._deletes = 0
        self._bounds: list[tuple[Any, ...]] = []
        self._sequences: list[int] = []
        self._file: AbstractContextManager[BinaryIO] = table.file_system.create(path)
        self._sink = _CountedSink(self._file.__enter__())
        try:
            self._writer = _output(table, self._sink, written, stripe_size)
        except BaseException as error:
            self._file.__exit__(type(error), error, error.__traceback__)
            raise

    @property
    def size(self) -> int:
        """Bytes written so far; a stripe counts when it is complete."""
        return self._sink.size

    def write(self, rows: pa.Table) -> None:
        """Write rows and take in their statistics."""
        try:
            self._writer.write(rows)
            if self._collections is not None:
                self._collections.add(rows)
        except BaseException:
            self.abort()
            raise
        self._rows += rows.num_rows
        self._values.add(rows)
        if self._keys:
            self._add_keys(rows)

    def _add_keys(self, rows: pa.Table) -> None:
        self._key_values.add(rows)
        first, last = (rows.select(self._keys).slice(at, 1).to_pylist()[0] for at in (0, rows.num_rows - 1))
        self._bounds = [self._bounds[0] if self._bounds else tuple(first.values()), tuple(last.values())]
        sequences = pc.min_max(rows[SEQUENCE_NUMBER])
        self._sequences += [sequences["min"].as_py(), sequences["max"].as_py()]
        self._deletes += rows.num_rows - (pc.sum(writes_value(rows[VALUE_KIND])).as_py() or 0)

    def finish(self, level: int, source: FileSource, first_sequence: int) -> DataFileMeta:
        """Complete the file and describe it."""
        try:
            if self._collections is not None:
                self.collected = self._collections.finish()
                for name in self._collections.index_names:
                    self.index = self.collected.pop(name)
            self._writer.close()
        except BaseException:
            self.abort()
            raise
        self._file.__exit__(None, None, None)
        sequences = self._sequences or [first_sequence, first_sequence + self._rows - 1]
        bounds = self._bounds or [(), ()]
        return DataFileMeta(
            file_name=self._name,
            file_size=self._sink.size,
            row_count=self._rows,
            min_key=bounds[0],
            max_key=bounds[1],
            key_stats=self._key_values.result() if self._keys else EMPTY_STATS,
            value_stats=self._values.result(),
            min_sequence_number=min(sequences),
            max_sequence_number=max(sequences),
            schema_id=self._schema.id,
            level=level,
            creation_time_millis=wall_clock_millis(),
            delete_row_count=self._deletes,
            file_source=source,
            value_stats_cols=self._values.columns,
        )

    def abort(self) -> None:
        """Give the file up; nothing appears under its name."""
        self._writer.abort()
        error = LockgateError("given up")
        self._file.__exit__(LockgateError, error, None)
