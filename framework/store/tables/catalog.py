"""A warehouse: databases as folders `<name>.db`, tables as folders in them.

Source: Paimon's file-system catalog. A table exists when its folder holds a schema file.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    LockgateError,
    NamespaceNotFoundError,
    TableNotFoundError,
    nearest,
)
from lockgate.framework.access import AccessRequest, Action, Principal, Target
from lockgate.framework.io import MovesFolders, join, named_errors, resolve
from lockgate.framework.options import ON_PLAINTEXT
from lockgate.framework.plugins import TableChanged, current_principal, plugins, publish
from lockgate.framework.store.confidential.former_encryption import judged
from lockgate.framework.store.confidential.named_keys import check_named_keys
from lockgate.framework.store.confidential.stored_wrapped_keys import check_wrapped_keys
from lockgate.framework.store.ddl.alter import altered
from lockgate.framework.store.ddl.changelog_switch import check_changelog_switch, check_vectors_switch
from lockgate.framework.store.ddl.planned_changes import announce_columns, announce_table
from lockgate.framework.store.ddl.schema_changes import DropColumn, RenameColumn, SchemaChange
from lockgate.framework.store.ddl.validation import first_schema
from lockgate.framework.store.grants import grant, grant_by_name, grant_database, grant_naming, whole_refusal
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.metadata.generations import GENERATION, current_schema, placed_after
from lockgate.framework.store.metadata.identifier import Identifier, check_name
from lockgate.framework.store.metadata.paths import branch_folder, schema_folder, snapshot_folder
from lockgate.framework.store.metadata.rename import rename_table, set_aside
from lockgate.framework.store.metadata.schema_files import SchemaFiles
from lockgate.framework.store.metadata.snapshot_files import SnapshotFiles
from lockgate.framework.store.metadata.trust import EXTERNAL_ROOTS, ExternalRoots
from lockgate.framework.store.schema.defaults import default_sql
from lockgate.framework.store.schema.schema import Schema, TableSchema
from lockgate.framework.store.tables.databases import change_properties, check_properties, load_properties
from lockgate.framework.store.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.keys import KeyProvider
    from lockgate.framework.store.tables.replace import Replacement
    from lockgate.framework.types import DataField

# Tables that are looked at to suggest one that the caller may see.
_MOST_LOOKED_AT = 20
_SUFFIX = ".db"
_log = logging.getLogger("lockgate.store")

__all__ = ["Catalog", "Identifier"]


@checked_arguments
class Catalog:
    """The databases and tables in a warehouse folder."""

    def __init__(
        self,
        warehouse: str | os.PathLike[str],
        *,
        keys: KeyProvider | str | os.PathLike[str] | None = None,
        options: Mapping[str, str] | None = None,
        principal: Principal | None = None,
    ) -> None:
        """Open the warehouse, which need not exist yet.

        `keys` is a key provider or its specification, such as `file:/secrets/keys.json`. Of `options`,
        `external-roots` says below which other folders tables may have files (see `trust`),
        `encryption.on-plaintext` what happens when values of encrypted columns would be stored in the clear;
        plugins find theirs in `options`; the others go to the file system. `principal` asks plugins for
        access through this catalog, None for the one who acts when a table is used. Raises InputError if the
        warehouse cannot be reached, and OptionError for a malformed option.
        """
        self.principal = principal
        self.options = dict(options or {})
        declared = plugins().options("catalog")
        own = {EXTERNAL_ROOTS, ON_PLAINTEXT.key, *declared}
        for key in declared.keys() & self.options.keys():
            declared[key].value_of(self.options[key])
        self.file_system_options = {key: self.options[key] for key in self.options if key not in own}
        self.on_plaintext = ON_PLAINTEXT.value_of(self.options.get(ON_PLAINTEXT.key, ""))
        self.external = ExternalRoots.parse(self.options.get(EXTERNAL_ROOTS))
        self.file_system, self.warehouse = resolve(warehouse, self.file_system_options)
        self.keys = _provider(keys)

    def __repr__(self) -> str:
        return f"Catalog({self.warehouse!r})"

    @property
    def table_context(self) -> TableContext:
        """What the catalog gives each of its tables."""
        return TableContext(self.file_system, self.keys, self.external, self.principal, self.on_plaintext)

    @named_errors
    def make_warehouse(self) -> None:
        """Create a missing warehouse folder, and log that: its path may have been mistyped."""
        if not self.file_system.exists(self.warehouse):
            self.file_system.make_directory(self.warehouse)
            _log.warning("there was no warehouse at %s: created an empty one", self.warehouse)

    @named_errors
    def system(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of `sys.<name>`, such as `tables`: all that the warehouse holds.

        NotFoundError offers the nearest names. Tables that the user may not read are omitted.
        """
        from lockgate.framework.store.system.warehouse_system_tables import read_warehouse

        return read_warehouse(self, name, columns)

    @staticmethod
    def system_tables() -> list[str]:
        """Return the names that `system` knows, sorted."""
        from lockgate.framework.store.system.warehouse_system_tables import warehouse_tables

        return warehouse_tables()

    @staticmethod
    def system_columns(name: str) -> tuple[DataField, ...]:
        """Return the columns of `sys.<name>`; NotFoundError offers the nearest names."""
        from lockgate.framework.store.system.warehouse_system_tables import warehouse_columns

        return warehouse_columns(name)

    # --- databases ---------------------------------------------------------------------------

    @named_errors
    def list_namespaces(self) -> list[str]:
        """Return the names of all databases, sorted."""
        infos = self.file_system.list(self.warehouse)
        if not infos and not self.file_system.exists(self.warehouse):
            _log.warning("there is no warehouse at %s", self.warehouse)
        return sorted(
            info.name.removesuffix(_SUFFIX)
            for info in infos
            if info.is_directory and info.name.endswith(_SUFFIX)
        )

    @named_errors
    def namespace_exists(self, name: str) -> bool:
        """Say whether a database exists."""
        return bool(name) and self.file_system.exists(self._namespace_path(name))

    @named_errors
    def create_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, *, ignore_if_exists: bool = False
    ) -> None:
        """Create a database; AlreadyExistsError if it exists, unless `ignore_if_exists`.

        `properties` are kept with it; a `comment` is one of them.
        """
        grant_database(Action.CREATE, name, self._namespace_path(name), self.principal)
        check_name("database", name)
        check_properties(properties or ())
        if self.namespace_exists(name):
            if ignore_if_exists:
                return
            raise AlreadyExistsError(f"database {name!r} exists")
        self.file_system.make_directory(self._namespace_path(name))
        if properties:
            change_properties(self.file_system, self._namespace_path(name), properties)

    @named_errors
    def namespace_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a database; NamespaceNotFoundError offers the nearest names."""
        self.check_namespace(name)
        return load_properties(self.file_system, self._namespace_path(name))

    @named_errors
    def alter_namespace(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Set properties of a database, or remove those given as None.

        Raises NamespaceNotFoundError, and InputError for a property that is not to be set.
        """
        grant_database(Action.ALTER, name, self._namespace_path(name), self.principal)
        self.check_namespace(name)
        change_properties(self.file_system, self._namespace_path(name), changes)

    @named_errors
    def drop_namespace(self, name: str, *, cascade: bool = False, ignore_if_not_exists: bool = False) -> None:
        """Drop a database, with `cascade` its tables too.

        Raises NamespaceNotFoundError if it does not exist, unless `ignore_if_not_exists`, and InputError if
        it has tables.
        """
        grant_database(Action.DROP, name, self._namespace_path(name), self.principal)
        if ignore_if_not_exists and not self.namespace_exists(name):
            return
        dropped = [Identifier(name, table) for table in self.list_tables(name)]
        if dropped and not cascade:
            some = ", ".join(table.name for table in dropped[:5])
            raise InputError(f"database {name!r} is not empty: it has {some}; drop it with cascade")
        for table in dropped:
            self._grant(Action.DROP, table)
            announce_table(self, table, "dropped", along=dropped)
        for table in dropped:
            self._drop(table)
        self.file_system.delete_tree(self._namespace_path(name))

    def namespace_location(self, name: str) -> str:
        """Return the folder of a database, whether it exists or not."""
        return self._namespace_path(name)

    def _namespace_path(self, name: str) -> str:
        return join(self.warehouse, name + _SUFFIX)

    def check_namespace(self, name: str) -> None:
        """Raise NamespaceNotFoundError, with the nearest names, unless a database exists."""
        if not self.namespace_exists(name):
            hint = nearest(name, self.list_namespaces())
            raise NamespaceNotFoundError(f"there is no database {name!r} in {self.warehouse}{hint}")

    # --- tables ------------------------------------------------------------------------------

    @named_errors
    def list_tables(self, namespace: str) -> list[str]:
        """Return a database's tables, sorted by name; NamespaceNotFoundError if it does not exist."""
        self.check_namespace(namespace)
        infos = self.file_system.list(self._namespace_path(namespace))
        return sorted(
            info.name
            for info in infos
            if info.is_directory
            and not Identifier(namespace, info.name).is_hidden
            and self._schemas(info.path).ids()
        )

    @property
    def moves_tables(self) -> bool:
        """Say whether tables of the warehouse can be moved at once."""
        return isinstance(self.file_system, MovesFolders)

    def list_visible_tables(self, namespace: str) -> list[str]:
        """Return those of `list_tables` of which the caller may read anything."""
        return [name for name in self.list_tables(namespace) if self._is_visible(Identifier(namespace, name))]

    def _is_visible(self, identifier: Identifier) -> bool:
        """Return whether anything of a table may be read; of one that cannot be opened, whether all may."""
        if not plugins().decides_access():
            return True
        principal = self.principal or current_principal()
        with suppress(LockgateError):
            table = self._opened(identifier)
            return table is not None and not whole_refusal(principal, table)
        asked = AccessRequest(principal, Action.SELECT, Target("table", str(identifier)))
        return plugins().authorize(asked).allowed

    @named_errors
    def table_exists(self, identifier: str | Identifier) -> bool:
        """Say whether a table, or a branch of one, exists."""
        return bool(self._schemas_of(Identifier.parse(identifier)).ids())

    def location(self, identifier: str | Identifier) -> str:
        """Return the folder of a table, or of the table of a branch, whether it exists or not."""
        parsed = Identifier.parse(identifier)
        return join(self._namespace_path(parsed.namespace), parsed.table)

    @named_errors
    def create_table(
        self, identifier: str | Identifier, schema: Schema, *, ignore_if_exists: bool = False
    ) -> Table:
        """Create a table and return it; of two creators at once exactly one succeeds.

        Raises NamespaceNotFoundError, AlreadyExistsError unless that is to be ignored (the existing table is
        returned then, whatever its schema), and what `validation.first_schema` raises.
        """
        parsed = Identifier.parse(identifier)
        check_name("table", parsed.name)
        self.check_namespace(parsed.namespace)
        location = self.location(parsed)
        if not self.table_exists(parsed):
            grant_by_name(Action.CREATE, parsed, location, principal=self.principal)
            first = first_schema(schema)
            check_wrapped_keys(first)
            check_named_keys(first, self.keys)
            if self.file_system.list(snapshot_folder(location)):
                raise AlreadyExistsError(f"{location} holds the remains of a table; delete the folder first")
            try:
                self._schemas(location).create(first)
            except FileExistsError:
                pass  # another creator was faster
            else:
                publish(TableChanged(table=location, change="created", schema_id=first.id))
                return self.load_table(parsed)
        if ignore_if_exists:
            return self.load_table(parsed)
        raise AlreadyExistsError(f"table {parsed} exists")

    @named_errors
    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table with its newest schema; `database.table$branch_<name>` is a branch of it.

        Raises NamespaceNotFoundError or TableNotFoundError, which offer the nearest names, and
        CorruptFileError if the schema cannot be read.
        """
        parsed = Identifier.parse(identifier)
        table = self._opened(parsed)
        if table is None and parsed.branch is not None:
            of = self.load_table(Identifier(parsed.namespace, parsed.table))
            shown = self._is_visible(of.identifier)
            hint = nearest(parsed.branch, of.branches()) or "; the table has none" if shown else ""
            raise TableNotFoundError(f"{of.identifier} has no branch {parsed.branch!r}{hint}")
        if table is None:
            raise TableNotFoundError(f"there is no table {parsed}{self._nearest_tables(parsed)}")
        return table

    def _nearest_tables(self, parsed: Identifier) -> str:
        """Return the nearest names, of tables that the caller may see, as the end of an error message."""
        names = self.list_tables(parsed.namespace)
        if plugins().decides_access():
            close = (
                difflib.get_close_matches(parsed.name, names, n=_MOST_LOOKED_AT) or names[:_MOST_LOOKED_AT]
            )
            names = [name for name in close if self._is_visible(Identifier(parsed.namespace, name))]
        return nearest(parsed.name, names, within=f"{parsed.namespace}.")

    def _opened(self, parsed: Identifier) -> Table | None:
        location = self.location(parsed)
        schema = current_schema(self._schemas_of(parsed), self._snapshots_of(parsed))
        if schema is None:
            return None
        return Table(parsed, location, schema, self.table_context)

    @named_errors
    def alter_table(
        self,
        identifier: str | Identifier,
        changes: Sequence[SchemaChange],
        *,
        on_plaintext: str | None = None,
    ) -> Table:
        """Change a table's columns, comments or options, all of `changes` or none, and return the table.

        Concurrent calls take effect one after the other. `on_plaintext` (warn, refuse or inherit) applies if
        an encrypted column was dropped and is added again. The table's own option comes before it, the
        warehouse's after it. Raises as `load_table`, and what `alter.altered` and `readded.judged` raise.
        """
        announced = False
        while True:
            table = self.load_table(identifier)
            names = any(isinstance(change, RenameColumn | DropColumn) for change in changes)
            grant_naming(table) if names else grant(table, Action.ALTER)
            changed = altered(table.schema, changes, has_rows=table.latest_snapshot() is not None)
            check_changelog_switch(table, changed)
            check_vectors_switch(table, changed)
            if not announced:
                announce_columns(self, table, changes)
                announced = True
            choice = changed.table_options.get_option(ON_PLAINTEXT) or on_plaintext or self.on_plaintext
            changed = judged(table, changed, changes, choice or "warn")
            check_wrapped_keys(changed, before=table.schema)
            check_named_keys(changed, self.keys, before=table.schema)
            schemas = self._schemas_of(table.identifier)
            try:
                placed = placed_after(schemas, changed, table.schema)
                schemas.create(placed)
            except FileExistsError:
                continue  # somebody else altered the table just now
            publish(TableChanged(table=table.branch_location, change="altered", schema_id=placed.id))
            return self.load_table(identifier)

    def replace_table(
        self,
        identifier: str | Identifier,
        schema: Schema,
        *,
        on_plaintext: str | None = None,
        keeps_layout: bool = False,
    ) -> Replacement:
        """Return a table to write to; publishing it replaces this one.

        See `replace.Replacement`: `hold` what `write` returns, then `publish`. Columns that the table
        encrypts stay encrypted, or as `encryption.on-plaintext` of the table says; `on_plaintext` applies
        where that says nothing. With `keeps_layout` the table's keys, buckets and options stay too. Raises as
        `load_table`, and what `replaced_encryption.with_encryption` and `replace.replacement` raise.
        """
        from lockgate.framework.store.confidential.replaced_encryption import with_encryption, with_layout
        from lockgate.framework.store.tables.replace import replacement

        _refuse_branch(Identifier.parse(identifier), "replaced")
        table = self.load_table(identifier)
        grant(table, Action.CREATE)
        grant(table, Action.DROP)
        if keeps_layout:
            schema = with_layout(table.schema, schema)
        choice = on_plaintext or self.on_plaintext
        return replacement(table, with_encryption(str(table.identifier), table.schema, schema, choice))

    def create_like(
        self,
        identifier: str | Identifier,
        like: TableSchema,
        options: Mapping[str, str],
        comment: str | None = None,
    ) -> Table:
        """Create an empty table with the columns, keys, options and comment of another one, and its own."""
        fields = tuple(replace(field, default=default_sql(field)) for field in like.fields)
        kept = {key: value for key, value in like.options.items() if key != GENERATION}
        comment = like.comment if comment is None else comment
        schema = Schema(fields, like.partition_keys, like.primary_keys, {**kept, **options}, comment)
        return self.create_table(identifier, schema)

    @named_errors
    def rename_table(self, identifier: str | Identifier, target: str | Identifier) -> None:
        """Give a table another name, in its database or in another one of the warehouse, at once.

        Raises as `load_table`, NamespaceNotFoundError, AlreadyExistsError, and UnsupportedError where folders
        cannot be renamed, as in object stores.
        """
        _refuse_branch(Identifier.parse(identifier), "renamed: use rename_branch")
        if Identifier.parse(identifier).staged_for != Identifier.parse(target):
            grant_naming(self.load_table(identifier))
        self._grant(Action.CREATE, target)
        announce_table(self, Identifier.parse(identifier), "renamed")
        rename_table(self, identifier, target)
        publish(TableChanged(table=self.location(target), change="renamed", schema_id=None))

    def _grant(self, action: Action, identifier: str | Identifier) -> None:
        location = self.location(identifier)
        grant_by_name(action, Identifier.parse(identifier), location, principal=self.principal)

    @named_errors
    def drop_table(self, identifier: str | Identifier, *, ignore_if_not_exists: bool = False) -> None:
        """Drop a table with all its files; raises as `load_table`, unless that is to be ignored."""
        parsed = Identifier.parse(identifier)
        _refuse_branch(parsed, "dropped: use delete_branch")
        if not self.table_exists(parsed):
            if ignore_if_not_exists:
                return
            self.load_table(parsed)
        # Anyone who may make a table may undo it before it is there.
        self._grant(Action.CREATE if parsed.staged_for else Action.DROP, parsed)
        announce_table(self, parsed, "dropped")
        self._drop(parsed)

    def _drop(self, parsed: Identifier) -> None:
        location = dropped = self.location(parsed)
        if isinstance(self.file_system, MovesFolders):
            if self.file_system.is_link(location):
                # The target of the link belongs to somebody else.
                self.file_system.delete(location)
                publish(TableChanged(table=dropped, change="dropped", schema_id=None))
                return
            location = set_aside(self, parsed)
        # Elsewhere the snapshots go first, the schema last but one: killed in between, the table is an older
        # one or empty. What else has a name goes before the schema, or a table made again would inherit it.
        self.file_system.delete_tree(snapshot_folder(location))
        for named in ("tag", "branch", "consumer", "changelog"):
            self.file_system.delete_tree(join(location, named))
        self.file_system.delete_tree(schema_folder(location))
        self.file_system.delete_tree(location)
        publish(TableChanged(table=dropped, change="dropped", schema_id=None))

    def _schemas_of(self, identifier: Identifier) -> SchemaFiles:
        folder = branch_folder(self.location(identifier), identifier.branch)
        return SchemaFiles(self.file_system, folder, branch=identifier.branch is not None)

    def _snapshots_of(self, identifier: Identifier) -> SnapshotFiles:
        return SnapshotFiles(self.file_system, branch_folder(self.location(identifier), identifier.branch))

    def _schemas(self, location: str) -> SchemaFiles:
        return SchemaFiles(self.file_system, location)


def _refuse_branch(identifier: Identifier, what: str) -> None:
    if identifier.branch is not None:
        raise InputError(f"branch {identifier} cannot be {what}")


def _provider(keys: KeyProvider | str | os.PathLike[str] | None) -> KeyProvider | None:
    if keys is None:
        return None
    # Loaded only where there are keys, so that a plain table needs no cryptography.
    from lockgate.framework.keys import provider_from

    return provider_from(keys)
