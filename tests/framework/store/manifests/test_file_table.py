"""Pruning by columns leaves out nothing that asking file by file would keep."""

from __future__ import annotations

import datetime
import gc
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings

from lockgate.framework.store.codec.simple_stats import SimpleStats
from lockgate.framework.store.manifests.column_bounds import may_match_files
from lockgate.framework.store.manifests.file_table import FileTable
from lockgate.framework.store.manifests.gc_pause import paused_collector
from lockgate.framework.store.manifests.manifest import (
    DataFileMeta,
    FileKind,
    ManifestEntry,
    VectorLocation,
    live_entries,
)
from lockgate.framework.store.pruning.pruners import EntryStatistics
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import (
    BIGINT,
    DATE,
    DOUBLE,
    STRING,
    TINYINT,
    DataField,
    decimal,
    is_bounded,
    timestamp,
    to_arrow,
)
from lockgate.pushdown import And, Comparison, Op, Or, Predicate, may_match, normalize

_TYPES = {
    "tiny": TINYINT,
    "big": BIGINT,
    "day": DATE,
    "price": decimal(9, 2),
    "at": timestamp(6),
    "fine": timestamp(9),
    "text": STRING,
    "double": DOUBLE,
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "tiny": st.integers(-128, 127),
    "big": st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1]),
    "day": st.dates(datetime.date(1969, 12, 28), datetime.date(1970, 1, 4)),
    "price": st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2)),
    "at": st.datetimes(datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 2)),
    "fine": st.datetimes(datetime.datetime(1969, 12, 31), datetime.datetime(1970, 1, 2)),
    "text": st.text("aábz\U0001f600", max_size=3),
    "double": st.floats(allow_nan=True),
}
_FIELDS = tuple(DataField(number, name, kind) for number, (name, kind) in enumerate(_TYPES.items()))
_SCHEMA = TableSchema(
    id=0,
    fields=_FIELDS,
    highest_field_id=len(_FIELDS) - 1,
    partition_keys=(),
    primary_keys=(),
    options={},
    comment=None,
    time_millis=0,
)


@st.composite
def _entry(draw: st.DrawFn) -> ManifestEntry:
    lows, highs, nulls = [], [], []
    for name in _TYPES:
        values = draw(st.lists(st.none() | _VALUES[name], max_size=3))
        present = [value for value in values if value is not None and value == value]
        lows.append(min(present, default=None))
        highs.append(max(present, default=None))
        nulls.append(
            draw(st.sampled_from([None, values.count(None)])) if len(values) == 3 else 3 - len(present)
        )
    stats = SimpleStats(tuple(lows), tuple(highs), tuple(nulls))
    if draw(st.booleans()):  # as read from a manifest
        types = _SCHEMA.types_of(_SCHEMA.field_names)
        stats = SimpleStats.encoded(*stats.to_binary(types), stats.null_counts, types)
    columns = draw(st.sampled_from([None, tuple(_TYPES), ()]))
    stats = stats if columns != () else SimpleStats((), (), ())
    return ManifestEntry(
        FileKind.ADD, (), 0, -1, DataFileMeta("data.orc", 10, 3, value_stats=stats, value_stats_cols=columns)
    )


@st.composite
def _comparison(draw: st.DrawFn) -> Comparison:
    name = draw(st.sampled_from(sorted(_TYPES)))
    kind = to_arrow(_TYPES[name])
    values = _VALUES[name]
    op = draw(st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN, Op.IS_NULL, Op.IS_NOT_NULL]))
    if op in (Op.IS_NULL, Op.IS_NOT_NULL):
        return Comparison(op, (name,), ())
    if name in ("tiny", "big"):
        # Literals of other types, between and beyond the column's values. Columns know that nothing is IN a
        # value between; a file by itself is not asked so closely.
        between = st.integers(-200, 200).map(float) if op is Op.IN else st.floats(-200, 200)
        values = values | st.sampled_from([2**70, -(2**70)]).map(Decimal) | between
        kind = None
    count = draw(st.integers(1, 3)) if op is Op.IN else 1
    literals = tuple(pa.scalar(draw(values), kind) for _ in range(count))
    return Comparison(op, (name,), literals)


def _predicates() -> st.SearchStrategy[Predicate]:
    return st.recursive(
        _comparison(),
        lambda inner: (
            st.lists(inner, min_size=2, max_size=3).map(lambda found: And(tuple(found)))
            | st.lists(inner, min_size=2, max_size=3).map(lambda found: Or(tuple(found)))
        ),
        max_leaves=5,
    )


def _mask(table: FileTable, predicate: Predicate) -> list[bool]:
    def bounds(name: str):
        field = _SCHEMA.field(name)
        return table.bounds(field, lambda _: _SCHEMA) if is_bounded(field.type) else None

    return may_match_files(normalize(predicate), bounds, len(table)).tolist()


@settings(max_examples=examples(200))
@given(st.lists(_entry(), min_size=1, max_size=6), _predicates())
def test_columns_exclude_no_file_that_its_statistics_allow(
    entries: list[ManifestEntry], predicate: Predicate
) -> None:
    table = FileTable.joined([FileTable(entries[:2]), FileTable(entries[2:])])
    exact = [
        may_match(predicate, EntryStatistics(entry.file, _SCHEMA, lambda _: _SCHEMA), 3) for entry in entries
    ]
    possible = _mask(table, predicate)
    assert all(may for may, match in zip(possible, exact, strict=True) if match)
    assert possible == _mask(FileTable(entries), predicate)


