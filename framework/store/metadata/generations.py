"""Generations: the schemas between one replacement of a table and the next.

REPLACE TABLE gives a table other columns and other rows. The rows come by a snapshot, the columns by a schema
file, and both must be seen at once. So the schema says which generation it begins, every later one that comes
of it by ALTER says the same, and of all schemas the newest *of the generation of the newest snapshot* is the
one that holds: the snapshot that a replacement commits turns the page. Nobody reads a schema whose
replacement failed, and a rollback to a time before a replacement restores the columns too.

Columns of two generations share no field id, so none is ever read as one of another.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.errors import InputError, OptionError
from lockgate.framework.options import PARTITION_DEFAULT_NAME, PARTITION_LEGACY_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lockgate.framework.store.metadata.schema_files import SchemaFiles
    from lockgate.framework.store.metadata.snapshot_files import SnapshotFiles
    from lockgate.framework.store.schema.schema import TableSchema

GENERATION = "lockgate.generation"
"""The option that holds the id of the schema that a generation began with; without it, it is the first."""


def generation_of(schema: TableSchema) -> int:
    """Return the id of the schema that a schema's generation began with."""
    text = schema.options.get(GENERATION, "0")
    return int(text) if text.isdecimal() else 0


def current_schema(files: SchemaFiles, snapshots: SnapshotFiles) -> TableSchema | None:
    """Return the schema that holds; None if there is no table. Raises CorruptFileError as `SchemaFiles`."""
    newest = files.latest()
    # A writer that adds a schema to one that names its generation names one too.
    if newest is None or GENERATION not in newest.options:
        return newest
    latest = snapshots.latest()
    generation = 0 if latest is None else generation_of(files.load(latest.schema_id))
    for schema_id in reversed(files.ids()):
        schema = files.load(schema_id)
        if generation_of(schema) == generation:
            return schema
    return newest


def placed_after(files: SchemaFiles, changed: TableSchema, present: TableSchema) -> TableSchema:
    """Return a schema that comes of `present`, with an id behind those of replacements that did not land.

    Its id stays as it is, to be found taken, if another change of `present` came first.
    """
    newest = files.latest()
    if newest is None or newest.id == present.id or generation_of(newest) == generation_of(present):
        return changed
    options = {**changed.options, GENERATION: str(generation_of(present))}
    return replace(changed, id=newest.id + 1, options=options)


def same_partitions(one: TableSchema, other: TableSchema) -> bool:
    """Say whether the partitions of two schemas are of the same columns, in the same folders."""
    types = [
        [schema.field(name).type.with_nullable(True) for name in schema.partition_keys]
        for schema in (one, other)
    ]
    options = [
        [
            schema.table_options.get_option(PARTITION_DEFAULT_NAME),
            schema.table_options.get_option(PARTITION_LEGACY_NAME),
        ]
        for schema in (one, other)
    ]
    return one.partition_keys == other.partition_keys and types[0] == types[1] and options[0] == options[1]


def check_generation(read_as: TableSchema, written: TableSchema, what: str) -> None:
    """Raise InputError if the rows of one schema cannot be read by another: the table was replaced since."""
    if generation_of(read_as) != generation_of(written):
        raise InputError(
            f"{what} has other columns than the query was made for: the table was replaced in between. "
            "VERSION AS OF, TIMESTAMP AS OF and the options versionAsOf and timestampAsOf read an older "
            "snapshot by its own columns; options scan.* cannot, because Spark resolves the newest columns "
            "before it passes these options on"
        )


def check_not_set(options: Mapping[str, object]) -> None:
    """Raise OptionError if a user sets what only REPLACE TABLE does."""
    if GENERATION in options:
        raise OptionError(f"option {GENERATION!r} cannot be set: REPLACE TABLE manages it")
