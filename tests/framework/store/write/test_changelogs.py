"""Changelogs: what each producer stores of changes, and what keeps and removes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_search import found_in

from lockgate import procedures
from lockgate.errors import CommitConflictError, OptionError, UnsupportedError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.options.changelog_options import (
    COMPACTION_CHANGELOG,
    INPUT_CHANGELOG,
    LOOKUP_CHANGELOG,
)
from lockgate.framework.store import Catalog, CommitMessage, Schema, Snapshot, Table
from lockgate.framework.store.ddl.schema_changes import RemoveOption, SetOption
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.merge.merge import VALUE_KIND
from lockgate.framework.store.scan.read import FileReader
from lockgate.framework.store.schema.schema import now_millis

MakeTable = Callable[..., Table]
Rows = list[tuple[str, int, Any]]
KINDS = ("+I", "-U", "+U", "-D")


def make(make_table: MakeTable, producer: str, **options: str) -> Table:
    return make_table(primary_keys=("id",), bucket="1", changelog__producer=producer, **options)


def write(table: Table, rows: Rows) -> Snapshot:
    kinds = pa.array([KINDS.index(kind) for kind, _, _ in rows], pa.int8())
    data = pa.table(
        {
            "id": pa.array([key for _, key, _ in rows], pa.int64()),
            "v": pa.array([value for _, _, value in rows], table.schema.arrow_schema.field("v").type),
        }
    )
    return table.commit(table.write(data, kinds=kinds))


def compact(table: Table) -> None:
    catalog = Catalog(str(Path(table.location).parents[1]))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")


def changelog_files(table: Table) -> dict[str, int]:
    folder = Path(table.location)
    return {path.name: path.stat().st_size for path in folder.rglob("changelog-*")}


def changelog(table: Table, snapshot: Snapshot) -> Rows:
    """What the snapshot's changelog tells, in the order of its files."""
    reader, found = FileReader(table, table.schema, strict=True), []
    for meta in table.manifests.changelog_manifests(snapshot):
        for entry in table.manifests.read_manifest(meta):
            path = table.paths.data_file(entry.partition, entry.bucket, entry.file)
            part = reader.whole(path, entry.file, ["id", "v", VALUE_KIND], {})
            assert part.num_rows == entry.file.row_count
            found += [
                (KINDS[kind], key, value) for key, value, kind in zip(*part.to_pydict().values(), strict=True)
            ]
    assert len(found) == (snapshot.changelog_record_count or 0)
    return found


def changelogs(table: Table) -> dict[int, Rows]:
    return {each.id: rows for each in table.snapshots() if (rows := changelog(table, each))}


def orphans(table: Table) -> int:
    found = remove_orphan_files(table, older_than_millis=now_millis() - 1, allow_recent=True)
    return found.data_files + found.other_files


FIRST: Rows = [("+I", 1, "a"), ("+I", 2, "b")]
SECOND: Rows = [("-U", 1, "a"), ("+U", 1, "a2"), ("-D", 2, "b"), ("+I", 3, "c")]


def test_input_is_stored_as_it_came(make_table: MakeTable) -> None:
    """As Paimon's core stores the same writes."""
    table = make(make_table, INPUT_CHANGELOG)
    for rows in (FIRST, SECOND, [("+I", 3, "c")]):
        write(table, rows)
    compact(table)
    write(table, [("+I", 4, "d")])
    assert changelogs(table) == {1: FIRST, 2: SECOND, 3: [("+I", 3, "c")], 5: [("+I", 4, "d")]}
    assert table.read().sort_by("id").to_pydict() == {"id": [1, 3, 4], "v": ["a2", "c", "d"]}


def test_lookup_is_stored_by_the_compaction_that_takes_rows_in(make_table: MakeTable) -> None:
    """As Paimon's core stores the same writes."""
    table = make(make_table, LOOKUP_CHANGELOG)
    for rows in (FIRST, SECOND, [("+I", 3, "c")]):
        write(table, rows)
        compact(table)
    assert changelogs(table) == {2: FIRST, 4: SECOND, 6: [("-U", 3, "c"), ("+U", 3, "c")]}


def test_a_full_compaction_stores_the_difference_to_the_one_before(make_table: MakeTable) -> None:
    """As Paimon's core stores the same writes."""
    table = make(make_table, COMPACTION_CHANGELOG)
    for rows in (FIRST, SECOND, [("+I", 3, "c")]):
        write(table, rows)
    compact(table)
    write(table, [("-D", 1, "a2"), ("+U", 3, "c2")])
    compact(table)
    assert changelogs(table) == {
        4: [("+I", 1, "a2"), ("+I", 3, "c")],
        6: [("-D", 1, "a2"), ("-U", 3, "c"), ("+U", 3, "c2")],
    }


