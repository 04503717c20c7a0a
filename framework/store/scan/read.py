"""Reading a table: the splits of a scan as Arrow tables, merged and filtered.

Files are read by field id, whatever their columns were called when they were written; what a file lacks is
null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import CorruptFileError
from lockgate.framework.orc import MASKED, EncryptedOrcFile, with_mark
from lockgate.framework.store.confidential.column_visibility import column_mark, encrypted_columns
from lockgate.framework.store.confidential.decided_masks import DecidedMasks
from lockgate.framework.store.confidential.integrity import IntegrityPolicy
from lockgate.framework.store.deletion_vectors.snapshot_vectors import read_vector
from lockgate.framework.store.formats.data_file import DataFile, FileFormat, format_of
from lockgate.framework.store.formats.plain_data_files import open_plain_file
from lockgate.framework.store.manifests.manifest import DataFileMeta, VectorLocation
from lockgate.framework.store.merge.merge import (
    KEY_PREFIX,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    MergePlan,
    merge_tables,
)
from lockgate.framework.store.pruning.split import Split
from lockgate.framework.store.scan.expired_files import absence_named
from lockgate.framework.store.scan.matching_rows import LiveRows, MatchingRows, WantedKeys
from lockgate.framework.store.scan.scan import ScanPlan
from lockgate.framework.store.schema.evolution import convert, has_nanoseconds, stored_name, stored_type
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_known_types
from lockgate.framework.types import BIGINT, TINYINT, DataType, to_arrow
from lockgate.pushdown import AlwaysTrue, all_of, columns_of, to_arrow_expression

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lockgate.framework.store.handle import TableHandle

ROW_ID = "_ROW_ID"
"""The column by which a file of a table with row tracking gives rows ids that they had before."""

_SYSTEM_TYPES = {SEQUENCE_NUMBER: pa.int64(), VALUE_KIND: pa.int8(), ROW_ID: pa.int64()}


def _types_added(written: TableSchema) -> dict[str, DataType]:
    """Return what files may hold in addition to the table's columns."""
    keys = {KEY_PREFIX + name: written.field(name).type for name in written.trimmed_primary_keys}
    last: dict[str, DataType] = {VALUE_KIND: TINYINT} if keys else {ROW_ID: BIGINT}
    return {**keys, SEQUENCE_NUMBER: BIGINT, **last}


def read_table(table: TableHandle, plan: ScanPlan) -> pa.Table:
    """Read the rows of a plan into memory; the order of rows is unspecified.

    Columns come in the order asked for. Encrypted columns whose key is missing are read as masks, with a
    warning and metadata `lockgate.masked` on the field, unless the plan is strict: then KeyMissingError is
    raised before any data is read. Raises CorruptFileError for files that are not what the metadata says.
    """
    reader = SplitReader(table, plan)
    parts = list(reader.tables())
    if not reader.columns:
        return no_columns(sum(part.num_rows for part in parts))
    # Masks show only while files are read, so that the first parts may lack the marks of the last.
    return pa.concat_tables([part.cast(reader.schema) for part in parts] or [reader.schema.empty_table()])


