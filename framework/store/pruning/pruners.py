"""The steps by which a scan leaves files out: by partition, by bucket, by key and by value statistics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lockgate.errors import UnsupportedTypeError
from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry
from lockgate.framework.store.rows.bucket import bucket_of
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, DataType, Kind, statistics_hold, to_arrow
from lockgate.pushdown import (
    AlwaysFalse,
    And,
    ColumnStatistics,
    Comparison,
    FieldPath,
    Op,
    Or,
    Predicate,
    Rank,
    all_of,
    conjuncts,
    may_match,
    normalize,
    rank_of,
    reads_only,
    residual,
)

SchemaOf = Callable[[int], TableSchema]

# Beyond so many candidates, hashing them costs more than it saves.
_MOST_CANDIDATES = 2000


class PartitionPruner:
    """Answers what is left of a predicate in each partition, once a partition."""

    def __init__(self, schema: TableSchema, predicate: Predicate) -> None:
        self._names = schema.partition_keys
        self._types = [to_arrow(kind) for kind in schema.types_of(self._names)]
        self._predicate = predicate
        self._known: dict[tuple[Any, ...], Predicate] = {}

    def residual(self, partition: tuple[Any, ...]) -> Predicate:
        """Return what must still be asked of rows of this partition; AlwaysFalse: it has no matching row."""
        found = self._known.get(partition)
        if found is None:
            values = zip(self._names, partition, self._types, strict=True)
            row: dict[FieldPath, pa.Scalar] = {
                (name,): pa.scalar(value, kind) for name, value, kind in values
            }
            found = self._known[partition] = residual(self._predicate, row)
        return found

    def keeps_partition(self, partition: tuple[Any, ...]) -> bool:
        """Say whether a partition can have matching rows."""
        return not isinstance(self.residual(partition), AlwaysFalse)


class BucketPruner:
    """Leaves out buckets that the bucket key's equalities do not lead to."""

    def __init__(self, schema: TableSchema, pruner: PartitionPruner) -> None:
        self._pruner = pruner
        self._keys = schema.bucket_keys
        self._types = schema.types_of(self._keys)
        usable = schema.options.get("bucket-function.type", "default").lower() == "default"
        self._usable = bool(self._keys) and usable and not any(_is_ambiguous(kind) for kind in self._types)
        self._candidates: dict[tuple[Any, ...], list[tuple[Any, ...]] | None] = {}
        self._buckets: dict[tuple[tuple[Any, ...], int], frozenset[int] | None] = {}

    def keeps(self, entry: ManifestEntry) -> bool:
        """Say whether the bucket of a file can have matching rows.

        Buckets are computed with the number of buckets the file was written under, which differs between
        partitions of a table that was rescaled.
        """
        if not self._usable or entry.total_buckets < 1:
            return True
        where = (entry.partition, entry.total_buckets)
        if where not in self._buckets:
            self._buckets[where] = self._possible(*where)
        possible = self._buckets[where]
        return possible is None or entry.bucket in possible

    def _possible(self, partition: tuple[Any, ...], total: int) -> frozenset[int] | None:
        if partition not in self._candidates:
            self._candidates[partition] = self._keys_of(self._pruner.residual(partition))
        candidates = self._candidates[partition]
        if candidates is None:
            return None
        return frozenset(bucket_of(values, self._types, total) for values in candidates)

    def _keys_of(self, predicate: Predicate) -> list[tuple[Any, ...]] | None:
        values = []
        for name, kind in zip(self._keys, self._types, strict=True):
            possible = possible_values(predicate, name, kind)
            if possible is None:
                return None
            values.append(possible)
        size = 1
        for possible in values:
            size *= len(possible)
        return list(itertools.product(*values)) if size <= _MOST_CANDIDATES else None


def _is_ambiguous(data_type: DataType) -> bool:
    """Say whether values that are equal may have different hashes, or a value no exact Python form."""
    if data_type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return True  # 0.0 and -0.0
    return data_type.is_nested or (data_type.is_timestamp and (data_type.precision or 0) > 6)


def possible_values(predicate: Predicate, name: str, data_type: DataType) -> frozenset[Any] | None:
    """Return the values a column can have in matching rows, as Python values; None if they are not
    limited.
    """
    return _possible(normalize(predicate), (name,), to_arrow(data_type))


def _possible(predicate: Predicate, path: FieldPath, data_type: pa.DataType) -> frozenset[Any] | None:
    match predicate:
        case AlwaysFalse():
            return frozenset()
        case And(children):
            limits = [found for child in children if (found := _possible(child, path, data_type)) is not None]
            return frozenset.intersection(*limits) if limits else None
        case Or(children):
            parts = [_possible(child, path, data_type) for child in children]
            answers = [part for part in parts if part is not None]
            return frozenset().union(*answers) if len(answers) == len(parts) else None
        case Comparison(op=Op.EQ | Op.IN, field=field) if field == path:
            if len(predicate.literals) > _MOST_CANDIDATES:
                return None
            return _literal_values([item for item in predicate.literals if item.is_valid], data_type)
        case Comparison(op=Op.EQ_NULL_SAFE, field=field) if field == path:
            (item,) = predicate.literals
            return _literal_values([item], data_type) if item.is_valid else frozenset({None})
        case Comparison(op=Op.IS_NULL, field=field) if field == path:
            return frozenset({None})
    return None


