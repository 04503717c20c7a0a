"""Streams: where they start, what a batch takes, and what they refuse rather than lose a row."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from exact_rows import Rows
from stream_rows import batches, rows_of, start

from lockgate import procedures
from lockgate.errors import InputError, OptionError, SnapshotNotFoundError, UnsupportedError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.streams.position import StreamPlace
from lockgate.framework.store.streams.stream import TableStream
from lockgate.pushdown import col

MakeTable = Callable[..., Table]
FIRST = {"scan__mode": "from-snapshot", "scan__snapshot__id": "1"}
DOTS = {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}


def make_rows(*ids: int, v: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [v] * len(ids)})


def read(table: Table, begin: StreamPlace, *, kinds: bool = True, **options: str) -> list[Rows]:
    """Return the rows of each batch that has some, sorted."""
    return [sorted(rows) for _, rows in batches(table, begin, kinds=kinds, **options) if rows]


def of(table: Table, options: dict[str, str], *, kinds: bool = True) -> TableStream:
    return TableStream(table, options, kinds=kinds)


@pytest.fixture
def four(make_table: MakeTable) -> Table:
    """An append table of four snapshots with a row each."""
    table = make_table()
    for number in range(1, 5):
        table.append(make_rows(number))
    return table


# --- starts ---


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"scan.mode": "latest-full"}, [1, 2, 3, 4, 5]),
        ({"scan.mode": "Latest"}, [5]),
        ({"scan.mode": "compacted-full"}, [1, 2, 3, 4, 5]),
        ({"scan.snapshot-id": "3"}, [3, 4, 5]),
        ({"scan.mode": "from-snapshot", "scan.snapshot-id": "5"}, [5]),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "2"}, [1, 2, 3, 4, 5]),
        ({"SCAN.TIMESTAMP-MILLIS": "1"}, [1, 2, 3, 4, 5]),
        ({"scan.timestamp": "2100-01-01 00:00:00"}, [5]),
    ],
)
def test_where_a_stream_starts(four: Table, options: dict[str, str], wanted: list[int]) -> None:
    begin = of(four, options).start()
    four.append(make_rows(5))
    assert sorted(row[1] for rows in read(four, begin) for row in rows) == wanted


def test_options_of_the_table_say_where_a_stream_starts_and_the_querys_win(make_table: MakeTable) -> None:
    table = make_table()
    table.append(make_rows(1))
    table = Table(  # options that select are the table's own
        table.identifier,
        table.location,
        replace(table.schema, options={**table.schema.options, "scan.mode": "latest"}),
        TableContext(table.file_system),
    )
    assert of(table, {}).start().snapshot_id == 2
    assert of(table, {"scan.snapshot-id": "1"}).start().snapshot_id == 1


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"scan.mode": "incremental"}, OptionError, "expected one of"),
        ({"scan.mode": "from-snapshot"}, OptionError, "needs option 'scan.snapshot-id'"),
        ({"scan.mode": "latest", "scan.snapshot-id": "1"}, OptionError, "contradict"),
        ({"scan.timestamp-millis": "1", "scan.snapshot-id": "1"}, OptionError, "contradict"),
        ({"scan.snapshot-id": "6"}, InputError, "its newest one is 4"),
        ({"scan.mode": "from-snapshot-full", "scan.snapshot-id": "5"}, InputError, "its newest one is 4"),
        ({"scan.tag-name": "x"}, OptionError, "no option 'scan.tag-name'"),
        ({"maxFilePerTrigger": "1"}, OptionError, "maxFilesPerTrigger"),
        ({"maxFilesPerTrigger": "0"}, OptionError, "1 or more"),
        ({"maxFilesPerTrigger": "1", "read.stream.maxFilesPerTrigger": "1"}, OptionError, "twice"),
        ({"read.stream.minRowsPerTrigger": "1"}, OptionError, "need each other"),
    ],
)
def test_options_that_no_stream_can_follow(
    four: Table, options: dict[str, str], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        of(four, options).start()


def test_an_empty_table_is_followed_from_its_first_row(make_table: MakeTable) -> None:
    table = make_table()
    begin = start(table)
    assert read(table, begin) == []
    table.append(make_rows(1))
    assert read(table, begin) == [[["+I", 1, "a"]]]


def test_a_state_without_rows_is_followed(make_table: MakeTable) -> None:
    table = make_table()
    table.append(make_rows(1))
    table.overwrite(make_rows(), {})
    begin = start(table)
    assert begin.scans_state
    table.append(make_rows(2))
    assert read(table, begin) == [[["+I", 2, "a"]]]


# --- limits ---


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [4]),
        ({"maxFilesPerTrigger": "3"}, [3, 1]),
        ({"read.stream.maxFilesPerTrigger": "2"}, [2, 2]),
        ({"maxBytesPerTrigger": "1 b"}, [1, 1, 1, 1]),
        ({"read.stream.maxBytesPerTrigger": "1 gb"}, [4]),
        ({"read.stream.maxRowsPerTrigger": "3"}, [3, 1]),
        ({"read.stream.maxSnapshotsPerTrigger": "3"}, [3, 1]),
    ],
)
@pytest.mark.parametrize("mode", [DOTS, {}])
def test_what_a_batch_takes(
    four: Table, mode: dict[str, str], options: dict[str, str], sizes: list[int]
) -> None:
    given = {**options, **mode}
    begin = of(four, given).start()
    found = []
    while (end := of(four, given).end_of_batch(begin)) != begin:
        found.append(len(rows_of(four, of(four, given).batch(begin, end), kinds=True)))
        begin = end
    assert found == ([4] if not mode and "maxSnapshots" in str(options) else sizes)


def test_a_batch_takes_more_than_the_limits_if_it_may(four: Table) -> None:
    stream = of(four, {**DOTS, "maxFilesPerTrigger": "1"})
    begin = stream.start()
    assert stream.end_of_batch(begin, limited=False).snapshot_id == 5
    assert stream.end_of_batch(begin, limited=False, upto=2).snapshot_id == 3
    assert stream.end_of_batch(begin).snapshot_id == 2


def test_a_batch_waits_for_rows_but_not_for_ever(four: Table) -> None:
    waits = {"read.stream.minRowsPerTrigger": "5", "read.stream.maxTriggerDelayMs": "1000"}
    stream = of(four, {**DOTS, **waits})
    begin = stream.start()
    assert stream.end_of_batch(begin, waited_millis=999) == begin
    assert stream.end_of_batch(begin, waited_millis=1000).snapshot_id == 5
    assert stream.end_of_batch(begin, waited_millis=None).snapshot_id == 5
    four.append(make_rows(5))
    assert stream.end_of_batch(begin, waited_millis=0).snapshot_id == 6


def test_commits_without_changes_start_a_batch_only_once_they_are_many(
    make_table: MakeTable, compact: Callable[[Table], None]
) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(make_rows(1))
    begin = StreamPlace(2, 0, False, table.table_id, table.snapshot(1).commit_id)
    stream = of(table, {})
    for _ in range(9):
        compact(table)
    assert stream.end_of_batch(begin) == begin
    compact(table)
    assert stream.end_of_batch(begin).snapshot_id == 12
    assert stream.batch(begin, stream.end_of_batch(begin)).splits == ()


# --- what is lost is said ---


def test_an_expired_range_is_an_error_and_never_a_jump(four: Table) -> None:
    begin = start(four, **{"scan.mode": "from-snapshot", "scan.snapshot-id": "2"})
    expire_snapshots(four, retain_max=1, retain_min=1, older_than_millis=2**62)
    with pytest.raises(SnapshotNotFoundError, match=r"must read snapshot 2 .* has expired"):
        of(four, {}).end_of_batch(begin)
    with pytest.raises(SnapshotNotFoundError, match="changes before snapshot 4 have expired"):
        start(four, **DOTS)
    with pytest.raises(SnapshotNotFoundError, match="from after it have expired"):
        of(four, {"scan.timestamp-millis": "1"}).start()
    with pytest.raises(SnapshotNotFoundError, match="changes before snapshot 4 have expired"):
        of(four, {}).start(next_snapshot=3)


def test_a_table_that_was_rolled_back_is_not_followed_as_if_nothing_were(four: Table) -> None:
    begin = start(four, **DOTS)
    end = of(four, {}).end_of_batch(begin)
    four.rollback(2)
    with pytest.raises(InputError, match="rolled back behind snapshot 4"):
        of(four, {}).end_of_batch(end)
    for number in (5, 6, 7):  # the numbers are there again
        four.append(make_rows(number))
    with pytest.raises(InputError, match="rolled back behind snapshot 4"):
        of(four, {}).end_of_batch(end)
    with pytest.raises(InputError, match="rolled back"):
        of(four, {}).batch(end, replace(end, snapshot_id=6))


def test_a_table_that_was_made_again_is_another(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table()
    table.append(make_rows(1))
    known = start(table)
    begin = replace(known, table_id="another", commit_id="another")
    with pytest.raises(InputError, match=r"of another table than db.t is now"):
        of(table, {}).end_of_batch(begin)
    catalog.drop_table("db.t")
    again = make_table()
    again.append(make_rows(1))
    assert again.table_id != table.table_id
    with pytest.raises(InputError, match=r"of another table than db.t is now"):
        of(again, {}).end_of_batch(known)


def test_a_table_stays_the_same_wherever_it_goes(
    catalog: Catalog, four: Table, make_table: MakeTable, tmp_path: Path
) -> None:
    """Renamed, in a moved, linked or restored warehouse: a checkpoint goes on."""
    end = of(four, {}).end_of_batch(start(four, **DOTS))
    old = replace(end, table_id="made by an earlier version")

    def goes_on(table: Table) -> None:
        table.append(make_rows(7))
        for place in (end, old):
            assert read(table, place)[-1] == read(table, end)[-1]
            assert read(table, place)[0][0][1] == 7

    catalog.rename_table("db.t", "db.renamed")
    renamed = catalog.load_table("db.renamed")
    assert renamed.table_id == four.table_id
    assert renamed.copy_id != four.copy_id
    goes_on(renamed)
    make_table()
    with pytest.raises(InputError, match=r"of another table than db.t is now"):
        of(catalog.load_table("db.t"), {}).end_of_batch(end)
    warehouse = Path(catalog.warehouse)
    shutil.copytree(warehouse, tmp_path / "moved")
    (tmp_path / "linked").symlink_to(tmp_path / "moved")
    for name in ("moved", "linked"):
        goes_on(Catalog(str(tmp_path / name)).load_table("db.renamed"))
    shutil.rmtree(warehouse)
    shutil.copytree(tmp_path / "moved", warehouse)
    goes_on(catalog.load_table("db.renamed"))


def test_ids_of_branches_clones_replacements_and_of_other_writers(catalog: Catalog, four: Table) -> None:
    four.create_branch("b")
    branch = catalog.load_table("db.t$branch_b")
    assert branch.table_id != four.table_id
    assert branch.table_id == catalog.load_table("db.t$branch_b").table_id
    procedures.call(procedures.ProcedureContext(catalog), "clone", table="db.t", target_table="db.clone")
    assert catalog.load_table("db.clone").table_id not in (four.table_id, branch.table_id)
    altered = catalog.alter_table("db.t", [SetOption("comment", "x")])
    assert (altered.schema.id, altered.table_id) == (1, four.table_id)
    for number in (1, 0):  # as Paimon writes them
        path = Path(four.location, "schema", f"schema-{number}")
        content = json.loads(path.read_text())
        assert content.pop("lockgateTableId") == four.table_id
        path.write_text(json.dumps(content))
        if number:
            assert catalog.load_table("db.t").table_id == four.table_id, "the first schema has it"
    theirs = catalog.load_table("db.t").table_id
    catalog.rename_table("db.t", "db.renamed")
    assert catalog.load_table("db.renamed").table_id == theirs


def test_new_columns_end_a_stream_which_reads_on_with_them(catalog: Catalog, four: Table) -> None:
    from lockgate.framework.store.ddl.schema_changes import AddColumn
    from lockgate.framework.types import INT

    begin = start(four, **DOTS)
    catalog.alter_table("db.t", [AddColumn(("n",), INT)])
    newer = catalog.load_table("db.t")
    newer.append(pa.table({"id": [5], "v": ["a"], "n": pa.array([7], pa.int32())}))
    with pytest.raises(InputError, match=r"columns of table db.t have changed .* restart"):
        of(four, {}).end_of_batch(begin)
    rows = [row for found in read(newer, begin) for row in found]
    assert rows == [*(["+I", number, "a", None] for number in range(1, 5)), ["+I", 5, "a", 7]]


def test_options_of_the_table_may_change(catalog: Catalog, four: Table) -> None:
    from lockgate.framework.store.ddl.schema_changes import SetOption

    begin = start(four, **DOTS)
    catalog.alter_table("db.t", [SetOption("source.split.target-size", "1 mb")])
    catalog.load_table("db.t").append(make_rows(5))
    assert [len(rows) for rows in read(four, begin)] == [5]


# --- rows that go ---


def test_an_overwrite_is_refused_unless_somebody_says_what_it_means(make_table: MakeTable) -> None:
    table = make_table()
    table.append(make_rows(1, 2))
    table.overwrite(make_rows(3))
    begin = start(table, **DOTS)
    with pytest.raises(UnsupportedError, match=r"snapshot 2 of table db.t is an OVERWRITE"):
        of(table, {}, kinds=False).end_of_batch(begin)
    key = "streaming__read__overwrite"
    assert read(table, begin, kinds=False, **{key: "false"}) == [[[1, "a"], [2, "a"]]]
    assert read(table, begin, kinds=False, **{key: "true"}) == [[[1, "a"], [2, "a"]], [[3, "a"]]]
    assert read(table, begin) == [
        [["+I", 1, "a"], ["+I", 2, "a"]],
        [["+I", 3, "a"], ["-D", 1, "a"], ["-D", 2, "a"]],
    ]
    assert read(table, begin, **{key: "false"}) == [[["+I", 1, "a"], ["+I", 2, "a"]]]


@pytest.mark.parametrize("wide", ["false", "true"])
def test_rows_deleted_by_vectors_are_counted_or_named(
    catalog: Catalog, make_table: MakeTable, wide: str
) -> None:
    table = make_table(**{"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": wide})
    table.append(make_rows(1, 2, 3))
    table.delete(col("id") == 2)
    table.delete(col("id") == 3)
    begin = start(table, **DOTS)
    stream = of(table, {}, kinds=False)
    end = stream.end_of_batch(begin)
    found = stream.batch(begin, end)
    assert rows_of(table, found, kinds=False) == [[1, "a"], [2, "a"], [3, "a"]]
    assert (found.left_out, found.overwrites) == (2, 0)
    came = [["+I", 1, "a"], ["+I", 2, "a"], ["+I", 3, "a"]]
    assert read(table, begin) == [came, [["-D", 2, "a"]], [["-D", 3, "a"]]]
    call = procedures.ProcedureContext(catalog)
    procedures.call(call, "rollback_to_as_latest", table="db.t", snapshot=2)
    assert read(table, begin)[3:] == [[["+I", 3, "a"]]]


def test_retracts_that_a_stream_leaves_out_are_counted(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(make_rows(1, 2))
    table.delete(pa.table({"id": [1]}))
    begin = start(table, **DOTS)
    stream = of(table, {}, kinds=False)
    found = stream.batch(begin, stream.end_of_batch(begin))
    assert sorted(rows_of(table, found, kinds=False)) == [[1, "a"], [2, "a"]]
    assert found.left_out == 1
    assert read(table, begin)[0][-1][0] == "-D"


def test_an_earlier_commit_is_read_as_it_was_when_a_producer_is_set_later(
    catalog: Catalog, make_table: MakeTable
) -> None:
    from lockgate.framework.store.ddl.schema_changes import SetOption

    table = make_table(primary_keys=("id",), bucket="1")
    begin = start(table)
    table.append(make_rows(1))
    call = procedures.ProcedureContext(catalog)
    procedures.call(call, "compact", table="db.t", compact_strategy="full")
    catalog.alter_table("db.t", [SetOption("changelog-producer", "lookup")])
    table = catalog.load_table("db.t")
    table.append(make_rows(1, v="b"))
    assert [row for rows in read(table, begin) for row in rows] == [["+I", 1, "a"]]
    procedures.call(call, "compact", table="db.t")
    found = [row for rows in read(table, begin) for row in rows]
    assert sorted(found) == [["+I", 1, "a"], ["+U", 1, "b"], ["-U", 1, "a"]]


def test_rows_that_an_overwrite_removed_are_counted_once_however_batches_are_cut(
    make_table: MakeTable,
) -> None:
    table = make_table(partition_keys=("v",))
    table.append(make_rows(1, 2, 3))
    table.overwrite(pa.concat_tables([make_rows(4), make_rows(5, v="b")]))
    options = {**DOTS, "maxFilesPerTrigger": "1", "streaming-read-overwrite": "true"}
    stream = of(table, options, kinds=False)
    position, counts = stream.start(), []
    while (end := stream.end_of_batch(position)) != position:
        counts.append(stream.batch(position, end).left_out)
        position = end
    assert counts == [0, 1, 0]


# --- positions ---


@pytest.mark.parametrize(
    "text",
    [
        "",
        "17",
        "null",
        "[]",
        "{}",
        '{"snapshotId":0,"index":0,"scanSnapshot":false,"tableId":"","commitId":""}',
        '{"snapshotId":1,"index":-1,"scanSnapshot":false,"tableId":"","commitId":""}',
        '{"snapshotId":"1","index":0,"scanSnapshot":false,"tableId":"","commitId":""}',
        '{"snapshotId":1,"index":0,"scanSnapshot":0,"tableId":"","commitId":""}',
        '{"snapshotId":true,"index":0,"scanSnapshot":false,"tableId":"","commitId":""}',
        '{"snapshotId":1,"index":0,"scanSnapshot":false,"tableId":"","commitId":"","more":1}',
        '{"snapshotId":1e400,"index":0,"scanSnapshot":false,"tableId":"","commitId":""}',
        "[" * 100_000,
    ],
)
def test_a_text_that_is_no_position(text: str) -> None:
    with pytest.raises(InputError, match="no position of a stream"):
        StreamPlace.from_json(text)


def test_positions_are_in_the_order_of_the_stream(four: Table) -> None:
    places = [
        StreamPlace(3, 0, True, "t", "c"),
        StreamPlace(3, 7, True, "t", "c"),
        StreamPlace(4, 0, False, "t", "c"),
        StreamPlace(4, 2, False, "t", "c"),
        StreamPlace(5, 0, False, "t", "c"),
    ]
    assert [each.sort_key for each in places] == sorted({each.sort_key for each in places})
    assert [StreamPlace.from_json(each.to_json()) for each in places] == places
    begin = start(four, **DOTS)
    with pytest.raises(InputError, match="cannot go from"):
        of(four, {}).batch(of(four, {}).end_of_batch(begin), begin)