def read_batches(
    table: TableHandle, plan: ScanPlan, *, threads: int | None = None, wanted: WantedKeys | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a plan batch by batch; errors are those of `read_table`.

    Of `wanted` keys at least the rows are read; others may be left out. `threads` stripes are
    decoded at a time, None: one for each core. In memory at a time: one stripe more than that, or the files
    of one split where rows must be merged.
    """
    # Here and below: a generator's own names would keep a part in memory while the next one is read.
    for part in SplitReader(table, plan, threads=threads, wanted=wanted).tables():
        batches = part.to_batches()
        del part
        while batches:
            yield batches.pop(0)


def no_columns(rows: int) -> pa.Table:
    """Return a table of so many rows without columns."""
    return pa.table({"": pa.nulls(rows)}).select([])


class SplitReader:
    """Reads the splits of a plan; `schema` is that of the rows."""

    def __init__(
        self,
        table: TableHandle,
        plan: ScanPlan,
        *,
        threads: int | None = None,
        wanted: WantedKeys | None = None,
    ) -> None:
        self._plan = plan
        self._files = FileReader(table, plan.schema, strict=plan.strict, threads=threads, wanted=wanted)
        self._encrypted = plan.encrypted
        self._marks = {name: column_mark(table, name) for name in encrypted_columns(table)}
        self._predicate = plan.predicate
        self._chosen = MatchingRows(table, plan)
        self.columns = plan.schema.field_names if plan.columns is None else plan.columns
        self.columns = tuple(dict.fromkeys(self.columns))
        self._on_masked = plan.masked_predicate
        self._masks = DecidedMasks(plan.decision.masks, plan.schema)
        asked = {path[0] for path in columns_of(all_of(plan.predicate, plan.masked_predicate))}
        self._needed = (*self.columns, *sorted(asked.difference(self.columns)))
        if plan.strict and self._encrypted:
            for split in plan.splits:
                for path in split.paths:
                    self._files.check_keys(path)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows; columns read as masks so far are marked and may hold nulls.

        Marked are decrypted columns too, so that those who write them elsewhere hear of it.
        """
        fields = self._masks.marked(self._files.output_schema(self.columns))
        return pa.schema(self._declared_field(field) for field in fields)

    def _declared_field(self, field: pa.Field) -> pa.Field:
        if MASKED in (field.metadata or {}):
            return field.with_nullable(True)
        field = field.with_nullable(self._plan.schema.field(field.name).type.nullable)
        return with_mark(field, self._marks.get(field.name))

    def tables(self) -> Iterator[pa.Table]:
        """Read all splits, in parts; ends early at the plan's limit."""
        left = self._plan.limit
        for split in self._plan.splits:
            for found in self.split_tables(split):
                part = self._declared(found)
                del found
                if left is not None:
                    part = part.slice(0, left)
                    left -= part.num_rows
                if part.num_rows:
                    yield part
                del part
                if left == 0:
                    return

    def split_tables(self, split: Split) -> Iterator[pa.Table]:
        """Read one split, in parts."""
        if split.merge:
            assert self._plan.merge_plan is not None
            yield self._finish(self._merged(split, self._plan.merge_plan))
            return
        for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True):
            chosen = self._chosen.of(split, file)
            for part in self._files.parts(path, file, self._needed, split.partition, vector, chosen):
                finished = self._finish(part)
                del part
                yield finished
                del finished

    def _declared(self, part: pa.Table) -> pa.Table:
        """Give rows their declared schema: those of files may lack a value in place of a deleted one."""
        schema = self.schema
        for field, column in zip(schema, part.columns, strict=True):
            if column.null_count and not field.nullable:
                raise CorruptFileError(
                    f"column {field.name!r} is NOT NULL, but rows of the table have a null there"
                )
        return part.cast(schema) if self.columns else part

    def _merged(self, split: Split, plan: MergePlan) -> pa.Table:
        wanted = (*plan.system_columns, *plan.companions(self._needed), *self._needed)
        names = tuple(dict.fromkeys(wanted))
        tables = [
            self._files.whole(path, file, names, split.partition, vector)
            for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True)
        ]
        return merge_tables(plan, tables).select(list(self._needed))

    def _finish(self, part: pa.Table) -> pa.Table:
        if not isinstance(self._predicate, AlwaysTrue):
            part = part.filter(to_arrow_expression(self._predicate, part.schema))
        part = self._masks.put_on(part)
        if not isinstance(self._on_masked, AlwaysTrue):
            part = part.filter(to_arrow_expression(self._on_masked, part.schema))
        return part.select(list(self.columns))