def test_sums_are_told_before_and_after(make_table: MakeTable) -> None:
    table = make_table(
        "t",
        {"id": pa.int64(), "v": pa.int32()},
        primary_keys=("id",),
        bucket="1",
        merge__engine="aggregation",
        changelog__producer=LOOKUP_CHANGELOG,
        **{"fields.v.aggregate-function": "sum"},
    )
    for rows in ([("+I", 1, 5)], [("+I", 1, 7)], [("-D", 1, 5)]):
        write(table, rows)
        compact(table)
    assert changelogs(table) == {
        2: [("+I", 1, 5)],
        4: [("-U", 1, 5), ("+U", 1, 12)],
        6: [("-U", 1, 12), ("+U", 1, 7)],
    }


def test_first_rows_are_told_once(make_table: MakeTable) -> None:
    table = make(make_table, LOOKUP_CHANGELOG, merge__engine="first-row")
    for rows in ([("+I", 1, "a")], [("+I", 1, "b"), ("+I", 2, "c")]):
        write(table, rows)
        compact(table)
    assert changelogs(table) == {2: [("+I", 1, "a")], 4: [("+I", 2, "c")]}


@pytest.mark.parametrize("producer", [LOOKUP_CHANGELOG, COMPACTION_CHANGELOG])
def test_rows_that_stay_as_they_were_can_be_left_out(make_table: MakeTable, producer: str) -> None:
    table = make(make_table, producer, **{"changelog-producer.row-deduplicate": "true"})
    for rows in (FIRST, [("+U", 1, "a"), ("+U", 2, None)], [("+U", 2, None)]):
        write(table, rows)
        compact(table)
    assert changelogs(table) == {2: FIRST, 4: [("-U", 2, "b"), ("+U", 2, None)]}


def test_columns_may_not_count_as_a_change(make_table: MakeTable) -> None:
    columns = {"id": pa.int64(), "v": pa.string(), "at": pa.int64(), "l": pa.list_(pa.int64())}
    table = make_table(
        "t",
        columns,
        primary_keys=("id",),
        bucket="1",
        changelog__producer=LOOKUP_CHANGELOG,
        **{
            "changelog-producer.row-deduplicate": "true",
            "changelog-producer.row-deduplicate-ignore-fields": "at",
        },
    )
    for at, items in enumerate(([1], [1], [1, 2])):
        table.append(pa.table({"id": [1], "v": ["a"], "at": [at], "l": [items]}))
        compact(table)
    assert changelogs(table) == {2: [("+I", 1, "a")], 6: [("-U", 1, "a"), ("+U", 1, "a")]}


def test_an_overwrite_tells_nothing(make_table: MakeTable) -> None:
    table = make(make_table, INPUT_CHANGELOG)
    write(table, FIRST)
    table.overwrite(pa.table({"id": [7], "v": ["x"]}))
    assert changelogs(table) == {1: FIRST}
    assert len(changelog_files(table)) == 1


def test_dynamic_buckets_tell_once_however_rows_move(make_table: MakeTable) -> None:
    table = make_table(
        primary_keys=("id",),
        bucket="-1",
        changelog__producer=INPUT_CHANGELOG,
        **{"dynamic-bucket.target-row-num": "2"},
    )
    mine = table.write(pa.table({"id": [1, 2, 3, 3], "v": ["a", "b", "c", "d"]}))
    table.append(pa.table({"id": [3, 4, 5], "v": ["x", "y", "z"]}))
    snapshot = table.commit(mine)
    expected = [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c"), ("+I", 3, "d")]
    assert sorted(changelog(table, snapshot)) == expected
    assert len(changelog_files(table)) == sum(
        len(table.manifests.read_manifest(meta))
        for each in table.snapshots()
        for meta in table.manifests.changelog_manifests(each)
    )


def test_messages_carry_changelogs(make_table: MakeTable) -> None:
    table = make(make_table, INPUT_CHANGELOG)
    (message,) = table.write(pa.table({"id": [1], "v": ["a"]}))
    again = CommitMessage.from_json(message.to_json(table.schema), table.schema)
    assert again.changelog[0].file_name == message.changelog[0].file_name
    table.commit([again])
    assert changelogs(table) == {1: [("+I", 1, "a")]}


# --- who keeps and who removes changelogs ----------------------------------------------------------


@pytest.mark.parametrize("producer", [INPUT_CHANGELOG, LOOKUP_CHANGELOG])
def test_what_fails_leaves_no_changelog(
    make_table: MakeTable, producer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(make_table, producer, **{"commit.max-retries": "0"})
    write(table, FIRST)
    before = changelog_files(table)
    monkeypatch.setattr(
        "lockgate.framework.store.metadata.snapshot_files.SnapshotFiles.create", lambda *_: False
    )
    with pytest.raises(CommitConflictError):
        table.append(pa.table({"id": [3], "v": ["c"]})) if producer == INPUT_CHANGELOG else compact(table)
    assert changelog_files(table) == before
    monkeypatch.undo()
    assert orphans(table) == 0


def test_expiry_and_rollback_take_changelogs_with_their_snapshots(make_table: MakeTable) -> None:
    table = make(make_table, INPUT_CHANGELOG)
    for rows in (FIRST, SECOND, [("+I", 3, "c")], [("+I", 4, "d")]):
        write(table, rows)
    assert len(changelog_files(table)) == 4
    table.rollback(3)
    assert len(changelog_files(table)) == 3
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=now_millis())
    assert len(changelog_files(table)) == 1
    assert changelogs(table) == {3: [("+I", 3, "c")]}
    assert orphans(table) == 0


def test_changelogs_are_encrypted_as_data_is(catalog: Catalog) -> None:
    keys = MemoryKeyProvider({"pii": b"0123456789abcdef"})
    catalog = Catalog(catalog.warehouse, keys=keys)
    options = {"bucket": "1", "changelog-producer": INPUT_CHANGELOG, "orc.encrypt": "pii:v"}
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(columns, primary_keys=("id",), options=options))
    write(table, [("+I", 1, "a secret text")])
    assert changelog(table, table.snapshot(1)) == [("+I", 1, "a secret text")]
    assert changelog_files(table)
    assert found_in(table.location, "a secret text") == {}


