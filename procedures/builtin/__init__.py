"""The procedures that come with Lockgate, one module each."""

from __future__ import annotations

from lockgate.procedures.builtin.compact import Compact
from lockgate.procedures.builtin.expire_snapshots import ExpireSnapshots
from lockgate.procedures.builtin.migrate_table import MigrateTable
from lockgate.procedures.procedure import Procedure


def builtin_procedures() -> list[Procedure]:
    """Return one instance of each."""
    return [Compact(), ExpireSnapshots(), MigrateTable()]