def _literal_values(literals: Sequence[pa.Scalar], data_type: pa.DataType) -> frozenset[Any] | None:
    try:
        ranked = [rank_of(item, data_type) for item in literals]
    except UnsupportedTypeError:
        return None
    exact = [item.value for item in ranked if item.rank is Rank.AT]
    return frozenset(value.as_py() for value in exact if value is not None)


class EntryStatistics(Mapping[FieldPath, ColumnStatistics]):
    """Statistics of a file's value columns by current column name, made when asked for.

    A file of an older schema is looked up by field id; its statistics count only where the type is the same
    or was widened, because those of other types order differently ("10" < "9"). A column the file does not
    have is all null.
    """

    def __init__(self, file: DataFileMeta, schema: TableSchema, schema_of: SchemaOf) -> None:
        self._file = file
        self._schema = schema
        self._written = schema if file.schema_id == schema.id else schema_of(file.schema_id)

    def get(self, path: FieldPath, default: Any = None) -> Any:
        """Return the statistics of a column; `default` if there are none."""
        try:
            return self[path]
        except KeyError:
            return default

    def __getitem__(self, path: FieldPath) -> ColumnStatistics:
        if len(path) != 1:
            raise KeyError(path)
        field = self._schema.field(path[0])
        written = self._field_of(field)
        if written is None:
            return ColumnStatistics(null_count=self._file.row_count)
        if not statistics_hold(written.type, field.type):
            raise KeyError(path)
        return self._statistics(written)

    def _field_of(self, field: DataField) -> DataField | None:
        return next((member for member in self._written.fields if member.id == field.id), None)

    def _statistics(self, field: DataField) -> ColumnStatistics:
        names = self._file.value_stats_cols
        columns = self._written.field_names if names is None else names
        if field.name not in columns or field.type.is_nested:
            raise KeyError((field.name,))
        return column_statistics(self._file.value_stats, columns.index(field.name), field.type)

    def __iter__(self) -> Iterator[FieldPath]:
        return iter((name,) for name in self._schema.field_names if (name,) in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class KeyStatistics(Mapping[FieldPath, ColumnStatistics]):
    """Statistics of the trimmed primary key's columns in a file.

    Key columns keep their types; the exact bounds of the first one are those of the keys themselves.
    """

    def __init__(self, file: DataFileMeta, schema: TableSchema) -> None:
        self._file = file
        self._schema = schema

    def __getitem__(self, path: FieldPath) -> ColumnStatistics:
        keys = self._schema.trimmed_primary_keys
        if len(path) != 1 or path[0] not in keys:
            raise KeyError(path)
        position, data_type = keys.index(path[0]), self._schema.field(path[0]).type
        file = self._file
        if position == 0 and file.min_key and file.max_key:
            low, high = (pa.scalar(key[0], to_arrow(data_type)) for key in (file.min_key, file.max_key))
            return ColumnStatistics(low, high, 0)
        return column_statistics(file.key_stats, position, data_type)

    def __iter__(self) -> Iterator[FieldPath]:
        return iter((name,) for name in self._schema.trimmed_primary_keys)

    def __len__(self) -> int:
        return len(self._schema.trimmed_primary_keys)


def column_statistics(stats: Any, position: int, data_type: DataType) -> ColumnStatistics:
    """Return one column of a file's `SimpleStats`; raises KeyError if it has none."""
    if position >= len(stats.null_counts) and position >= len(stats.min):
        raise KeyError(position)

    def bound(values: tuple[Any, ...]) -> pa.Scalar | None:
        value = values[position] if position < len(values) else None
        return None if value is None else pa.scalar(value, to_arrow(data_type))

    nulls = stats.null_counts[position] if position < len(stats.null_counts) else None
    return ColumnStatistics(bound(stats.min), bound(stats.max), nulls)


class ValuePruner:
    """Leaves out files, or whole sections, whose statistics exclude every row."""

    def __init__(self, schema: TableSchema, schema_of: SchemaOf, pruner: PartitionPruner) -> None:
        self._schema = schema
        self._schema_of = schema_of
        self._pruner = pruner

    def keeps_key(self, entry: ManifestEntry) -> bool:
        """Say whether a file can have matching keys; see `late_filters` for what may follow from it."""
        rest = self._pruner.residual(entry.partition)
        keys = self._schema.trimmed_primary_keys
        about_keys = all_of(*(part for part in conjuncts(rest) if reads_only(part, keys)))
        return may_match(about_keys, KeyStatistics(entry.file, self._schema), entry.file.row_count)

    def keeps_file(self, entry: ManifestEntry) -> bool:
        """Say whether a file, taken by itself, can have matching rows."""
        statistics = EntryStatistics(entry.file, self._schema, self._schema_of)
        return may_match(self._pruner.residual(entry.partition), statistics, entry.file.row_count)
