"""Streams of tables without Spark: batch by batch, with the rows that the connector would read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from exact_rows import Rows, exact_rows

from lockgate.framework.store import Table
from lockgate.framework.store.merge.merge import VALUE_KIND, merge_plan, merge_tables
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.streams.position import StreamPlace
from lockgate.framework.store.streams.stream import Batch, TableStream

KINDS = ("+I", "-U", "+U", "-D")


def rows_of(table: Table, batch: Batch, *, kinds: bool) -> Rows:
    """Return the rows of a batch; with `kinds` each begins with its own."""
    reader, plan = FileReader(table, table.schema), merge_plan(table.schema)
    names, found = table.schema.field_names, []
    for split, kind in zip(batch.splits, batch.kinds, strict=True):
        stored = (*names, VALUE_KIND) if plan is not None else names
        if split.merge and plan is not None:
            wanted = (*plan.system_columns, *plan.companions(names), *stored)
            files = [
                reader.whole(path, file, tuple(dict.fromkeys(wanted)), split.partition, vector)
                for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True)
            ]
            read = merge_tables(plan, files, keep_deletes=kinds and not batch.of_states)
        else:
            read = pa.concat_tables(
                part
                for path, file, vector in zip(split.paths, split.files, split.vectors, strict=True)
                for part in reader.parts(path, file, stored, split.partition, vector)
            )
        given = pa.array([kind or 0] * read.num_rows, pa.int8())
        numbers = given if kind is not None or plan is None else read[VALUE_KIND]
        if not kinds:
            read = read.filter(pc.is_in(numbers, pa.array([0, 2], pa.int8())))
        rows = exact_rows(read.select(list(names)))
        found += (
            [[KINDS[number], *row] for number, row in zip(numbers.to_pylist(), rows, strict=True)]
            if (kinds)
            else rows
        )
    return found


def batches(
    table: Table,
    start: StreamPlace,
    load: Callable[[], Table] | None = None,
    *,
    kinds: bool = True,
    **options: str,
) -> Iterator[tuple[StreamPlace, Rows]]:
    """Yield where each batch ends, and its rows, up to the newest snapshot; each call starts again."""
    given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    while True:
        now = table if load is None else load()
        stream = TableStream(now, given, kinds=kinds)
        end = stream.end_of_batch(StreamPlace.from_json(start.to_json()))
        if end == start:
            return
        yield end, rows_of(now, stream.batch(start, end), kinds=kinds)
        start = end


def start(table: Table, *, kinds: bool = True, **options: str) -> StreamPlace:
    """Return where a new stream starts."""
    given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    return TableStream(table, given, kinds=kinds).start()
