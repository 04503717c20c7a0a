"""One instance of each procedure that comes with Lockgate."""

from __future__ import annotations

from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.procedures.builtin.compact.compact_database import CompactDatabase
from lockgate.procedures.builtin.compact.compact_manifest import CompactManifest
from lockgate.procedures.builtin.compact.rescale import Rescale
from lockgate.procedures.builtin.history.automatic_tags import TriggerTagAutomaticCreation
from lockgate.procedures.builtin.history.branch_procedures import (
    CreateBranch,
    DeleteBranch,
    FastForward,
    RenameBranch,
)
from lockgate.procedures.builtin.history.consumer_procedures import ClearConsumers, ResetConsumer
from lockgate.procedures.builtin.history.expire_changelogs import ExpireChangelogs
from lockgate.procedures.builtin.history.expire_plaintext import ExpirePlaintext
from lockgate.procedures.builtin.history.expire_snapshots import ExpireSnapshots
from lockgate.procedures.builtin.history.purge_files import PurgeFiles
from lockgate.procedures.builtin.history.remove_orphan_files import RemoveOrphanFiles
from lockgate.procedures.builtin.history.rollback_procedures import (
    Rollback,
    RollbackToAsLatest,
    RollbackToTimestamp,
    RollbackToWatermark,
)
from lockgate.procedures.builtin.history.tag_procedures import CreateTag, DeleteTag, RenameTag, ReplaceTag
from lockgate.procedures.builtin.history.timed_tags import (
    CreateTagFromTimestamp,
    CreateTagFromWatermark,
    ExpireTags,
)
from lockgate.procedures.builtin.migrate.clone import Clone
from lockgate.procedures.builtin.migrate.merge_schema import MergeSchema
from lockgate.procedures.builtin.migrate.migrate_database import MigrateDatabase
from lockgate.procedures.builtin.migrate.migrate_file import MigrateFile
from lockgate.procedures.builtin.migrate.migrate_table import MigrateTable
from lockgate.procedures.builtin.partitions.drop_partition import DropPartition, MarkPartitionDone
from lockgate.procedures.builtin.partitions.expire_partitions import ExpirePartitions
from lockgate.procedures.builtin.statements.merge_into import MergeInto
from lockgate.procedures.procedure import Procedure


def builtin_procedures() -> list[Procedure]:
    """Return one instance of each."""
    return [
        ClearConsumers(),
        Clone(),
        Compact(),
        CompactDatabase(),
        CompactManifest(),
        CreateBranch(),
        CreateTag(),
        CreateTagFromTimestamp(),
        CreateTagFromWatermark(),
        DeleteBranch(),
        DeleteTag(),
        DropPartition(),
        ExpireChangelogs(),
        ExpirePartitions(),
        ExpirePlaintext(),
        ExpireSnapshots(),
        ExpireTags(),
        FastForward(),
        MarkPartitionDone(),
        MergeInto(),
        MergeSchema(),
        MigrateDatabase(),
        MigrateFile(),
        MigrateTable(),
        PurgeFiles(),
        RemoveOrphanFiles(),
        RenameBranch(),
        RenameTag(),
        ReplaceTag(),
        Rescale(),
        ResetConsumer(),
        Rollback(),
        RollbackToAsLatest(),
        RollbackToTimestamp(),
        RollbackToWatermark(),
        TriggerTagAutomaticCreation(),
    ]
