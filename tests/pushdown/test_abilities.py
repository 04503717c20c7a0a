"""Accepted and remaining filters, and the report of a scan."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.pushdown import (
    Accepted,
    AlwaysTrue,
    Count,
    FilterPushDown,
    Remaining,
    ScanReport,
    Step,
    col,
    describe,
    reads_only,
    split_filters,
)

SCHEMA = pa.schema([("day", pa.date32()), ("v", pa.int32())])


def test_split_filters() -> None:
    day, value, broken = col("day").is_not_null(), col("v") < 3, col("w") == 1
    answer = split_filters(
        [day, value, None, broken],
        SCHEMA,
        guaranteed=lambda predicate: reads_only(predicate, ["day"]),
        why_remaining=lambda predicate: "only skips files",
        inexpressible=[None, None, "CAST is not supported"],
    )
    assert [(item.index, item.guaranteed) for item in answer.accepted] == [(0, True), (1, False)]
    assert [(item.index, item.reason) for item in answer.remaining[:2]] == [
        (1, "only skips files"),
        (2, "CAST is not supported"),
    ]
    assert "no column 'w'" in answer.remaining[2].reason
    assert answer.guaranteed == day
    assert describe(answer.pushed) == "day IS NOT NULL AND v < 3"


def test_a_filter_in_neither_list_is_an_error() -> None:
    assert FilterPushDown((), ()).guaranteed == AlwaysTrue()
    with pytest.raises(InputError, match="every filter"):
        FilterPushDown((Accepted(1, AlwaysTrue(), True),), ())
    with pytest.raises(InputError, match="either guaranteed or remaining"):
        FilterPushDown((Accepted(0, AlwaysTrue(), True),), (Remaining(0, AlwaysTrue(), "x"),))
    with pytest.raises(InputError, match="either guaranteed or remaining"):
        FilterPushDown((Accepted(0, AlwaysTrue(), False),), ())


def test_a_report_shows_each_step() -> None:
    everything = Count.of([("p", 0, 10, 2048), ("q", 0, 5, 100), ("q", 1, 5, 100)])
    assert everything == Count(2, 3, 3, 20, 2248)
    some = Count.of([("p", 0, 10, 2048)])
    report = ScanReport(
        table="db.t",
        snapshot_id=7,
        steps=(Step("partitions", everything, some, "p = 1"),),
        accepted=("p = 1",),
        skipping=("v < 3",),
        remaining=(("v < 3", "only skips files"),),
        columns=("v",),
        all_columns=("p", "v"),
        limit=5,
        limit_note="not guaranteed",
        notes=("a note",),
    )
    assert str(report).splitlines() == [
        "Scan of db.t, snapshot 7",
        "  partitions   1 of 3 files, 1 of 2 partitions, 1 of 3 buckets, 2.0 KiB of 2.2 KiB  by p = 1",
        "  accepted     p = 1  (guaranteed)",
        "  accepted     v < 3  (used to skip files)",
        "  remaining    v < 3  because only skips files",
        "  columns      1 of 2: v",
        "  limit        5  (not guaranteed)",
        "  note         a note",
    ]
    assert report.total == everything
    assert report.kept == some
    assert report.to_dict()["steps"][0]["after"] == {
        "partitions": 1,
        "buckets": 1,
        "files": 1,
        "rows": 10,
        "bytes": 2048,
    }
    assert str(ScanReport("db.t", None)) == "Scan of db.t, empty table"