class FileReader:
    """Reads data files as rows of one schema."""

    def __init__(
        self,
        table: TableHandle,
        schema: TableSchema,
        *,
        strict: bool = False,
        threads: int | None = None,
        wanted: WantedKeys | None = None,
    ) -> None:
        self._threads = threads
        self._wanted = wanted
        self._table = table
        self._schema = schema
        self._strict = strict
        self._masks: dict[str, bytes] = {}
        self._integrity = IntegrityPolicy(table)

    def check_keys(self, path: str) -> None:
        """Raise KeyMissingError or its kin if a key of the file is not held; only ORC files need keys."""
        if format_of(path) is FileFormat.ORC:
            with (
                absence_named(self._table, path),
                self._open_orc(path, self._schema, strict=True),
            ):
                pass

    def _open(self, path: str, written: TableSchema, *, nanoseconds: bool) -> DataFile:
        kind = format_of(path)
        if kind is FileFormat.ORC:
            return self._open_orc(path, written, strict=self._strict, nanoseconds=nanoseconds)
        return open_plain_file(
            self._table.file_system,
            path,
            kind,
            {**_types_added(written), **{field.name: field.type for field in written.fields}},
            nanoseconds=nanoseconds,
            threads=self._threads,
        )

    def _open_orc(
        self, path: str, written: TableSchema, *, strict: bool, nanoseconds: bool = False
    ) -> EncryptedOrcFile:
        file = EncryptedOrcFile(
            (self._table.file_system, path),
            keys=self._table.keys,
            strict=strict,
            threads=self._threads,
            name=path,
            timestamp_unit="ns" if nanoseconds else "us",
            integrity="ignore" if self._integrity.mode(written) == "ignore" else "verify",
        )
        try:
            self._integrity.check(file, written)
        except BaseException:
            file.close()
            raise
        return file

    def whole(
        self,
        path: str,
        file: DataFileMeta,
        names: Sequence[str],
        partition: Mapping[str, Any],
        vector: VectorLocation | None = None,
    ) -> pa.Table:
        """Read a whole file; `names` are columns of the schema and system columns."""
        parts = list(self.parts(path, file, names, partition, vector))
        if not names:
            return no_columns(sum(part.num_rows for part in parts))
        schema = self.output_schema(names)
        return pa.concat_tables([part.cast(schema) for part in parts]) if parts else schema.empty_table()

    def parts(
        self,
        path: str,
        file: DataFileMeta,
        names: Sequence[str],
        partition: Mapping[str, Any],
        vector: VectorLocation | None = None,
        chosen: BitMap | None = None,
    ) -> Iterator[pa.Table]:
        """Read a file stripe by stripe, without the rows that `vector` deletes, and of `chosen` ones only.

        `partition` has the values of the partition columns by name: files that were written by other engines
        and adopted may lack these columns.
        """
        written = self._schema
        if file.schema_id != self._schema.id:
            written = self._table.schema_of(file.schema_id)
        check_known_types(self._schema, names, [written])
        wanted = [field.type for field in self._schema.fields if field.name in names]
        nanoseconds = any(has_nanoseconds(kind) for kind in wanted)
        deleted = None if vector is None else read_vector(self._table, vector, file.row_count)
        if chosen is not None and not chosen:
            return
        with (
            absence_named(self._table, path),
            self._open(path, written, nanoseconds=nanoseconds) as source,
        ):
            stored = {name: self._stored(name, written, source.schema) for name in names}
            present = list(dict.fromkeys(name for name in stored.values() if name is not None))
            self._check_columns(path, stored, partition, source.schema)
            self._note_masks(stored, source.schema)
            if not present:
                rows = source.num_rows - len(deleted or ())
                yield self._conform(no_columns(rows), stored, written, rows, partition)
                return
            if self._wanted is not None and deleted is None and chosen is None:
                for batch in self._wanted_batches(self._wanted, source, written, present):
                    yield self._conform(batch, stored, written, batch.num_rows, partition)
                return
            live = LiveRows(source, deleted, chosen)
            for batch in live.batches(present):
                part = pa.Table.from_batches([batch])
                del batch
                kept = live.kept(part.num_rows)
                part = part if kept is None else part.filter(pa.array(kept))
                conforming = self._conform(part, stored, written, part.num_rows, partition)
                del part
                yield conforming
                del conforming

    def _wanted_batches(
        self, wanted: WantedKeys, source: DataFile, written: TableSchema, present: list[str]
    ) -> Iterator[pa.Table]:
        key = self._schema.field(wanted.column)
        same = stored_type(key, written) == key.type
        inside = self._stored(KEY_PREFIX + wanted.column, written, source.schema) if same else None
        for batch in wanted.batches(source, inside, present):
            yield pa.Table.from_batches([batch])

    def _stored(self, name: str, written: TableSchema, found: pa.Schema) -> str | None:
        """Return the name of a column in a file, None if the file does not have it."""
        if name in _SYSTEM_TYPES:
            # Files of key tables have them all; others only where rows were moved from older files.
            return name if self._schema.has_primary_key or name in found.names else None
        value = name.removeprefix(KEY_PREFIX) if self._is_key(name) else name
        stored = stored_name(self._schema.field(value), written)
        if stored is not None and self._is_key(name) and KEY_PREFIX + stored in found.names:
            return KEY_PREFIX + stored  # else a file in "thin mode": keys are in the value columns only
        return stored if stored in found.names else None

    def _check_columns(
        self, path: str, stored: Mapping[str, str | None], partition: Mapping[str, Any], found: pa.Schema
    ) -> None:
        """Raise CorruptFileError for a file without a column that all files of key tables have."""
        for name, inside in stored.items():
            is_lost = inside not in found.names if inside is not None else self._is_key(name)
            if is_lost and name.removeprefix(KEY_PREFIX) not in partition:
                raise CorruptFileError(f"{path} is damaged: it has no column {name!r}")

    def _is_key(self, name: str) -> bool:
        return name.startswith(KEY_PREFIX) and name not in self._schema.field_names

    def _note_masks(self, stored: dict[str, str | None], found: pa.Schema) -> None:
        for name, inside in stored.items():
            mask = (found.field(inside).metadata or {}).get(MASKED) if inside is not None else None
            if mask is not None:
                self._masks[name] = mask

    def _conform(
        self,
        part: pa.Table,
        stored: dict[str, str | None],
        written: TableSchema,
        rows: int,
        partition: Mapping[str, Any],
    ) -> pa.Table:
        schema = self.output_schema(tuple(stored))
        if not stored:
            return part
        columns = []
        for field, inside in zip(schema, stored.values(), strict=True):
            if inside is None:
                value = pa.scalar(partition.get(field.name), field.type)
                columns.append(pa.chunked_array([pa.repeat(value, rows)]))
            else:
                columns.append(self._column(part[inside], field.name, written))
        return pa.Table.from_arrays(columns, schema=schema)

    def _column(self, column: pa.ChunkedArray, name: str, written: TableSchema) -> pa.ChunkedArray:
        if name in _SYSTEM_TYPES:
            return column.cast(_SYSTEM_TYPES[name])
        field = self._schema.field(name.removeprefix(KEY_PREFIX) if self._is_key(name) else name)
        return convert(column, stored_type(field, written), field.type, field.name)

    def output_schema(self, names: Sequence[str]) -> pa.Schema:
        """Return the schema of rows in files, all nullable; masks met so far are marked."""
        return pa.schema([self._field(name) for name in names])

    def _field(self, name: str) -> pa.Field:
        if name in _SYSTEM_TYPES:
            return pa.field(name, _SYSTEM_TYPES[name])
        field = self._schema.field(name.removeprefix(KEY_PREFIX) if self._is_key(name) else name)
        mask: dict[Any, Any] | None = {MASKED: self._masks[name]} if name in self._masks else None
        return pa.field(name, to_arrow(field.type), True, mask)
