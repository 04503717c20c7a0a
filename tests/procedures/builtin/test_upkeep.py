"""Procedures that change metadata alone: partitions, tags by time, consumers, watermarks."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, NotFoundError, OptionError, SnapshotNotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
DAYS = ["2024-01-01", "2024-01-02", "2999-01-01"]


@pytest.fixture
def parts(catalog: Catalog) -> Table:
    """A partition for each of `DAYS`, of two hours, with a row each; one more with null."""
    schema = pa.schema([("day", pa.string()), ("hour", pa.int32()), ("v", pa.int64())])
    made = catalog.create_table("db.t", Schema.from_arrow(schema, partition_keys=["day", "hour"]))
    rows = [{"day": day, "hour": hour, "v": 1} for day in (*DAYS, None) for hour in (1, 2)]
    made.append(pa.Table.from_pylist(rows, schema))
    return made


def days(table: Table) -> list[Any]:
    return sorted({row["day"] or "" for row in table.read().to_pylist()})


def changed(table: Table, snapshot_id: int, **members: object) -> None:
    path = Path(table.location) / "snapshot" / f"snapshot-{snapshot_id}"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def counts(result: ProcedureResult) -> dict[str, Any]:
    return result.to_dicts()[0]


def test_partitions_are_dropped(parts: Table, run: Run) -> None:
    wanted = "day=2024-01-01;day=2024-01-02,hour=2;day=2000-01-01"
    dry = counts(run("drop_partition", "db.t", wanted, dry_run=True))
    assert (dry["dropped_partitions_count"], dry["dropped_rows"], dry["snapshot_id"]) == (3, 3, None)
    assert parts.read().num_rows == 8
    done = counts(run("drop_partition", table="db.t", partitions=wanted))
    assert done == {**dry, "snapshot_id": 2}
    assert done["dropped_data_files_count"] == 3
    assert done["dropped_bytes"] > 0
    assert parts.read().num_rows == 5
    assert parts.read(snapshot_id=1).num_rows == 8
    assert counts(run("drop_partition", "db.t", wanted))["snapshot_id"] is None
    with pytest.raises(InputError, match="'dya' is not a partition column"):
        run("drop_partition", "db.t", "dya=1")
    with pytest.raises(InputError, match="at least one"):
        run("drop_partition", "db.t", " ;")


def test_partitions_are_selected_by_a_condition_too(parts: Table, run: Run) -> None:
    condition = "day < '2024-01-02' OR hour = 2"
    assert counts(run("mark_partition_done", "db.t", where=condition))["marked_partitions_count"] == 5
    both = counts(run("drop_partition", "db.t", "day=2024-01-02", where=condition))
    assert (both["dropped_partitions_count"], both["dropped_rows"]) == (1, 1)
    assert counts(run("drop_partition", "db.t", where=condition))["dropped_partitions_count"] == 4
    assert parts.read().num_rows == 3
    with pytest.raises(InputError, match="at least one"):
        run("drop_partition", "db.t")


def test_rows_added_concurrently_stay(parts: Table, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Table.commit

    def late(self: Table, *given: Any, **named: Any) -> Any:
        if named.get("kind") == "OVERWRITE":
            monkeypatch.setattr(Table, "commit", commit)
            parts.append(pa.table({"day": [DAYS[0]], "hour": pa.array([1], pa.int32()), "v": [7]}))
        return commit(self, *given, **named)

    monkeypatch.setattr(Table, "commit", late)
    run("drop_partition", "db.t", f"day={DAYS[0]}")
    assert [row["v"] for row in parts.read().to_pylist() if row["day"] == DAYS[0]] == [7]


def test_partitions_expire_by_their_values(parts: Table, run: Run) -> None:
    dry = counts(run("expire_partitions", "db.t", "7 d", dry_run=True))
    assert dry["expired_partitions"].split(";")[0] == "day=2024-01-01,hour=1"
    assert dry["dropped_partitions_count"] == 4
    assert days(parts) == ["", *DAYS]
    one = counts(run("expire_partitions", "db.t", "7 d", max_expires=1))
    assert one["expired_partitions"] == "day=2024-01-01,hour=1"
    assert counts(run("expire_partitions", "db.t", "7 d"))["dropped_rows"] == 3
    assert days(parts) == ["", "2999-01-01"]


def test_the_form_of_times_is_said(catalog: Catalog, run: Run) -> None:
    schema = pa.schema([("d", pa.string()), ("dh", pa.string()), ("v", pa.string())])
    table = catalog.create_table("db.f", Schema.from_arrow(schema, partition_keys=["d", "dh"]))
    table.append(pa.table({"d": ["20240101", "29990101", "x"], "dh": ["07"] * 3, "v": ["a"] * 3}))
    wishes = {"timestamp_formatter": "yyyyMMdd HH", "timestamp_pattern": "$d $dh", "dry_run": True}
    assert (
        counts(run("expire_partitions", "db.f", "1 h", **wishes))["expired_partitions"] == "d=20240101,dh=07"
    )
    with pytest.raises(InputError, match=r"timestamp_formatter cannot be 'EEE dd': .*'EEE' is not one of"):
        run("expire_partitions", "db.f", "1 h", timestamp_formatter="EEE dd")
    with pytest.raises(InputError, match="'day', which is not a partition column"):
        run("expire_partitions", "db.f", "1 h", timestamp_pattern="$day")


def test_a_partition_that_has_not_the_formatters_form_stays(catalog: Catalog, run: Run) -> None:
    schema = pa.schema([("d", pa.string()), ("v", pa.string())])
    table = catalog.create_table("db.g", Schema.from_arrow(schema, partition_keys=["d"]))
    table.append(pa.table({"d": ["20240101", "202611", "2024-01-01"], "v": ["a"] * 3}))
    done = counts(run("expire_partitions", "db.g", "1 h", timestamp_formatter="yyyyMMdd"))
    assert done["expired_partitions"] == "d=20240101"
    assert sorted(done["unparsed_partitions"].split(";")) == ["d=2024-01-01", "d=202611"]
    assert sorted(table.read()["d"].to_pylist()) == ["2024-01-01", "202611"]
    with pytest.raises(InputError, match="needs a year, a month and a day"):
        run("expire_partitions", "db.g", "1 h", timestamp_formatter="yyyyMM")


def test_options_of_one_call(parts: Table, run: Run) -> None:
    options = "partition.expiration-time=7 d,partition.expiration-max-num=2"
    assert counts(run("expire_partitions", "db.t", options=options))["dropped_partitions_count"] == 2
    with pytest.raises(OptionError, match="cannot be set for one call"):
        run("expire_partitions", "db.t", "7 d", options="bucket=4")


def test_the_tables_options_say_what_expires(catalog: Catalog, run: Run) -> None:
    schema = pa.schema([("d", pa.string()), ("v", pa.string())])
    options = {
        "partition.expiration-time": "7 d",
        "partition.timestamp-formatter": "yyyyMMdd",
        "partition.timestamp-pattern": "$d",
        "partition.expiration-strategy": "values-time",
        "partition.expiration-max-num": "1",
    }
    table = catalog.create_table("db.o", Schema.from_arrow(schema, partition_keys=["d"], options=options))
    table.append(pa.table({"d": ["20240101", "20240102"], "v": ["a"] * 2}))
    assert counts(run("expire_partitions", "db.o"))["expired_partitions"] == "d=20240101"
    assert counts(run("expire_partitions", "db.o", "9999999 d"))["dropped_partitions_count"] == 0
    for key, text in (
        ("expiration-time", "soon"),
        ("timestamp-formatter", "yyyyMM"),
        ("expiration-max-num", "0"),
    ):
        with pytest.raises(OptionError, match=f"'partition.{key}' cannot be '{text}'"):
            catalog.create_table("db.p", Schema.from_arrow(schema, options={f"partition.{key}": text}))
    long = Schema.from_arrow(schema, options={"partition.timestamp-formatter": "[" * 600 + "yyyy-MM-dd"})
    with pytest.raises(OptionError, match="has 610 characters, more than 200") as refused:
        catalog.create_table("db.p", long)
    assert len(str(refused.value)) < 300


def test_a_tag_may_be_kept_for_longer_than_there_are_years(parts: Table, run: Run) -> None:
    run("create_tag", "db.t", "eternal", time_retained="9999999 d")
    assert counts(run("expire_tags", "db.t"))["deleted_tags_count"] == 0
    with pytest.raises(InputError, match=r"time_retained cannot be '99999999999 d': .* a billion days"):
        run("create_tag", "db.t", "other", time_retained="99999999999 d")
    assert parts.tag("eternal").retained == datetime.timedelta(days=9999999)


def test_partitions_expire_by_their_newest_file(parts: Table, run: Run) -> None:
    assert counts(run("expire_partitions", "db.t", "1 d", expire_strategy="update-time"))["dropped_rows"] == 0
    time.sleep(0.01)
    done = counts(run("expire_partitions", "db.t", "1 ms", expire_strategy="update-time"))
    assert done["dropped_partitions_count"] == 8


@pytest.mark.parametrize(
    "wrong",
    [{"expire_strategy": "luck"}, {"max_expires": 0}, {"expiration_time": "soon"}, {"expiration_time": None}],
)
def test_what_cannot_expire_partitions(parts: Table, run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        run("expire_partitions", **{"table": "db.t", "expiration_time": "1 d", **wrong})
    assert parts.read().num_rows == 8


def test_partitions_are_marked(parts: Table, run: Run) -> None:
    mark = Path(parts.location) / "day=2024-01-01" / "hour=1" / "_SUCCESS"
    assert counts(run("mark_partition_done", "db.t", "day=2024-01-01", dry_run=True)) == {
        "marked_partitions_count": 2,
        "created_files_count": 2,
    }
    assert not mark.exists()
    run("mark_partition_done", "db.t", "day=2024-01-01")
    first = json.loads(mark.read_text())
    assert set(first) == {"creationTime", "modificationTime"}
    time.sleep(0.005)
    again = counts(run("mark_partition_done", "db.t", "day=2024-01-01,hour=1"))
    assert again == {"marked_partitions_count": 1, "created_files_count": 0}
    assert json.loads(mark.read_text())["creationTime"] == first["creationTime"]
    assert json.loads(mark.read_text())["modificationTime"] > first["modificationTime"]
    assert parts.read().num_rows == 8


@pytest.fixture
def marked(parts: Table) -> Table:
    """Three snapshots of times and watermarks 1000, 2000 and 3000."""
    for number in (2, 3):
        parts.append(pa.table({"day": ["2024-01-03"], "hour": pa.array([1], pa.int32()), "v": [number]}))
    for number in (1, 2, 3):
        changed(parts, number, timeMillis=number * 1000, watermark=number * 1000)
    return parts


@pytest.mark.parametrize("kind", ["timestamp", "watermark"])
def test_a_tag_names_the_first_snapshot_of_a_time(marked: Table, run: Run, kind: str) -> None:
    for number, wanted in enumerate((0, 1000, 1001, 3000), start=1):
        named = {"table": "db.t", "tag": f"t{number}", kind: wanted}
        dry = counts(run(f"create_tag_from_{kind}", **named, dry_run=True))
        assert counts(run(f"create_tag_from_{kind}", **named)) == dry
    assert [marked.tag(f"t{number}").snapshot.id for number in (1, 2, 3, 4)] == [1, 1, 2, 3]
    with pytest.raises(SnapshotNotFoundError, match=f"{kind} 3001"):
        run(f"create_tag_from_{kind}", **{"table": "db.t", "tag": "t5", kind: 3001})


def test_a_table_goes_back_to_a_watermark(marked: Table, run: Run) -> None:
    assert counts(run("rollback_to_watermark", "db.t", 2999, dry_run=True))["current_snapshot_id"] == 2
    assert counts(run("rollback_to_watermark", "db.t", 2999))["deleted_snapshots_count"] == 1
    assert marked.latest_snapshot().id == 2  # type: ignore[union-attr]  # there is one
    with pytest.raises(SnapshotNotFoundError, match="watermark 999"):
        run("rollback_to_watermark", "db.t", 999)


def test_tags_expire_when_their_time_has_come(marked: Table, run: Run) -> None:
    marked.create_tag("for-good", 1)
    marked.create_tag("young", 2, retained=datetime.timedelta(days=1))
    marked.create_tag("old", 3, retained=datetime.timedelta(milliseconds=1))
    time.sleep(0.01)
    dry = counts(run("expire_tags", "db.t", dry_run=True))
    assert (dry["deleted_tags_count"], dry["expired_tags"]) == (1, "old")
    assert len(marked.tags()) == 3
    assert counts(run("expire_tags", "db.t")) == dry
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert counts(run("expire_tags", "db.t", older_than=later))["expired_tags"] == "young"
    assert [tag.name for tag in marked.tags()] == ["for-good"]


def test_consumers_are_reset_and_forgotten(parts: Table, run: Run) -> None:
    assert counts(run("reset_consumer", "db.t", "etl-a", 4, dry_run=True))["next_snapshot_id"] == 4
    assert parts.consumers() == {}
    run("reset_consumer", table="db.t", consumer_id="etl-a", next_snapshot_id=4)
    assert counts(run("reset_consumer", "db.t", "etl-a", 2))["previous_snapshot_id"] == 4
    run("reset_consumer", "db.t", "etl-b", 1)
    run("reset_consumer", "db.t", "web", 1)
    assert counts(run("clear_consumers", "db.t", "etl-.*", excluding_consumers=".*b", dry_run=True)) == {
        "deleted_consumers_count": 1,
        "remaining_consumers_count": 2,
    }
    run("clear_consumers", "db.t", "etl-.*", excluding_consumers=".*b")
    assert parts.consumers() == {"etl-b": 1, "web": 1}
    assert counts(run("reset_consumer", "db.t", "web"))["deleted_consumers_count"] == 1
    with pytest.raises(NotFoundError, match="did you mean 'etl-b'"):
        run("reset_consumer", "db.t", "etl-c")
    with pytest.raises(InputError, match="count from 1"):
        run("reset_consumer", "db.t", "etl-b", 0)
    with pytest.raises(InputError, match="not a pattern"):
        run("clear_consumers", "db.t", "(")
    assert counts(run("clear_consumers", "db.t"))["deleted_consumers_count"] == 1


def test_the_tables_of_databases_are_compacted(catalog: Catalog, keyless: Catalog, run: Run) -> None:
    catalog.create_namespace("other")
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    for name, options in (
        ("db.a", {}),
        ("db.b", {"orc.encrypt": "pii:v"}),
        ("other.c", {}),
        ("db.empty", {}),
    ):
        table = catalog.create_table(name, Schema.from_arrow(schema, options=options))
        for number in range(0 if name == "db.empty" else 3):
            table.append(pa.table({"id": [number], "v": ["x"]}))
    wishes = {"including_databases": "db", "excluding_tables": "db[.]a"}
    dry = counts(run("compact_database", **wishes, dry_run=True))
    assert (dry["tables"], dry["compacted_tables"], dry["files_rewritten"]) == (2, 1, 3)
    assert dry["files_written"] is None
    failed = counts(run("compact_database", within=keyless, including_databases="db"))
    assert (failed["tables"], failed["compacted_tables"], failed["failed_tables"]) == (3, 1, 1)
    assert failed["failures"].startswith("db.b: ")
    done = counts(run("compact_database"))
    assert (done["tables"], done["compacted_tables"], done["failures"]) == (4, 2, None)
    assert (done["files_rewritten"], done["files_written"]) == (6, 2)
    assert [catalog.load_table(name).read().num_rows for name in ("db.a", "db.b", "other.c")] == [3, 3, 3]
    with pytest.raises(InputError, match="including_tables"):
        run("compact_database", including_tables="(")
