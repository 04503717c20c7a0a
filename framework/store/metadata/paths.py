"""Paths of a table's files, and the folder names of partition values.

Source: Paimon's `FileStorePathFactory`, `PartitionPathUtils` and `InternalRowPartitionComputer`.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lockgate.errors import UnsupportedFormatError
from lockgate.framework.io import join
from lockgate.framework.options import DATA_FOLDER, PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME
from lockgate.framework.store.metadata.generations import generation_of
from lockgate.framework.store.metadata.trust import (
    NO_ROOTS,
    ExternalRoots,
    check_file_name,
    check_file_names,
    check_number,
)
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataType, Kind, days_of, millis_of_day, partition_key, time_of

if TYPE_CHECKING:
    from lockgate.framework.store.manifests.file_table import FileTable, Numbers
    from lockgate.framework.store.manifests.manifest import DataFileMeta, ManifestEntry


# Paimon's bucket of rows that wait for theirs, and the name of its folder.
_POSTPONED, _POSTPONED_NAME = -2, "postpone"
# With so many digits every float, or every double, reads back.
_DIGITS_OF_FLOAT, _DIGITS_OF_DOUBLE = 9, 17
_NO_SPACE_IN_JAVA = "\x85\xa0\u2007\u202f"
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")


class TablePaths:
    """The paths in one table's folder; `schema` gives the partition columns.

    `data_location` is the folder that holds the data files. `schema_of` gives the schema of an id: a table
    that was replaced may have been partitioned otherwise.
    Here, and nowhere else, what metadata says becomes a path; what is not to be trusted is an UnsafePathError
    (see `trust`).
    """

    def __init__(
        self,
        location: str,
        schema: TableSchema,
        schema_of: Callable[[int], TableSchema] | None = None,
        external: ExternalRoots = NO_ROOTS,
    ) -> None:
        self.location = location.rstrip("/")
        self.external = external
        self._schema, self._schema_of = schema, schema_of
        self._others: dict[int, TablePaths] = {}
        self._keys = schema.partition_keys
        self._types = schema.types_of(schema.partition_keys)
        self._default = schema.table_options.get_option(PARTITION_DEFAULT_NAME)
        self._legacy = schema.table_options.get_option(PARTITION_LEGACY_NAME)
        folder = schema.table_options.get_option(DATA_FOLDER)
        self.data_location = join(self.location, folder) if folder else self.location
        # A table has far fewer buckets than files.
        self._bucket_path = lru_cache(maxsize=4096)(self._new_bucket_path)

    def partition_path(self, partition: Sequence[Any]) -> str:
        """Return `a=1/b=x` for the values of a partition; empty without partition columns."""
        names = zip(self._keys, self._types, partition, strict=True)
        return "/".join(
            f"{escape(key)}={escape(self._partition_name(kind, value))}" for key, kind, value in names
        )

    def _partition_name(self, data_type: DataType, value: Any) -> str:
        name = "" if value is None else partition_text(data_type, value, legacy=self._legacy)
        return self._default if _is_blank(name) else name

    def bucket_path(self, partition: Sequence[Any], bucket: int) -> str:
        """Return the folder of a bucket."""
        return self._bucket_path(partition_key(partition), bucket)

    def _new_bucket_path(self, partition: tuple[Any, ...], bucket: int) -> str:
        name = _POSTPONED_NAME if bucket == _POSTPONED else bucket
        return join(self.data_location, self.partition_path(partition), f"bucket-{name}")

    def data_file(self, partition: Sequence[Any], bucket: int, file: DataFileMeta) -> str:
        """Return the path of a data file; one outside the table says itself where it is."""
        name = check_file_name(file.file_name, "a data file")
        if file.external_path:
            return self.external.path(file.external_path, self.location)
        return f"{self._of_schema(file.schema_id).bucket_path(partition, bucket)}/{name}"

    def data_files(
        self, partition: Sequence[Any], bucket: int, files: Sequence[DataFileMeta]
    ) -> tuple[str, ...]:
        """Return the paths of data files of one bucket."""
        names = [file.file_name for file in files]
        check_file_names(names, "a data file")
        if any(file.external_path for file in files):
            return tuple([self.data_file(partition, bucket, file) for file in files])
        schemas = [file.schema_id for file in files]
        folders = {each: self._of_schema(each).bucket_path(partition, bucket) for each in set(schemas)}
        return tuple([f"{folders[each]}/{name}" for each, name in zip(schemas, names, strict=True)])

    def of_files(self, files: FileTable, numbers: Numbers) -> list[str]:
        """Return the paths of files of one bucket, by their numbers in a table of files."""
        at = int(numbers[0])
        partition, bucket = files.partitions[int(files.partition[at])], int(files.bucket[at])
        schemas = files.schema_ids[numbers]
        is_few = len(numbers) < len(files) // 16
        if is_few or files.has_external or (schemas != schemas[0]).any():
            return [*self.data_files(partition, bucket, files.metas_of(numbers))]
        folder = f"{self._of_schema(int(schemas[0])).bucket_path(partition, bucket)}/"
        names = files.names
        return [folder + names[number] for number in numbers.tolist()]

    def check_entry(self, entry: ManifestEntry) -> None:
        """Raise UnsafePathError or CorruptFileError unless an entry says properly where its files are."""
        file = entry.file
        check_file_name(file.file_name, "a data file")
        for name in file.extra_files:
            check_file_name(name, "a file of a data file")
        check_number(entry.bucket, "the bucket of a data file")
        check_number(file.schema_id, "the schema of a data file")
        check_number(file.file_size, "the size of a data file")
        if file.external_path is not None:
            self.external.path(file.external_path, self.location)

    def _of_schema(self, schema_id: int) -> TablePaths:
        """Return the paths by which files of a schema were written."""
        if schema_id == self._schema.id or self._schema_of is None:
            return self
        if schema_id not in self._others:
            other = self._schema_of(schema_id)
            same = generation_of(other) == generation_of(self._schema)
            self._others[schema_id] = self if same else self._with_schema(other)
        return self._others[schema_id]

    def _with_schema(self, schema: TableSchema) -> TablePaths:
        return TablePaths(self.location, schema, self._schema_of, self.external)

    def extra_files(self, partition: Sequence[Any], bucket: int, file: DataFileMeta) -> list[str]:
        """Return the paths of the files that belong to a data file, such as its index."""
        folder = self.data_file(partition, bucket, file).rpartition("/")[0]
        return [f"{folder}/{check_file_name(name)}" for name in file.extra_files]

    def manifest(self, name: str) -> str:
        """Return the path of a manifest, a manifest list or an index manifest."""
        return f"{self.location}/manifest/{check_file_name(name, 'a manifest')}"

    def index_file(self, name: str) -> str:
        """Return the path of a file of the table's index."""
        return f"{self.location}/index/{check_file_name(name, 'a file of an index')}"

    def statistics_file(self, name: str) -> str:
        """Return the path of a file of the table's statistics."""
        return f"{self.location}/statistics/{check_file_name(name, 'a file of statistics')}"