@pytest.mark.parametrize(
    ("name", "literal"),
    [("big", 50), ("text", "m"), ("day", datetime.date(1970, 1, 2)), ("price", Decimal("0.50"))],
)
def test_columns_find_the_one_file(name: str, literal: Any) -> None:
    entries = []
    for number in range(100):
        low = {
            "big": number,
            "text": "m" if number == 50 else "a",
            "day": datetime.date(1970, 1, 2) if number == 50 else datetime.date(1980, 1, 1),
            "price": Decimal(number).scaleb(-2),
        }[name]
        types = (_TYPES[name],)
        stats = SimpleStats((low,), (low,), (0,))
        stats = SimpleStats.encoded(*stats.to_binary(types), (0,), types)
        file = DataFileMeta(f"{number}.orc", 10, 3, value_stats=stats, value_stats_cols=(name,))
        entries.append(ManifestEntry(FileKind.ADD, (), 0, -1, file))
    predicate = Comparison(Op.EQ, (name,), (pa.scalar(literal, to_arrow(_TYPES[name])),))
    mask = _mask(FileTable(entries), predicate)
    assert [number for number, kept in enumerate(mask) if kept] == [50]


_NAMES = st.sampled_from(["a", "b", "c"])


@given(
    st.lists(
        st.builds(
            lambda kind, partition, name, level: ManifestEntry(
                kind, (partition,), 0, 1, DataFileMeta(f"{name}.orc", 10, 3, level=level)
            ),
            st.sampled_from(FileKind),
            st.integers(0, 1),
            _NAMES,
            st.integers(0, 1),
        ),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_the_live_files_are_those_of_the_history(entries: list[ManifestEntry], cut: int) -> None:
    entries = _history(entries)
    table = FileTable.joined([FileTable(entries[:cut]), FileTable(entries[cut:])])
    live = table.select(table.live)
    expected = live_entries(entries)
    assert sorted(map(id, live)) == sorted(map(id, expected))
    assert table.count(table.live).files == len(expected)
    assert table.count(table.live).partitions == len({entry.partition for entry in expected})


def _history(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    """Leave out additions of files that are there: no commit makes them."""
    kept: list[ManifestEntry] = []
    for entry in entries:
        there = entry.identifier in {found.identifier for found in live_entries(kept)}
        if entry.kind is FileKind.DELETE or not there:
            kept.append(entry)
    return kept


@given(
    st.lists(
        st.tuples(
            st.sampled_from("xyz"), st.sampled_from([-2, -1, 0, 1, 2**31 - 1]), st.sampled_from([-1, 1, 7])
        ),
        max_size=12,
    ),
    st.data(),
)
def test_buckets_are_told_apart(places: list[tuple[str, int, int]], data: st.DataObject) -> None:
    entries = [
        ManifestEntry(FileKind.ADD, (partition,), bucket, total, DataFileMeta(f"{number}.orc", 10, 3))
        for number, (partition, bucket, total) in enumerate(places)
    ]
    table = FileTable(entries)
    chosen = data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    mask = np.array(chosen, np.bool_)
    kept = [place for place, keep in zip(places, chosen, strict=True) if keep]
    count = table.count(mask)
    assert count.buckets == len({(partition, bucket) for partition, bucket, _ in kept})
    assert count.partitions == len({partition for partition, *_ in kept})
    asked: list[tuple[str, int, int]] = []

    def keeps(entry: ManifestEntry) -> bool:
        asked.append((entry.partition[0], entry.bucket, entry.total_buckets))
        return entry.bucket >= 0 and entry.total_buckets > 0

    narrowed = table.where_bucket(mask, keeps).tolist()
    assert sorted(asked) == sorted(set(kept))
    wanted = [
        keep and bucket >= 0 and total > 0 for keep, (_, bucket, total) in zip(chosen, places, strict=True)
    ]
    assert narrowed == wanted


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=40), st.data())
def test_masks_choose_and_count_files(files: list[tuple[bool, int]], data: st.DataObject) -> None:
    entries = [
        ManifestEntry(FileKind.ADD, (), number % 3, 3, DataFileMeta(f"{number}.orc", 10, rows))
        for number, (_, rows) in enumerate(files)
    ]
    table = FileTable(entries)
    for chosen in ([keep for keep, _ in files], [True] * len(files), [False] * len(files)):
        wanted = [entry for entry, keep in zip(entries, chosen, strict=True) if keep]
        count = table.count(np.array(chosen))
        assert table.select(np.array(chosen)) == wanted
        assert (count.files, count.rows) == (len(wanted), sum(each.file.row_count for each in wanted))
        assert count.buckets == len({each.bucket for each in wanted})
    number = data.draw(st.integers(0, len(files) - 1), "the file with a vector")
    hidden = np.arange(len(files)) == len(files) - 1
    changed = table.with_vectors({number: VectorLocation("v", 1, 2, cardinality=1)}, hidden)
    rows = [each for _, each in files]
    rows[number] -= 1
    assert changed.count(changed.live).rows == sum(rows[:-1])
    assert table.count(table.live).rows == sum(rows) + 1


def test_an_empty_table_of_files() -> None:
    table = FileTable.joined([])
    assert table.select(table.live) == []
    assert table.count(table.all).buckets == 0
    assert table.where_bucket(table.all, lambda entry: False).tolist() == []


def test_the_collector_pauses_and_goes_on() -> None:
    assert gc.isenabled()
    with paused_collector():
        with paused_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with paused_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
