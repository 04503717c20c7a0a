"""Bounds of columns in whole manifests: bytes of the index file by which scans leave manifests unopened.

The file says of each manifest, by name and size, how much it lists, and of some columns the least and the
greatest value. The bytes: a magic number, a checksum, and JSON that is compressed.
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
from lockgate.framework.store.manifests.column_bounds import is_bounded, scale_of, stored_values
from lockgate.framework.store.schema.wider_types import statistics_hold
from lockgate.framework.types import DataField, DataType, Kind, parse_type, type_to_json
from lockgate.pushdown.index import inflated

SchemaOf = Callable[[int], TableSchema]
Bucket: TypeAlias = tuple[bytes, int]
Value: TypeAlias = "int | str"

MAGIC = b"LGBOUND1"
_HEAD = struct.Struct("<8sI")
_VALID, _ALL_NULL, _NO_NULL = 1, 2, 4
# Of a manifest with more partitions and buckets nothing is kept: its list would be as long as the manifest.
_MOST_PLACES = 4096
_LONG = np.iinfo(np.int64)


def has_bounds(data_type: DataType) -> bool:
    """Return whether manifests tell least and greatest values of a type that are compared as they are."""
    return is_bounded(data_type) and data_type.kind is not Kind.CHAR


@dataclass(frozen=True)
class Extent:
    """The least and the greatest value of a column in a manifest; `flags`: whether they mean anything, and
    whether the column has nothing but nulls, or none.
    """

    low: Value
    high: Value
    flags: int


@dataclass(frozen=True)
class ManifestExtents:
    """A manifest without deletions: its bytes, and the files, rows and bytes of data that it lists.

    `places` are partitions, as serialized rows, with their buckets. `extents` are of columns by field id.
    """

    name: str
    size: int
    files: int
    rows: int
    data_bytes: int
    places: frozenset[Bucket]
    extents: Mapping[int, Extent]

    def only(self, fields: Set[int]) -> ManifestExtents:
        """Return it with the bounds of some columns alone."""
        if self.extents.keys() == fields:
            return self
        return replace(
            self, extents={field: self.extents[field] for field in self.extents if field in fields}
        )

    def is_of(self, meta: ManifestFileMeta) -> bool:
        """Return whether a list of manifests speaks of the same one."""
        given = (meta.file_name, meta.file_size, meta.num_added_files, meta.num_deleted_files)
        return given == (self.name, self.size, self.files, 0)


@dataclass(frozen=True)
class ManifestBounds:
    """What is known of the manifests of a snapshot, and the types that their columns were compared as."""

    types: Mapping[int, DataType]
    manifests: tuple[ManifestExtents, ...]

    @cached_property
    def _by_name(self) -> dict[str, ManifestExtents]:
        return {each.name: each for each in self.manifests}

    def __len__(self) -> int:
        return len(self.manifests)

    def of(self, meta: ManifestFileMeta) -> ManifestExtents | None:
        """Return what is known of a manifest."""
        found = self._by_name.get(meta.file_name)
        return found if found is not None and found.is_of(meta) else None

    def covers_current_type(self, field: DataField) -> bool:
        """Return whether bounds of a column, as it was written, are those of its values today."""
        written = self.types.get(field.id)
        if written is None or not has_bounds(field.type):
            return False
        return statistics_hold(written, field.type) and scale_of(written) == scale_of(field.type)

    def column(self, field: DataField, manifests: Sequence[ManifestExtents | None]) -> ColumnBounds | None:
        """Return the bounds of a column in some manifests; None if nothing is known of it."""
        if not self.covers_current_type(field):
            return None
        unknown = Extent("" if field.type.is_string else 0, "" if field.type.is_string else 0, 0)
        found = [unknown if each is None else each.extents.get(field.id, unknown) for each in manifests]
        return columns_of_extents(found, scale_of(field.type))


def columns_of_extents(extents: Sequence[Extent], scale: Any) -> ColumnBounds:
    """Return extents as columns; `scale` is None for texts."""
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
    found = np.empty(len(values), kind)
    found[:] = values
    return found


def manifest_extents(
    meta: ManifestFileMeta,
    files: FileTable,
    fields: Iterable[DataField],
    schema_of: SchemaOf,
    row_of: Callable[[tuple[Any, ...]], bytes],
) -> ManifestExtents | None:
    """Return what is to be kept of a manifest; None if it lists deletions, or too many partitions.

    `row_of` serializes the values of a partition.
    """
    if files.deletes or len(files) != meta.num_added_files or not len(files):
        return None
    pairs = {(int(part), int(bucket)) for part, bucket in zip(files.partition, files.bucket, strict=True)}
    if len(pairs) > _MOST_PLACES:
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
    """Return the bounds of all files together; files of nulls alone widen nothing."""
    flags = 0
    if bounds.no_null.all():
        flags |= _NO_NULL
    if bounds.all_null.all():
        flags |= _ALL_NULL
    filled = ~bounds.all_null
    if not filled.any() or not bounds.valid[filled].all():
        empty: Value = "" if bounds.scale is None else 0
        return Extent(empty, empty, flags)
    low, high = min(bounds.low[filled].tolist()), max(bounds.high[filled].tolist())
    return Extent(low, high, flags | _VALID)


def partition_extent(meta: ManifestFileMeta, position: int, data_type: DataType) -> Extent:
    """Return the bounds of a partition column in a manifest, as the list of manifests tells them."""
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
    described = {
        "manifests": manifests,
        "places": [[partition.hex(), bucket] for partition, bucket in places],
        "columns": columns,
    }
    data = zlib.compress(json.dumps(described).encode())
    return _HEAD.pack(MAGIC, zlib.crc32(data)) + data


def read_bounds(data: bytes, name: str) -> ManifestBounds:
    """Return what an index file says; CorruptFileError, naming it, for bytes that are not what was
    written.
    """
    if len(data) < _HEAD.size:
        raise CorruptFileError(f"{name} is damaged: {len(data)} bytes are no bounds of manifests")
    magic, checksum = _HEAD.unpack_from(data)
    if magic != MAGIC or zlib.crc32(data[_HEAD.size :]) != checksum:
        raise CorruptFileError(f"{name} is damaged: it is not what was written")
    try:
        return _parsed(json.loads(inflated(data[_HEAD.size :], name)))
    except (
        *(ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError),
        UnsupportedTypeError,
    ) as error:
        raise CorruptFileError(f"{name} is damaged: {type(error).__name__}: {error}") from None


def _parsed(listing: Any) -> ManifestBounds:
    places = [(bytes.fromhex(partition), int(bucket)) for partition, bucket in listing["places"]]
    columns = [(int(each["field"]), parse_type(each["type"]), each["extents"]) for each in listing["columns"]]
    found = []
    for number, (name, size, files, rows, data_bytes, own) in enumerate(listing["manifests"]):
        extents = {
            field: _checked(given[number], data_type)
            for field, data_type, given in columns
            if given[number] is not None
        }
        found.append(
            ManifestExtents(
                name=str(name),
                size=_whole(size),
                files=_whole(files),
                rows=_whole(rows),
                data_bytes=_whole(data_bytes),
                places=frozenset(places[_whole(at)] for at in own),
                extents=extents,
            )
        )
    return ManifestBounds({field: data_type for field, data_type, _ in columns}, tuple(found))


def _checked(given: Sequence[Any], data_type: DataType) -> Extent:
    low, high, flags = given
    wanted = str if data_type.is_string else int
    for value in (low, high):
        if type(value) is not wanted or (isinstance(value, int) and not _LONG.min <= value <= _LONG.max):
            raise ValueError(f"a bound of a column of {data_type.bare_name} is no {wanted.__name__}")
    if low > high:
        raise ValueError("a least value is greater than the greatest")
    return Extent(low, high, _whole(flags))


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _LONG.max:
        raise ValueError(f"{type(value).__name__} where a count was written")
    return value
