"""Validation of a new table: returns its first schema, or raises an error that says what is wrong."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    OptionError,
    UnsupportedError,
    UnsupportedFormatError,
    UnsupportedTypeError,
    nearest,
)
from lockgate.framework import options as clustering_options
from lockgate.framework import options as table_options
from lockgate.framework.options import (
    CHANGELOG_PRODUCER,
    COMPACTION_CHANGELOG,
    LOOKUP_CHANGELOG,
    NO_CHANGELOG,
    Option,
    TableOptions,
)
from lockgate.framework.store.merge.merge import why_no_sequence
from lockgate.framework.store.merge.merge_options import check_merge, ordering_columns
from lockgate.framework.store.merge.merge_plan import FIRST_ROW
from lockgate.framework.store.metadata.generations import check_not_set
from lockgate.framework.store.metadata.paths import can_be_partition
from lockgate.framework.store.rows.file_statistics import StatsMode
from lockgate.framework.store.schema.clustering import why_unordered
from lockgate.framework.store.schema.defaults import with_stored_default
from lockgate.framework.store.schema.schema import Schema, TableSchema, now_millis
from lockgate.framework.store.schema.unsupported_features import check_moving_keys
from lockgate.framework.store.schema.written_formats import ORC, check_formats
from lockgate.framework.types import DataField, DataType

# Columns that data files and changes add to a table's own (Paimon's `SpecialFields`).
_RESERVED_PREFIX = "_KEY_"
_RESERVED = frozenset({"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"})

_COLUMN_STATS_MODE = re.compile(r"fields\.(.+)\.stats-mode")

# Where the table is and who made it is not the table's own business to remember.
_NOT_STORED = frozenset({"path", "provider", "location", "external", "is_managed_location", "comment"})


def first_schema(schema: Schema) -> TableSchema:
    """Return the schema with id 0 of a new table.

    Primary key columns become NOT NULL, key options become keys, and what matters to readers of other
    versions is stored explicitly: `bucket`, `file.format` and, with encrypted columns, `orc.integrity`.
    Raises InputError, OptionError, ColumnNotFoundError or UnsupportedTypeError.
    """
    check_not_set(schema.options)
    _check_place(schema.options)
    options = {key: str(value) for key, value in schema.options.items()}
    primary = _keys(schema.primary_keys, options, table_options.PRIMARY_KEY)
    partition = _keys(schema.partition_keys, options, table_options.PARTITION)
    comment = schema.comment or options.get("comment")
    options = {key: value for key, value in options.items() if key not in _NOT_STORED}
    typed = TableOptions(options)
    for field in schema.fields:
        check_storable(field.name, field.type)
    _check_columns(schema.fields)
    _check_keys(schema.fields, partition, primary)
    if primary:
        options.setdefault(table_options.BUCKET.key, "1")
    options.setdefault(table_options.BUCKET.key, str(table_options.BUCKET.default))
    options[table_options.FILE_FORMAT.key] = options.get(table_options.FILE_FORMAT.key, ORC).strip().lower()
    if typed.get_option(table_options.ORC_ENCRYPT).strip():
        # From its first file on, every encrypted file of the table has tags.
        options.setdefault(table_options.ORC_INTEGRITY.key, "require")
    fields = tuple(with_stored_default(_with_key_nullability(field, primary)) for field in schema.fields)
    created = TableSchema(
        id=0,
        fields=fields,
        highest_field_id=max(_field_ids(fields), default=-1),
        partition_keys=partition,
        primary_keys=primary,
        options=options,
        comment=comment,
        time_millis=now_millis(),
        table_id=str(uuid.uuid4()),
    )
    check_schema(created)
    if len(set(_field_ids(fields))) != len(list(_field_ids(fields))):
        raise InputError(f"field ids must differ: {', '.join(created.field_names)}")
    return created


def check_storable(name: str, data_type: DataType) -> None:
    """Raise UnsupportedTypeError for a new column of a type that this version does not know."""
    if data_type.holds_opaque:
        raise UnsupportedTypeError(
            f"column {name!r} of type {data_type} cannot be stored: this version does not know the type"
        )


def _check_place(options: Mapping[str, object]) -> None:
    """Refuse what would be forgotten: a table lies in its warehouse, and is one of Paimon's."""
    for key in ("path", "location"):
        if options.get(key):
            raise OptionError(f"option {key!r} cannot be given: a table lies in the folder of its database")
    if str(options.get("external", "")).lower() == "true":
        raise OptionError("option 'external' cannot be 'true': a table lies in the folder of its database")
    provider = str(options.get("provider", "lockgate")).lower()
    if provider not in ("lockgate", "paimon"):
        raise OptionError(f"option 'provider' cannot be {provider!r}: only 'lockgate' and 'paimon' are")


