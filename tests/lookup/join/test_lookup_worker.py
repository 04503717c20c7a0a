"""What tasks of Spark's workers ask: answers in parts, and files that are let go of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lockgate.lookup.driver.lookup_tables import LookupTable, open_lookup
from lockgate.lookup.join import lookup_worker, task_lookup
from lockgate.lookup.join.task_lookup import TaskLookup, coalesce_batches, look_up, look_up_batches
from lockgate.lookup.spec.lookup_options import Retry

MakeTable = Callable[..., Any]

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
FIELDS = (pa.field("text", pa.string()),)


def asked_of(lookup: LookupTable, *, many: bool, retry: Retry | None = None) -> TaskLookup:
    return TaskLookup((lookup.status().directory,), FIELDS, many, 1 << 20, retry)


def parts_of(asked: TaskLookup, pin: int, ids: list[int | None]) -> list[pa.Array]:
    pins = pa.array([pin] * len(ids), pa.int64())
    return list(look_up_batches(asked, None, pins, [pa.array(ids, pa.int64())]))


@pytest.mark.parametrize("retry", [None, Retry(0.0, 1)])
@pytest.mark.parametrize("primary_keys", [(), ("id",)])
def test_a_large_answer_is_given_in_parts(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch, primary_keys: tuple[str, ...], retry: Retry | None
) -> None:
    table = make_table(SCHEMA, primary_keys)
    repeats = 1 if primary_keys else 50
    many = not primary_keys
    table.commit([("+I", {"id": 1 + n % 2, "text": f"{'x' * 40}{n}"}) for n in range(2 * repeats)])
    ids = [1, None, 1, 3, 2, 1, 1, 2] * 20
    with open_lookup(table, "id") as lookup:
        asked = asked_of(lookup, many=many, retry=retry)
        pins = pa.array([1] * len(ids), pa.int64())
        whole = look_up(asked, None, pins, [pa.array(ids, pa.int64())])
        assert parts_of(asked, 1, ids) == [whole]
        monkeypatch.setattr(task_lookup, "_MOST_BYTES", 1000 * repeats)
        parts = parts_of(asked, 1, ids)
        assert len(parts) > 5
        assert max(part.nbytes for part in parts) < 2 * 1000 * repeats
        assert pa.concat_arrays(parts).equals(whole)
        # A key whose rows are more than that is answered all the same, by itself.
        monkeypatch.setattr(task_lookup, "_MOST_BYTES", 1)
        assert pa.concat_arrays(parts_of(asked, 1, ids)).equals(whole)
        assert len(parts_of(asked, 1, [1, 1])) == 2
        assert parts_of(asked, 1, []) == [pa.array([], whole.type)]


def test_files_of_states_that_were_removed_are_let_go_of(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",))
    with open_lookup(table, "id", options={"lookup.cache": "full"}) as lookup:
        asked = asked_of(lookup, many=False)
        for number in range(1, 8):
            table.commit([("+I", {"id": 1, "text": f"t{number}"})])
            lookup.refresh()
            pin = lookup.status().snapshot_id
            assert pin is not None
            (found,) = parts_of(asked, pin, [1])
            assert found.to_pylist() == [{"text": f"t{number}"}]
        # Those that the owner keeps.
        assert sorted(snapshot for _, snapshot, _ in lookup_worker._open) == [6, 7]
        assert parts_of(asked, 6, [1])[0].to_pylist() == [{"text": "t6"}]


def test_batches_of_a_task_are_asked_together() -> None:
    def batches() -> Iterator[tuple[pa.Array, ...]]:
        for start, size in ((0, 3), (3, 3), (6, 0), (6, 5), (11, 20), (31, 1)):
            ids = pa.array(range(start, start + size), pa.int64())
            yield pa.nulls(size, pa.int64()), ids

    asked = list(coalesce_batches(batches(), most_rows=8))
    assert [len(ids) for _, ids in asked] == [6, 5, 20, 1]
    assert pa.concat_arrays([ids for _, ids in asked]).to_pylist() == list(range(32))
    assert list(coalesce_batches([], most_rows=8)) == []
