"""Commit messages, from a writer to a commit: files added to and deleted from one bucket."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError
from lockgate.framework.store.codec.binary_row import COMPACT_TIMESTAMP_PRECISION
from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.commit.file_index_placement import with_index
from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry, VectorLocation
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.rows.file_statistics import stats_modes
from lockgate.framework.store.schema.schema import TableSchema, wall_clock_millis
from lockgate.framework.types import DataType, partition_key, value_from_json, value_to_json

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


@dataclass(frozen=True)
class PlacedAt:
    """The state in which keys that move between partitions were looked up: its snapshot (0: the empty table).

    `write` names the write, whose rows alone know of each other. `replace_all`: none was looked up, since the
    write is to replace all rows of the table.
    """

    snapshot_id: int
    commit_id: str | None
    write: str
    replace_all: bool = False

    @classmethod
    def after(cls, snapshot: Snapshot | None, *, replace_all: bool = False) -> PlacedAt:
        """Return the state of a new write."""
        if snapshot is None:
            return cls(0, None, str(uuid.uuid4()), replace_all)
        return cls(snapshot.id, snapshot.commit_id, str(uuid.uuid4()), replace_all)


@dataclass(frozen=True)
class CommitMessage:
    """Files added to and deleted from one bucket; `partition` holds the partition's values in order.

    `vectors` are the deletion vectors of deleted files as they were read, by name of the file. `collected` is
    the output of collectors for added files, by name of the file and of the collector (see
    `file_collectors`). `hashes` are those of the keys in added files, if buckets are dynamic (see
    `hash_index`). `changelog` are files with the changes of keys (see `write.changelog`). `placed` says when
    keys that move between partitions were looked up (see `write.key_locations`).
    """

    partition: tuple[Any, ...]
    bucket: int
    total_buckets: int
    added: tuple[DataFileMeta, ...] = ()
    deleted: tuple[DataFileMeta, ...] = ()
    vectors: Mapping[str, VectorLocation] = field(default_factory=dict, hash=False)
    collected: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict, hash=False)
    hashes: bytes = b""
    changelog: tuple[DataFileMeta, ...] = ()
    placed: PlacedAt | None = None

    @classmethod
    def replacing(
        cls,
        entries: Sequence[ManifestEntry],
        added: Sequence[DataFileMeta] = (),
        collected: Mapping[str, Mapping[str, bytes]] = MappingProxyType({}),
        changelog: Sequence[DataFileMeta] = (),
    ) -> CommitMessage:
        """Return the message that replaces files of one bucket, in the state that was read, by `added`."""
        return cls(
            entries[0].partition,
            entries[0].bucket,
            entries[0].total_buckets,
            tuple(added),
            tuple(entry.file for entry in entries),
            {entry.file.file_name: entry.vector for entry in entries if entry.vector is not None},
            collected,
            changelog=tuple(changelog),
        )

    @classmethod
    def indexing(cls, table: TableHandle, entry: ManifestEntry, index: bytes) -> CommitMessage:
        """Return the message that replaces a file by itself with another file index, which it writes."""
        file = with_index(table, entry.partition, entry.bucket, entry.file, index)
        return cls.replacing([entry], [file])

    def to_json(self, schema: TableSchema) -> dict[str, Any]:
        """Return the JSON that `from_json` reads; values are spelled by `value_to_json`."""
        types = schema.types_of(schema.partition_keys)
        values = zip(schema.partition_keys, types, self.partition, strict=True)
        return {
            "partition": {name: value_to_json(kind, value) for name, kind, value in values},
            "bucket": self.bucket,
            "total_buckets": self.total_buckets,
            "added": [_file_to_json(file, schema) for file in self.added],
            "deleted": [_file_to_json(file, schema) for file in self.deleted],
            "vectors": {name: dataclasses.asdict(vector) for name, vector in self.vectors.items()},
            "collected": {
                file: {name: base64.b64encode(output).decode() for name, output in made.items()}
                for file, made in self.collected.items()
            },
            "hashes": base64.b64encode(self.hashes).decode(),
            "changelog": [_file_to_json(file, schema) for file in self.changelog],
            "placed": None if self.placed is None else dataclasses.asdict(self.placed),
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any], schema: TableSchema) -> CommitMessage:
        """Read what `to_json` wrote; InputError names what is missing."""
        with _missing_named():
            return cls(
                partition=partition_from_json(json["partition"], schema),
                bucket=int(json["bucket"]),
                total_buckets=int(json["total_buckets"]),
                added=tuple(_file_from_json(file, schema) for file in json["added"]),
                deleted=tuple(_file_from_json(file, schema) for file in json["deleted"]),
                vectors={name: VectorLocation(**vector) for name, vector in json["vectors"].items()},
                collected={
                    file: {name: base64.b64decode(output) for name, output in made.items()}
                    for file, made in json["collected"].items()
                },
                hashes=base64.b64decode(json["hashes"]),
                changelog=tuple(_file_from_json(file, schema) for file in json["changelog"]),
                placed=None if json["placed"] is None else PlacedAt(**json["placed"]),
            )

    @classmethod
    def of_written(cls, json: Mapping[str, Any], schema: TableSchema) -> CommitMessage:
        """Read the message of a task that has written one `file` of a bucket, of rows or of changes, under
        `schema` and just now.

        A task knows the file's size, rows, bounds and statistics, of which those are taken that the table's
        options keep. InputError names what is missing.
        """
        with _missing_named():
            new = {
                "schema_id": schema.id,
                "level": 0,
                "file_source": 0,
                "creation_time": wall_clock_millis(),
                "extra_files": [],
                "embedded_index": None,
                "external_path": None,
            }
            file = {**json["file"], **new, "stats": _kept_statistics(json["file"]["stats"], schema)}
            files = (_file_from_json(file, schema),)
            return cls(
                partition=partition_from_json(json["partition"], schema),
                bucket=int(json["bucket"]),
                total_buckets=int(json["total_buckets"]),
                added=() if json["changelog"] else files,
                changelog=files if json["changelog"] else (),
            )


def _kept_statistics(found: Mapping[str, Any], schema: TableSchema) -> dict[str, Any]:
    """Return of the statistics of a task those that the table's options keep, whatever tasks were told."""
    modes = stats_modes(schema)
    return {
        name: column if name not in modes or modes[name].bounds else {**column, "min": None, "max": None}
        for name, column in found.items()
        if name in modes or name not in schema.field_names
    }