def check_schema(schema: TableSchema) -> None:
    """Check a schema as a whole, when a table is created or altered; raises as `first_schema`."""
    options = schema.table_options
    _check_columns(schema.fields)
    _check_keys(schema.fields, schema.partition_keys, schema.primary_keys)
    _check_folder_names(schema)
    check_formats(options)
    _check_changelog(schema)
    _only(options, table_options.BUCKET_FUNCTION, "default")
    for option in (table_options.ROW_TRACKING, table_options.DATA_EVOLUTION):
        if options.get_option(option):
            raise OptionError(f"option {option.key!r} is not supported")
    if schema.has_primary_key and options.get_option(table_options.DELETION_VECTORS):
        _check_vectors(schema)
    _check_buckets(schema)
    _check_sequence(schema)
    check_merge(schema)
    _check_statistics(schema)
    check_encryption(schema)
    if schema.moves_keys:
        _check_moving_keys(schema)
    _check_clustering(schema)
    _check_indexes(schema)


def _check_moving_keys(schema: TableSchema) -> None:
    """Refuse tables whose keys would move from partition to partition, but for those that can be written."""
    missing = ", ".join(name for name in schema.partition_keys if name not in schema.primary_keys)
    if schema.bucket_count != -1:
        raise InputError(
            f"the primary key must include the partition columns; {missing} is missing from it. With option "
            "'bucket' = '-1' a key may move from partition to partition"
        )
    try:
        check_moving_keys(schema)
    except UnsupportedFormatError as error:
        raise OptionError(str(error)) from None


def _check_vectors(schema: TableSchema) -> None:
    """Refuse what Paimon refuses with deletion vectors in key tables."""
    option = f"option {table_options.DELETION_VECTORS.key!r}"
    engine = schema.table_options.get_option(table_options.MERGE_ENGINE)
    if engine == FIRST_ROW:
        raise OptionError(f"{option} is not possible with merge engine {engine!r}, which deletes no row")
    if schema.changelog_producer == COMPACTION_CHANGELOG:
        raise OptionError(
            f"{option} is not possible with changelog producer {COMPACTION_CHANGELOG!r}: "
            "use 'lookup' or 'input'"
        )


def _check_changelog(schema: TableSchema) -> None:
    """Refuse producers that the table has no changes for."""
    producer = schema.table_options.get_option(CHANGELOG_PRODUCER)
    if producer == NO_CHANGELOG:
        return
    if not schema.has_primary_key:
        raise OptionError(f"option {CHANGELOG_PRODUCER.key!r} = {producer!r} needs a primary key")
    if (
        schema.table_options.get_option(table_options.MERGE_ENGINE) == "first-row"
        and producer != LOOKUP_CHANGELOG
    ):
        raise OptionError(
            f"option {CHANGELOG_PRODUCER.key!r} = {producer!r} does not go with merge engine 'first-row', "
            f"only {NO_CHANGELOG!r} and {LOOKUP_CHANGELOG!r} do, because later rows of a key change nothing"
        )


def _check_clustering(schema: TableSchema) -> None:
    for name in schema.table_options.get_option(clustering_options.CLUSTERING_COLUMNS):
        reason = why_unordered(schema, name)
        if reason is not None:
            raise OptionError(f"option {clustering_options.CLUSTERING_COLUMNS.key!r}: {reason}")


def _check_indexes(schema: TableSchema) -> None:
    if any(key.startswith("file-index.") for key in schema.options):
        # Loaded only here, so that opening a table does not load the codec.
        from lockgate.framework.store.schema.file_indexes import check_file_indexes

        check_file_indexes(schema)
    if any(key.startswith("index.") for key in schema.options):
        from lockgate.framework.store.schema.table_indexes import check_table_indexes

        check_table_indexes(schema)


