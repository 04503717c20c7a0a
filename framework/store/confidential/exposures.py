"""Exposures: values of encrypted columns that are readable without a key, anywhere in a table's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from lockgate.errors import CorruptFileError, LockgateError, UnsupportedFormatError
from lockgate.framework.io import FileInfo
from lockgate.framework.orc import audit_file
from lockgate.framework.store.codec.simple_stats import EMPTY_STATS
from lockgate.framework.store.confidential.confidential_columns import (
    ConfidentialColumns,
    confidential_in_history,
)
from lockgate.framework.store.confidential.exposed_files import ORC_SUFFIX, audit_entry, columns_in_index
from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.history.branches import branch_names, load_branch
from lockgate.framework.store.maintenance.orphans import other_files_in
from lockgate.framework.store.manifests.manifest import ManifestEntry, ManifestFileMeta
from lockgate.framework.store.metadata.data_folders import data_files_in
from lockgate.framework.store.metadata.generations import current_schema
from lockgate.framework.store.metadata.identifier import Identifier
from lockgate.framework.store.metadata.references import tagged_snapshots
from lockgate.framework.store.metadata.schema_files import SchemaFiles
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.metadata.snapshot_files import SnapshotFiles
from lockgate.framework.store.tables.table import Table
from lockgate.pushdown.index import is_index

# Of a file that ends in the middle.
UNKNOWN = ("(unknown)",)


class Where(StrEnum):
    """The kind of a file that shows values."""

    DATA = "data file"
    INDEX = "file index"
    MANIFEST = "manifest"
    STATISTICS = "statistics"
    SCHEMA = "schema"
    UNFINISHED = "unfinished file"


@dataclass(frozen=True, order=True)
class ExposedState:
    """A snapshot (its number), or a tag (its name), of a branch or of the table itself (None)."""

    branch: str | None
    snapshot: int | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Exposure:
    """A file that shows values of columns to anyone who can read the folder; `path` is within the folder.

    `columns` are called as the file calls them. `holders` keep the file from being deleted; without any it
    is an orphan, or a schema, which stays for good.
    """

    where: Where
    path: str
    columns: tuple[str, ...]
    holders: tuple[ExposedState, ...]


def exposures(table: Table) -> list[Exposure]:
    """Return every file in a table's folder that shows values of columns to be encrypted, by their paths.

    Looks at snapshots, tags and branches, at all that they refer to, and at files that nothing refers to; of
    each data file the tail is read. A column is to be encrypted if the newest schema that has it says so, in
    branches too. No key is needed. Raises CorruptFileError if metadata cannot be read.
    """
    return _Survey(table).found()


@dataclass(frozen=True)
class _Branch:
    """The table itself or a branch of it, as its own schemas name columns."""

    table: TableHandle
    plain: ExposedStatistics

    @property
    def branch(self) -> str | None:
        return self.table.identifier.branch

    def held(self) -> Iterator[tuple[ExposedState, Snapshot]]:
        for name, snapshot in tagged_snapshots(self.table).items():
            yield ExposedState(self.branch, tag=name), snapshot
        for snapshot in self.table.snapshots():
            yield ExposedState(self.branch, snapshot.id), snapshot
        for changelog in self.table.changelog_files.load_all():
            yield ExposedState(self.branch, changelog.id), changelog


@dataclass
class _Survey:
    table: Table
    _shown: dict[tuple[Where, str], frozenset[str]] = field(default_factory=dict)
    _holders: dict[tuple[Where, str], set[ExposedState]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = _whole(self.table)
        secrets = confidential_in_history(self.table)
        self._main = _Branch(self.table, ExposedStatistics(secrets, self.table.schema_of))
        branches = [load_branch(self.table, name) for name in branch_names(self.table)]
        self._branches = [self._main, *(_branch_of(self.table, branch, secrets) for branch in branches)]

    def found(self) -> list[Exposure]:
        branches = self._branches
        if not any(branch.plain.secrets for branch in branches):
            return []
        # Listed before what is referred to is known: a file committed in between is no orphan.
        listed = [*data_files_in(self.table), *other_files_in(self.table)]
        for branch in branches:
            self._add_schemas(branch)
            for holder, snapshot in branch.held():
                self._add_snapshot(branch, holder, snapshot)
        shown = {path for _, path in self._shown}
        for info in listed:
            if info.path not in shown:
                self._add_orphan(branches, info)
        return [self._exposure(*key) for key in sorted(self._shown) if self._shown[key]]

    def _exposure(self, where: Where, path: str) -> Exposure:
        columns = tuple(sorted(self._shown[where, path]))
        holders = sorted(self._holders.get((where, path), ()), key=repr)
        return Exposure(where, path.removeprefix(f"{self.table.paths.location}/"), columns, tuple(holders))

    def _add(
        self, where: Where, path: str, columns: Iterable[str], holder: ExposedState | None = None
    ) -> None:
        self._shown[where, path] = self._shown.get((where, path), frozenset()) | frozenset(columns)
        if holder is not None:
            self._holders.setdefault((where, path), set()).add(holder)

    # --- what is referred to -----------------------------------------------------------------

    def _add_schemas(self, branch: _Branch) -> None:
        files = branch.table.schema_files
        for schema_id in files.ids():
            schema = branch.table.schema_of(schema_id)
            hidden = branch.plain.secrets.top_level(schema)
            given = [each.name for each in schema.fields if each.default is not None and each.name in hidden]
            self._add(Where.SCHEMA, files.path(schema_id), given)

    def _add_snapshot(self, branch: _Branch, holder: ExposedState, snapshot: Snapshot) -> None:
        table = branch.table
        try:
            metas, entries = table.manifests.manifests(snapshot), table.manifests.live_files(snapshot)
        except CorruptFileError:
            if holder.snapshot in (None, table.snapshot_files.latest_id()):
                raise
            # Half expired, by another or by one that was killed: what is left of it counts.
            metas = list(self._remaining_manifests(branch, snapshot))
            entries = [entry for meta in metas for entry in table.manifests.read_manifest(meta)]
        for meta in metas:
            self._add_manifest(branch, meta, holder)
        for entry in (*entries, *self._changelog(branch, holder, snapshot)):
            self._add_data(branch, entry, holder)
        if snapshot.statistics is not None:
            path = table.paths.statistics_file(snapshot.statistics)
            self._add(Where.STATISTICS, path, self._in_statistics(branch, path), holder)

    def _remaining_manifests(self, branch: _Branch, snapshot: Snapshot) -> Iterator[ManifestFileMeta]:
        yield from self._in_list(branch, snapshot.base_manifest_list, snapshot.base_manifest_list_size)
        yield from self._in_list(branch, snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)

    def _changelog(
        self, branch: _Branch, holder: ExposedState, snapshot: Snapshot
    ) -> Iterator[ManifestEntry]:
        name, size = snapshot.changelog_manifest_list, snapshot.changelog_manifest_list_size
        for meta in [] if name is None else self._in_list(branch, name, size):
            self._add_manifest(branch, meta, holder)
            yield from branch.table.manifests.read_manifest(meta)

    def _in_list(self, branch: _Branch, name: str, size: int | None) -> Iterator[ManifestFileMeta]:
        """Return the manifests of a list that are still there."""
        files, paths = self.table.file_system, self.table.paths
        if files.exists(paths.manifest(name)):
            for meta in branch.table.manifests.read_list(name, size):
                if files.exists(paths.manifest(meta.file_name)):
                    yield meta

    def _add_manifest(self, branch: _Branch, meta: ManifestFileMeta, holder: ExposedState | None) -> None:
        path = branch.table.paths.manifest(meta.file_name)
        columns = self._shown.get((Where.MANIFEST, path))
        self._add(Where.MANIFEST, path, _in_manifest(branch, meta) if columns is None else columns, holder)

    def _add_data(self, branch: _Branch, entry: ManifestEntry, holder: ExposedState) -> None:
        where = (entry.partition, entry.bucket, entry.file)
        path, extra = branch.table.paths.data_file(*where), branch.table.paths.extra_files(*where)
        if (Where.DATA, path) not in self._shown:
            with suppress(FileNotFoundError):
                self._add(Where.DATA, path, audit_entry(branch.table, entry, branch.plain.secrets).plain)
            for index in filter(is_index, extra):
                hidden = branch.plain.hidden_in(entry.file)
                self._add(Where.INDEX, index, columns_in_index(branch.table, index, hidden))
        self._add(Where.DATA, path, (), holder)
        for index in filter(is_index, extra):
            self._add(Where.INDEX, index, (), holder)

    # --- orphans -----------------------------------------------------------------------------

    def _add_orphan(self, branches: Iterable[_Branch], info: FileInfo) -> None:
        with suppress(FileNotFoundError):
            for branch in branches:
                for where, columns in self._in_orphan(branch, info).items():
                    self._add(where, info.path, columns)

    def _in_orphan(self, branch: _Branch, info: FileInfo) -> Mapping[Where, Iterable[str]]:
        folder = info.path.rpartition("/")[0].rpartition("/")[2]
        if info.name.startswith("."):
            return {} if info.name.endswith(".crc") else {Where.UNFINISHED: UNKNOWN}
        if folder == "statistics":
            return {Where.STATISTICS: self._in_statistics(branch, info.path)}
        if folder == "manifest":
            return {Where.MANIFEST: _in_lost_manifest(branch, info)}
        if is_index(info.name):
            return {Where.INDEX: columns_in_index(branch.table, info.path, frozenset(_names(branch)))}
        return {Where.DATA: _in_lost_data(branch, info)} if folder.startswith("bucket-") else {}

    def _in_statistics(self, branch: _Branch, path: str) -> Iterable[str]:
        try:
            return branch.plain.in_statistics(self.table.file_system.read_bytes(path), path)
        except CorruptFileError:
            return UNKNOWN
        except FileNotFoundError:
            return ()


def _whole(table: Table) -> Table:
    """Return the table that a branch is of."""
    if table.identifier.branch is None:
        return table
    files, snapshots = (
        SchemaFiles(table.file_system, table.location),
        SnapshotFiles(table.file_system, table.location),
    )
    schema = current_schema(files, snapshots)
    name = Identifier(table.identifier.namespace, table.identifier.table)
    return table.sibling(name, schema or table.schema)


def _branch_of(table: TableHandle, branch: TableHandle, secrets: ConfidentialColumns) -> _Branch:
    """Return a branch with what it encrypts itself, and what the table does of columns that both have.

    Ids are given by each on its own once they have parted, so only those of schemas that both have count.
    """
    own = set(table.schema_files.ids())
    shared = [branch.schema_of(number) for number in branch.schema_files.ids() if number in own]
    ids = {each.id for schema in shared if table.schema_of(schema.id) == schema for each in schema.fields}
    keys = {path: key for path, key in secrets.keys.items() if path[0] in ids}
    both = ConfidentialColumns({**confidential_in_history(branch).keys, **keys})
    return _Branch(branch, ExposedStatistics(both, branch.schema_of))


def _in_manifest(branch: _Branch, meta: ManifestFileMeta) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for entry in branch.table.manifests.read_manifest(meta):
        found |= branch.plain.shown(entry.file) | branch.plain.indexed(entry.file)
    return found


def _in_lost_manifest(branch: _Branch, info: FileInfo) -> Iterable[str]:
    if not info.name.startswith("manifest-") or info.name.startswith("manifest-list-"):
        return ()
    try:
        return _in_manifest(branch, ManifestFileMeta(info.name, info.size, 0, 0, EMPTY_STATS, 0))
    except LockgateError:  # such as one of a branch that is gone, with columns of its own
        return UNKNOWN


def _in_lost_data(branch: _Branch, info: FileInfo) -> Iterable[str]:
    if not info.name.endswith(ORC_SUFFIX):
        return UNKNOWN
    try:
        return audit_file((branch.table.file_system, info.path), _names(branch), name=info.path).plain
    except (CorruptFileError, UnsupportedFormatError):
        return UNKNOWN


def _names(branch: _Branch) -> dict[str, str]:
    """Return what the columns are or were called: nothing says by which schema an orphan was written."""
    found: dict[str, str] = {}
    for schema_id in branch.table.schema_files.ids():
        found |= branch.plain.secrets.under(branch.table.schema_of(schema_id))
    return found
