"""Times beyond nanoseconds inside lists, maps and structs."""

from __future__ import annotations

import datetime
import io

import pyarrow as pa
import pytest

from lockgate.errors import UnsupportedTypeError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.pushdown import col

LAST = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)
FIRST = datetime.datetime(1, 1, 1)
USUAL = datetime.datetime(2024, 2, 29, 1, 2, 3, 4)


@pytest.mark.parametrize("encrypt", [None, "pii:when,times", "pii:span.since,by_name"])
def test_times_in_nested_columns(encrypt: str | None, keys: MemoryKeyProvider) -> None:
    time = pa.timestamp("us")
    instant = pa.timestamp("us", "UTC")
    span = pa.struct([("since", time), ("until", instant), ("why", pa.string())])
    rows = 1200
    table = pa.table(
        {
            "id": range(rows),
            "when": pa.array([LAST, None, USUAL] * (rows // 3), time),
            "times": pa.array(
                [[FIRST, None] * (i % 5) if i % 7 else None for i in range(rows)], pa.list_(instant)
            ),
            "span": pa.array(
                [
                    None if i % 11 == 0 else {"since": USUAL, "until": LAST if i % 2 else None, "why": f"{i}"}
                    for i in range(rows)
                ],
                span,
            ),
            "by_name": pa.array(
                [
                    [(f"k{j}", {"since": FIRST, "until": None, "why": "x"}) for j in range(i % 3)]
                    for i in range(rows)
                ],
                pa.map_(pa.string(), span),
            ),
            "lists": pa.array(
                [[[LAST], [], None, [USUAL, FIRST]][: i % 5] for i in range(rows)], pa.list_(pa.list_(time))
            ),
        }
    )
    sink = io.BytesIO()
    write_table(table, sink, encrypt=encrypt, keys=keys, row_index_stride=100)
    with EncryptedOrcFile(sink, keys, timestamp_unit="us") as file:
        read = file.read()
        assert read.equals(table)
        read.validate(full=True)
        assert file.read(["span.until", "id"])["span"].to_pylist() == [
            None if value is None else {"until": value["until"]} for value in table["span"].to_pylist()
        ]
        assert file.read(["times"], predicate=col("id") < 5).equals(table.select(["times"]).slice(0, 5))
    with (
        EncryptedOrcFile(sink, keys) as file,
        pytest.raises(UnsupportedTypeError, match='timestamp_unit="us"'),
    ):
        file.read(["lists"])


@pytest.mark.parametrize("encrypt", [None, "pii:fine,inner"])
def test_times_finer_than_microseconds_are_found_in_any_year(
    encrypt: str | None, keys: MemoryKeyProvider
) -> None:
    nanos, micros = pa.timestamp("ns"), pa.timestamp("us")
    digit = 1_700_000_000_123_456_789
    columns = {
        "id": pa.array(range(1200)),
        "fine": pa.array([digit, None, -2_000_000_000, *[1000] * 1197], nanos),
        "coarse": pa.array([USUAL, None, LAST] * 400, micros),
        "inner": pa.array([[{"t": None}, {"t": digit}]] * 1200, pa.list_(pa.struct([("t", nanos)]))),
        "far.away": pa.array([LAST, FIRST, None] * 400, micros),
    }
    sink = io.BytesIO()
    write_table(pa.table(columns), sink, encrypt=encrypt, keys=keys)
    file = EncryptedOrcFile(io.BytesIO(sink.getvalue()), keys=keys)
    assert file.nanosecond_columns() == ["fine", "inner"]
    with EncryptedOrcFile(_without_times(keys), keys=keys) as other:
        assert other.nanosecond_columns() == []


def _without_times(keys: MemoryKeyProvider) -> io.BytesIO:
    sink = io.BytesIO()
    write_table(pa.table({"id": [1]}), sink, keys=keys)
    return io.BytesIO(sink.getvalue())
