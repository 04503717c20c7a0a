"""Streams against a model: however commits and batches come, the rows of a stream become the table's."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from exact_rows import Rows, exact_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_rows import batches, start

from lockgate import procedures
from lockgate.framework.options import MERGE_ENGINE
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.pushdown import col

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64())])
KEY: dict[str, Any] = {"primary_keys": ["id", "p"], "partition_keys": ["p"]}
TABLES: dict[str, dict[str, Any]] = {
    "append": {},
    "append_vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "append_buckets": {"partition_keys": ["p"], "options": {"bucket": "2", "bucket-key": "id"}},
    "key": {**KEY, "options": {"bucket": "2"}},
    "key_dynamic": {**KEY, "options": {"bucket": "-1"}},
    "key_parquet": {**KEY, "options": {"bucket": "1", "file.format": "parquet"}},
    "lookup": {**KEY, "options": {"bucket": "2", "changelog-producer": "lookup"}},
    "full": {**KEY, "options": {"bucket": "1", "changelog-producer": "full-compaction"}},
    "input": {**KEY, "options": {"bucket": "1", "changelog-producer": "input"}},
    "sums": {
        **KEY,
        "options": {
            "bucket": "1",
            "merge-engine": "aggregation",
            "fields.v.aggregate-function": "sum",
            "changelog-producer": "lookup",
        },
    },
}
IDS = st.integers(0, 5)
ROWS = st.lists(st.tuples(IDS, st.sampled_from("xy"), st.integers(0, 9)), min_size=1, max_size=5)
STEPS = st.one_of(
    *[st.tuples(st.just(name), ROWS) for name in ("write", "write", "write", "delete", "overwrite")],
    st.tuples(st.sampled_from(("compact", "read")), st.just([])),
)
STEPS_OF_A_RUN = st.lists(STEPS, min_size=1, max_size=8)
LIMITS = st.sampled_from(("maxFilesPerTrigger", "maxSnapshotsPerTrigger", "maxRowsPerTrigger"))


def data_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    distinct = {row[:2]: row for row in rows}
    return pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in distinct.values()], schema=SCHEMA
    )


def step(catalog: Catalog, name: str, rows: list[tuple[Any, ...]]) -> None:
    table = catalog.load_table("db.t")
    if name == "compact":
        procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    elif name == "write":
        table.append(data_of(rows))
    elif name == "overwrite":
        table.overwrite(data_of(rows))
    elif name == "delete" and table.schema.has_primary_key:
        if table.schema.table_options.get_option(MERGE_ENGINE) == "deduplicate":
            table.delete(data_of(rows).select(["id", "p"]))
    elif name == "delete" and table.schema.has_vectors:
        table.delete(col("id") == rows[0][0])


class Model:
    """What the rows of a stream make of nothing."""

    def __init__(self, table: Table) -> None:
        self._keys = 2 if table.schema.has_primary_key else 0
        self._rows: dict[tuple[Any, ...], Any] = {}
        self._bag: Counter[tuple[Any, ...]] = Counter()

    def take(self, rows: Rows) -> None:
        # Commits of one batch have no order, but what goes is there before or comes with it.
        for kind, *row in sorted(rows, key=lambda each: each[0] in ("+I", "+U")):
            key = tuple(row[: self._keys])
            if self._keys and kind in ("+I", "+U"):
                self._rows[key] = row
            elif self._keys:
                self._rows.pop(key, None)
            else:
                self._bag[tuple(row)] += 1 if kind == "+I" else -1

    def rows(self) -> list[Any]:
        found = list(self._rows.values()) if self._keys else [list(row) for row in self._bag.elements()]
        assert all(count >= 0 for count in self._bag.values())
        return sorted(found)


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=examples(5))
@given(steps=STEPS_OF_A_RUN, limit=LIMITS, most=st.integers(1, 4), late=st.booleans())
def test_the_rows_of_a_stream_become_the_tables(
    kind: str, steps: list[tuple[str, Any]], limit: str, most: int, late: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder))
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, **TABLES[kind]))
        options = {f"read_stream_{limit}": "1" if table.schema.has_primary_key else str(most)}
        options["read_stream_maxSnapshotsPerTrigger"] = "1" if table.schema.has_primary_key else "9"
        model, position = Model(table), None if late else start(table)
        for number, (name, rows) in enumerate([*steps, ("compact", [])]):
            step(catalog, name, rows)
            position = start(table) if position is None and number >= len(steps) // 2 else position
            if position is not None and name in ("read", "compact"):
                for end, found in batches(table, position, **options):
                    model.take(found)
                    position = end
        assert model.rows() == sorted(exact_rows(catalog.load_table("db.t").read()))
