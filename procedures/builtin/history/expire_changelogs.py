"""`expire_changelogs`: removal of changes that were kept longer than their snapshots."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

from lockgate.errors import InputError
from lockgate.framework.store.maintenance import expire_changelogs
from lockgate.framework.types import micros_of
from lockgate.procedures.arguments import parse_options, with_options
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import DryRun, Int, TableName, TypedProcedure

# Options that may differ for one call: what is retained.
_OPTIONS = (
    "changelog.num-retained.min",
    "changelog.num-retained.max",
    "changelog.time-retained",
    "snapshot.expire.limit",
    "consumer.expiration-time",
)
_LIMITS = ("retain_max", "retain_min", "older_than", "max_deletes")


@dataclass(frozen=True)
class _Arguments:
    table: TableName
    retain_max: Annotated[
        Int | None,
        "number of commits above which even young changes are removed (default: option "
        "`changelog.num-retained.max`)",
    ] = None
    retain_min: Annotated[
        Int | None,
        "number of commits whose changes stay whatever their age (default: option "
        "`changelog.num-retained.min`)",
    ] = None
    older_than: Annotated[
        datetime.datetime | None,
        "between the two limits, remove changes committed before this time (default: now minus option "
        "`changelog.time-retained`)",
    ] = None
    max_deletes: Annotated[
        Int | None, "most changelogs removed by this call (default: option `snapshot.expire.limit`)"
    ] = None
    delete_all: Annotated[bool, "remove all, also those that consumers need"] = False
    options: Annotated[
        str | None, "`key=value,...` for this call: the options above and `consumer.expiration-time`"
    ] = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class _Row:
    deleted_changelogs_count: Annotated[int, "changelogs"]
    deleted_data_files_count: Annotated[int, "data files, with their indexes"]
    deleted_manifests_count: Annotated[int, "manifests and manifest lists"]
    deleted_bytes: Annotated[int, "their size on disk"]
    earliest_changelog_id: Annotated[int | None, "the oldest changelog that remains; NULL if none does"]


class ExpireChangelogs(TypedProcedure[_Arguments, _Row]):
    """Remove old changes of a table that were kept longer than their snapshots.

    Data is only deleted, never read, so no key is needed. If killed halfway, it can be called again.
    """

    name = "expire_changelogs"

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Expire; missing arguments come from the table's options `changelog.*`, or else `snapshot.*`."""
        table = with_options(context.table(arguments.table), parse_options(arguments.options), _OPTIONS)
        given = [name for name in _LIMITS if getattr(arguments, name) is not None]
        if arguments.delete_all and given:
            raise InputError(f"delete_all and {given[0]} contradict each other: give one of them")
        older_than = arguments.older_than
        done = expire_changelogs(
            table,
            retain_max=arguments.retain_max,
            retain_min=arguments.retain_min,
            older_than_millis=None if older_than is None else micros_of(older_than) // 1000,
            max_deletes=arguments.max_deletes,
            delete_all=arguments.delete_all,
            dry_run=arguments.dry_run,
        )
        return [_Row(done.changelogs, done.data_files, done.manifests, done.bytes, done.earliest)]
