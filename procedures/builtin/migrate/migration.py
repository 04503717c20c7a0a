"""Steps that all migrations share: finding the source, reading its footers, adopting and rewriting files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from lockgate.errors import InputError, ProcedureError
from lockgate.framework.keys import KeyProvider, NoKeys, provider_from
from lockgate.framework.options import ORC_ENCRYPT
from lockgate.framework.orc import parse_encrypt
from lockgate.framework.store import CommitMessage, Table, TableSchema
from lockgate.procedures.builtin.migrate.copy_check import check_copied
from lockgate.procedures.builtin.migrate.file_adoption import (
    Inspected,
    adopt,
    check_digits,
    inspect,
    is_held,
    judge,
    why_rewritten,
)
from lockgate.procedures.builtin.migrate.fit import fitted
from lockgate.procedures.builtin.migrate.folder_columns import with_folder_columns
from lockgate.procedures.builtin.migrate.migrated_by_spark import origin_digest
from lockgate.procedures.builtin.migrate.migration_source import (
    CATALOG_TYPES,
    MigrationSource,
    find_source,
    is_folder,
)
from lockgate.procedures.builtin.migrate.source_rights import check_folder, check_keys, check_table
from lockgate.procedures.procedure import ProcedureContext

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class MigrationCounts:
    """What a migration did, or would do."""

    files_adopted: Annotated[int, "files of the source"]
    files_rewritten: int
    files_written: Annotated[int | None, "files that replace the rewritten ones; NULL after a dry run"]
    partitions: Annotated[int, "of the source"]
    rows: int
    bytes: int
    snapshot_id: Annotated[int | None, "the new snapshot; NULL if there were no rows, or after a dry run"]


@dataclass(frozen=True)
class Origin:
    """A source whose footers were read with `keys`; `inspected` has its files."""

    source: MigrationSource
    keys: KeyProvider | None
    inspected: Sequence[Inspected]
    threads: int


@dataclass(frozen=True)
class Division:
    """The files that a table takes as they are, and those whose rows are written into new ones."""

    adopted: Sequence[Inspected]
    rewritten: Sequence[Inspected]

    def counts(self, written: Sequence[CommitMessage] | None, snapshot_id: int | None) -> MigrationCounts:
        """Return the counts; without `written` the number of new files is not known."""
        files = (*self.adopted, *self.rewritten)
        return MigrationCounts(
            len(self.adopted),
            len(self.rewritten),
            None if written is None else sum(len(message.added) for message in written),
            len({each.file.partition for each in files}),
            sum(each.rows for each in files),
            sum(each.file.size for each in files),
            snapshot_id,
        )


def open_origin(
    context: ProcedureContext,
    source_type: str,
    name: str,
    *,
    deletes: bool,
    keys: str | None,
    parallelism: int | None,
    into: TableSchema | None = None,
) -> Origin:
    """Check the caller's rights on a source, list its files and read their footers.

    `keys` is the location of the source's keys; the default is the catalog's provider. With `into` the files
    are read as those of a table that exists. Raises AccessDeniedError, the errors of `find_source`,
    InputError if a file has values that no type holds together with those of the others or of the table, and
    KeyMissingError or WrongKeyError for a key that a file needs.
    """
    if is_folder(source_type, name):
        check_folder(context, name, deletes=deletes)
    if keys:
        check_keys(keys)
    kinds = {} if into is None else {key: into.field(key).type for key in into.partition_keys}
    source = find_source(context, source_type, name, kinds)
    check_table(source, deletes=deletes)
    threads = _threads(parallelism)
    provider = provider_from(keys) if keys else context.catalog.keys
    inspected = _parallel(threads, lambda file: inspect(source, file, provider), source.files)
    if source.table is None:
        source, inspected = with_folder_columns(source, inspected, into)
    if into is not None:
        source = fitted(source, into)
    inspected = [judge(source, each) for each in inspected]
    return Origin(source, provider, inspected, threads)


def divide(
    context: ProcedureContext,
    origin: Origin,
    schema: TableSchema,
    held: KeyProvider | None,
    *,
    caller: str,
    why: Callable[[Inspected], str] = lambda inspected: "",
) -> Division:
    """Divide the files with rows into those that a table with `schema` takes and those it cannot take.

    `held` has the table's keys. `why` returns a further reason to rewrite a file, empty if there is none.
    Raises InputError for times of ORC files with digits that are lost by Spark, which reads microseconds.
    """
    inspected = [each for each in origin.inspected if each.rows]
    opened = _parallel(
        origin.threads,
        lambda each: origin.keys is held or not each.encryption or is_held(origin.source, each, held),
        inspected,
    )
    reasons = [
        why_rewritten(each, schema) or why(each) or ("" if ours else "its keys are not those of the catalog")
        for each, ours in zip(inspected, opened, strict=True)
    ]
    adoptable = [each for each, reason in zip(inspected, reasons, strict=True) if not reason]
    others = [each for each, reason in zip(inspected, reasons, strict=True) if reason]
    _parallel(origin.threads, lambda each: check_digits(origin.source, each, origin.keys), others)
    if others:
        context.report(
            f"{caller} {origin.source.name}: {len(others)} of {len(inspected)} files are rewritten: "
            f"{next(filter(None, reasons))}"
        )
    return Division(adoptable, others)


def table_keys(context: ProcedureContext, schema: TableSchema) -> KeyProvider | None:
    """Return the keys of a table with `schema`; KeyMissingError if a key for writing it is not held."""
    keys = None if context.catalog.keys is None else context.catalog.keys.for_table(schema.options)
    wanted = parse_encrypt(schema.table_options.get_option(ORC_ENCRYPT))
    for name in sorted(set(wanted.values())):
        (keys or NoKeys()).current_key(name)
    return keys


def adopt_all(origin: Origin, table: Table, files: Sequence[Inspected]) -> list[CommitMessage]:
    """Give files second names in the table's folders, several at a time."""
    numbered = list(enumerate(files))
    made: list[CommitMessage] = []

    def one(item: tuple[int, Inspected]) -> None:
        made.append(adopt(origin.source, table, item[1], item[0]))

    try:
        _parallel(origin.threads, one, numbered)
    except BaseException:
        table.abort(made)
        raise
    return made


def delete_origin(
    context: ProcedureContext, origin: Origin, table: Table, messages: Sequence[CommitMessage]
) -> None:
    """Drop the origin of what a commit added, once its rows are proven to be in the table's new files.

    Raises ProcedureError, and leaves the origin, if rows or values differ, or if rows were added after its
    files were listed: those are not in the table.
    """
    source = origin.source
    digest = origin_digest(context, source, origin.inspected, origin.keys, origin.threads)
    check_copied(source.name, digest, table, messages, origin.threads)
    if source.table is None:
        for file in source.files:
            source.file_system.delete(file.path)
        return
    now = find_source(context, CATALOG_TYPES[0], source.name)
    later = {file.path for file in now.files} - {file.path for file in source.files}
    if later:
        raise ProcedureError(
            f"{source.name} was migrated but not dropped: {len(later)} files have been added since, for "
            f"instance {min(later)}; stop its writers and copy those rows before dropping it"
        )
    context.spark.sql(f"DROP TABLE {source.table}")


def _threads(parallelism: int | None) -> int:
    if parallelism is not None and parallelism < 1:
        raise InputError(f"parallelism must be 1 or more, not {parallelism}")
    return parallelism or min(8, os.cpu_count() or 1)


def _parallel(threads: int, function: Callable[[S], T], items: Sequence[S]) -> list[T]:
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
