"""A table for use inside the store: its folder, its schema, and access to its metadata.

`table.Table`, for users, is built from functions that take a handle.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError
from lockgate.framework.io import FileSystem, named_errors
from lockgate.framework.options import TableOptions, check_names
from lockgate.framework.store.codec.binary_row import decode_row, encode_row
from lockgate.framework.store.manifests.index_manifest import IndexEntry, read_index_manifest
from lockgate.framework.store.manifests.manifest_files import ManifestFiles
from lockgate.framework.store.metadata.consumer import Consumers
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.framework.store.metadata.paths import TablePaths, branch_folder
from lockgate.framework.store.metadata.schema_files import SchemaFiles
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.snapshot_files import CHANGELOG, SnapshotFiles
from lockgate.framework.store.metadata.trust import NO_ROOTS, ExternalRoots, check_deletable
from lockgate.framework.store.schema.schema import TableSchema

if TYPE_CHECKING:
    from lockgate.framework.access import Principal
    from lockgate.framework.keys import KeyProvider


SCHEMAS_OF_BRANCH = 2**32
"""Added to the ids of schemas by which files of another branch were written, in a plan that reads both."""

_FALLBACK, _PRIMARY, _ALONE = "scan.fallback-branch", "scan.primary-branch", "branch"


@dataclass(frozen=True)
class ReadBranch:
    """A branch that partitions are read from: `first` those that it has, else those that the table lacks.

    `alone`: all that is read comes from the branch.
    """

    name: str
    first: bool
    alone: bool = False


def read_branch(schema: TableSchema) -> ReadBranch | None:
    """Return the branch that options of a table have partitions read from; OptionError if they name two."""
    fallback, primary = (schema.options.get(key, "").strip() for key in (_FALLBACK, _PRIMARY))
    alone = schema.options.get(_ALONE, "").strip()
    if alone.lower() not in ("", "main"):
        if fallback or primary:
            other = _FALLBACK if fallback else _PRIMARY
            raise OptionError(f"options {_ALONE!r} and {other!r} of a table contradict each other")
        return ReadBranch(alone, first=True, alone=True)
    if fallback and primary:
        raise OptionError(f"options {_FALLBACK!r} and {_PRIMARY!r} of a table contradict each other")
    if not fallback and not primary:
        return None
    return ReadBranch(primary or fallback, bool(primary))


@dataclass(frozen=True)
class TableContext:
    """What a catalog gives each of its tables.

    `principal` is the one for whom plugins decide about access, None for the one who acts when the table is
    used. `on_plaintext` is the warehouse's choice for values of encrypted columns that a table would get in
    the clear.
    """

    file_system: FileSystem
    keys: KeyProvider | None = None
    external: ExternalRoots = NO_ROOTS
    principal: Principal | None = None
    on_plaintext: str = ""


@checked_arguments
@dataclass(frozen=True, eq=False, repr=False)
class TableHandle:
    """A table with the schema it had when it was loaded; snapshots are looked up by each call."""

    identifier: Identifier
    location: str
    schema: TableSchema
    context: TableContext

    @property
    def file_system(self) -> FileSystem:
        """Where the table lies."""
        return self.context.file_system

    @property
    def principal(self) -> Principal | None:
        """The one for whom plugins decide about access; None for the one who acts."""
        return self.context.principal

    @property
    def options(self) -> TableOptions:
        """The options with typed access."""
        return self.schema.table_options

    @cached_property
    def branch_location(self) -> str:
        """The folder of snapshots, schemas, tags and consumers: a branch has its own, over the same data."""
        return branch_folder(self.location, self.identifier.branch)

    @cached_property
    def keys(self) -> KeyProvider | None:
        """The keys; a table may bring its own, wrapped, which stay those of its newest schema."""
        return None if self.context.keys is None else self.context.keys.for_table(self.options)

    @cached_property
    def paths(self) -> TablePaths:
        """The paths of its files."""
        return TablePaths(self.location, self.schema, self.schema_of, self.context.external)

    @cached_property
    def schema_files(self) -> SchemaFiles:
        """The files of its schemas."""
        branch = self.identifier.branch is not None
        return SchemaFiles(self.file_system, self.branch_location, branch=branch)

    @cached_property
    def snapshot_files(self) -> SnapshotFiles:
        """The files of its snapshots."""
        return SnapshotFiles(self.file_system, self.branch_location)

    @cached_property
    def changelog_files(self) -> SnapshotFiles:
        """The files of changelogs that outlive their snapshots."""
        return SnapshotFiles(self.file_system, self.branch_location, CHANGELOG)

    @cached_property
    def manifests(self) -> ManifestFiles:
        """Its manifests."""
        return ManifestFiles(self.file_system, self.paths, self.schema, self.schema_of)

    @cached_property
    def consumer_files(self) -> Consumers:
        """The files of its consumers."""
        return Consumers(self.file_system, self.branch_location)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"{name}({str(self.identifier)!r}, location={self.location!r}, schema_id={self.schema.id})"

    @cached_property
    def table_id(self) -> str:
        """Return the id that the table keeps when it is renamed, moved or restored; a branch has its own.

        It tells the table from one created later in the same place. A copy of the folder has the same one:
        see `copy_id`.
        """
        found = self.schema.table_id or self._first_id()
        branch = self.identifier.branch
        return found if branch is None else str(uuid.uuid5(uuid.NAMESPACE_URL, f"{found}#{branch}"))

    def _first_id(self) -> str:
        """Return the id in the first schema; one made of that schema if another engine wrote it."""
        ids = self.schema_files.ids()
        first = self.schema_of(ids[0]) if ids else self.schema
        return first.table_id or str(uuid.uuid5(uuid.NAMESPACE_URL, first.to_bytes().decode()))

    @cached_property
    def copy_id(self) -> str:
        """Return what tells the table from copies of its folder, too."""
        place = self.file_system.uri(self.branch_location)
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{place}#{self.table_id}"))

    def with_schema(self, schema_id: int) -> Self:
        """Return the table as it is under one of its schemas, for a query that was analysed with it."""
        if schema_id == self.schema.id:
            return self
        return self.sibling(self.identifier, self.schema_of(schema_id))

    def sibling(self, identifier: Identifier, schema: TableSchema) -> Self:
        """Return the same table under another name or schema: a branch of it, or as it was."""
        context = replace(self.context, keys=self.keys)
        return replace(self, identifier=identifier, schema=schema, context=context)

    def check_deletable(self, paths: Iterable[str]) -> None:
        """Check files before they are deleted; UnsafePathError if a link leads one out of the table."""
        check_deletable(self.file_system, check_names("paths", paths), self.location, self.paths.external)

    def partition_bytes(self, values: Sequence[Any]) -> bytes:
        """Return the values of a partition as manifests hold them."""
        return encode_row(values, self.schema.types_of(self.schema.partition_keys))

    def partition_values(self, data: bytes) -> tuple[Any, ...]:
        """Return the values of a partition from the bytes of a manifest."""
        return decode_row(data, self.schema.types_of(self.schema.partition_keys))

    @named_errors
    def index_entries(self, index_manifest: str) -> tuple[IndexEntry, ...]:
        """Return the index files that an index manifest names; CorruptFileError if that is damaged."""
        return read_index_manifest(self, index_manifest).entries

    @named_errors
    def schema_of(self, schema_id: int) -> TableSchema:
        """Return the schema of an id; CorruptFileError if its file is missing or damaged."""
        if schema_id == self.schema.id:
            return self.schema
        branch = read_branch(self.schema) if schema_id >= SCHEMAS_OF_BRANCH else None
        if branch is None:
            return self.schema_files.load(schema_id)
        files = SchemaFiles(self.file_system, branch_folder(self.location, branch.name), branch=True)
        return replace(files.load(schema_id - SCHEMAS_OF_BRANCH), id=schema_id)

    @named_errors
    def latest_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None if nothing was committed yet."""
        return self.snapshot_files.latest()

    @named_errors
    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return a snapshot; SnapshotNotFoundError says which ones there are."""
        return self.snapshot_files.load(snapshot_id)

    @named_errors
    def snapshots(self) -> list[Snapshot]:
        """Return all snapshots that have not expired, oldest first."""
        return self.snapshot_files.load_all()