@contextlib.contextmanager
def _missing_named() -> Iterator[None]:
    try:
        yield
    except KeyError as missing:
        raise InputError(f"a commit message lacks {missing}") from None


def partition_from_json(json: Mapping[str, Any], schema: TableSchema) -> tuple[Any, ...]:
    """Return the values of a partition from those by column, as `value_to_json` spells them."""
    return partition_key(
        value_from_json(schema.field(name).type, json[name]) for name in schema.partition_keys
    )


def _file_to_json(file: DataFileMeta, schema: TableSchema) -> dict[str, Any]:
    key_types = schema.types_of(schema.trimmed_primary_keys) if file.min_key else ()
    names = schema.field_names if file.value_stats_cols is None else file.value_stats_cols
    columns = zip(
        names, file.value_stats.min, file.value_stats.max, file.value_stats.null_counts, strict=True
    )
    return {
        "name": file.file_name,
        "size": file.file_size,
        "rows": file.row_count,
        "min_key": [value_to_json(kind, value) for kind, value in zip(key_types, file.min_key, strict=True)],
        "max_key": [value_to_json(kind, value) for kind, value in zip(key_types, file.max_key, strict=True)],
        "stats": {name: _column_to_json(schema, name, *stats) for name, *stats in columns},
        "min_sequence": file.min_sequence_number,
        "max_sequence": file.max_sequence_number,
        "delete_rows": file.delete_row_count,
        "schema_id": file.schema_id,
        "level": file.level,
        "file_source": file.file_source,
        "creation_time": file.creation_time_millis,
        "extra_files": list(file.extra_files),
        "embedded_index": None
        if file.embedded_index is None
        else base64.b64encode(file.embedded_index).decode(),
        "external_path": file.external_path,
    }


