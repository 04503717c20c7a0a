"""`trigger_tag_automatic_creation`: tags of days, hours and other periods that are over."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, OptionError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
COLUMNS = pa.schema([("id", pa.int64())])


def make(catalog: Catalog, times: list[str], *, of: str = "process-time", **options: str) -> Table:
    """A table with a snapshot at each of some times."""
    given = {
        "tag.automatic-creation": of,
        **{f"tag.{key.replace('_', '-')}": v for key, v in options.items()},
    }
    table = catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=given))
    add(table, times)
    return catalog.load_table("db.t")


def add(table: Table, times: list[str]) -> None:
    by_watermark = table.options["tag.automatic-creation"] == "watermark"
    for text in times:
        number = table.append(pa.table({"id": [1]}, schema=COLUMNS)).id
        zone = datetime.UTC if by_watermark else None
        millis = int(datetime.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)
        path = Path(table.location) / "snapshot" / f"snapshot-{number}"
        content = json.loads(path.read_text()) | {"watermark" if by_watermark else "timeMillis": millis}
        path.write_text(json.dumps(content))


def created(run: Run, **arguments: Any) -> list[str]:
    (row,) = run("trigger_tag_automatic_creation", "db.t", **arguments).to_dicts()
    assert row["created_tags_count"] == len(list(filter(None, row["created_tags"].split(","))))
    return list(filter(None, row["created_tags"].split(",")))


def tags(table: Table) -> dict[str, int]:
    return {tag.name: tag.snapshot.id for tag in table.tags()}


@pytest.mark.parametrize("of", ["process-time", "watermark"])
def test_each_day_that_is_over_is_named_by_the_first_snapshot_after_it(
    catalog: Catalog, run: Run, of: str
) -> None:
    times = ["2026-03-01T23:59:59", "2026-03-02T00:00:00", "2026-03-02T12:00:00", "2026-03-05T08:00:00"]
    table = make(catalog, times, of=of)
    expected = {"2026-02-28": 1, "2026-03-01": 2, "2026-03-04": 4}
    assert created(run, dry_run=True) == list(expected)
    assert tags(table) == {}
    assert created(run) == list(expected)
    assert tags(table) == expected
    assert created(run) == []
    add(table, ["2026-03-05T23:00:00", "2026-03-06T01:00:00"])
    assert created(run) == ["2026-03-05"]
    assert tags(table) == {**expected, "2026-03-05": 6}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"creation_period": "hourly"}, ["2026-03-02 09", "2026-03-02 10", "2026-03-02 14"]),
        (
            {"creation_period": "hourly", "period_formatter": "without_dashes"},
            ["20260302 09", "20260302 10", "20260302 14"],
        ),
        (
            {"creation_period": "hourly", "period_formatter": "without_dashes_and_spaces"},
            ["2026030209", "2026030210", "2026030214"],
        ),
        ({"creation_period": "two-hours"}, ["2026-03-02 08", "2026-03-02 12"]),
        ({"creation_period_duration": "30 min"}, ["202603020930", "202603021030", "202603021430"]),
        ({"period_formatter": "without_dashes"}, ["20260301"]),
        ({"creation_period": "hourly", "creation_delay": "10 min"}, ["2026-03-02 09", "2026-03-02 14"]),
        (
            {"creation_period": "hourly", "automatic_completion": "true"},
            ["2026-03-02 09", "2026-03-02 10", "2026-03-02 11"],
        ),
    ],
)
def test_periods_and_names(catalog: Catalog, run: Run, options: dict[str, str], names: list[str]) -> None:
    make(catalog, ["2026-03-02T10:15:00", "2026-03-02T11:05:00", "2026-03-02T15:15:00"], **options)
    assert created(run) == names


def test_only_the_newest_stay(catalog: Catalog, run: Run) -> None:
    table = make(catalog, [f"2026-03-{day:02}T01:00:00" for day in range(1, 7)], num_retained_max="2")
    table.create_tag("mine", 1)
    (dry,) = run("trigger_tag_automatic_creation", "db.t", dry_run=True).to_dicts()
    (done,) = run("trigger_tag_automatic_creation", "db.t").to_dicts()
    assert (dry["created_tags_count"], dry["deleted_tags_count"]) == (6, 4)
    assert done["deleted_tags"] == dry["deleted_tags"] == "2026-02-28,2026-03-01,2026-03-02,2026-03-03"
    assert sorted(tags(table)) == ["2026-03-04", "2026-03-05", "mine"]


def test_tags_can_end_by_themselves(catalog: Catalog, run: Run) -> None:
    table = make(catalog, ["2026-03-02T01:00:00"], default_time_retained="7 d")
    created(run)
    (tag,) = table.tags()
    assert tag.retained == datetime.timedelta(days=7)


def test_snapshots_without_a_watermark_make_none(catalog: Catalog, run: Run) -> None:
    table = make(catalog, [], of="watermark")
    table.append(pa.table({"id": [1]}, schema=COLUMNS))
    assert created(run) == []
    add(table, ["2026-03-02T23:30:00"])
    assert created(run, dry_run=True) == ["2026-03-01"]


def test_a_watermark_has_a_zone(catalog: Catalog, run: Run) -> None:
    options = {"tag.automatic-creation": "watermark", "sink.watermark-time-zone": "Asia/Tokyo"}
    table = catalog.create_table("db.t", Schema.from_arrow(COLUMNS, options=options))
    add(table, ["2026-03-02T23:30:00"])
    assert created(run) == ["2026-03-02"]


@pytest.mark.parametrize("of", ["none", "batch"])
def test_tables_without_tags_by_time(catalog: Catalog, run: Run, of: str) -> None:
    make(catalog, ["2026-03-02T01:00:00"], of=of)
    with pytest.raises(InputError, match="set it to 'process-time' or 'watermark'"):
        created(run)


def test_bad_options(catalog: Catalog, run: Run) -> None:
    make(catalog, ["2026-03-02T01:00:00"], creation_delay="1 d")
    with pytest.raises(OptionError, match="must be shorter than the period"):
        created(run)
    for key, value in (
        ("creation-period", "weekly"),
        ("num-retained-max", "0"),
        ("creation-period-duration", "1 s"),
    ):
        with pytest.raises(OptionError, match=key):
            catalog.create_table("db.u", Schema.from_arrow(COLUMNS, options={f"tag.{key}": value}))
    with pytest.raises(OptionError, match="a time zone such as"):
        catalog.create_table("db.u", Schema.from_arrow(COLUMNS, options={"sink.watermark-time-zone": "Mars"}))