def _check_statistics(schema: TableSchema) -> None:
    """Refuse statistics modes that every write would fail by, and those of columns that are not there."""
    for key, value in schema.options.items():
        column = _COLUMN_STATS_MODE.fullmatch(key)
        if column is None and key != table_options.METADATA_STATS_MODE.key:
            continue
        if column is not None and column[1] not in schema.field_names:
            raise OptionError(
                f"option {key!r}: there is no column {column[1]!r}{nearest(column[1], schema.field_names)}"
            )
        try:
            StatsMode.parse(value)
        except OptionError as error:
            raise OptionError(f"option {key!r}: {error}") from None


def _check_sequence(schema: TableSchema) -> None:
    options = schema.table_options
    named = options.get_option(table_options.SEQUENCE_FIELD)
    if not named:
        if table_options.SEQUENCE_ORDER.key in options:
            raise OptionError(
                f"option {table_options.SEQUENCE_ORDER.key!r} "
                f"needs option {table_options.SEQUENCE_FIELD.key!r}: the columns"
            )
        return
    if not schema.has_primary_key:
        raise OptionError(
            f"option {table_options.SEQUENCE_FIELD.key!r} needs a primary key: nothing else is merged"
        )
    if len(set(named)) != len(named):
        raise OptionError(
            f"option {table_options.SEQUENCE_FIELD.key!r} names a column twice: {', '.join(named)}"
        )
    reason = why_no_sequence(schema)
    if reason:
        raise OptionError(f"option {table_options.SEQUENCE_FIELD.key!r}: {reason}")


def _keys(given: Sequence[str], options: dict[str, str], option: Option[tuple[str, ...]]) -> tuple[str, ...]:
    text = options.pop(option.key, None)
    named = () if text is None else option.value_of(text)
    if given and named and tuple(given) != named:
        raise OptionError(f"option {option.key!r} says {', '.join(named)}, the schema {', '.join(given)}")
    return tuple(given) or named


def _only(options: TableOptions, option: Option[str], supported: str) -> str:
    value = options.get_option(option) if option.key in options else supported
    if value.lower() != supported:
        raise OptionError(f"option {option.key!r} cannot be {value!r}: only {supported!r} is supported")
    return supported


def _check_columns(fields: Sequence[DataField]) -> None:
    names = [field.name for field in fields]
    if not names:
        raise InputError("a table needs at least one column")
    for name in names:
        if not name.strip():
            raise InputError("a column needs a name")
        if name.startswith(_RESERVED_PREFIX) or name in _RESERVED:
            raise InputError(f"column {name!r} has a name that is reserved; choose another")
    folded: dict[str, str] = {}
    for name in names:
        # Spark, by default, does not tell names apart by case.
        if folded.setdefault(name.lower(), name) is not name or names.count(name) > 1:
            raise InputError(f"there are two columns {name!r}")


def _check_keys(fields: Sequence[DataField], partition: Sequence[str], primary: Sequence[str]) -> None:
    types = {field.name: field.type for field in fields}
    for what, keys in (("partition", partition), ("primary key", primary)):
        _check_present(what, keys, types)
        if len(set(keys)) != len(keys):
            raise InputError(f"a column is named twice among the {what} columns: {', '.join(keys)}")
    for name in partition:
        if not can_be_partition(types[name]):
            raise UnsupportedTypeError(f"column {name!r} of type {types[name]} cannot be a partition column")
    _check_flat("primary key", primary, types)
    if len(partition) == len(types):
        raise InputError("a table needs at least one column in addition to its partition columns")
    if primary and set(primary) == set(partition):
        raise InputError(
            "the primary key cannot consist of partition columns only; there would be one row in each"
        )


def _check_folder_names(schema: TableSchema) -> None:
    """Refuse partition columns whose folders Paimon names by the time zone of the process that writes."""
    legacy = schema.table_options.get_option(table_options.PARTITION_LEGACY_NAME)
    for name in schema.partition_keys:
        data_type = schema.field(name).type
        if not can_be_partition(data_type, legacy=legacy):
            raise UnsupportedTypeError(
                f"column {name!r} of type {data_type} cannot be a partition column with "
                f"{table_options.PARTITION_LEGACY_NAME.key!r} = 'false': folders of instants would be "
                "named by the time zone of the writer; leave the option out, or use TIMESTAMP_NTZ"
            )


