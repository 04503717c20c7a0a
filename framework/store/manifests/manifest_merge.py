"""Merging of manifests, so that a table of many small commits stays quick to plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockgate.framework.options import MANIFEST_MERGE_MIN_COUNT, MANIFEST_TARGET_SIZE, TableOptions
from lockgate.framework.store.manifests.manifest import (
    FileKind,
    ManifestEntry,
    ManifestFileMeta,
    merge_entries,
)
from lockgate.framework.store.manifests.manifest_files import ManifestFiles

if TYPE_CHECKING:
    from lockgate.framework.store.confidential.exposed_statistics import ExposedStatistics

# Small enough that a scan of one partition of many skips most of a large table's entries.
_MOST_ENTRIES = 10_000


@dataclass(frozen=True)
class MergedManifests:
    """Manifests that take the place of others; `replaced` holds the names of those.

    `entries` are what the new manifests list, by their names.
    """

    replaced: frozenset[str]
    manifests: tuple[ManifestFileMeta, ...]
    entries: Mapping[str, tuple[ManifestEntry, ...]] = field(default_factory=dict, compare=False)

    def apply(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta] | None:
        """Return `metas` with the replacement made; None if it does not fit them."""
        if not self.replaced <= {meta.file_name for meta in metas}:
            return None
        return [*self.manifests, *(meta for meta in metas if meta.file_name not in self.replaced)]


def merge_manifests(
    files: ManifestFiles,
    metas: Sequence[ManifestFileMeta],
    options: TableOptions,
    plain: ExposedStatistics,
    *,
    scrub: bool = False,
    everything: bool = False,
) -> MergedManifests | None:
    """Merge the small manifests among `metas`, with `everything` all; None while there are few of them.

    All manifests are rewritten if pairs of addition and deletion are spread over small and large ones, so
    that the order of a file's changes is kept, and with `scrub` if one shows values of encrypted columns. No
    manifest that is written shows any.
    """
    if everything or (scrub and plain.in_manifests(files, metas)):
        return _written(files, metas, _merge(files, metas), plain)
    target = options.get_option(MANIFEST_TARGET_SIZE)
    small = [meta for meta in metas if meta.file_size < target]
    if len(small) < options.get_option(MANIFEST_MERGE_MIN_COUNT):
        return None
    chosen = small
    if any(meta.num_deleted_files for meta in metas if meta.file_size >= target):
        chosen = list(metas)
    merged = _merge(files, chosen)
    if len(chosen) < len(metas) and any(entry.kind is FileKind.DELETE for entry in merged):
        chosen = list(metas)
        merged = _merge(files, chosen)
    return _written(files, chosen, merged, plain)


def worth_merging(metas: Sequence[ManifestFileMeta]) -> bool:
    """Say whether fewer manifests, or fewer entries, could tell the same files."""
    added = sum(meta.num_added_files for meta in metas)
    return any(meta.num_deleted_files for meta in metas) or len(metas) > max(-(-added // _MOST_ENTRIES), 1)


def _written(
    files: ManifestFiles,
    replaced: Sequence[ManifestFileMeta],
    merged: Sequence[ManifestEntry],
    plain: ExposedStatistics,
) -> MergedManifests:
    entries = plain.all_without(merged)
    starts = range(0, len(entries), _MOST_ENTRIES)
    parts = [tuple(entries[start : start + _MOST_ENTRIES]) for start in starts]
    written = tuple(files.write_manifest(part) for part in parts)
    listed = {meta.file_name: part for meta, part in zip(written, parts, strict=True)}
    return MergedManifests(frozenset(meta.file_name for meta in replaced), written, listed)


def _merge(files: ManifestFiles, metas: Sequence[ManifestFileMeta]) -> list[ManifestEntry]:
    return merge_entries(entry for meta in metas for entry in files.read_manifest(meta))
