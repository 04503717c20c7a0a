"""Merging of manifests, so that a table of many small commits stays quick to plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockgate.framework.options import MANIFEST_MERGE_MIN_COUNT, MANIFEST_TARGET_SIZE, TableOptions
from lockgate.framework.store.manifest import FileKind, ManifestEntry, ManifestFileMeta, merge_entries
from lockgate.framework.store.manifest_files import ManifestFiles

# Small enough that a scan of one partition of many skips most of a large table's entries.
_MOST_ENTRIES = 10_000


@dataclass(frozen=True)
class MergedManifests:
    """Manifests that take the place of others; `replaced` holds the names of those."""

    replaced: frozenset[str]
    manifests: tuple[ManifestFileMeta, ...]

    def apply(self, metas: Sequence[ManifestFileMeta]) -> list[ManifestFileMeta] | None:
        """Return `metas` with the replacement made; None if it does not fit them."""
        if not self.replaced <= {meta.file_name for meta in metas}:
            return None
        return [*self.manifests, *(meta for meta in metas if meta.file_name not in self.replaced)]


def merge_manifests(
    files: ManifestFiles, metas: Sequence[ManifestFileMeta], options: TableOptions
) -> MergedManifests | None:
    """Merge the small manifests among `metas`; None while there are few of them.

    All manifests are rewritten if pairs of addition and deletion are spread over small and large ones, so
    that the order of a file's changes is kept.
    """
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
    written = []
    for start in range(0, len(merged), _MOST_ENTRIES):
        written.append(files.write_manifest(merged[start : start + _MOST_ENTRIES]))
    return MergedManifests(frozenset(meta.file_name for meta in chosen), tuple(written))


def _merge(files: ManifestFiles, metas: Sequence[ManifestFileMeta]) -> list[ManifestEntry]:
    return merge_entries(entry for meta in metas for entry in files.read_manifest(meta))
