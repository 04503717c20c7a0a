"""Partitions that `compact` and `rewrite_file_index` take alone: those without new files, and those named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance import idle_partitions
from lockgate.procedures import ProcedureResult

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("day", pa.string()), ("id", pa.int64())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, partition_keys=["day"]))
    for number in range(6):
        made.append(pa.table({"day": ["one" if number < 3 else "two"], "id": [number]}, SCHEMA))
    return made


def files(table: Table) -> dict[Any, int]:
    live = table.manifests.live_files(table.latest_snapshot())
    days = [entry.partition[0] for entry in live]
    return {day: days.count(day) for day in set(days)}


def test_only_idle_partitions_are_compacted(table: Table, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    live = table.manifests.live_files(table.latest_snapshot())
    newest = max(entry.file.creation_time_millis or 0 for entry in live if entry.partition == ("one",))
    later = min(entry.file.creation_time_millis or 0 for entry in live if entry.partition == ("two",))
    monkeypatch.setattr(idle_partitions, "wall_clock_millis", lambda: newest + 60_000)
    assert newest < later
    assert run("compact", "db.t", partition_idle_time="61 s")["files_rewritten"] == 0
    assert run("compact", "db.t", partition_idle_time="60 s")["files_rewritten"] == 3
    assert files(table) == {"one": 1, "two": 3}
    with pytest.raises(InputError, match="partition_idle_time cannot be 'soon'"):
        run("compact", "db.t", partition_idle_time="soon")
    with pytest.raises(InputError, match="cannot be used with order_strategy"):
        run("compact", "db.t", partition_idle_time="1 s", order_strategy="order", order_by="id")


def test_only_chosen_partitions_get_indexes(catalog: Catalog, table: Table, run: Run) -> None:
    catalog.alter_table("db.t", [SetOption("file-index.bloom-filter.columns", "id")])
    assert run("rewrite_file_index", "db.t", where="day = 'two'")["rewritten_files_count"] == 3
    assert run("rewrite_file_index", "db.t", dry_run=True)["rewritten_files_count"] == 3
    with pytest.raises(InputError, match="'id' is not a partition column"):
        run("rewrite_file_index", "db.t", where="id = 1")
