"""A table with row tracking as an UPDATE by Paimon leaves it: a file holds ids of rows from another file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lockgate.framework.store import Catalog, CommitMessage, Schema, Table
from lockgate.framework.store.manifests.manifest import DataFileMeta
from lockgate.orc import write_table

# Columns k and v, the row's id, and the number of the snapshot that wrote it last.
ROWS = [(1, "a", 0, 1), (2, "b2", 1, 2), (3, "c", 2, 1), (4, "d", 3, 2)]
_SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.string())])


def tracked_table(catalog: Catalog, form: str, name: str = "db.tracked") -> Table:
    """Make a table of two files in a format (`orc` or `parquet`): one as written, one that holds ids.

    The second one's first row was moved and its second row is new, so that its own ids are null.
    """
    table = catalog.create_table(name, Schema.from_arrow(_SCHEMA))
    first = pa.table({"k": [1, 3], "v": ["a", "c"]}, _SCHEMA)
    numbers = [("_ROW_ID", pa.int64()), ("_SEQUENCE_NUMBER", pa.int64())]
    moved = pa.table(
        {"k": [2, 4], "v": ["b2", "d"], "_ROW_ID": [1, None], "_SEQUENCE_NUMBER": [None, None]},
        pa.schema([*_SCHEMA, *numbers]),
    )
    # Ids follow from the first one's, so that a file of moved rows has its own for the rows that are new.
    _commit(table, first, form, DataFileMeta("", 0, 2, first_row_id=0), ids=[0, 2])
    _commit(table, moved, form, DataFileMeta("", 0, 2, first_row_id=2), ids=None)
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"]["row-tracking.enabled"] = "true"
    path.write_text(json.dumps(schema))
    return catalog.load_table(name)


def _commit(table: Table, rows: pa.Table, form: str, file: DataFileMeta, ids: list[int] | None) -> None:
    number = len(table.snapshots()) + 1
    if ids is not None:
        rows = rows.append_column("_ROW_ID", pa.array(ids, pa.int64()))
    folder = Path(table.location) / "bucket-0"
    folder.mkdir(exist_ok=True)
    path = folder / f"data-{number}-0.{form}"
    if form == "orc":
        write_table(rows, path)
    else:
        pq.write_table(rows, path)  # type: ignore[no-untyped-call]  # pyarrow has no types
    meta = replace(
        file,
        file_name=path.name,
        file_size=path.stat().st_size,
        min_sequence_number=number,
        max_sequence_number=number,
        value_stats_cols=(),
    )
    table.commit([CommitMessage((), 0, -1, (meta,))])
