"""The procedures that come with Lockgate, one module each or close family."""

from __future__ import annotations

from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.procedures.builtin.history.branches import CreateBranch, DeleteBranch, FastForward, RenameBranch
from lockgate.procedures.builtin.history.expire_plaintext import ExpirePlaintext
from lockgate.procedures.builtin.history.expire_snapshots import ExpireSnapshots
from lockgate.procedures.builtin.history.remove_orphan_files import RemoveOrphanFiles
from lockgate.procedures.builtin.history.rollback import Rollback, RollbackToTimestamp
from lockgate.procedures.builtin.history.tags import CreateTag, DeleteTag, RenameTag, ReplaceTag
from lockgate.procedures.builtin.migrate.migrate_table import MigrateTable
from lockgate.procedures.procedure import Procedure


def builtin_procedures() -> list[Procedure]:
    """Return one instance of each."""
    return [
        Compact(),
        CreateBranch(),
        CreateTag(),
        DeleteBranch(),
        DeleteTag(),
        ExpirePlaintext(),
        ExpireSnapshots(),
        FastForward(),
        MigrateTable(),
        RemoveOrphanFiles(),
        RenameBranch(),
        RenameTag(),
        ReplaceTag(),
        Rollback(),
        RollbackToTimestamp(),
    ]