def _check_present(what: str, names: Iterable[str], types: Mapping[str, DataType]) -> None:
    for name in names:
        if name not in types:
            raise ColumnNotFoundError(f"{what} column {name!r} is not in the schema{nearest(name, types)}")


def _check_flat(what: str, names: Iterable[str], types: Mapping[str, DataType]) -> None:
    for name in names:
        if types[name].is_nested:
            raise UnsupportedTypeError(f"column {name!r} of type {types[name]} cannot be a {what} column")


def _with_key_nullability(field: DataField, primary: Sequence[str]) -> DataField:
    return replace(field, type=field.type.with_nullable(False)) if field.name in primary else field


def _field_ids(fields: Iterable[DataField]) -> Iterable[int]:
    for field in fields:
        yield field.id
        yield from _nested_ids(field.type)


def _nested_ids(data_type: DataType) -> Iterable[int]:
    for part in (data_type.element, data_type.key, data_type.value):
        if part is not None:
            yield from _nested_ids(part)
    yield from _field_ids(data_type.fields)


def _check_buckets(schema: TableSchema) -> None:
    types = {field.name: field.type for field in schema.fields}
    count = schema.bucket_count
    keys = schema.table_options.get_option(table_options.BUCKET_KEY)
    _check_present("bucket", keys, types)
    _check_flat("bucket", keys, types)
    shared = [name for name in keys if name in schema.partition_keys]
    if shared:
        raise OptionError(f"option 'bucket-key' cannot name partition columns: {', '.join(shared)}")
    if schema.has_primary_key:
        if count < -1:
            raise OptionError(
                f"option 'bucket' cannot be {count}: postponed buckets are not supported; give a fixed "
                "number, or -1 for dynamic ones"
            )
        if count < 0 and keys:
            raise OptionError("option 'bucket-key' needs a fixed number of buckets ('bucket')")
        outside = [name for name in keys if name not in schema.trimmed_primary_keys]
        if outside:
            raise OptionError(
                f"option 'bucket-key' must be part of the primary key; {', '.join(outside)} is not"
            )
    elif count > 0 and not keys:
        raise OptionError(
            f"option 'bucket' = {count} needs option 'bucket-key': which columns choose the bucket"
        )
    elif count < 0 and keys:
        raise OptionError("option 'bucket-key' needs option 'bucket': how many buckets there are")
    elif count < -1:
        raise OptionError(f"option 'bucket' cannot be {count} without a primary key")


def check_encryption(schema: TableSchema) -> None:
    """Check `orc.encrypt` and `orc.mask` against the columns.

    Raises InputError if a column that decides where a row is stored is encrypted, because its values would be
    readable in folder names, manifests and file order; UnsupportedError for masks that Spark could not write;
    ColumnNotFoundError and OptionError as the codec does.
    """
    encrypt = schema.table_options.get_option(table_options.ORC_ENCRYPT)
    mask = schema.table_options.get_option(table_options.ORC_MASK)
    if not encrypt and not mask:
        return
    # Loaded only here, so that opening a table does not load the codec.
    from lockgate.framework.orc import parse_encryption, why_not_java

    uses = {
        "primary key": schema.primary_keys,
        "partition": schema.partition_keys,
        "bucket": schema.bucket_keys,
    }
    encryption = parse_encryption(encrypt or None, mask or None, schema.arrow_schema)
    for field in schema.fields:
        if field.default is not None and any(name.split(".")[0] == field.name for name in encryption.columns):
            raise InputError(
                f"column {field.name!r} cannot be encrypted and have a DEFAULT, because the schema shows "
                "it to everybody"
            )
    for column in encryption.columns:
        for what, names in uses.items():
            if column in names:
                raise InputError(
                    f"column {column!r} cannot be encrypted, because it is a {what} column: "
                    "its values are needed in the clear to place and find rows"
                )
        if column in schema.sequence_fields:
            raise InputError(
                f"column {column!r} cannot be encrypted, because {table_options.SEQUENCE_FIELD.key!r} names "
                "it: without the key nobody could tell which rows are the newest"
            )
        if column in ordering_columns(schema):
            raise InputError(
                f"column {column!r} cannot be encrypted, because it orders a sequence group or says the "
                "kind of rows: without the key nobody could tell which rows are the newest"
            )
    reason = why_not_java(encryption, schema.fields)
    if reason:
        raise UnsupportedError(reason)
