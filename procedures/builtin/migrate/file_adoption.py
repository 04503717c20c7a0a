"""Adopting files unchanged, and rewriting those that cannot be adopted."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from lockgate.errors import (
    InputError,
    KeyDeniedError,
    KeyMissingError,
    UnsupportedError,
    UnsupportedTypeError,
    WrongKeyError,
    nearest,
)
from lockgate.framework.keys import KeyProvider
from lockgate.framework.options import ORC_ENCRYPT, ORC_INTEGRITY, ORC_MASK
from lockgate.framework.orc import ColumnStatistics, EncryptedOrcFile, parse_encrypt, parse_mask, spell, split
from lockgate.framework.store import CommitMessage, Table, TableSchema
from lockgate.framework.store.maintenance import ForeignFile
from lockgate.framework.types import (
    MAX_LENGTH,
    DataField,
    DataType,
    common_type,
    convert_losslessly,
    from_arrow,
    to_arrow,
)
from lockgate.procedures.builtin.migrate.migration_source import (
    ORC,
    MigrationSource,
    SourceFile,
    has_date,
    has_timestamp,
    is_nameless,
    with_wall_clocks,
)

# The first day of the Gregorian calendar; before it, Spark's ORC files follow the Julian one.
_GREGORIAN = datetime.date(1582, 10, 15)


@dataclass(frozen=True)
class Inspected:
    """A source file after its footer was read.

    `columns` are those of the file, in the table's names. `encryption` and `masks` are by the paths of
    encrypted columns. `reason` says why its columns cannot be read unchanged, empty if they can;
    `only_spark`: not even to rewrite them. `tagged`: it has tags of its integrity.
    """

    file: SourceFile
    rows: int
    columns: pa.Schema
    encryption: Mapping[str, str]
    masks: Mapping[str, str]
    statistics: Mapping[str, ColumnStatistics]
    reason: str
    only_spark: bool
    tagged: bool = False


def inspect(source: MigrationSource, file: SourceFile, keys: KeyProvider | None) -> Inspected:
    """Read a file's footer with its keys, which are proven.

    Raises KeyMissingError or WrongKeyError if one of the keys is not at hand.
    """
    if source.format != ORC:
        return _inspect_plain(source, file)
    with source.open(file, keys) as orc:
        names = _table_names(source, file, orc)
        columns = pa.schema(
            [with_wall_clocks(field).with_name(names.get(field.name, field.name)) for field in orc.schema]
        )
        encryption = {_renamed(variant.path, names): variant.key.name for variant in orc.variants}
        masks = {_renamed(variant.path, names): variant.mask for variant in orc.variants}
        special = (
            "Hive wrote it without the names of its columns"
            if names
            else _needs_spark(columns, orc.statistics)
        )
        tagged = orc.integrity == "verified"
        return Inspected(
            file, orc.num_rows, columns, encryption, masks, orc.statistics, special, bool(special), tagged
        )


def _inspect_plain(source: MigrationSource, file: SourceFile) -> Inspected:
    with closing(source.open_plain(file)) as plain:
        plain.check_calendar()
        return Inspected(
            file,
            plain.num_rows,
            plain.schema,
            {},
            {},
            plain.statistics(),
            plain.why_rewritten(),
            only_spark=False,
        )


def judge(source: MigrationSource, inspected: Inspected) -> Inspected:
    """Return a file with the reason why its columns are not those of the source, if they are others.

    Raises InputError that names the file, the column and both types if the source does not have the column,
    or has it with a type that does not hold all of the file's values.
    """
    path, columns = inspected.file.path, inspected.columns
    fields = {field.name: field for field in source.data_fields}
    reason = inspected.reason
    for column in columns:
        if column.name not in fields:
            raise InputError(
                f"{path} has a column {column.name!r} that {source.name} does not have"
                f"{nearest(column.name, fields)}"
            )
        wanted = fields[column.name].type
        if not holds(wanted, column.type, zones=source.tells_zones):
            raise InputError(
                f"{path}: column {column.name!r} is {_shown(column.type)} in the file and "
                f"{wanted.bare_name} in {source.name}, which does not hold all such values: "
                "convert them first"
            )
        if source.table is None and wanted.is_string and wanted.length != MAX_LENGTH:
            reason = reason or f"its column {column.name!r} may hold texts too long for {wanted.bare_name}"
    return replace(inspected, reason=reason or _difference(source.data_fields, columns))


def holds(wanted: DataType, found: pa.DataType, *, zones: bool = True) -> bool:
    """Return whether each value of a file's type is one of a table's; without `zones`, in any zone."""
    arrow = to_arrow(wanted)
    if not zones:
        arrow, found = _zoneless(arrow), _zoneless(found)
    if is_same_type(found, arrow) or (pa.types.is_binary(found) and pa.types.is_string(arrow)):
        return True
    try:
        common = common_type(from_arrow(arrow), from_arrow(found))
    except UnsupportedTypeError:
        return False
    return common is not None and is_same_type(to_arrow(common), arrow)


def _zoneless(type_: pa.DataType) -> pa.DataType:
    """Return the type with wall clocks in place of points in time, which plain ORC does not tell apart."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp(type_.unit)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_zoneless(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_zoneless(type_.key_type), _zoneless(type_.item_type))
    return pa.list_(_zoneless(type_.value_type)) if pa.types.is_list(type_) else type_


