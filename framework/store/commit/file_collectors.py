"""File collectors: plugins that see the rows of a new file; participants of its commit receive their output.

Python's writers show them each batch while it is written. Files that others wrote (Spark's tasks, engines
whose files are taken over) are read once more by the process that commits them, in the columns that a
collector wants: a collector is one Python class wherever rows are written, no batch travels between
processes, and without collectors nothing is read. `task_keys` spares the index database that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import ColumnNotFoundError, LockgateError, PluginError
from lockgate.framework.plugins import FileCollector, plugins
from lockgate.framework.store.commit.file_index_placement import has_index, with_index
from lockgate.framework.store.commit.message import CommitMessage
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.framework.store.scan.read import FileReader

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.store.handle import TableHandle

Collected = Mapping[str, Mapping[str, bytes]]
"""What collectors made, by name of the file and of the collector."""


class FileCollections:
    """The collections of one file in the making, of some collectors of its table."""

    def __init__(self, table: TableHandle, collectors: Sequence[tuple[str, FileCollector]]) -> None:
        self._table = table
        self._columns = [(each, _columns(table, plugin, each)) for plugin, each in collectors]
        self._plugins = {each.name: plugin for plugin, each in collectors}
        self._index_names = frozenset(each.name for _, each in collectors if makes_index(each))
        self._begun = [
            (each.name, columns, self._asked(each.name, each.begin)) for each, columns in self._columns
        ]

    @property
    def columns(self) -> list[str]:
        """The columns that any of the collectors wants."""
        return list(dict.fromkeys(name for _, columns in self._columns for name in columns))

    def add(self, rows: pa.Table) -> None:
        """Show rows of the file, in order."""
        for name, columns, collection in self._begun:
            self._asked(name, collection.add, rows.select(columns))

    @property
    def index_names(self) -> frozenset[str]:
        """The collectors that make indexes of the file."""
        return self._index_names

    def finish(self) -> dict[str, bytes]:
        """Return what each collector made of the file."""
        made = {name: self._asked(name, collection.finish) for name, _, collection in self._begun}
        for name, output in made.items():
            if not isinstance(output, bytes):
                raise self._failed(name, f"finish() returned {type(output).__name__}, not bytes")
        return made

    def _asked(self, name: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:  # a plugin may raise anything
            raise self._failed(name, f"{type(error).__name__}: {error}") from error

    def _failed(self, name: str, reason: str) -> PluginError:
        return _failed(self._table, self._plugins[name], name, reason)


def _columns(table: TableHandle, plugin: str, collector: FileCollector) -> tuple[str, ...]:
    names = table.schema.field_names if collector.columns is None else tuple(collector.columns)
    try:
        for name in names:
            table.schema.field(name)
    except ColumnNotFoundError as error:
        raise _failed(table, plugin, collector.name, str(error)) from error
    return names


def _failed(table: TableHandle, plugin: str, name: str, reason: str) -> PluginError:
    return PluginError(
        f"plugin {plugin!r}: file collector {name!r} failed on table {table.identifier}: {reason}", plugin
    )


def collections_of(table: TableHandle) -> FileCollections | None:
    """Return the collections of a file that is begun, None if no plugin collects."""
    collectors = plugins().file_collectors(table)
    return FileCollections(table, collectors) if collectors else None


def collected(table: TableHandle, messages: Iterable[CommitMessage]) -> dict[str, dict[str, bytes]]:
    """Return what collectors made of all files that `messages` add.

    Files are read strictly as far as messages lack something. Raises PluginError if a collector fails, and
    what reading raises.
    """
    collectors = [each for each in plugins().file_collectors(table) if not makes_index(each[1])]
    if not collectors:
        return {}
    found: dict[str, dict[str, bytes]] = {}
    for message in messages:
        for file in message.added:
            made = dict(message.collected.get(file.file_name, {}))
            missing = [(plugin, each) for plugin, each in collectors if each.name not in made]
            if missing:
                made |= made_of(table, message, file, FileCollections(table, missing))
            found[file.file_name] = made
    return found


def makes_index(collector: FileCollector) -> bool:
    """Say whether what a collector makes is an index that becomes part of the file."""
    return bool(getattr(collector, "makes_file_index", False))


def indexed(table: TableHandle, messages: Sequence[CommitMessage]) -> list[CommitMessage]:
    """Return messages whose new files have indexes, if a plugin makes some; files are read for them.

    Files that have one keep it, and so do files that were there before, and those of older schemas.
    """
    makers = [each for each in plugins().file_collectors(table) if makes_index(each[1])]
    if not makers:
        return list(messages)
    removed = {file.file_name for message in messages for file in message.deleted}

    def complete(message: CommitMessage, file: DataFileMeta) -> DataFileMeta:
        if has_index(file) or file.file_name in removed or file.schema_id != table.schema.id:
            return file
        (index,) = made_of(table, message, file, FileCollections(table, makers[:1])).values()
        return with_index(table, message.partition, message.bucket, file, index)

    return [
        replace(message, added=tuple(complete(message, file) for file in message.added))
        for message in messages
    ]


def made_of(
    table: TableHandle, message: CommitMessage, file: DataFileMeta, collections: FileCollections
) -> dict[str, bytes]:
    """Return what collectors make of a file of a message, which is read strictly."""
    path = table.paths.data_file(message.partition, message.bucket, file)
    partition = dict(zip(table.schema.partition_keys, message.partition, strict=True))
    reader = FileReader(table, table.schema, strict=True)
    try:
        for part in reader.parts(path, file, collections.columns, partition):
            collections.add(part)
    except LockgateError as error:
        error.add_note("a file collector needs the rows of each new file")
        raise
    return collections.finish()
