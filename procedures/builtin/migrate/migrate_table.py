"""`migrate_table`: a table made of the files of another, or of a folder, which are adopted where possible."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from lockgate.errors import AlreadyExistsError, InputError, ProcedureError
from lockgate.framework.keys import KeyProvider, NoKeys, provider_from
from lockgate.framework.options.table_options import ORC_ENCRYPT, ORC_INTEGRITY
from lockgate.framework.orc import parse_encrypt
from lockgate.framework.store import CommitMessage, Schema, Table, TableSchema
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.procedures.arguments import parse_options
from lockgate.procedures.builtin.migrate.encryption import encryption_options
from lockgate.procedures.builtin.migrate.files import (
    Inspected,
    adopt,
    inspect,
    is_held,
    rewrite_in_python,
    why_rewritten,
)
from lockgate.procedures.builtin.migrate.rights import check_folder, check_keys, check_table
from lockgate.procedures.builtin.migrate.source import (
    ORC,
    Source,
    find_source,
    is_folder,
    target_name,
)
from lockgate.procedures.builtin.migrate.through_spark import rewrite_by_spark
from lockgate.procedures.procedure import Parameter, Procedure, ProcedureContext

S = TypeVar("S")
T = TypeVar("T")


class MigrateTable(Procedure):
    """Makes a new table from the ORC, Parquet or Avro files of a Spark table or a folder.

    A file with exactly the columns that Lockgate would have written gets a second name in the new table (a
    hard link; a copy where there are none), with statistics from its footer. Others are rewritten: all of a
    table with primary key or buckets, and files with timestamps, which Spark stores in its own way.
    Files are opened strictly: a missing key raises KeyMissingError, a wrong one WrongKeyError, before the
    new table is created. It is encrypted and masked like the files, unless the options change that; files
    under keys that are not the catalog's are rewritten under those. The new table gets its rows in one
    snapshot; if anything fails it is dropped, and the source is as it was.
    """

    name = "migrate_table"
    right = None
    description = "Make a Lockgate table from a table of Spark's catalog or a folder of files."
    parameters = (
        Parameter(
            "source_type",
            "STRING",
            doc="'spark' or 'hive' for a table of Spark's catalog, 'orc', 'parquet' or 'avro' for a folder",
        ),
        Parameter("table", "STRING", doc="the source: 'database.table', or the path of a folder"),
        Parameter("options", "STRING", None, "options of the new table: 'primary-key=id,bucket=4'"),
        Parameter(
            "delete_origin",
            "BOOLEAN",
            False,
            "drop the source table, or delete the folder's files, at the end",
        ),
        Parameter("target_table", "STRING", None, "the new table (default: database and name of the source)"),
        Parameter("parallelism", "INT", None, "files inspected and adopted at a time (default: up to 8)"),
        Parameter("dry_run", "BOOLEAN", False, "only inspect the files and count what would be done"),
        Parameter(
            "source_keys",
            "STRING",
            None,
            "where the source's keys are, such as 'file:/path/keys.json' (default: where the catalog's are)",
        ),
    )
    result = (
        ("files_adopted", "BIGINT"),
        ("files_rewritten", "BIGINT"),
        ("files_written", "BIGINT"),
        ("partitions", "BIGINT"),
        ("rows", "BIGINT"),
        ("bytes", "BIGINT"),
        ("snapshot_id", "BIGINT"),
    )

    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Migrate; `rows` and `bytes` count the source, `files_written` counts the files that replace the
        rewritten ones."""
        deletes = arguments["delete_origin"]
        if is_folder(arguments["source_type"], arguments["table"]):
            check_folder(context, arguments["table"], deletes=deletes)
        if arguments["source_keys"]:
            check_keys(arguments["source_keys"])
        source = find_source(context, arguments["source_type"], arguments["table"])
        check_table(source, deletes=deletes)
        target = context.identifier(arguments["target_table"] or target_name(arguments["table"]))
        if context.catalog.table_exists(target):
            raise AlreadyExistsError(f"table {target!r} exists: give another target_table, or drop it first")
        threads = _threads(arguments["parallelism"])
        keys = provider_from(arguments["source_keys"]) if arguments["source_keys"] else context.catalog.keys
        inspected = _parallel(threads, lambda file: inspect(source, file, keys), source.files)
        options = parse_options(arguments["options"])
        schema = _schema(source, inspected, options)
        first = first_schema(schema)
        held = _table_keys(context, first)
        inspected = [each for each in inspected if each.rows]
        opened = _parallel(
            threads,
            lambda each: keys is held or not each.encryption or is_held(source, each, held),
            inspected,
        )
        reasons = [
            why_rewritten(each, first) or ("" if ours else "its keys are not those of the catalog")
            for each, ours in zip(inspected, opened, strict=True)
        ]
        adoptable = [each for each, reason in zip(inspected, reasons, strict=True) if not reason]
        others = [each for each, reason in zip(inspected, reasons, strict=True) if reason]
        if others:
            context.report(
                f"migrate_table {source.name}: {len(others)} of {len(inspected)} files are rewritten: "
                f"{next(filter(None, reasons))}"
            )
        if ORC_INTEGRITY.key not in options and not any(_untagged(each) for each in adoptable):
            # Rewritten files get tags, and the table requires them, as any new table does.
            made = {key: text for key, text in schema.options.items() if key != ORC_INTEGRITY.key}
            schema = replace(schema, options=made)
        if arguments["dry_run"]:
            return [_counts(inspected, adoptable, others, None, None)]
        table = context.catalog.create_table(target, schema)
        try:
            rewritten = _rewrite(context, source, table, others, keys)
            adopted = _adopt(threads, source, table, adoptable)
            snapshot = table.commit([*rewritten, *adopted])
        except BaseException:
            context.catalog.drop_table(target)
            raise
        if deletes:
            now = find_source(context, arguments["source_type"], arguments["table"])
            _delete_origin(context, source, now)
        return [_counts(inspected, adoptable, others, rewritten, snapshot.id)]


