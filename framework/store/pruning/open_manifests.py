"""The manifests that a scan opens: plugins know of others that they list no file with a match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import CorruptFileError, PluginError
from lockgate.framework.plugins import ManifestPruner, SkippedManifests, plugins
from lockgate.framework.store.codec.binary_row import encode_row
from lockgate.framework.store.deletion_vectors.snapshot_vectors import ranges_of
from lockgate.framework.store.handle import read_branch
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.pruning.file_options import has_file_options
from lockgate.framework.store.pruning.scanned_files import PruningQuestion
from lockgate.pushdown import Count, Step, conjuncts

if TYPE_CHECKING:
    from lockgate.framework.store.manifests.manifest import ManifestFileMeta
    from lockgate.framework.store.metadata.snapshot import Snapshot

NAME = "manifests"


@dataclass(frozen=True)
class OpenManifests:
    """The manifests of a snapshot, and those that a scan leaves unopened; None: it opens all."""

    count: int = 0
    skipped: SkippedManifests | None = None
    snapshot: Snapshot | None = None

    @property
    def unopened(self) -> frozenset[str]:
        """The names of the manifests that stay unopened."""
        return frozenset() if self.skipped is None else self.skipped.names

    def step(self, question: PruningQuestion, files: FileTable) -> Step | None:
        """Return the line of the report: all files of the snapshot, and those that opened manifests list.

        Files that a later manifest deletes do not count; their partition may. Nor do rows that deletion
        vectors take, as far as these count them.
        """
        skipped = self.skipped
        if skipped is None:
            return None
        after, gone = files.count(files.live), files.unmatched_deletions
        types = question.schema.types_of(question.schema.partition_keys)
        entries = files.select(files.live)
        listed = {entry.file.file_name for entry in files.entries}
        vectors = ranges_of(question.table, self.snapshot)
        deleted = sum(each.cardinality or 0 for name, (_, each) in vectors.items() if name not in listed)
        own = {(entry.partition, entry.bucket) for entry in entries}
        places = skipped.places | {(encode_row(partition, types), bucket) for partition, bucket in own}
        before = Count(
            partitions=len({partition for partition, _ in places}),
            buckets=len(places),
            files=after.files + skipped.files - len(gone),
            rows=after.rows + skipped.rows - sum(entry.file.row_count for entry in gone) - deleted,
            bytes=after.bytes + skipped.bytes - sum(entry.file.file_size for entry in gone),
        )
        opened = f"{self.count - len(skipped.names)} of {self.count} opened"
        return Step(NAME, before, after, f"{question.text(conjuncts(question.predicate))} ({opened})")


def open_manifests(question: PruningQuestion, snapshot: Snapshot | None) -> OpenManifests:
    """Say which manifests of a snapshot a scan opens.

    Of tables with keys or partitions from a branch it opens all: there files that do not match may count.
    It also does where an option of the table selects files, whose number no manifest tells.
    """
    table, schema = question.table, question.schema
    parts = conjuncts(question.predicate)
    if snapshot is None or not parts or schema.has_primary_key:
        return OpenManifests()
    if read_branch(schema) is not None or has_file_options(schema):
        return OpenManifests()
    pruners = [(name, each) for name, each in plugins().pruners(table) if isinstance(each, ManifestPruner)]
    if not pruners:
        return OpenManifests()
    manifests = table.manifests.manifests(snapshot)
    for plugin, pruner in pruners:
        skipped = _asked(question, plugin, pruner, manifests, snapshot.index_manifest)
        if skipped is not None and skipped.names:
            return OpenManifests(len(manifests), skipped, snapshot)
    return OpenManifests()


def _asked(
    question: PruningQuestion,
    plugin: str,
    pruner: ManifestPruner,
    manifests: Sequence[ManifestFileMeta],
    index_manifest: str | None,
) -> SkippedManifests | None:
    try:
        found = pruner.manifests(question.predicate, question.schema, manifests, index_manifest)
    except CorruptFileError:
        raise  # it names the file
    except Exception as error:  # a plugin may raise anything
        raise _failed(question, plugin, pruner, f"{type(error).__name__}: {error}") from error
    if found is None:
        return None
    silent = {meta.file_name for meta in manifests if meta.num_deleted_files == 0}
    if not found.names <= silent:
        raise _failed(
            question, plugin, pruner, "a manifest with deletions, or none of the snapshot, left out"
        )
    return found


def _failed(question: PruningQuestion, plugin: str, pruner: ManifestPruner, reason: str) -> PluginError:
    return PluginError(
        f"plugin {plugin!r}: pruner {pruner.name!r} failed on table {question.table.identifier}: {reason}",
        plugin,
    )