def schema_folder(location: str) -> str:
    """Return the folder of a table's schema files."""
    return f"{location.rstrip('/')}/schema"


def branch_folder(location: str, branch: str | None) -> str:
    """Return the folder of a branch's own metadata; that of the table if there is no branch."""
    if branch is None:
        return location
    return f"{location.rstrip('/')}/branch/branch-{check_file_name(branch, 'a branch')}"


def snapshot_folder(location: str) -> str:
    """Return the folder of a table's snapshots."""
    return f"{location.rstrip('/')}/snapshot"


def new_data_file_name(counter: int = 0, *, prefix: str = "data-", suffix: str = ".orc") -> str:
    """Return a name for a data file that no other writer gives."""
    return f"{prefix}{uuid.uuid4()}-{counter}{suffix}"


def escape(name: str) -> str:
    """Return `name` with what a folder name must not hold as `%XX`."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", name)


def unescape(name: str) -> str:
    """Return what `escape` was given."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), name)


def partition_text(data_type: DataType, value: Any, *, legacy: bool = True) -> str:
    """Return a partition value as its folder name shows it, before escaping.

    With `legacy`, Paimon's default, it is what Java prints of the internal value: days since 1970 for DATE.
    Raises UnsupportedFormatError for types that no stable name exists for.
    """
    kind = data_type.kind
    if data_type.is_string:
        return str(value)
    if kind is Kind.BOOLEAN:
        return "true" if value else "false"
    if data_type.is_integer:
        return str(value)
    if kind is Kind.DECIMAL:
        return f"{value:.{data_type.scale}f}"
    if kind is Kind.DATE:
        return str(days_of(value)) if legacy else value.isoformat()
    if kind in (Kind.FLOAT, Kind.DOUBLE):
        return java_float_text(value, single=kind is Kind.FLOAT)
    if kind is Kind.TIME:
        millis = millis_of_day(value)
        return str(millis) if legacy else _time_text(millis, data_type.precision or 0)
    if data_type.is_timestamp and legacy:
        return _java_timestamp_text(value)
    if can_be_partition(data_type, legacy=legacy):
        return _timestamp_text(value, data_type.precision or 0)
    raise UnsupportedFormatError(f"a column of type {data_type} cannot be a partition column")