def _column_to_json(
    schema: TableSchema, name: str, minimum: Any, maximum: Any, nulls: int | None
) -> dict[str, Any]:
    data_type = schema.field(name).type
    if data_type.is_nested:
        return {"min": None, "max": None, "nulls": nulls}
    return {
        "min": value_to_json(data_type, minimum),
        "max": value_to_json(data_type, maximum),
        "nulls": nulls,
    }


def _file_from_json(json: Mapping[str, Any], schema: TableSchema) -> DataFileMeta:
    keys = schema.trimmed_primary_keys
    columns = json["stats"]
    # In the order of the schema, whatever the writer's map has.
    names = tuple(name for name in schema.field_names if name in columns)
    for name in columns:
        schema.field(name)
    value_stats = _stats_of(schema, names, columns)
    min_key, max_key = (_key_from_json(json[bound], schema) for bound in ("min_key", "max_key"))
    key_columns = {name: columns.get(name, _UNKNOWN) for name in keys}
    if len(keys) == 1 and min_key and _UNKNOWN in key_columns.values():
        key_columns = {keys[0]: {"min": json["min_key"][0], "max": json["max_key"][0], "nulls": 0}}
    return DataFileMeta(
        file_name=str(json["name"]),
        file_size=int(json["size"]),
        row_count=int(json["rows"]),
        min_key=min_key,
        max_key=max_key,
        key_stats=_stats_of(schema, keys, key_columns),
        value_stats=value_stats,
        min_sequence_number=int(json["min_sequence"]),
        max_sequence_number=int(json["max_sequence"]),
        schema_id=int(json["schema_id"]),
        level=int(json["level"]),
        extra_files=tuple(json["extra_files"]),
        embedded_index=None if json["embedded_index"] is None else base64.b64decode(json["embedded_index"]),
        creation_time_millis=json["creation_time"],
        delete_row_count=json["delete_rows"],
        file_source=json["file_source"],
        value_stats_cols=names,
        external_path=json["external_path"],
    )


_UNKNOWN: Mapping[str, Any] = {"min": None, "max": None, "nulls": None}


def _key_from_json(json: Any, schema: TableSchema) -> tuple[Any, ...]:
    if not schema.primary_keys:
        return ()
    types = schema.types_of(schema.trimmed_primary_keys)
    if len(json) != len(types):
        raise InputError(f"a file of a table with a primary key needs {len(types)} values in its key bounds")
    return tuple(value_from_json(kind, value) for kind, value in zip(types, json, strict=True))


def _stats_of(schema: TableSchema, names: tuple[str, ...], columns: Mapping[str, Any]) -> SimpleStats:
    def values(bound: str) -> tuple[Any, ...]:
        return tuple(value_from_json(schema.field(name).type, columns[name][bound]) for name in names)

    highest = (
        _rounded_up(schema.field(name).type, value) for name, value in zip(names, values("max"), strict=True)
    )
    return SimpleStats(values("min"), tuple(highest), tuple(columns[name]["nulls"] for name in names))


def _rounded_up(data_type: DataType, value: Any) -> Any:
    """Return an upper bound that stays one when a manifest keeps only the milliseconds of its type.

    Spark knows no TIMESTAMP(3) and writes microseconds into such a column.
    """
    finer = value.microsecond % 1000 if data_type.is_timestamp and value is not None else 0
    if not finer or (data_type.precision or 0) > COMPACT_TIMESTAMP_PRECISION:
        return value
    try:
        return value + datetime.timedelta(microseconds=1000 - finer)
    except OverflowError:
        return None