def _shown(found: pa.DataType) -> str:
    """Return the name of the table's type for a file's, or Arrow's if there is none."""
    try:
        return from_arrow(found).bare_name
    except UnsupportedTypeError:
        return str(found)


def _table_names(source: MigrationSource, file: SourceFile, orc: EncryptedOrcFile) -> Mapping[str, str]:
    """Return the table's names of columns that Hive wrote without names; they are in the table's order."""
    if source.table is None or not is_nameless(orc.schema.names):
        return {}
    fields = [field.name for field in source.data_fields]
    if len(orc.schema.names) > len(fields):
        raise InputError(f"{file.path} has {len(orc.schema.names)} columns, and {source.name} {len(fields)}")
    return dict(zip(orc.schema.names, fields, strict=False))


def _renamed(path: str, names: Mapping[str, str]) -> str:
    top, *rest = split(path)
    return spell((names.get(top, top), *rest))


def is_held(source: MigrationSource, inspected: Inspected, keys: KeyProvider | None) -> bool:
    """Say whether these keys open all encrypted columns of a file."""
    try:
        source.open(inspected.file, keys).close()
    except (KeyMissingError, KeyDeniedError, WrongKeyError):
        return False
    return True


def _needs_spark(columns: pa.Schema, statistics: Mapping[str, ColumnStatistics]) -> str:
    """Return the kind of values in a file that only Spark reads correctly."""
    for column in columns:
        data_type = from_arrow(column.type)
        if has_timestamp(data_type):
            return f"Spark stores timestamps such as {column.name!r} in another way"
        if _may_be_ancient(data_type, statistics.get(column.name)):
            return (
                f"{column.name!r} may hold dates before {_GREGORIAN}, for which Spark counts days otherwise"
            )
    return ""


def _may_be_ancient(data_type: DataType, statistics: ColumnStatistics | None) -> bool:
    """Say whether a column may hold dates of the Julian calendar, in which Spark's ORC files count days."""
    if not has_date(data_type):
        return False
    if data_type.is_nested or statistics is None:
        return True
    return statistics.value_count > 0 and (statistics.minimum is None or statistics.minimum < _GREGORIAN)


def _difference(fields: Sequence[DataField], schema: pa.Schema) -> str:
    names = schema.names
    for field in fields:
        if field.name not in names and not field.type.nullable:
            return f"it lacks the column {field.name!r}"
        if field.name in names and not is_same_type(schema.field(field.name).type, to_arrow(field.type)):
            return f"its column {field.name!r} is {schema.field(field.name).type}, not {field.type}"
    return ""