def can_be_partition(data_type: DataType, *, legacy: bool = True) -> bool:
    """Say whether values of a type have a folder name, one that is the same for every writer.

    Without `legacy` Paimon spells an instant in the time zone of the process that writes it.
    """
    if data_type.kind is Kind.TIMESTAMP_LTZ:
        return legacy
    kinds = {Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.FLOAT, Kind.DOUBLE, Kind.TIME, Kind.TIMESTAMP}
    return data_type.is_string or data_type.is_integer or data_type.kind in kinds


def _timestamp_text(value: datetime.datetime, precision: int) -> str:
    """Return what Paimon's cast to STRING prints: a fraction of as many digits as the type has, or more."""
    fraction = f"{value.microsecond * 1000:09d}"
    fraction = fraction[:precision] + fraction[precision:].rstrip("0")
    text = value.replace(microsecond=0).isoformat(" ")
    return f"{text}.{fraction}" if fraction else text


def _time_text(millis: int, precision: int) -> str:
    """Return what Paimon's cast to STRING prints: a fraction without zeros at its end, or `0`."""
    text = time_of(millis - millis % 1000).isoformat()
    fraction = f"{millis % 1000:03d}"[:precision].rstrip("0") or "0"
    return f"{text}.{fraction}" if precision else text


def _java_timestamp_text(value: datetime.datetime) -> str:
    """Return what `java.time.LocalDateTime` prints: no seconds and no fraction where they are zero."""
    value = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    if value.microsecond:
        text = value.isoformat(timespec="microseconds")
        return text.removesuffix("000")
    return value.isoformat(timespec="seconds" if value.second else "minutes")


def java_float_text(value: float, *, single: bool) -> str:
    """Return what Java 19 and newer print of a double, or of a float if `single`.

    These are the fewest digits, two at least, that read back as the value (`Double.toString`, JDK-4511638).
    Older ones print more digits now and then; the connector prints these on any of them.
    """
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(float(value))]
    digits = _fewest_digits(value, single=single)
    if digits == 0 or Decimal("0.001") <= abs(digits) < Decimal("1e7"):
        text = format(digits, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text if "." in text else f"{text}.0"
    mantissa, exponent = format(digits, "e").split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def _fewest_digits(value: float, *, single: bool) -> Decimal:
    for count in range(2, _DIGITS_OF_FLOAT if single else _DIGITS_OF_DOUBLE):
        text = f"{value:.{count - 1}e}"
        with np.errstate(over="ignore"):
            read = float(np.float32(text)) if single else float(text)
        if read == value:
            return Decimal(text)
    return Decimal(f"{value:.{(_DIGITS_OF_FLOAT if single else _DIGITS_OF_DOUBLE) - 1}e}")


def _is_blank(text: str) -> bool:
    """Say whether Java's `String.isBlank` holds: its white space is not all of Python's."""
    return all(character.isspace() and character not in _NO_SPACE_IN_JAVA for character in text)
