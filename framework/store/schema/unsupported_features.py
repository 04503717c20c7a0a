"""Features of tables that other engines wrote, and which of them forbid reading or writing here.

Ignoring a feature would give wrong rows to a reader, and break the table for its other readers; so both are
refused by the name of the option, whose declaration says what it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from lockgate.errors import OptionError, UnsupportedError, UnsupportedFormatError, UnsupportedTypeError
from lockgate.framework.options import (
    BUCKET_FUNCTION,
    IGNORE_DELETES,
    INPUT_CHANGELOG,
    MANIFEST_FORMAT,
    MERGE_ENGINE,
    Effect,
    Option,
    option_of,
)
from lockgate.framework.store.schema.evolution import stored_type
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.written_formats import check_formats

# Values of `scan.mode` that name a state or a range of a table's history.
_MODES_READ = frozenset(
    {
        *("compacted-full", "from-snapshot", "from-snapshot-full", "from-timestamp", "incremental"),
        "from-file-creation-time",
    }
)

_UNREADABLE = (Effect.FILES_NOT_READ, Effect.NOT_READ)
_UNWRITABLE = (*_UNREADABLE, Effect.NOT_WRITTEN)


def check_readable(schema: TableSchema, now: TableSchema | None = None) -> None:
    """Raise UnsupportedError if the table has a feature without which its rows would be read wrong.

    `schema` is the one that is read by; `now` the table's newest where that is another, of which options
    count that hold for every snapshot.
    """
    for key, value, option in _refused(schema, _UNREADABLE):
        raise UnsupportedError(f"tables with option {key!r} = {value!r} cannot be read: {option.doc}")
    for key, value, option in _refused(now or schema, (Effect.NOT_READ,)):
        raise UnsupportedError(f"tables with option {key!r} = {value!r} cannot be read: {option.doc}")


def check_known_types(schema: TableSchema, names: Iterable[str], written: Iterable[TableSchema] = ()) -> None:
    """Raise UnsupportedTypeError if a column has, or had in files of schemas `written`, a type that is not
    known here; names of system columns are passed over.
    """
    known = {field.name: field for field in schema.fields}
    schemas = list(written)
    for field in (known[name] for name in names if name in known):
        for data_type in (field.type, *(stored_type(field, each) for each in schemas)):
            if data_type.is_opaque:
                others = ", ".join(name for name, each in known.items() if not each.type.is_opaque)
                raise UnsupportedTypeError(
                    f"column {field.name!r} of type {data_type} cannot be read: this version does not know "
                    f"the type. Name the columns to read; these can be: {others}"
                )


def check_unselected(schema: TableSchema, honoured: Collection[str] = ()) -> None:
    """Raise UnsupportedError if an option of the table selects what is read, for queries that do not.

    `honoured` are names of options that the caller honours; a value that it does not know is refused all the
    same.
    """
    for key, value, option in _refused(schema, (Effect.SELECTS,)):
        if key in honoured and (key != "scan.mode" or value.strip().lower() in _MODES_READ):
            continue
        raise UnsupportedError(
            f"tables with option {key!r} = {value!r} cannot be read as they stand: {option.doc}. Let the "
            "query say what it reads, by VERSION AS OF, TIMESTAMP AS OF, read options or snapshot_id=, or "
            f"remove the option: ALTER TABLE ... UNSET TBLPROPERTIES ({key!r})"
        )


def check_no_fallback_branch(schema: TableSchema) -> None:
    """Raise UnsupportedError if partitions come from a branch, too, whose changes are not the table's."""
    for key in ("scan.fallback-branch", "scan.primary-branch", "branch"):
        if schema.options.get(key, "").strip().lower() not in ("", "main"):
            raise UnsupportedError(
                f"changes of tables with option {key!r} = {schema.options[key]!r} cannot be read: some "
                "partitions come from a branch; read the table and the branch separately"
            )


def check_no_branch(schema: TableSchema) -> None:
    """Raise UnsupportedError for older states of a table whose option says that a branch is read."""
    name = schema.options.get("branch", "").strip()
    if name.lower() not in ("", "main"):
        raise UnsupportedError(
            f"tables with option 'branch' = {name!r} show the branch's newest state only: older ones are "
            f"those of the branch, `table$branch_{name}`"
        )


def check_writable(schema: TableSchema) -> None:
    """Raise UnsupportedFormatError, naming the feature, if the table cannot be written here."""
    options = schema.table_options
    for field in schema.fields:
        if field.type.is_opaque:
            raise UnsupportedFormatError(
                f"tables with column {field.name!r} of type {field.type} cannot be written: this version "
                "does not know the type; write them with the engine that made them"
            )
    for key, value, option in _refused(schema, _UNWRITABLE):
        raise UnsupportedFormatError(
            f"writing tables with option {key!r} is not supported, here {value!r}: {option.doc}"
        )
    manifests = schema.options.get(MANIFEST_FORMAT.key, MANIFEST_FORMAT.default)
    if manifests.lower() != MANIFEST_FORMAT.default:
        raise UnsupportedFormatError(
            f"writing tables with option {MANIFEST_FORMAT.key!r} = {manifests!r} is not supported, only with "
            f"{MANIFEST_FORMAT.default!r}"
        )
    try:
        check_formats(options)
    except OptionError as error:
        raise UnsupportedFormatError(f"the table cannot be written: {error}") from None
    function = options.get_option(BUCKET_FUNCTION)
    if function.lower() != BUCKET_FUNCTION.default:
        raise UnsupportedFormatError(
            f"writing tables with {BUCKET_FUNCTION.key!r} = {function!r} is not supported, only with "
            f"{BUCKET_FUNCTION.default!r}"
        )
    if schema.has_primary_key and schema.bucket_count < -1:
        raise UnsupportedFormatError(
            f"writing tables with postponed buckets (bucket = {schema.bucket_count}) is not supported, only "
            "with a fixed number of buckets, or dynamic ones (-1)"
        )
    if schema.moves_keys:
        check_moving_keys(schema)


def check_moving_keys(schema: TableSchema) -> None:
    """Raise UnsupportedFormatError for what does not go with keys that move from partition to partition."""
    options = schema.table_options
    deduplicates = options.get_option(MERGE_ENGINE) == MERGE_ENGINE.default
    ignoring = any(options.get_option(option) for option in IGNORE_DELETES)
    reasons = {
        "a fixed number of buckets": schema.bucket_count != -1,
        # A key leaves its partition by a deletion, which readers would then pass over.
        "option 'ignore-delete'": ignoring and deduplicates,
        "option 'sequence.field'": bool(schema.sequence_fields) and deduplicates,
        "option 'deletion-vectors.enabled'": schema.has_vectors,
        "option 'changelog-producer' = 'input'": schema.changelog_producer == INPUT_CHANGELOG,
    }
    for what, applies in reasons.items():
        if applies:
            raise UnsupportedFormatError(
                "writing tables whose keys may move from partition to partition (the primary key lacks "
                f"partition columns) is not supported with {what}"
            )


def _refused(schema: TableSchema, effects: tuple[Effect, ...]) -> Iterator[tuple[str, str, Option[Any]]]:
    for key, value in schema.options.items():
        option = option_of(key)
        if option and option.effect in effects and option.has_meaning(value, has_key=schema.has_primary_key):
            yield key, value, option
