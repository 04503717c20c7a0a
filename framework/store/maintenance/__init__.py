"""Maintenance: files rewritten, snapshots expired, partitions dropped, orphans removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.maintenance.bucket_rescale import RescaleResult, rescale
    from lockgate.framework.store.maintenance.changelog_expiry import expire_changelogs
    from lockgate.framework.store.maintenance.compaction import BucketJob
    from lockgate.framework.store.maintenance.foreign_file import ForeignFile
    from lockgate.framework.store.maintenance.merged_manifests import merge_manifests
    from lockgate.framework.store.maintenance.order_ranges import Sample
    from lockgate.framework.store.maintenance.ordered_compaction import RowOrder, fits_in_memory
    from lockgate.framework.store.maintenance.orphans import OrphanResult, remove_orphan_files
    from lockgate.framework.store.maintenance.partition_files import Partition, PartitionFiles
    from lockgate.framework.store.maintenance.snapshot_expiry import ExpireResult
    from lockgate.framework.store.maintenance.table_compaction import CompactRequest, compact
    from lockgate.framework.store.maintenance.table_contents import TableContents
    from lockgate.framework.store.manifests.manifest_merge import worth_merging


__all__ = [
    "BucketJob",
    "CompactRequest",
    "ExpireResult",
    "ForeignFile",
    "OrphanResult",
    "Partition",
    "PartitionFiles",
    "RescaleResult",
    "RowOrder",
    "Sample",
    "TableContents",
    "compact",
    "expire_changelogs",
    "fits_in_memory",
    "merge_manifests",
    "remove_orphan_files",
    "rescale",
    "worth_merging",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".bucket_rescale": "RescaleResult rescale",
        ".changelog_expiry": "expire_changelogs",
        ".compaction": "BucketJob",
        ".foreign_file": "ForeignFile",
        ".merged_manifests": "merge_manifests",
        ".order_ranges": "Sample",
        ".ordered_compaction": "RowOrder fits_in_memory",
        ".orphans": "OrphanResult remove_orphan_files",
        ".partition_files": "Partition PartitionFiles",
        ".snapshot_expiry": "ExpireResult",
        ".table_compaction": "CompactRequest compact",
        ".table_contents": "TableContents",
        "lockgate.framework.store.manifests.manifest_merge": "worth_merging",
    },
)
