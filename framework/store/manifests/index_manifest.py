"""Index manifests: the index files of a snapshot, and the part of them that belongs to each data file.

Source: Paimon's `IndexManifestEntry`, `IndexFileMeta` and `DeletionVectorMeta`. Unlike other manifests each
one is complete: a snapshot's lists every index file that holds for it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro

from lockgate.errors import CorruptFileError, UnsupportedFormatError
from lockgate.framework.store.codec.avro import write_container
from lockgate.framework.store.codec.binary_row import decode_row
from lockgate.framework.store.manifests.manifest_records import checked
from lockgate.framework.store.manifests.metadata_records import read_records
from lockgate.framework.store.metadata.trust import check_file_name, check_number

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

DELETION_VECTORS = "DELETION_VECTORS"
HASH = "HASH"
# Kinds of plugins; other engines keep files of kinds that they do not know.
OWN_KINDS = "lockgate-"

# Paimon's option: index files lie in the folders of buckets.
_BESIDE_DATA = "index-file-in-data-file-dir"
_VERSION = 1
_RECORD = "org.apache.paimon.avro.generated.record"


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


_RANGE = {
    "type": "record",
    "name": f"{_RECORD}__DELETIONS_VECTORS_RANGES",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        _optional("_CARDINALITY", "long"),
    ],
}
_GLOBAL_INDEX = {
    "type": "record",
    "name": f"{_RECORD}__GLOBAL_INDEX",
    "fields": [
        {"name": "_ROW_RANGE_START", "type": "long"},
        {"name": "_ROW_RANGE_END", "type": "long"},
        {"name": "_INDEX_FIELD_ID", "type": "int"},
        _optional("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        _optional("_INDEX_META", "bytes"),
    ],
}
_SCHEMA = fastavro.parse_schema(
    {
        "type": "record",
        "name": _RECORD,
        "fields": [
            {"name": "_VERSION", "type": "int"},
            {"name": "_KIND", "type": "int"},
            {"name": "_PARTITION", "type": "bytes"},
            {"name": "_BUCKET", "type": "int"},
            {"name": "_INDEX_TYPE", "type": "string"},
            {"name": "_FILE_NAME", "type": "string"},
            {"name": "_FILE_SIZE", "type": "long"},
            {"name": "_ROW_COUNT", "type": "long"},
            _optional("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE]}),
            _optional("_EXTERNAL_PATH", "string"),
            _optional("_GLOBAL_INDEX", _GLOBAL_INDEX),
        ],
    }
)


@dataclass(frozen=True)
class VectorRange:
    """The place of a data file's vector in an index file, in bytes; `cardinality` counts deleted rows.

    `length` is what the manifest says, which formats count differently; None: older writers did not count.
    """

    data_file: str
    offset: int
    length: int
    cardinality: int | None


@dataclass(frozen=True)
class IndexEntry:
    """One index file of a bucket; `partition` is a serialized row, `global_index` is handed on as found."""

    partition: bytes
    bucket: int
    kind: str
    file_name: str
    file_size: int
    row_count: int
    vectors: tuple[VectorRange, ...] = ()
    external_path: str | None = None
    global_index: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class IndexManifest:
    """The index files of a snapshot."""

    entries: tuple[IndexEntry, ...]

    def __len__(self) -> int:
        return len(self.entries) + sum(len(entry.vectors) for entry in self.entries)

    def paths(self, table: TableHandle) -> dict[str, int]:
        """Return the paths of the index files, with their bytes."""
        return {index_path(table, entry): entry.file_size for entry in self.entries}

    @property
    def names(self) -> set[str]:
        """The names of the index files."""
        return {entry.file_name for entry in self.entries}


@dataclass(frozen=True)
class WrittenIndex:
    """The index files that a new snapshot has, and the paths of those that were written for it."""

    entries: tuple[IndexEntry, ...]
    paths: list[str]


def knows_index(kind: str) -> bool:
    """Say whether index files of a kind are kept right when data files are replaced.

    Those of plugins say nothing of files that they do not name, and names of data files never come back.
    """
    return kind in (DELETION_VECTORS, HASH) or kind.startswith(OWN_KINDS)


def index_path(table: TableHandle, entry: IndexEntry) -> str:
    """Return the path of an index file."""
    paths, schema = table.paths, table.schema
    if entry.external_path is not None:
        return paths.external.path(entry.external_path, table.location)
    if schema.options.get(_BESIDE_DATA, "false").strip().lower() != "true":
        return paths.index_file(entry.file_name)
    partition = decode_row(entry.partition, schema.types_of(schema.partition_keys))
    return f"{paths.bucket_path(partition, entry.bucket)}/{check_file_name(entry.file_name)}"


def read_index_manifest(table: TableHandle, name: str) -> IndexManifest:
    """Read an index manifest; CorruptFileError if it is missing or damaged.

    Raises UnsafePathError for a file that no table could have.
    """
    path = table.paths.manifest(name)
    try:
        records = read_records(table.file_system.read_bytes(path), path)
    except FileNotFoundError:
        raise CorruptFileError(f"{path} is missing, but a snapshot refers to it") from None
    return checked(lambda: IndexManifest(tuple(_entry(table, record) for record in records)), path)


def _entry(table: TableHandle, record: Mapping[str, Any]) -> IndexEntry:
    name = check_file_name(record["_FILE_NAME"], "a file of an index")
    if record.get("_VERSION", _VERSION) != _VERSION:
        raise UnsupportedFormatError(f"an index record of version {record['_VERSION']}, expected {_VERSION}")
    entry = IndexEntry(
        partition=record["_PARTITION"],
        bucket=check_number(record["_BUCKET"], f"the bucket of {name}"),
        kind=str(record["_INDEX_TYPE"]),
        file_name=name,
        file_size=check_number(record["_FILE_SIZE"], f"the size of {name}"),
        row_count=record["_ROW_COUNT"],
        vectors=_ranges(record.get("_DELETIONS_VECTORS_RANGES"), name),
        external_path=record.get("_EXTERNAL_PATH"),
        global_index=record.get("_GLOBAL_INDEX"),
    )
    index_path(table, entry)
    return entry


def _ranges(records: Sequence[Mapping[str, Any] | None] | None, name: str) -> tuple[VectorRange, ...]:
    return tuple(
        VectorRange(
            data_file=check_file_name(record["f0"], "a data file"),
            offset=check_number(record["f1"], f"the place of a vector in {name}"),
            length=check_number(record["f2"], f"the length of a vector in {name}"),
            cardinality=None if record.get("_CARDINALITY") is None else _count(record["_CARDINALITY"], name),
        )
        for record in records or ()
        if record is not None
    )


def _count(value: Any, name: str) -> int:
    return check_number(value, f"the number of rows that a vector in {name} deletes")


def write_index_manifest(table: TableHandle, entries: Iterable[IndexEntry]) -> str:
    """Store an index manifest under a new name and return the name."""
    name = f"index-manifest-{uuid.uuid4()}-0"
    data = write_container(_SCHEMA, [_record(entry) for entry in entries])
    table.file_system.write_new(table.paths.manifest(name), data)
    return name


def _record(entry: IndexEntry) -> dict[str, Any]:
    ranges = [
        {"f0": each.data_file, "f1": each.offset, "f2": each.length, "_CARDINALITY": each.cardinality}
        for each in entry.vectors
    ]
    return {
        "_VERSION": _VERSION,
        "_KIND": 0,
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_INDEX_TYPE": entry.kind,
        "_FILE_NAME": entry.file_name,
        "_FILE_SIZE": entry.file_size,
        "_ROW_COUNT": entry.row_count,
        "_DELETIONS_VECTORS_RANGES": ranges if entry.kind == DELETION_VECTORS else None,
        "_EXTERNAL_PATH": entry.external_path,
        "_GLOBAL_INDEX": entry.global_index,
    }
