"""Maintenance: files rewritten, snapshots expired, partitions dropped, orphans removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.maintenance.bucket_rescale import RescaleResult, rescale
    from lockgate.framework.store.maintenance.changelog_expiry import expire_changelogs
    from lockgate.framework.store.maintenance.compaction import BucketJob
    from lockgate.framework.store.maintenance.order_ranges import Sample
    from lockgate.framework.store.maintenance.ordered_compaction import RowOrder, fits_in_memory
    from lockgate.framework.store.maintenance.orphans import OrphanResult, remove_orphan_files
    from lockgate.framework.store.maintenance.partition_files import DROPPED, Partition, PartitionFiles
    from lockgate.framework.store.maintenance.snapshot_expiry import ExpireResult
    from lockgate.framework.store.maintenance.table_compaction import CompactRequest, compact
    from lockgate.framework.store.metadata.data_folders import data_files_in

_HOMES = {
    "BucketJob": ".compaction",
    "CompactRequest": ".table_compaction",
    "DROPPED": ".partition_files",
    "ExpireResult": ".snapshot_expiry",
    "OrphanResult": ".orphans",
    "Partition": ".partition_files",
    "PartitionFiles": ".partition_files",
    "RescaleResult": ".bucket_rescale",
    "RowOrder": ".ordered_compaction",
    "Sample": ".order_ranges",
    "compact": ".table_compaction",
    "data_files_in": "lockgate.framework.store.metadata.data_folders",
    "expire_changelogs": ".changelog_expiry",
    "fits_in_memory": ".ordered_compaction",
    "remove_orphan_files": ".orphans",
    "rescale": ".bucket_rescale",
}

__all__ = [
    "DROPPED",
    "BucketJob",
    "CompactRequest",
    "ExpireResult",
    "OrphanResult",
    "Partition",
    "PartitionFiles",
    "RescaleResult",
    "RowOrder",
    "Sample",
    "compact",
    "data_files_in",
    "expire_changelogs",
    "fits_in_memory",
    "remove_orphan_files",
    "rescale",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
