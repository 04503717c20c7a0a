"""Bounds of columns in manifests, by which scans skip manifests, and the format of their index file.

For each manifest, by name and size, the file has counts of its files, rows and bytes, and the minimum and
maximum of indexed columns. The bytes are a magic number, a checksum, and compressed JSON.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lockgate.errors import CorruptFileError, UnsupportedTypeError
from lockgate.framework.store import ColumnBounds, FileTable, ManifestFileMeta, TableSchema
from lockgate.framework.types import (
    DataField,
    DataType,
    Kind,
    is_bounded,
    parse_type,
    scale_of,
    statistics_hold,
    stored_values,
    type_to_json,
)
from lockgate.pushdown.index import inflated

SchemaOf = Callable[[int], TableSchema]
Bucket: TypeAlias = tuple[bytes, int]
Value: TypeAlias = "int | str"

MAGIC = b"LGBOUND1"
_HEAD = struct.Struct("<8sI")
_VALID, _ALL_NULL, _NO_NULL = 1, 2, 4
# Manifests with more partitions and buckets are not indexed: the list would be as long as the manifest.
_MAX_PLACES = 4096
_LONG = np.iinfo(np.int64)


def has_bounds(data_type: DataType) -> bool:
    """Return whether manifests have bounds of a type that compare without padding."""
    return is_bounded(data_type) and data_type.kind is not Kind.CHAR


@dataclass(frozen=True)
class Extent:
    """The minimum and maximum of a column in a manifest; `flags` state whether they are valid, and whether
    the column has only nulls or no nulls.
    """

    low: Value
    high: Value
    flags: int


@dataclass(frozen=True)
class ManifestExtents:
    """The bounds of a manifest without deletions, its size, and the files, rows and bytes that it lists.

    `places` are pairs of partition, as a serialized row, and bucket. `extents` are by field id.
    """

    name: str
    size: int
    files: int
    rows: int
    data_bytes: int
    places: frozenset[Bucket]
    extents: Mapping[int, Extent]

    def only(self, fields: Set[int]) -> ManifestExtents:
        """Return the same with only the bounds of these columns."""
        if self.extents.keys() == fields:
            return self
        return replace(
            self, extents={field: self.extents[field] for field in self.extents if field in fields}
        )

    def is_of(self, meta: ManifestFileMeta) -> bool:
        """Return whether an entry of a manifest list is this manifest."""
        listed = (meta.file_name, meta.file_size, meta.num_added_files, meta.num_deleted_files)
        return listed == (self.name, self.size, self.files, 0)


@dataclass(frozen=True)
class ManifestBounds:
    """The bounds of a snapshot's manifests, and the types by which their columns were compared."""

    types: Mapping[int, DataType]
    manifests: tuple[ManifestExtents, ...]

    @cached_property
    def _by_name(self) -> dict[str, ManifestExtents]:
        return {each.name: each for each in self.manifests}

    def __len__(self) -> int:
        return len(self.manifests)

    def of(self, meta: ManifestFileMeta) -> ManifestExtents | None:
        """Return the bounds of a manifest, None if there are none."""
        extents = self._by_name.get(meta.file_name)
        return extents if extents is not None and extents.is_of(meta) else None

    def covers_current_type(self, field: DataField) -> bool:
        """Return whether the stored bounds of a column are valid for its current type."""
        written = self.types.get(field.id)
        if written is None or not has_bounds(field.type):
            return False
        return statistics_hold(written, field.type) and scale_of(written) == scale_of(field.type)

    def column(self, field: DataField, manifests: Sequence[ManifestExtents | None]) -> ColumnBounds | None:
        """Return the bounds of a column in these manifests; None if the column has no valid bounds."""
        if not self.covers_current_type(field):
            return None
        unknown = Extent("" if field.type.is_string else 0, "" if field.type.is_string else 0, 0)
        column_extents = [
            unknown if each is None else each.extents.get(field.id, unknown) for each in manifests
        ]
        return columns_of_extents(column_extents, scale_of(field.type))


def columns_of_extents(extents: Sequence[Extent], scale: Any) -> ColumnBounds:
    """Return extents in columnar form; `scale` is None for texts."""
    kind: Any = object if scale is None else np.int64
    flags = np.fromiter((each.flags for each in extents), np.int64, len(extents))
    valid = (flags & _VALID) > 0
    return ColumnBounds(
        low=_array([each.low for each in extents], kind),
        high=_array([each.high for each in extents], kind),
        valid=valid,
        all_null=(flags & _ALL_NULL) > 0,
        no_null=(flags & _NO_NULL) > 0,
        nulls=np.full(len(extents), -1, np.int64),
        partial=np.zeros(len(extents), np.bool_),
        scale=scale,
    )


def _array(values: Sequence[Value], kind: Any) -> npt.NDArray[Any]:
    array = np.empty(len(values), kind)
    array[:] = values
    return array


def manifest_extents(
    meta: ManifestFileMeta,
    files: FileTable,
    fields: Iterable[DataField],
    schema_of: SchemaOf,
    row_of: Callable[[tuple[Any, ...]], bytes],
) -> ManifestExtents | None:
    """Return the bounds of a manifest; None if it lists deletions or too many partitions.

    `row_of` serializes the values of a partition.
    """
    if files.deletes or len(files) != meta.num_added_files or not len(files):
        return None
    pairs = {(int(part), int(bucket)) for part, bucket in zip(files.partition, files.bucket, strict=True)}
    if len(pairs) > _MAX_PLACES:
        return None
    rows = [row_of(partition) for partition in files.partitions]
    return ManifestExtents(
        name=meta.file_name,
        size=meta.file_size,
        files=len(files),
        rows=int(files.rows.sum()),
        data_bytes=int(files.bytes.sum()),
        places=frozenset((rows[part], bucket) for part, bucket in pairs),
        extents={field.id: _extent(files.bounds(field, schema_of)) for field in fields},
    )