# --- refusals ------------------------------------------------------------------------------------


def test_producers_that_a_table_cannot_have(make_table: MakeTable) -> None:
    with pytest.raises(OptionError, match="'changelog-producer' = 'lookup' needs a primary key"):
        make_table(changelog__producer=LOOKUP_CHANGELOG)
    with pytest.raises(OptionError, match="does not go with merge engine 'first-row'"):
        make(make_table, INPUT_CHANGELOG, merge__engine="first-row")
    with pytest.raises(OptionError, match="one of: none, input, lookup, full-compaction"):
        make(make_table, "inptu")


@pytest.mark.parametrize("before", ["none", INPUT_CHANGELOG, LOOKUP_CHANGELOG, COMPACTION_CHANGELOG])
def test_another_producer_needs_a_full_compaction(
    make_table: MakeTable, catalog: Catalog, before: str
) -> None:
    table = make(make_table, before)
    after = INPUT_CHANGELOG if before != INPUT_CHANGELOG else LOOKUP_CHANGELOG
    change = SetOption("changelog-producer", after)
    write(table, FIRST)
    with pytest.raises(UnsupportedError, match=r"CALL sys\.compact"):
        catalog.alter_table("db.t", [change])
    if before != "none":
        with pytest.raises(UnsupportedError, match="cannot become 'none'"):
            catalog.alter_table("db.t", [RemoveOption("changelog-producer")])
    compact(table)
    assert catalog.alter_table("db.t", [change]).schema.changelog_producer == after


# --- any history ---------------------------------------------------------------------------------

_WRITES = st.lists(
    st.tuples(st.sampled_from(["+I", "-D"]), st.integers(0, 5), st.sampled_from(["a", "b", None])),
    min_size=1,
    max_size=6,
)


@given(
    producer=st.sampled_from([LOOKUP_CHANGELOG, COMPACTION_CHANGELOG]),
    deduplicate=st.booleans(),
    history=st.lists(st.one_of(_WRITES, st.none()), min_size=1, max_size=6),
)
def test_a_follower_has_the_tables_rows(
    tmp_path_factory: pytest.TempPathFactory, producer: str, deduplicate: bool, history: list[Rows | None]
) -> None:
    """Rows that go are those that were there, rows that come were not: `None` compacts."""
    catalog = Catalog(str(tmp_path_factory.mktemp("w")))
    catalog.create_namespace("db")
    options = {
        "bucket": "2",
        "changelog-producer": producer,
        "changelog-producer.row-deduplicate": str(deduplicate).lower(),
    }
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(columns, primary_keys=("id",), options=options))
    state: dict[int, Any] = {}
    followed = 0
    for step in [*history, None]:
        if step is not None:
            write(table, step)
            continue
        compact(table)
        for number in range(followed + 1, (table.snapshot_files.latest_id() or 0) + 1):
            for kind, key, value in changelog(table, table.snapshot(number)):
                if kind in ("-U", "-D"):
                    assert state.pop(key) == value
                else:
                    assert key not in state
                    state[key] = value
        followed = table.snapshot_files.latest_id() or 0
        assert state == dict(zip(*table.read().to_pydict().values(), strict=True))
