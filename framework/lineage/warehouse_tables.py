"""The tables `sys.lineage_edges`, `sys.lineage_processes` and `sys.lineage_runs` of a warehouse.

They omit every row about a dataset that the user may not read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from lockgate.framework.lineage.model.edge_kinds import kind_names
from lockgate.framework.lineage.model.lineage_records import WHOLE
from lockgate.framework.lineage.pending_statements import wait_for_this_process
from lockgate.framework.lineage.questions.vertices import Vertex, processes, vertices
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.store.edges import all_edges
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.store import batches_of
from lockgate.framework.types import DataField, arrow_schema, parse_type

if TYPE_CHECKING:
    import pyarrow as pa

    from lockgate.framework.plugins import WarehouseTable
    from lockgate.framework.store import Catalog

Rows = Iterator[tuple[Any, ...]]
_AT_A_TIME = 2_000


@dataclass(frozen=True)
class _Table:
    """A lineage table: its columns, and the function that yields its rows from an open index."""

    columns: Sequence[DataField]
    rows: Callable[[sqlite3.Connection, Readable], Rows]

    def batches(self, catalog: Catalog) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all ended statements."""
        wait_for_this_process()
        with lineage_of(catalog).reading() as database:
            yield from batches_of(arrow_schema(self.columns), self.rows(database, Readable(catalog)))


def _edges(database: sqlite3.Connection, may_read: Readable) -> Rows:
    for some in chain(_column_edges(database), _pieces(database, _ROW_EDGES)):
        ends = vertices(database, {number for row in some for number in row[:2]})
        processes_by_number = processes(database, {row[2] for row in some})
        for target, source, process, kinds in some:
            if may_read(ends[source]) and may_read(ends[target]):
                yield _edge(ends[source], ends[target], processes_by_number[process], kinds)


def _column_edges(database: sqlite3.Connection) -> Iterator[list[Any]]:
    rows = all_edges(database)
    for at in range(0, len(rows), _AT_A_TIME):
        yield rows[at : at + _AT_A_TIME].tolist()


def _edge(source: Vertex, target: Vertex, process: Mapping[str, Any], kinds: int) -> tuple[Any, ...]:
    return (
        *(source.table, source.column or WHOLE, target.table, target.column or WHOLE),
        *(",".join(kind_names(kinds)), process["guid"], process["kind"], process["count"]),
        _time(process["last"]),
    )


def _processes(database: sqlite3.Connection, may_read: Readable) -> Rows:
    for some in _pieces(database, "SELECT id FROM process ORDER BY id"):
        processes_by_number = processes(database, {number for (number,) in some})
        inputs = _inputs(database, processes_by_number)
        targets = {-each["target"] for each in processes_by_number.values() if each["target"] is not None}
        vertices_by_number = vertices(
            database, targets | {-number for numbers in inputs.values() for number in numbers}
        )
        for number, process in sorted(processes_by_number.items()):
            target = None if process["target"] is None else vertices_by_number[-process["target"]]
            sources = [vertices_by_number[-each] for each in inputs.get(number, ())]
            if may_read(target) and all(map(may_read, sources)):
                yield _process(process, target, sources)


def _inputs(database: sqlite3.Connection, found: Mapping[int, Any]) -> dict[int, list[int]]:
    numbers = ",".join(map(str, found))
    rows = database.execute(
        f"SELECT process, dataset FROM input WHERE process IN ({numbers}) ORDER BY process, number"  # noqa: S608 - numbers only
    )
    inputs: dict[int, list[int]] = {}
    for process, dataset in rows:
        if dataset not in inputs.setdefault(process, []):
            inputs[process].append(dataset)
    return inputs


def _process(process: Mapping[str, Any], target: Vertex | None, sources: Sequence[Vertex]) -> tuple[Any, ...]:
    run = process["run"] or {}
    return (
        *(process["guid"], process["kind"], process["name"] or None),
        *(None if target is None else target.table, json.dumps([each.table for each in sources])),
        *(run.get("how") or None, process["createBy"] or None),
        *(process["count"], process["failed"], _time(process["first"]), _time(process["last"])),
        *(process["first_written"], process["written"], process["rows"], process["bytes"]),
        *(bool(process["opaque"]), bool(process["cut"])),
    )


