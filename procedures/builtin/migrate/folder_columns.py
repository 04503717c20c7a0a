"""The columns of a folder: those of all its files, with types that hold the values of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework import types
from lockgate.framework.store import TableSchema
from lockgate.framework.types import DataType, common_type
from lockgate.procedures.builtin.migrate.file_adoption import Inspected
from lockgate.procedures.builtin.migrate.migration_source import (
    ORC,
    MigrationSource,
    is_nameless,
    with_points_in_time,
)


def with_folder_columns(
    source: MigrationSource, inspected: Iterable[Inspected], into: TableSchema | None
) -> tuple[MigrationSource, list[Inspected]]:
    """Return a folder with the columns of all its files, and the files with theirs as a table has them.

    Columns of the table `into` have its types. Raises InputError that names the column, two files and both
    types where no type holds the values of both files, and UnsupportedTypeError for types that no table has.
    """
    files = [replace(each, columns=_file_columns(source, each)) for each in inspected]
    kinds: dict[str, DataType] = {} if into is None else {each.name: each.type for each in into.fields}
    given = set(kinds)
    columns: dict[str, tuple[DataType, str]] = {}
    for each in files:
        for field in each.columns:
            found = _type(each, field)
            if field.name in given:
                columns[field.name] = (kinds[field.name], each.file.path)
                continue
            before, path = columns.get(field.name, (found, each.file.path))
            common = common_type(before, found)
            if common is None:
                raise InputError(
                    f"column {field.name!r} is {before.bare_name} in {path} and {found.bare_name} in "
                    f"{each.file.path}, and no type holds the values of both: convert one of the files first"
                )
            # The file that an error names is the one that made the type as wide as it is.
            columns[field.name] = (common, path if common == before else each.file.path)
    _check_cases(columns)
    arrow = [pa.field(name, types.to_arrow(kind)) for name, (kind, _) in columns.items()]
    partitions = [pa.field(each.name, types.to_arrow(each.type)) for each in source.fields]
    return replace(source, fields=types.fields_from_arrow(pa.schema([*arrow, *partitions]))), files


def _file_columns(source: MigrationSource, inspected: Inspected) -> pa.Schema:
    path, columns = inspected.file.path, inspected.columns
    if source.format == ORC and is_nameless(columns.names):
        raise InputError(
            f"{path} was written by Hive without the names of its columns ({columns.names[0]}, ...): "
            "make a table of the folder, CREATE TABLE spark_catalog.db.t (...) USING ORC LOCATION "
            f"{source.location!r}, and migrate that"
        )
    for key in source.partition_keys:
        if key in columns.names:
            raise InputError(f"{path}: column {key!r} is in the file and in the names of folders")
    return with_points_in_time(columns, path) if source.format == ORC else columns


def _type(inspected: Inspected, field: pa.Field) -> DataType:
    try:
        return types.from_arrow(field.type)
    except UnsupportedTypeError as error:
        raise UnsupportedTypeError(f"{inspected.file.path}: column {field.name!r}: {error}") from None


def _check_cases(columns: dict[str, tuple[DataType, str]]) -> None:
    by_case: dict[str, str] = {}
    for name, (_, path) in columns.items():
        other = by_case.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"column {name!r} in {path} and column {other!r} in {columns[other][1]} differ in case only: "
                "rename one of them"
            )