def is_same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Say whether types are the same but for the nullability and metadata of inner fields."""
    if found.num_fields != wanted.num_fields or found.id != wanted.id:
        return False
    if found.num_fields == 0:
        return bool(found == wanted)
    names = pa.types.is_struct(found)
    for index in range(found.num_fields):
        one, other = found.field(index), wanted.field(index)
        if (names and one.name != other.name) or not is_same_type(one.type, other.type):
            return False
    return True


def check_digits(source: MigrationSource, inspected: Inspected, keys: KeyProvider | None) -> None:
    """Raise InputError if a file that Spark reads has times with digits beyond microseconds."""
    if not inspected.only_spark:
        return
    with source.open(inspected.file, keys) as orc:
        for name in orc.nanosecond_columns():
            raise InputError(
                f"{inspected.file.path}: column {name!r} is a timestamp with digits beyond microseconds, "
                "which Spark does not read, so that TIMESTAMP(6) would hold other values: round them first"
            )


def why_rewritten(inspected: Inspected, schema: TableSchema) -> str:
    """Return why a file must be rewritten to be part of a table with `schema`; empty if it need not be."""
    if schema.has_primary_key:
        return "files of a table with a primary key are sorted by it"
    if schema.bucket_count > 0:
        return "files of a table with buckets hold one bucket each"
    options = schema.table_options
    wanted = {spell(split(name)): key for name, key in parse_encrypt(options.get_option(ORC_ENCRYPT)).items()}
    if inspected.encryption != wanted:
        return "its columns are not encrypted as the table's options say"
    masks = {spell(split(name)): str(mask) for name, mask in parse_mask(options.get_option(ORC_MASK)).items()}
    if any(masks.get(column, "nullify") != mask for column, mask in inspected.masks.items()):
        return "its columns are not masked as the table's options say"
    if inspected.encryption and not inspected.tagged and options.get_option(ORC_INTEGRITY) == "require":
        return "it has no tags, which the table's option 'orc.integrity' requires"
    return inspected.reason


# --- adopting ---


def adopt(source: MigrationSource, table: Table, inspected: Inspected, number: int) -> CommitMessage:
    """Give a file a second name in the table's folder (a copy where links are impossible) and describe it."""
    file = inspected.file
    foreign = ForeignFile(source.file_system, file.path, file.size, inspected.rows, inspected.statistics)
    return foreign.adopt(table, file.partition, number, suffix=f".{source.format}")


# --- rewriting ---


def rewrite_in_python(
    source: MigrationSource, table: Table, files: Sequence[Inspected], keys: KeyProvider | None
) -> list[CommitMessage]:
    """Read files strictly and write their rows into the table.

    Raises UnsupportedError for values that only Spark reads correctly.
    """
    for inspected in files:
        if inspected.only_spark:
            raise UnsupportedError(
                f"{inspected.file.path} cannot be read correctly without Spark: {inspected.reason}; "
                "call migrate_table by SQL (CALL) or by lake.call(...)"
            )
    return table.write(source_batches(source, files, keys))


@contextmanager
def _opened(
    source: MigrationSource, file: SourceFile, keys: KeyProvider | None
) -> Iterator[Iterator[pa.RecordBatch]]:
    if source.format == ORC:
        with source.open(file, keys) as orc:
            yield orc.iter_batches()
    else:
        with closing(source.open_plain(file)) as plain:
            yield plain.batches()


def source_batches(
    source: MigrationSource, files: Sequence[Inspected], keys: KeyProvider | None
) -> Iterator[pa.RecordBatch]:
    """Read files strictly and yield their rows with all columns of the source; what a file lacks is null."""
    schema = pa.schema([pa.field(field.name, to_arrow(field.type)) for field in source.fields])
    for inspected in files:
        partition = dict(zip(source.partition_keys, inspected.file.partition, strict=True))
        with _opened(source, inspected.file, keys) as batches:
            for batch in batches:
                columns = [
                    _column(batch, field, inspected.file.path)
                    if field.name in batch.schema.names
                    else pa.repeat(pa.scalar(partition.get(field.name), to_arrow(field.type)), batch.num_rows)
                    for field in source.fields
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: DataField, path: str) -> pa.Array:
    given = pa.chunked_array([batch[field.name]])
    # Nulls where the table permits none are another error, which its writer names.
    wanted = field.type.with_nullable(True)
    return convert_losslessly(given, wanted, field.name, source=path).chunk(0)