def _threads(parallelism: int | None) -> int:
    if parallelism is not None and parallelism < 1:
        raise InputError(f"parallelism must be 1 or more, not {parallelism}")
    return parallelism or min(8, os.cpu_count() or 1)


def _parallel(threads: int, function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def _schema(source: Source, inspected: Sequence[Inspected], options: Mapping[str, str]) -> Schema:
    """Return the new table's schema; encrypted as the source is, unless the options say otherwise."""
    made = {**encryption_options(inspected, options), **options}
    if any(_untagged(each) for each in inspected):
        # Files of other writers have no tags, so a table that adopts them cannot require any.
        made.setdefault(ORC_INTEGRITY.key, "verify")
    return Schema(source.fields, source.partition_keys, options=made)


def _untagged(inspected: Inspected) -> bool:
    return bool(inspected.encryption) and not inspected.tagged


def _table_keys(context: ProcedureContext, schema: TableSchema) -> KeyProvider | None:
    """Return the keys of the new table; KeyMissingError if a key for writing it is not held."""
    keys = None if context.catalog.keys is None else context.catalog.keys.for_table(schema.options)
    wanted = parse_encrypt(schema.table_options.get_option(ORC_ENCRYPT))
    for name in sorted(set(wanted.values())):
        (keys or NoKeys()).current_key(name)
    return keys


def _rewrite(
    context: ProcedureContext,
    source: Source,
    table: Table,
    files: Sequence[Inspected],
    keys: KeyProvider | None,
) -> list[CommitMessage]:
    if not files:
        return []
    if context.spark is None or source.format != ORC:
        return rewrite_in_python(source, table, files, keys)
    return rewrite_by_spark(context, source, table, files, keys)


def _adopt(threads: int, source: Source, table: Table, files: Sequence[Inspected]) -> list[CommitMessage]:
    numbered = list(enumerate(files))
    return _parallel(threads, lambda item: adopt(source, table, item[1], item[0]), numbered)


def _delete_origin(context: ProcedureContext, source: Source, now: Source) -> None:
    """Drop the origin, unless rows were added after its files were listed: those are not in the new
    table."""
    later = {file.path for file in now.files} - {file.path for file in source.files}
    if source.table is not None:
        if later:
            raise ProcedureError(
                f"{source.name} was migrated but not dropped: {len(later)} files have been added since, for "
                f"instance {min(later)}; stop its writers and copy those rows before dropping it"
            )
        context.spark.sql(f"DROP TABLE {source.table}")
        return
    for file in source.files:
        source.file_system.delete(file.path)


def _counts(
    inspected: Sequence[Inspected],
    adoptable: Sequence[Inspected],
    others: Sequence[Inspected],
    rewritten: Sequence[CommitMessage] | None,
    snapshot_id: int | None,
) -> tuple[Any, ...]:
    return (
        len(adoptable),
        len(others),
        None if rewritten is None else sum(len(message.added) for message in rewritten),
        len({each.file.partition for each in inspected}),
        sum(each.rows for each in inspected),
        sum(each.file.size for each in inspected),
        snapshot_id,
    )