def _runs(database: sqlite3.Connection, may_read: Readable) -> Rows:
    readable = {row[0] for row in _processes(database, may_read)} if may_read.is_governed else None
    for some in _pieces(database, "SELECT process, run FROM run ORDER BY ended, rowid"):
        processes_by_number = processes(database, {process for process, _ in some})
        for process, text in some:
            if readable is None or processes_by_number[process]["guid"] in readable:
                yield _run(processes_by_number[process], json.loads(text))


def _run(process: Mapping[str, Any], run: Mapping[str, Any]) -> tuple[Any, ...]:
    where, who, which, why = (run.get(key, {}) for key in ("where", "who", "which", "why"))
    return (
        *(process["guid"], process["kind"], _time(run["started"]), _time(run["ended"])),
        *(run.get("count", 1), run.get("failed", 0), run.get("dry", False), run.get("error")),
        *(run.get("how") or None, who.get("user") or None, where.get("application"), where.get("host")),
        *(which.get("spark"), which.get("lockgate"), why.get("job"), why.get("reason"), why.get("stream")),
        *(json.dumps(run.get("reads", {})), run.get("written"), run.get("rows"), run.get("bytes")),
        *(run.get("rows_read"), run.get("bytes_read")),
    )


def _pieces(database: sqlite3.Connection, sql: str) -> Iterator[list[tuple[Any, ...]]]:
    with closing(database.execute(sql)) as cursor:
        while some := cursor.fetchmany(_AT_A_TIME):
            yield some


def _time(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)


def _columns(text: str) -> tuple[DataField, ...]:
    pairs = (column.split(maxsplit=1) for column in text.split(","))
    return tuple(DataField(number, name, parse_type(kind)) for number, (name, kind) in enumerate(pairs))


_ROW_EDGES = (
    "SELECT -p.target, r.source, r.process, r.kinds FROM row_edge r JOIN process p ON p.id = r.process "
    "WHERE p.target IS NOT NULL ORDER BY p.target, r.source, r.process"
)
_TIMESTAMP = "TIMESTAMP(3) WITH LOCAL TIME ZONE"

TABLES: Mapping[str, WarehouseTable] = {
    "lineage_edges": _Table(
        _columns(
            f"""source STRING NOT NULL, source_column STRING NOT NULL, target STRING NOT NULL,
            target_column STRING NOT NULL, kinds STRING NOT NULL, process_guid STRING NOT NULL,
            process STRING NOT NULL, runs BIGINT NOT NULL, last_run {_TIMESTAMP}"""
        ),
        _edges,
    ),
    "lineage_processes": _Table(
        _columns(
            f"""guid STRING NOT NULL, kind STRING NOT NULL, name STRING, target STRING,
            inputs STRING NOT NULL, how STRING, created_by STRING, runs BIGINT NOT NULL,
            failed BIGINT NOT NULL, first_run {_TIMESTAMP}, last_run {_TIMESTAMP}, first_written BIGINT,
            last_written BIGINT, rows_written BIGINT, bytes_written BIGINT, opaque BOOLEAN NOT NULL,
            cut BOOLEAN NOT NULL"""
        ),
        _processes,
    ),
    "lineage_runs": _Table(
        _columns(
            f"""process_guid STRING NOT NULL, process STRING NOT NULL, started {_TIMESTAMP} NOT NULL,
            ended {_TIMESTAMP} NOT NULL, count BIGINT NOT NULL, failed BIGINT NOT NULL,
            dry_run BOOLEAN NOT NULL, error STRING, how STRING, who STRING, application STRING,
            host STRING, spark STRING, lockgate STRING, job STRING, reason STRING, stream STRING,
            snapshots_read STRING NOT NULL, snapshot_written BIGINT, rows_written BIGINT,
            bytes_written BIGINT, rows_read BIGINT, bytes_read BIGINT"""
        ),
        _runs,
    ),
}
"""The tables by their names."""
