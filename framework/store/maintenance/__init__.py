"""Maintenance: files rewritten, snapshots expired, partitions dropped, orphans removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.store.maintenance.changelog_expiry import expire_changelogs
    from lockgate.framework.store.maintenance.compaction import BucketJob, job_rows, rewrite
    from lockgate.framework.store.maintenance.file_choice import pick_append, pick_keyed, pick_ordered
    from lockgate.framework.store.maintenance.order_ranges import Sample
    from lockgate.framework.store.maintenance.ordered_compaction import (
        RowOrder,
        best_share,
        fits_in_memory,
        ordered_rows,
        pruned_share,
    )
    from lockgate.framework.store.maintenance.orphans import OrphanResult, remove_orphan_files
    from lockgate.framework.store.maintenance.partition_files import DROPPED, Partition, PartitionFiles
    from lockgate.framework.store.maintenance.snapshot_expiry import ExpireResult
    from lockgate.framework.store.metadata.data_folders import data_files_in

_HOMES = {
    "BucketJob": ".compaction",
    "DROPPED": ".partition_files",
    "ExpireResult": ".snapshot_expiry",
    "OrphanResult": ".orphans",
    "Partition": ".partition_files",
    "PartitionFiles": ".partition_files",
    "RowOrder": ".ordered_compaction",
    "Sample": ".order_ranges",
    "best_share": ".ordered_compaction",
    "data_files_in": "lockgate.framework.store.metadata.data_folders",
    "expire_changelogs": ".changelog_expiry",
    "fits_in_memory": ".ordered_compaction",
    "job_rows": ".compaction",
    "ordered_rows": ".ordered_compaction",
    "pick_append": ".file_choice",
    "pick_keyed": ".file_choice",
    "pick_ordered": ".file_choice",
    "pruned_share": ".ordered_compaction",
    "remove_orphan_files": ".orphans",
    "rewrite": ".compaction",
}

__all__ = [
    "DROPPED",
    "BucketJob",
    "ExpireResult",
    "OrphanResult",
    "Partition",
    "PartitionFiles",
    "RowOrder",
    "Sample",
    "best_share",
    "data_files_in",
    "expire_changelogs",
    "fits_in_memory",
    "job_rows",
    "ordered_rows",
    "pick_append",
    "pick_keyed",
    "pick_ordered",
    "pruned_share",
    "remove_orphan_files",
    "rewrite",
]

__getattr__ = lazy_attributes(__name__, _HOMES)
