"""Commit messages survive JSON, no matter who wrote it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import ColumnNotFoundError, InputError
from lockgate.framework.store import CommitMessage, DataFileMeta, SimpleStats, Table
from lockgate.framework.store.manifests.manifest import VectorLocation

COLUMNS = {"id": pa.int64(), "price": pa.decimal128(5, 2), "at": pa.timestamp("us", "UTC"), "dt": pa.date32()}
DAY = datetime.date(2024, 1, 1)


@pytest.fixture
def table(make_table: Callable[..., Table]) -> Table:
    return make_table(columns=COLUMNS, primary_keys=("id", "dt"), partition_keys=("dt",), bucket="2")


def test_round_trip(table: Table) -> None:
    instant = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    file = DataFileMeta(
        "data-1.orc",
        100,
        10,
        min_key=(1,),
        max_key=(9,),
        key_stats=SimpleStats((1,), (9,), (0,)),
        value_stats=SimpleStats((1, Decimal("1.50"), instant), (9, None, None), (0, 1, None)),
        value_stats_cols=("id", "price", "at"),
        min_sequence_number=4,
        max_sequence_number=13,
        creation_time_millis=7,
        delete_row_count=3,
        level=2,
        file_source=1,
    )
    vectors = {file.file_name: VectorLocation("index-1", 8, 40, 3)}
    message = CommitMessage((DAY,), 1, 2, (file,), (file,), vectors)
    assert (
        CommitMessage.from_json(json.loads(json.dumps(message.to_json(table.schema))), table.schema)
        == message
    )


def test_what_a_writer_sends(table: Table) -> None:
    message = CommitMessage.of_written(
        {
            "partition": {"dt": 19723},
            "bucket": 1,
            "total_buckets": 2,
            "changelog": False,
            "file": {
                "name": "data-1.orc",
                "size": 100,
                "rows": 10,
                "min_key": [1],
                "max_key": [9],
                "stats": {"price": {"min": "1.50", "max": "2.00", "nulls": 0}},
                "min_sequence": 0,
                "max_sequence": 9,
                "delete_rows": 1,
            },
        },
        table.schema,
    )
    (file,) = message.added
    assert message.partition == (DAY,)
    assert file.key_stats == SimpleStats((1,), (9,), (0,))
    assert file.value_stats_cols == ("price",)
    assert file.value_stats == SimpleStats((Decimal("1.50"),), (Decimal("2.00"),), (0,))
    assert file.creation_time_millis is not None
    assert table.commit([message]).total_record_count == 10


def written(**given: object) -> dict[str, Any]:
    """What a task says of a file."""
    file = {"name": "a", "size": 1, "rows": 1, "min_key": [1], "max_key": [2], "stats": {}}
    return {**file, "min_sequence": 0, "max_sequence": 0, "delete_rows": 0, **given}


def test_bad_messages(table: Table) -> None:
    good = {"partition": {"dt": 1}, "bucket": 0, "total_buckets": 2, "changelog": False, "file": written()}
    assert CommitMessage.of_written(good, table.schema).added[0].schema_id == table.schema.id
    for key in good:
        with pytest.raises(InputError, match=f"^a commit message lacks '{key}'$"):
            CommitMessage.of_written({name: good[name] for name in good if name != key}, table.schema)
    for key in written():
        file = {name: value for name, value in written().items() if name != key}
        with pytest.raises(InputError, match=f"^a commit message lacks '{key}'$"):
            CommitMessage.of_written({**good, "file": file}, table.schema)
    with pytest.raises(InputError, match="lacks 'dt'"):
        CommitMessage.of_written({**good, "partition": {}}, table.schema)
    with pytest.raises(InputError, match="1 values in its key bounds"):
        CommitMessage.of_written({**good, "file": written(min_key=[])}, table.schema)
    with pytest.raises(ColumnNotFoundError, match="'prise'"):
        CommitMessage.of_written({**good, "file": written(stats={"prise": {}})}, table.schema)
    for lacking in ("min", "max", "nulls"):
        known = {name: None for name in ("min", "max", "nulls") if name != lacking}
        with pytest.raises(InputError, match=f"lacks '{lacking}'"):
            CommitMessage.of_written({**good, "file": written(stats={"price": known})}, table.schema)


def test_a_key_that_is_missing_is_named(table: Table) -> None:
    schema = table.schema
    task = {"partition": {"dt": 1}, "bucket": 0, "total_buckets": 2, "changelog": False, "file": written()}
    whole = CommitMessage.of_written(task, schema).to_json(schema)
    for key in whole:
        with pytest.raises(InputError, match=f"^a commit message lacks '{key}'$"):
            CommitMessage.from_json({name: whole[name] for name in whole if name != key}, schema)
    (file,) = whole["added"]
    for key in file:
        lacking = {name: file[name] for name in file if name != key}
        with pytest.raises(InputError, match=f"^a commit message lacks '{key}'$"):
            CommitMessage.from_json({**whole, "added": [lacking]}, schema)


def test_an_upper_bound_is_not_cut_below_its_values(make_table: Callable[..., Table]) -> None:
    table = make_table(columns={"ms": pa.timestamp("ms"), "us": pa.timestamp("us")})
    stats = {"min": 1_500, "max": 1_500, "nulls": 0}
    file = written(min_key=[], max_key=[], stats={"ms": stats, "us": stats})
    task = {"partition": {}, "bucket": 0, "total_buckets": -1, "changelog": False, "file": file}
    read = CommitMessage.of_written(task, table.schema)
    kept = read.added[0].value_stats
    epoch = datetime.datetime(1970, 1, 1)
    assert [bound - epoch for bound in kept.max] == [
        datetime.timedelta(milliseconds=2),
        datetime.timedelta(microseconds=1500),
    ]
    assert {bound - epoch for bound in kept.min} == {datetime.timedelta(microseconds=1500)}
