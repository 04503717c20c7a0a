"""Options and partitions as users write them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from lockgate.errors import InputError, OptionError
from lockgate.framework import types
from lockgate.framework.store import TableSchema
from lockgate.procedures.arguments import parse_options, parse_partitions

FIELDS = (
    types.DataField(0, "day", types.DATE),
    types.DataField(1, "hour", types.INT),
    types.DataField(2, "x", types.STRING),
)
SCHEMA = TableSchema(0, FIELDS, 2, partition_keys=("day", "hour"))
MONDAY = datetime.date(2026, 3, 2)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (None, {}),
        ("", {}),
        ("bucket=2", {"bucket": "2"}),
        (" primary-key = a , b, bucket=2", {"primary-key": "a,b", "bucket": "2"}),
        (
            "orc.encrypt=pii:a,b;x:c,orc.mask=nullify:a",
            {"orc.encrypt": "pii:a,b;x:c", "orc.mask": "nullify:a"},
        ),
        ("lookup.cache-dir=a=b", {"lookup.cache-dir": "a=b"}),
    ],
)
def test_options_are_parsed(text: str | None, options: dict[str, str]) -> None:
    assert parse_options(text) == options


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a,bucket=1", InputError),
        ("bucket=1,bucket=2", InputError),
        ("buckets=1", OptionError),
        ("bucket=x", OptionError),
    ],
)
def test_bad_options(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_options(text)


@pytest.mark.parametrize(
    ("text", "partition", "chosen"),
    [
        (None, (MONDAY, 1), True),
        ("day=2026-03-02", (MONDAY, 1), True),
        ("day=2026-03-02,hour=2", (MONDAY, 1), False),
        ("hour=2; hour=1", (MONDAY, 1), True),
        ("hour=__DEFAULT_PARTITION__", (MONDAY, None), True),
        ("hour=1", (MONDAY, None), False),
    ],
)
def test_partitions_are_chosen_by_text(text: str | None, partition: tuple[Any, ...], chosen: bool) -> None:
    assert parse_partitions(text, SCHEMA)(partition) is chosen


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x=1", "not a partition column"),
        ("hour", "is written"),
        ("hour=one", "'one' is not a value of type INT"),
    ],
)
def test_bad_partitions(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        parse_partitions(text, SCHEMA)


def test_values_of_partitions() -> None:
    from lockgate.procedures.arguments import partition_value

    assert partition_value(types.decimal(5, 2), "1.50") == Decimal("1.50")
    assert partition_value(types.BOOLEAN, "true") is True
