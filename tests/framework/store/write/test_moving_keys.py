"""Keys that move between partitions: each lies in one place, and engines say what becomes of its row."""

from __future__ import annotations

import math
import random
import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import CommitConflictError, InputError, LockgateError, OptionError, UnsupportedError
from lockgate.framework.store import Catalog, CommitMessage, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.write.key_index import KeyIndex
from lockgate.framework.store.write.key_locations import TriedLocations
from lockgate.framework.types import from_arrow
from lockgate.pushdown import col

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.string()), ("n", pa.int64())])


def moving(catalog: Catalog, name: str = "db.t", **options: str) -> Table:
    given = {"bucket": "-1", "dynamic-bucket.target-row-num": "3", **options}
    return catalog.create_table(
        name, Schema.from_arrow(COLUMNS, partition_keys=("p",), primary_keys=("id",), options=given)
    )


def rows(*given: tuple[int, str | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS.names, row, strict=True)) for row in given], COLUMNS)


def found(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.read().to_pylist())


def test_the_newest_row_takes_its_key_along(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows((1, "a", 1), (2, "a", 2), (3, None, 3)))
    table.append(rows((1, "b", 10), (3, "a", 30), (4, "b", 40)))
    expected = [(1, "b", 10), (2, "a", 2), (3, "a", 30), (4, "b", 40)]
    assert found(table) == expected
    table.append(rows((1, "a", 11), (1, "b", 12), (1, "c", 13)))
    assert found(table)[0] == (1, "c", 13)
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert found(table) == [(1, "c", 13), *expected[1:]]
    assert table.latest_snapshot().index_manifest is None  # type: ignore[union-attr]  # there is one


def test_deletions_find_their_rows(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    table.delete(pa.table({"id": pa.array([1, 9], pa.int64())}))
    table.delete(col("p") == "b")
    table.delete(rows((3, "elsewhere", 0)))
    assert found(table) == []
    table.append(rows((1, "c", 4)))
    assert found(table) == [(1, "c", 4)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"merge-engine": "first-row"}, [(1, "a", 1), (2, "b", 5)]),
        ({"merge-engine": "partial-update"}, [(1, "a", 7), (2, "b", 6)]),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, [(1, "a", 10), (2, "b", 11)]),
    ],
)
def test_other_engines_keep_the_partition(
    catalog: Catalog, options: dict[str, str], expected: list[tuple[Any, ...]]
) -> None:
    table = moving(catalog, **options)
    table.append(rows((1, "a", 1)))
    table.append(rows((1, "b", 2), (2, "b", 5), (2, "c", 6), (1, "c", 7)))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert found(table) == expected


def test_random_writes_against_a_model(catalog: Catalog) -> None:
    table, model, chosen = moving(catalog), dict[int, tuple[str, int]](), random.Random(3)
    for turn in range(25):
        keys = chosen.sample(range(30), 8)
        if chosen.random() < 0.3:
            table.delete(pa.table({"id": pa.array(keys, pa.int64())}))
            model = {key: value for key, value in model.items() if key not in keys}
        else:
            written = {key: (chosen.choice("abc"), turn) for key in keys}
            table.append(rows(*((key, *value) for key, value in written.items())))
            model |= written
        if turn % 9 == 8:
            procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
        assert found(table) == sorted((key, *value) for key, value in model.items())
    live = table.manifests.live_files(table.latest_snapshot())
    assert {entry.total_buckets for entry in live} == {-1}
    assert len({(entry.partition, entry.bucket) for entry in live}) > 3


