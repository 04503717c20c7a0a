"""Whether the columns of a source are those of a table that exists."""

from __future__ import annotations

from dataclasses import replace

from lockgate.errors import InputError, nearest
from lockgate.framework.store import TableSchema
from lockgate.framework.types import DataField, DataType, can_widen, to_arrow
from lockgate.procedures.builtin.migrate.file_adoption import Inspected, holds
from lockgate.procedures.builtin.migrate.migration_source import MigrationSource


def fitted(source: MigrationSource, schema: TableSchema) -> MigrationSource:
    """Return the source with the columns of a table, to which its own must belong.

    Raises InputError for a column that the table does not have or has with a type that does not hold its
    values, a column that the table requires and the source lacks, other partition columns, and a null in a
    partition column that permits none.
    """
    if source.partition_keys != schema.partition_keys:
        raise InputError(
            f"{source.name} is partitioned by {_listed(source.partition_keys)}, the table by "
            f"{_listed(schema.partition_keys)}"
        )
    wanted = {field.name: field for field in schema.fields}
    for field in source.fields:
        if field.name not in wanted:
            raise InputError(
                f"the table has no column {field.name!r} as {source.name} has{nearest(field.name, wanted)}: "
                "merge_schema adds columns"
            )
        # Files of a folder are judged one by one.
        if source.table is not None and not _holds(wanted[field.name].type, field.type):
            raise InputError(
                f"column {field.name!r} is {field.type} in {source.name} and {wanted[field.name].type} in "
                "the table: INSERT INTO it ... SELECT with a CAST"
            )
    found = {field.name for field in source.fields}
    for name, required in wanted.items():
        if name not in found and not required.type.nullable:
            raise InputError(f"{source.name} has no column {name!r}, which the table requires")
    for file in source.files:
        for key, value in zip(source.partition_keys, file.partition, strict=True):
            if value is None and not wanted[key].type.nullable:
                raise InputError(
                    f"{file.path} is in a partition without a value for {key!r}, which is NOT NULL"
                )
    return replace(source, fields=_in_order(schema))


def why_nulls(inspected: Inspected, schema: TableSchema) -> str:
    """Return which column of a file may hold nulls although the table permits none; empty if none may."""
    for field in schema.fields:
        if field.type.nullable or field.name in schema.partition_keys:
            continue
        statistics = inspected.statistics.get(field.name)
        if statistics is None or statistics.null_count != 0:
            return f"its column {field.name!r} may hold nulls, which the table does not permit"
    return ""


def _holds(wanted: DataType, found: DataType) -> bool:
    if found.is_string and wanted.is_string:
        return can_widen(found, wanted)
    return holds(wanted, to_arrow(found))


def _in_order(schema: TableSchema) -> tuple[DataField, ...]:
    """Return the columns with those of the partition last, as a source has them."""
    keys = schema.partition_keys
    data = [field for field in schema.fields if field.name not in keys]
    return (*data, *(schema.field(key) for key in keys))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
