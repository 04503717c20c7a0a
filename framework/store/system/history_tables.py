"""System tables of a table's metadata: snapshots, schemas, options, tags, branches, consumers.

Each function yields rows, with values in the order of the columns in `columns`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.store.confidential.confidential_columns import confidential_in_history
from lockgate.framework.store.history.branches import branch_names
from lockgate.framework.store.metadata.tag_files import load_tags
from lockgate.framework.store.schema.schema import load_json
from lockgate.framework.store.system.texts import sql_type
from lockgate.framework.types import field_to_json, wall_clock

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle
    from lockgate.framework.store.metadata.snapshot import Snapshot

Rows = Iterator[tuple[Any, ...]]


def snapshots(table: TableHandle) -> Rows:
    """Yield the snapshots that have not expired, oldest first."""
    for number in table.snapshot_files.ids():
        with suppress(SnapshotNotFoundError):  # it expires just now
            each = table.snapshot_files.load(number)
            yield (
                *(each.id, each.schema_id, each.commit_user, each.commit_identifier, each.commit_kind.value),
                *(wall_clock(each.time_millis), each.base_manifest_list, each.delta_manifest_list),
                *(each.changelog_manifest_list, each.total_record_count, each.delta_record_count),
                *(each.changelog_record_count, each.watermark, each.next_row_id),
            )


def schemas(table: TableHandle) -> Rows:
    """Yield the schemas of the table, oldest first; columns, keys and options as JSON."""
    for number in table.schema_files.ids():
        each = table.schema_files.load(number)
        yield (
            each.id,
            _json([field_to_json(field) for field in each.fields]),
            *(_json(list(each.partition_keys)), _json(list(each.primary_keys)), _json(dict(each.options))),
            *(each.comment, wall_clock(each.time_millis)),
        )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def options(table: TableHandle) -> Rows:
    """Yield the options of the table."""
    yield from table.schema.options.items()


def tags(table: TableHandle) -> Rows:
    """Yield the tags, sorted by name."""
    for tag in sorted(load_tags(table), key=lambda tag: tag.name):
        snapshot = tag.snapshot
        yield (
            *(tag.name, snapshot.id, snapshot.schema_id, wall_clock(snapshot.time_millis)),
            *(snapshot.total_record_count, tag.created, _java_duration(tag.retained)),
        )


def _java_duration(period: datetime.timedelta | None) -> str | None:
    """Return what `java.time.Duration` prints: `PT24H`, `PT1H30M`, `PT0.5S`."""
    if period is None:
        return None
    millis = period // datetime.timedelta(milliseconds=1)
    minutes, rest = divmod(millis, 60_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{seconds}S" if rest else ""]
    return "PT" + ("".join(parts) or "0S")


def branches(table: TableHandle) -> Rows:
    """Yield the branches with the time when their folders were last changed."""
    times = {info.name: info.modified_millis for info in table.file_system.list(f"{table.location}/branch")}
    for name in branch_names(table):
        yield name, wall_clock(times.get(f"branch-{name}", 0))


def consumers(table: TableHandle) -> Rows:
    """Yield the consumers, sorted by name."""
    yield from sorted(table.consumer_files.load_all().items())


def statistics(table: TableHandle, snapshot: Snapshot | None) -> Rows:
    """Yield what ANALYZE found, at most one row; statistics of encrypted columns are left out."""
    if snapshot is None or snapshot.statistics is None:
        return
    path = table.paths.statistics_file(snapshot.statistics)
    content = load_json(table.file_system.read_bytes(path), path)
    secret = confidential_in_history(table).top_level(table.schema)
    columns = content.get("colStats") or {}
    shown = {name: found for name, found in columns.items() if name not in secret}
    yield (
        *(content.get("snapshotId"), content.get("schemaId"), content.get("mergedRecordCount")),
        *(content.get("mergedRecordSize"), _json(shown)),
    )


def aggregation_fields(table: TableHandle) -> Rows:
    """Yield the columns with the options that say how their values are aggregated."""
    for field in table.schema.fields:
        prefix = f"fields.{field.name}."
        found = {key: value for key, value in table.schema.options.items() if key.startswith(prefix)}
        yield field.name, sql_type(field.type), _listed(found.values()), _listed(found), field.description


def _listed(values: Any) -> str:
    return f"[{', '.join(values)}]"