def test_batches_of_one_write_know_of_each_other(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockgate.framework.store.write.write._BUFFERED_BYTES", 1)
    table = moving(catalog)
    parts = [rows((1, "a", 1), (2, "a", 2)), rows((1, "b", 3)), rows((1, "a", 4), (2, "c", 5))]
    table.append([batch for part in parts for batch in part.to_batches()])
    assert found(table) == [(1, "a", 4), (2, "c", 5)]


def test_changes_follow_a_key_to_its_partition(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows((1, "b", 1), (2, "a", 2)))
    table.append(rows((1, "a", 3), (2, "b", 4)))
    table.delete(pa.table({"id": pa.array([2], pa.int64())}))
    state: dict[int, int] = {}
    for change in table.changes(0, 3, columns=["id", "n"]):
        for row in change.rows.to_pylist():
            if row["_VALUE_KIND"] in (0, 2):
                state[row["id"]] = row["n"]
            else:
                del state[row["id"]]
    assert state == {1: 3}


def test_two_writers_never_put_a_key_into_two_partitions(catalog: Catalog) -> None:
    table = moving(catalog)
    early = table.write(rows((1, "a", 1)))
    table.append(rows((1, "b", 2)))
    with pytest.raises(CommitConflictError, match="repeat the statement"):
        table.commit(early)
    writers = [
        threading.Thread(target=lambda name=name: table.append(rows(*((key, name, 0) for key in range(20)))))
        for name in "abcd"
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [row[0] for row in found(table)] == list(range(20))


def test_two_writes_of_one_commit_are_refused(catalog: Catalog) -> None:
    table = moving(catalog)
    first, second = table.write(rows((1, "a", 1))), table.write(rows((1, "b", 2)))
    with pytest.raises(InputError, match="one write a commit"):
        table.commit([*first, *second])
    with pytest.raises(UnsupportedError, match="did not look up"):
        table.commit([CommitMessage(each.partition, each.bucket, -1, each.added) for each in first])
    schema = table.schema
    table.commit([CommitMessage.from_json(each.to_json(schema), schema) for each in first])
    assert found(table) == [(1, "a", 1)]


def test_an_overwrite_replaces_the_whole_table(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows((1, "a", 1), (2, "b", 2)))
    with pytest.raises(UnsupportedError, match="cannot be overwritten"):
        table.overwrite(rows((1, "a", 3)), {"p": "a"})
    table.overwrite(rows((1, "b", 3)))
    assert found(table) == [(1, "b", 3)]


def test_an_option_that_selects_files_hides_no_key(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows(*((key, "a", 1) for key in range(9))))
    schema = replace(table.schema, options={**table.schema.options, "scan.bucket": "0"})
    table.sibling(table.identifier, schema).append(rows(*((key, "b", 2) for key in range(9))))
    assert found(table) == [(key, "b", 2) for key in range(9)]


def test_arguments_of_a_commit_do_not_switch_the_check_off(catalog: Catalog) -> None:
    table = moving(catalog)
    early = table.write(rows((1, "b", 1)))
    table.append(rows((1, "c", 2)))
    with pytest.raises(UnsupportedError, match="cannot be overwritten"):
        table.commit(early, overwrite={"p": "b"})
    with pytest.raises(UnsupportedError, match="cannot be overwritten"):
        table.commit(early, overwrite=lambda partition: partition == ("b",))
    with pytest.raises(CommitConflictError, match="repeat the statement"):
        table.commit(early, base_snapshot_id=1)
    with pytest.raises(InputError, match="not committed as COMPACT"):
        table.commit(early, kind="COMPACT")
    with pytest.raises(InputError, match="written without overwrite"):
        table.commit(early, overwrite={})
    afresh = table.write(rows((1, "b", 3)), overwrite={})
    with pytest.raises(InputError, match="committed without it"):
        table.commit(afresh)
    assert found(table) == [(1, "c", 2)]
    table.commit(afresh, overwrite={})
    assert found(table) == [(1, "b", 3)]


def test_states_come_back_and_are_cloned(catalog: Catalog) -> None:
    table = moving(catalog)
    table.append(rows((1, "a", 1)))
    table.append(rows((1, "b", 2), (2, "c", 2)))
    table.overwrite(rows((3, "c", 3)))
    context = procedures.ProcedureContext(catalog)
    procedures.call(context, "rollback_to_as_latest", table="db.t", snapshot=2)
    assert found(table) == [(1, "b", 2), (2, "c", 2)]
    procedures.call(context, "clone", table="db.t", target_table="db.copy")
    copy = catalog.load_table("db.copy")
    copy.append(rows((1, "c", 4)))
    assert found(copy) == [(1, "c", 4), (2, "c", 2)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bucket": "2"}, InputError, "must include the partition columns; p is missing"),
        ({"sequence.field": "n"}, OptionError, r"sequence\.field"),
        ({"deletion-vectors.enabled": "true"}, OptionError, "deletion-vectors"),
        ({"changelog-producer": "input"}, OptionError, "'changelog-producer' = 'input'"),
        ({"ignore-delete": "true"}, OptionError, "ignore-delete"),
        ({"deduplicate.ignore-delete": "true"}, OptionError, "ignore-delete"),
    ],
)
def test_what_does_not_go_with_it(
    catalog: Catalog, options: dict[str, str], error: type[LockgateError], message: str
) -> None:
    with pytest.raises(error, match=message):
        moving(catalog, **options)


def test_deletions_cannot_be_ignored_later(catalog: Catalog) -> None:
    moving(catalog)
    with pytest.raises(OptionError, match="ignore-delete"):
        catalog.alter_table("db.t", [SetOption("ignore-delete", "true")])
    options = {"merge-engine": "partial-update", "ignore-delete": "true"}
    other = moving(catalog, name="db.other", **options)
    other.append(rows((1, "a", 1)))
    other.append(rows((1, "b", 2)))
    assert found(other) == [(1, "a", 2)]


def test_a_try_of_a_task_knows_nothing_of_another(catalog: Catalog) -> None:
    """A task that is tried again writes the deletions of keys that its first try has moved, too."""
    table = moving(catalog)
    table.append(rows((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    locations = TriedLocations(table)
    insertions = pa.array([0, 0], pa.int8())
    found = [
        locations.of_try(attempt).located(rows((1, "b", 9), (4, "a", 9)), insertions)
        for attempt in ("first", "second", "second")
    ]
    assert found[0].kind.to_pylist() == found[1].kind.to_pylist() == [3, 0, 0]
    assert found[0].row.tolist() == found[1].row.tolist() == [0, 0, 1]
    assert found[2].kind.to_pylist() == [0, 0]
    assert locations.placed_for(("a",), 0).snapshot_id == 1
    with pytest.raises(InputError, match="no key was given bucket 77"):
        locations.placed_for(("a",), 77)


def test_an_index_of_keys_finds_what_was_added() -> None:
    """Against a dictionary: texts, doubles with both zeros and NaN, and keys with equal hashes."""
    chosen = random.Random(5)
    schema = pa.schema([("t", pa.string()), ("d", pa.float64())])
    types = tuple(from_arrow(field.type) for field in schema)
    index, model = KeyIndex(schema, types), dict[tuple[Any, ...], int]()
    doubles = [0.0, -0.0, math.nan, -math.nan, 1.5, math.inf]

    def some(count: int) -> pa.Table:
        return pa.table(
            {
                "t": pa.array([f"k{chosen.randrange(300)}" for _ in range(count)]),
                "d": pa.array([chosen.choice(doubles) for _ in range(count)], pa.float64()),
            },
            schema,
        )

    def plain(keys: pa.Table) -> list[tuple[Any, ...]]:
        return [(row["t"], "NaN" if row["d"] != row["d"] else row["d"] + 0.0) for row in keys.to_pylist()]

    for _ in range(60):
        keys = some(40)
        assert index.find(keys).tolist() == [model.get(key, -1) for key in plain(keys)]
        new = {key: at for at, key in enumerate(plain(keys)) if key not in model}
        index.add(keys.take(pa.array(sorted(new.values()), pa.int64())))
        for key in sorted(new, key=lambda key: new[key]):
            model[key] = len(model)
        assert len(index) == len(model)
