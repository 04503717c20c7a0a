"""`expire_snapshots`: removal of old snapshots, with the files that only they need."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from lockgate.framework.store import expire_snapshots
from lockgate.framework.types import micros_of
from lockgate.procedures.arguments import parse_options, with_options
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TableName, TypedProcedure

# Options that may differ for one call: what is retained.
_OPTIONS = (
    "snapshot.num-retained.min",
    "snapshot.num-retained.max",
    "snapshot.time-retained",
    "snapshot.expire.limit",
    "consumer.expiration-time",
)


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    retain_max: Annotated[
        Int | None,
        "number of snapshots above which even young ones are removed (default: option "
        "`snapshot.num-retained.max`)",
    ] = None
    retain_min: Annotated[
        Int | None,
        "number of snapshots that stay whatever their age (default: option `snapshot.num-retained.min`)",
    ] = None
    older_than: Annotated[
        datetime.datetime | None,
        "between the two limits, remove snapshots that had been replaced by this time (default: now minus "
        "option `snapshot.time-retained`)",
    ] = None
    max_deletes: Annotated[
        Int | None, "most snapshots removed by this call (default: option `snapshot.expire.limit`)"
    ] = None
    options: Annotated[
        str | None, "`key=value,...` for this call: the options above and `consumer.expiration-time`"
    ] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _Row:
    deleted_snapshots_count: Annotated[int, "snapshots"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests and manifest lists"]
    deleted_bytes: Annotated[int, "their size on disk"]
    earliest_snapshot_id: Annotated[int | None, "the oldest snapshot that remains; NULL if none does"]


class ExpireSnapshots(TypedProcedure[_Arguments, _Row]):
    """Remove old snapshots of a table and the files that only they need.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "expire_snapshots"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Expire; missing arguments come from the table's options `snapshot.*`."""
        table = with_options(context.table(arguments.table), parse_options(arguments.options), _OPTIONS)
        older_than = arguments.older_than
        done = expire_snapshots(
            table,
            retain_max=arguments.retain_max,
            retain_min=arguments.retain_min,
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=arguments.max_deletes,
            dry_run=arguments.dry_run,
        )
        return [_Row(done.snapshots, done.data_files, done.manifests, done.bytes, done.earliest_snapshot)]
