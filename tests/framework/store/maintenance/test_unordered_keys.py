"""Compaction of key tables whose files other writers described wrongly."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import compaction
from lockgate.framework.store.maintenance.compaction import BucketJob
from lockgate.framework.store.merge.merge import keys_ascend, sort_by_key
from lockgate.framework.store.pruning.split import Section


def _key_table(catalog: Catalog) -> Table:
    columns = pa.schema([("t", pa.timestamp("ms")), ("v", pa.string())])
    schema = Schema.from_arrow(columns, primary_keys=["t"], options={"bucket": "1", "write-only": "true"})
    return catalog.create_table("db.keys", schema)


def _time(millis: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=millis)


def _append(table: Table, rows: dict[int, str]) -> None:
    columns = {"t": pa.array([_time(key) for key in rows], pa.timestamp("ms")), "v": list(rows.values())}
    table.append(pa.table(columns))


def _apart(table: Table) -> BucketJob:
    """Return the job of all files, each in a section of its own, as wrong bounds would have it."""
    entries = table.manifests.live_files(table.latest_snapshot())
    sections = sorted(entries, key=lambda entry: entry.file.max_sequence_number)
    return BucketJob(tuple(Section((entry,), merge=False) for entry in sections), 5)


def test_a_key_in_two_files_that_seem_apart_is_merged(
    catalog: Catalog, caplog: pytest.LogCaptureFixture
) -> None:
    """Bounds of a key before 1970 differed from the key, and one file had two rows of it."""
    table = _key_table(catalog)
    _append(table, {-1500: "old", -2500: "other"})
    _append(table, {-1500: "new"})
    table.commit([compaction.rewrite(table, _apart(table))])
    (entry,) = table.manifests.live_files(table.latest_snapshot())
    assert (entry.file.row_count, entry.file.level) == (2, 5)
    assert (entry.file.min_key, entry.file.max_key) == ((_time(-2500),), (_time(-1500),))
    rows = table.read().sort_by("t").to_pylist()
    assert [(row["t"], row["v"]) for row in rows] == [(_time(-2500), "other"), (_time(-1500), "new")]
    assert "db.keys has data files whose key ranges are not those of their rows" in caplog.text


def test_files_in_another_order_than_their_keys_are_merged(catalog: Catalog) -> None:
    table = _key_table(catalog)
    _append(table, {2: "b"})
    _append(table, {1: "a"})
    table.commit([compaction.rewrite(table, _apart(table))])
    assert table.read()["v"].to_pylist() == ["a", "b"]


def test_files_apart_are_not_merged(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    table = _key_table(catalog)
    _append(table, {1: "a"})
    _append(table, {2: "b"})
    table.commit([compaction.rewrite(table, _apart(table))])
    assert table.read()["v"].to_pylist() == ["a", "b"]
    assert caplog.text == ""


KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [-(2**63), -1, 0, 2**63 - 1]),
    (pa.string(), ["", "a", "ab", "\uffff", "\U0001f600"]),
    (pa.binary(), [b"", b"\0", b"\xff"]),
    (pa.bool_(), [False, True]),
    (pa.float64(), [float("-inf"), -1.5, 0.0, 2.0, float("inf"), float("nan")]),
    (pa.timestamp("us"), [_time(-1), _time(0), _time(1)]),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1)]),
    (pa.decimal128(5, 2), [-1, 0, 1]),
    (pa.time32("ms"), [0, 5]),
]


@pytest.mark.parametrize(("kind", "values"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_keys_ascend_as_they_are_sorted(kind: pa.DataType, values: list[Any]) -> None:
    names = ["a", "b"]
    pairs = [(one, other) for one in values for other in values]
    for seed in range(20):
        shuffled = random.Random(seed).sample(pairs, len(pairs))
        rows = pa.table(
            {name: pa.array([each[at] for each in shuffled], kind) for at, name in enumerate(names)}
        )
        assert keys_ascend(sort_by_key(rows, names), names)
        assert keys_ascend(rows, names) == (rows.to_pydict() == sort_by_key(rows, names).to_pydict())
        assert not keys_ascend(sort_by_key(pa.concat_tables([rows, rows.slice(0, 1)]), names), names)


def test_zeros_of_two_signs_are_two_keys_to_other_writers() -> None:
    assert keys_ascend(pa.table({"a": [-1.0, -0.0, 0.0]}), ["a"])
    assert not keys_ascend(pa.table({"a": [-1.0, 0.0, 0.0]}), ["a"])
    assert keys_ascend(pa.table({"a": pa.array([], pa.float64())}), ["a"])