def _extent(bounds: ColumnBounds) -> Extent:
    """Return the merged bounds of files; files with only nulls are ignored."""
    flags = 0
    if bounds.no_null.all():
        flags |= _NO_NULL
    if bounds.all_null.all():
        flags |= _ALL_NULL
    has_values = ~bounds.all_null
    if not has_values.any() or not bounds.valid[has_values].all():
        empty: Value = "" if bounds.scale is None else 0
        return Extent(empty, empty, flags)
    low, high = min(bounds.low[has_values].tolist()), max(bounds.high[has_values].tolist())
    return Extent(low, high, flags | _VALID)


def partition_extent(meta: ManifestFileMeta, position: int, data_type: DataType) -> Extent:
    """Return the bounds of a partition column in a manifest, from the manifest list."""
    stats = meta.partition_stats
    empty: Value = "" if data_type.is_string else 0
    nulls = stats.null_counts[position] if position < len(stats.null_counts) else None
    flags = 0
    if nulls is not None:
        flags |= _NO_NULL if nulls == 0 else 0
        flags |= _ALL_NULL if nulls == meta.num_added_files + meta.num_deleted_files else 0
    ends = [stats.bound(end, position) for end in ("min", "max")]
    if any(end is None for end in ends):
        return Extent(empty, empty, flags & ~_ALL_NULL if nulls == 0 else flags)
    low, high = stored_values(ends, data_type)[0].tolist()
    return Extent(low, high, flags | _VALID) if low <= high else Extent(empty, empty, flags)


# --- bytes ---------------------------------------------------------------------------------------


def write_bounds(bounds: ManifestBounds) -> bytes:
    """Return the bytes of an index file."""
    places: dict[Bucket, int] = {}
    manifests = [
        [
            *(each.name, each.size, each.files, each.rows, each.data_bytes),
            sorted(places.setdefault(bucket, len(places)) for bucket in each.places),
        ]
        for each in bounds.manifests
    ]
    columns = [
        {
            "field": number,
            "type": type_to_json(data_type.with_nullable(True)),
            "extents": [
                [found.low, found.high, found.flags] if (found := each.extents.get(number)) else None
                for each in bounds.manifests
            ],
        }
        for number, data_type in bounds.types.items()
    ]
    listing = {
        "manifests": manifests,
        "places": [[partition.hex(), bucket] for partition, bucket in places],
        "columns": columns,
    }
    data = zlib.compress(json.dumps(listing).encode())
    return _HEAD.pack(MAGIC, zlib.crc32(data)) + data


def read_bounds(data: bytes, name: str) -> ManifestBounds:
    """Parse an index file; CorruptFileError with its name for damaged bytes."""
    if len(data) < _HEAD.size:
        raise CorruptFileError(f"{name} is damaged: {len(data)} bytes are no bounds of manifests")
    magic, checksum = _HEAD.unpack_from(data)
    if magic != MAGIC or zlib.crc32(data[_HEAD.size :]) != checksum:
        raise CorruptFileError(f"{name} is damaged: it is not what was written")
    try:
        return _bounds_from_json(json.loads(inflated(data[_HEAD.size :], name)))
    except (
        *(ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError),
        UnsupportedTypeError,
    ) as error:
        raise CorruptFileError(f"{name} is damaged: {type(error).__name__}: {error}") from None


def _bounds_from_json(listing: Any) -> ManifestBounds:
    places = [(bytes.fromhex(partition), int(bucket)) for partition, bucket in listing["places"]]
    columns = [(int(each["field"]), parse_type(each["type"]), each["extents"]) for each in listing["columns"]]
    manifests = []
    for number, (name, size, files, rows, data_bytes, place_numbers) in enumerate(listing["manifests"]):
        extents = {
            field: _checked_extent(column_extents[number], data_type)
            for field, data_type, column_extents in columns
            if column_extents[number] is not None
        }
        manifests.append(
            ManifestExtents(
                name=str(name),
                size=_checked_count(size),
                files=_checked_count(files),
                rows=_checked_count(rows),
                data_bytes=_checked_count(data_bytes),
                places=frozenset(places[_checked_count(at)] for at in place_numbers),
                extents=extents,
            )
        )
    return ManifestBounds({field: data_type for field, data_type, _ in columns}, tuple(manifests))


def _checked_extent(extent: Sequence[Any], data_type: DataType) -> Extent:
    low, high, flags = extent
    expected_type = str if data_type.is_string else int
    for value in (low, high):
        if type(value) is not expected_type or (
            isinstance(value, int) and not _LONG.min <= value <= _LONG.max
        ):
            raise ValueError(f"a bound of a column of {data_type.bare_name} is no {expected_type.__name__}")
    if low > high:
        raise ValueError("a minimum is greater than its maximum")
    return Extent(low, high, _checked_count(flags))


def _checked_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LONG.max:
        raise ValueError(f"{type(value).__name__} where a count was written")
    return value
