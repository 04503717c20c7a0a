"""The schema of a table: what a user gives, and the numbered version kept in `schema/schema-<n>`.

Source: Paimon's specification, page "Schema".
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    LockgateError,
    UnsupportedFormatError,
    UnsupportedTypeError,
    nearest,
)
from lockgate.framework import options as table_options
from lockgate.framework.io import most_json, too_large
from lockgate.framework.options import CHANGELOG_PRODUCER, NO_CHANGELOG, TableOptions, check_names
from lockgate.framework.types import (
    DataField,
    DataType,
    arrow_schema,
    field_to_json,
    fields_from_arrow,
    from_spark_json,
    micros_of,
    parse_column,
)

CURRENT_VERSION = 3
# A key of our own in schema files, which other engines pass over.
_TABLE_ID = "lockgateTableId"


@checked_arguments
@dataclass(frozen=True)
class Schema:
    """The schema that a user gives to create a table.

    Keys may also come as the options `primary-key` and `partition`, as in Spark's table properties.
    """

    fields: tuple[DataField, ...]
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @classmethod
    def from_arrow(
        cls,
        schema: pa.Schema,
        *,
        partition_keys: Iterable[str] = (),
        primary_keys: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Schema:
        """Make a schema from an Arrow one; UnsupportedTypeError names a column that cannot be stored."""
        fields = fields_from_arrow(schema)
        partition = check_names("partition_keys", partition_keys)
        return cls(fields, partition, check_names("primary_keys", primary_keys), dict(options or {}), comment)

    @classmethod
    def from_spark_json(
        cls,
        struct: Mapping[str, Any],
        *,
        partition_keys: Iterable[str] = (),
        primary_keys: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Schema:
        """Make a schema from a `StructType.json` form; raises as `from_arrow`."""
        fields = from_spark_json(struct)
        partition = check_names("partition_keys", partition_keys)
        return cls(fields, partition, check_names("primary_keys", primary_keys), dict(options or {}), comment)


@dataclass(frozen=True)
class TableSchema:
    """One version of a table's schema; immutable once it is stored."""

    id: int
    fields: tuple[DataField, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    time_millis: int = 0
    version: int = CURRENT_VERSION
    # The id that a table gets when it is created; empty in schemas of other writers.
    table_id: str = field(default="", compare=False)

    @cached_property
    def table_options(self) -> TableOptions:
        """The options with typed access; unknown ones of other engines are carried along."""
        return TableOptions(self.options, strict=False)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return arrow_schema(self.fields)

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(member.name for member in self.fields)

    @cached_property
    def _by_name(self) -> dict[str, DataField]:
        return {member.name: member for member in self.fields}

    def field(self, name: str) -> DataField:
        """Return the column `name`; ColumnNotFoundError offers the nearest names."""
        found = self._by_name.get(name)
        if found is None:
            raise ColumnNotFoundError(f"there is no column {name!r}{nearest(name, self.field_names)}")
        return found

    def types_of(self, names: Iterable[str]) -> tuple[DataType, ...]:
        """Return the types of the columns `names`, in that order."""
        return tuple(self.field(name).type for name in names)

    @cached_property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The primary key without partition columns, which are the same in all rows of a file."""
        trimmed = tuple(name for name in self.primary_keys if name not in self.partition_keys)
        # A key of partition columns only is kept whole, as Paimon does.
        return trimmed or self.primary_keys

    @property
    def has_primary_key(self) -> bool:
        """Say whether the newest row of each key wins."""
        return bool(self.primary_keys)

    @cached_property
    def has_vectors(self) -> bool:
        """Say whether rows are deleted by deletion vectors; a table of others may have a blank for the
        option.
        """
        return self.options.get(table_options.DELETION_VECTORS.key, "").strip().lower() == "true"

    @cached_property
    def changelog_producer(self) -> str:
        """Return how changes of keys are stored in files of their own; `none` for tables without a key."""
        return self.table_options.get_option(CHANGELOG_PRODUCER) if self.has_primary_key else NO_CHANGELOG

    @cached_property
    def bucket_count(self) -> int:
        """Buckets of each partition; -1 for an append table without buckets."""
        return self.table_options.get_option(table_options.BUCKET)

    @property
    def has_dynamic_buckets(self) -> bool:
        """Say whether new buckets are made as they fill."""
        return self.has_primary_key and self.bucket_count == -1

    @property
    def has_hash_index(self) -> bool:
        """Say whether an index on disk maps keys to dynamic buckets."""
        return self.has_dynamic_buckets and not self.moves_keys

    @property
    def moves_keys(self) -> bool:
        """Say whether a key may move between partitions, since it does not have all their columns."""
        return self.has_primary_key and not set(self.partition_keys) <= set(self.primary_keys)

    @cached_property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns that choose the bucket: `bucket-key`, else the trimmed primary key."""
        return self.table_options.get_option(table_options.BUCKET_KEY) or self.trimmed_primary_keys

    @cached_property
    def sequence_fields(self) -> tuple[str, ...]:
        """The columns that say which row of a key is newest; none: the one written last is."""
        return self.table_options.get_option(table_options.SEQUENCE_FIELD) if self.has_primary_key else ()

    def with_options(self, changes: Mapping[str, str | None]) -> TableSchema:
        """Return the next version of this schema with changed options; None removes one."""
        changed = dict(self.table_options.with_options(changes))
        return replace(self, id=self.id + 1, options=changed, time_millis=now_millis())

    def to_json(self) -> dict[str, Any]:
        """Return the content of the schema file."""
        content: dict[str, Any] = {
            "version": self.version,
            "id": self.id,
            "fields": [field_to_json(member) for member in self.fields],
            "highestFieldId": self.highest_field_id,
            "partitionKeys": list(self.partition_keys),
            "primaryKeys": list(self.primary_keys),
            "options": dict(self.options),
        }
        if self.comment is not None:
            content["comment"] = self.comment
        if self.table_id:
            content[_TABLE_ID] = self.table_id
        return {**content, "timeMillis": self.time_millis}

    def to_bytes(self) -> bytes:
        """Return the schema file."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> TableSchema:
        """Parse a schema file.

        Raises CorruptFileError if it is damaged and UnsupportedFormatError if its version is newer than ours,
        both naming `path`.
        """
        content, version = load_versioned(data, path, "schema", CURRENT_VERSION)
        try:
            return _parse(content, version)
        except KeyError as missing:
            raise CorruptFileError(f"{path}: the schema lacks {missing}") from None
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, LockgateError):
                raise UnsupportedFormatError(f"{path}: {error}") from None
            raise CorruptFileError(f"{path}: the schema is malformed: {error}") from None


def _parse(content: Mapping[str, Any], version: int) -> TableSchema:
    options = {str(key): str(value) for key, value in content["options"].items()}
    # The defaults of missing options when the old versions were current (specification, "Compatibility").
    if version <= 1:
        options.setdefault("bucket", "1")
    if version <= 2:
        options.setdefault("file.format", "orc")
    fields = tuple(parse_column(member) for member in content["fields"])
    keys = {*content["partitionKeys"], *content["primaryKeys"]}
    for column in fields:
        if column.type.is_opaque and column.name in keys:
            raise UnsupportedTypeError(
                f"column {column.name!r}, which is a key, has the type {column.type}, which this version "
                "does not know"
            )
    return TableSchema(
        id=int(content["id"]),
        fields=fields,
        highest_field_id=int(content["highestFieldId"]),
        partition_keys=tuple(content["partitionKeys"]),
        primary_keys=tuple(content["primaryKeys"]),
        options=options,
        comment=content.get("comment"),
        time_millis=int(content.get("timeMillis", 0)),
        version=version,
        table_id=str(content.get(_TABLE_ID, "")),
    )


def now_millis() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def wall_clock_millis() -> int:
    """Return what the clock on the wall shows, in milliseconds as if it were UTC; data files are dated so."""
    return micros_of(datetime.datetime.now()) // 1000


def load_json(data: bytes, path: str) -> dict[str, Any]:
    """Parse a metadata file that holds one JSON object; CorruptFileError names `path`."""
    if len(data) > most_json():
        raise too_large(path, most_json())
    try:
        content = json.loads(data)
    except ValueError as error:
        state = "is empty" if not data.strip() else f"is not JSON: {error}"
        raise CorruptFileError(f"{path} {state}") from None
    except RecursionError:
        raise CorruptFileError(f"{path} has more levels than any metadata: it is damaged or forged") from None
    if not isinstance(content, dict):
        raise CorruptFileError(f"{path} does not hold a JSON object")
    return content


def load_versioned(data: bytes, path: str, what: str, newest: int) -> tuple[dict[str, Any], int]:
    """Parse a metadata file that holds one JSON object, and return its format's version too.

    Raises CorruptFileError if it is damaged and UnsupportedFormatError if its version is above `newest`, both
    naming `path`.
    """
    content = load_json(data, path)
    version = content.get("version", 1)
    if not isinstance(version, int):
        raise CorruptFileError(f"{path}: the {what} has the version {version!r}")
    if version > newest:
        raise UnsupportedFormatError(f"{path}: {what} version {version} is newer than {newest}")
    return content, version
