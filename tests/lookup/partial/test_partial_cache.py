"""Partial caches against full ones and the table itself: random commits, older snapshots, bounded memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from lookup_world import SCHEMA, World, rows

from lockgate.errors import SnapshotNotFoundError, UnsupportedError
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.cache.cache_version import KeyedState
from lockgate.lookup.driver.lookup_tables import PartialLookupTable, make_spec, open_lookup
from lockgate.lookup.partial.cached_rows import CachedRows
from lockgate.lookup.partial.choice import is_partial
from lockgate.lookup.partial.key_reader import KeyReader
from lockgate.lookup.partial.partial_cache import LocalReader, PartialCache, SnapshotName
from lockgate.lookup.server.partial_builder import partial_info
from lockgate.lookup.spec.lookup_spec import layout_of
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col

PARTIAL = {"lookup.cache": "partial"}


def open_partial(table: Table, on: Any = "id", **options: str) -> PartialLookupTable:
    lookup = open_lookup(table, on, options={**PARTIAL, **options})
    assert isinstance(lookup, PartialLookupTable)
    return lookup


def found(state: Any, ids: list[int]) -> list[tuple[Any, ...] | None]:
    result = state.get(pa.record_batch({"id": pa.array(ids, pa.int64())}))
    answers: list[tuple[Any, ...] | None] = [None] * len(ids)
    for index, row in zip(result.indices.to_pylist(), result.rows.to_pylist(), strict=True):
        answers[index] = tuple(row.values())
    return answers


def at(lookup: PartialLookupTable, snapshot_id: int) -> KeyedState:
    """The state of another snapshot than the newest, as a batch that was planned before asks for it."""
    snapshot = lookup.table.snapshot(snapshot_id)
    info = partial_info(snapshot, lookup._cache, 0, 0.0)
    return KeyedState(info, lookup.layout, LocalReader(lookup._cache, SnapshotName.of(snapshot)))


class ByColumns:
    """Asks a state as a lookup table is asked."""

    def __init__(self, state: KeyedState) -> None:
        self._state = state

    def get(self, keys: pa.RecordBatch) -> Any:
        return self._state.get(keys.columns)


def expected(table: Table, snapshot_id: int, ids: list[int]) -> list[tuple[Any, ...] | None]:
    there = {row["id"]: (row["name"], row["n"]) for row in table.read(snapshot_id=snapshot_id).to_pylist()}
    return [there.get(number) for number in ids]


@pytest.mark.parametrize("seed", range(examples(6)))
def test_partial_full_and_table_agree_over_random_commits(world: World, seed: int) -> None:
    rng = random.Random(seed)
    options = rng.choice(
        [{"bucket": "1"}, {"bucket": "3"}, {"bucket": "2", "deletion-vectors.enabled": "true"}]
    )
    table = world.create(**options)
    table.append(rows(range(0, 300, 2), 0))
    partial = open_partial(table, **{"lookup.partial-max-size": rng.choice(["10 kb", "256 mb"])})
    full = open_lookup(
        table, "id", options={"lookup.cache": "full", "lookup.cache-dir": str(world.folder / "c")}
    )
    served = []
    for step in range(12):
        change = rng.choice(["append", "append", "delete", "compact", "overwrite", "rollback", "nothing"])
        some = sorted(rng.sample(range(320), 40))
        table = world.catalog.load_table("db.dim")
        if change == "append":
            table.append(pa.table({"id": some, "name": [f"s{step}"] * 40, "n": [step] * 40}, schema=SCHEMA))
        elif change == "delete":
            table.delete(pa.table({"id": pa.array(some, pa.int64())}))
        elif change == "compact":
            call(ProcedureContext(world.catalog), "compact", table="db.dim")
        elif change == "overwrite" and step % 3 == 0:
            table.overwrite(rows(range(step, 300, 3), step))
        elif change == "rollback" and len(served) > 2:
            table.rollback(served[-2])
            served = [number for number in served if number <= served[-2]]
        partial.refresh(), full.refresh()
        newest = table.newest_change()
        assert newest is not None
        served.append(newest.id)
        asked = [rng.randrange(330) for _ in range(60)]
        wanted = expected(table, newest.id, asked)
        assert found(partial, asked) == wanted == found(full, asked), (seed, step, change)
        assert found(partial, asked) == wanted, "kept rows differ from those that were read"
        before = rng.choice(served)
        assert found(ByColumns(at(partial, before)), asked) == expected(table, before, asked), (step, before)
    full.close()


def test_what_is_known_is_not_read_again_and_changes_alone_are_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = world.create()
    table.append(rows(range(100), 1))
    lookup = open_partial(table)
    read: list[int] = []
    original = KeyReader.read

    def counted(self: KeyReader, snapshot: Any, keys: Any) -> Any:
        read.append(len(keys))
        return original(self, snapshot, keys)

    monkeypatch.setattr(KeyReader, "read", counted)
    ids = [1, 2, 3, 500, 501]
    assert found(lookup, ids) == [("name-1", 1), ("name-2", 1), ("name-3", 1), None, None]
    assert found(lookup, ids)[3] is None
    assert read == [5], "keys without a row are known, too"
    table.append(rows(range(500, 501), 7))
    table.append(rows(range(50, 60), 7))
    lookup.refresh()
    assert found(lookup, ids) == [("name-1", 1), ("name-2", 1), ("name-3", 1), ("name-500", 7), None]
    assert read == [5, 1], "only the changed key is read again"
    assert found(ByColumns(at(lookup, 1)), ids)[3] is None, "an older batch sees its own snapshot"
    assert read == [5, 1, 1]
    table.overwrite(rows(range(3), 9))
    lookup.refresh()
    assert found(lookup, ids) == [("name-1", 9), ("name-2", 9), None, None, None]
    assert read == [5, 1, 1, 5], "after an overwrite nothing is known"


def test_a_snapshot_that_was_rolled_back_is_an_error(world: World) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    table.append(rows(range(10), 2))
    lookup = open_partial(table)
    old = at(lookup, 2)
    table.rollback(1)
    table.append(rows(range(10), 3))
    with pytest.raises(SnapshotNotFoundError, match="another has its number"):
        old.get([pa.array([1])])
    lookup.refresh()
    assert found(lookup, [1]) == [("name-1", 3)]


def test_files_without_asked_keys_are_not_opened(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = world.create(**{"bucket": "1", "target-file-size": "1 kb"})
    for start in range(0, 1000, 100):
        table.append(rows(range(start, start + 100), 1))
    lookup = open_partial(table)
    opened: list[str] = []
    from lockgate.framework.store.scan.read import FileReader

    original = FileReader._open_orc

    def spying(self: FileReader, path: str, *rest: Any, **more: Any) -> Any:
        opened.append(path)
        return original(self, path, *rest, **more)

    monkeypatch.setattr(FileReader, "_open_orc", spying)
    assert found(lookup, [205, 5000]) == [("name-205", 1), None]
    assert len(opened) == 1
    assert found(lookup, list(range(0, 1000, 100))) == [(f"name-{n}", 1) for n in range(0, 1000, 100)]
    assert len(opened) == 11


def test_memory_is_bounded_and_the_keys_in_use_stay(world: World) -> None:
    table = world.create()
    table.append(rows(range(5000), 1))
    lookup = open_partial(table, **{"lookup.partial-max-size": "100 kb"})
    hot = list(range(50))
    for start in range(0, 5000, 100):
        found(lookup, hot + list(range(start, start + 100)))
        assert lookup._cache.size <= 100 << 10
    assert 100 < len(lookup._cache) < 1000
    kept = CachedRows(10_000)
    kept.put({b"k": b"x" * 20_000})
    assert (kept.get([b"k"]), kept.size) == ([None], 0), "what is larger than all is not kept"


@pytest.mark.parametrize("where", [None, col("n") > 5])
def test_conditions_hold_for_what_is_kept(world: World, where: Any) -> None:
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = open_lookup(table, "id", where=where, options=PARTIAL)
    assert found(lookup, [1])[0] == (None if where is not None else ("name-1", 1))
    table.append(rows(range(1, 2), 8))
    lookup.refresh()
    assert found(lookup, [1, 2]) == [("name-1", 8), None if where is not None else ("name-2", 1)]


KINDS = {
    "text": pa.string(), "number": pa.decimal128(20, 3), "float": pa.float64(), "moment": pa.timestamp("us"),
    "day": pa.date32(), "bytes": pa.binary(), "yes": pa.bool_(),
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "text": ["", "a", "é", "x" * 300, "😀"],
    "number": ["1.000", "-2.500"],
    "float": [0.0, float("nan"), 1.5, -1.0],
    "moment": [0, -1_000_000, 10**15],
    "day": [0, 20_000, -5],
    "bytes": [b"", b"\0", b"\xff" * 9],
    "yes": [True, False],
}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_every_type(world: World, kind: str) -> None:
    from lockgate.framework.store.schema.schema import Schema

    values = VALUES[kind]
    keys = pa.array(values, pa.int32() if kind == "day" else None).cast(KINDS[kind])
    schema = pa.schema([("part", pa.int32()), ("k", KINDS[kind]), ("n", pa.int64())])
    world.catalog.create_namespace("db", ignore_if_exists=True)
    given = Schema.from_arrow(
        schema, primary_keys=("part", "k"), partition_keys=("part",), options={"bucket": "2"}
    )
    table = world.catalog.create_table("db.t", given)
    for part in (1, 2):
        content = {"part": [part] * len(keys), "k": keys, "n": [part * 100 + n for n in range(len(keys))]}
        table.append(pa.table(content, schema=schema))
    lookup = open_partial(table, ["k", "part"])
    for part in (1, 2, 3):
        asked = pa.record_batch({"k": keys, "part": pa.array([part] * len(keys), pa.int32())})
        n = lookup.get(asked).rows.column("n").to_pylist()
        assert n == ([] if part == 3 else [part * 100 + i for i in range(len(keys))])
    if kind == "float":
        zero = pa.record_batch({"k": [-0.0], "part": pa.array([1], pa.int32())})
        assert lookup.get(zero).rows.column("n").to_pylist() == [100]


def test_what_it_cannot_do_is_refused_by_name(world: World) -> None:
    table = world.create(bucket="-1")
    with pytest.raises(UnsupportedError, match=r"db\.dim: it has bucket=-1, no fixed number of buckets"):
        open_lookup(table, "id", options=PARTIAL)
    world.catalog.drop_table("db.dim")
    table = world.create()
    with pytest.raises(UnsupportedError, match="joined by name, and its key is id"):
        open_lookup(table, "name", options=PARTIAL)
    world.catalog.drop_table("db.dim")
    table = world.create(primary_keys=())
    with pytest.raises(UnsupportedError, match="no primary key"):
        open_lookup(table, "id", options=PARTIAL)


def test_auto_chooses_it_for_what_fits_neither_memory_nor_disk(world: World) -> None:
    table = world.create()
    small = {"lookup.memory-max-size": "1 mb", "lookup.cache-max-disk-size": "10 mb"}
    spec = make_spec(table, "id", options=small)
    assert not is_partial(table, spec, 1_000)
    assert not is_partial(table, spec, 100_000), "a whole cache fits on the disk"
    assert is_partial(table, spec, 10_000_000)
    assert not is_partial(table, make_spec(table, "name", options=small), 10_000_000)
    assert not is_partial(table, make_spec(table, "id", options={"lookup.cache": "full"}), 10**12)
    assert is_partial(table, make_spec(table, "id"), 10**12), "more than any disk of these days"
    table.append(rows(range(2000), 1))
    tiny = {"lookup.memory-max-size": "1 kb", "lookup.cache-max-disk-size": "10 kb"}
    assert isinstance(open_lookup(table, "id", options=tiny), PartialLookupTable)


def test_encoded_keys_are_read_back(world: World) -> None:
    table = world.create()
    codec = layout_of(make_spec(table, "id"), table.schema).key_codec
    ids = pa.array(np.array([5, -1, 2**62]))
    assert codec.decode(codec.encode([ids]).rows).column("id").equals(ids)
    assert (
        PartialCache(table, make_spec(table, "id"), layout_of(make_spec(table, "id"), table.schema)).size == 0
    )


def test_an_empty_table_has_no_state(world: World, tmp_path: Path) -> None:
    table = world.create()
    lookup = open_partial(table)
    assert lookup.refresh() is None
    table.append(rows(range(3), 1))
    lookup.refresh()
    assert found(lookup, [2, 3]) == [("name-2", 1), None]
