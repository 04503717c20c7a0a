"""Lookup tables against a plain dictionary: random upserts, deletes, refreshes, rollbacks, damage."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    LookupCacheError,
    OptionError,
    UnsupportedTypeError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.metadata.snapshot import CommitKind
from lockgate.lookup.cache import builder, external_sort, layers, mapped_files
from lockgate.lookup.driver.lookup_tables import (
    LookupTable,
    NoPrimaryKeyLookupTable,
    PrimaryKeyLookupTable,
    SecondaryIndexLookupTable,
    open_lookup,
)
from lockgate.pushdown import col

KEY = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
MakeTable = Callable[..., Any]
SCHEMA = pa.schema(
    [("id", pa.int64()), ("tag", pa.string()), ("n", pa.int32()), ("price", pa.decimal128(9, 2))]
)


def row(key: int, rng: random.Random) -> dict[str, Any]:
    tag = rng.choice([None, "", "a", "bb", "a long tag of some length", "é"])
    return {"id": key, "tag": tag, "n": rng.choice([None, 1, 2]), "price": None}


def answers(lookup: LookupTable, keys: pa.RecordBatch) -> list[list[tuple[Any, ...]]]:
    """For each key its rows, sorted, as tuples of the answered columns."""
    result = lookup.get(keys)
    found: list[list[tuple[Any, ...]]] = [[] for _ in range(keys.num_rows)]
    for index, values in zip(result.indices.to_pylist(), result.rows.to_pylist(), strict=True):
        found[index].append(tuple(values.values()))
    assert result.matched.to_pylist() == [bool(rows) for rows in found]
    assert result.indices.to_pylist() == sorted(result.indices.to_pylist())
    return [sorted(rows, key=repr) for rows in found]


def expected(
    state: list[dict[str, Any]], keys: pa.RecordBatch, columns: tuple[str, ...]
) -> list[list[tuple[Any, ...]]]:
    names = keys.schema.names
    found = []
    for key in keys.to_pylist():
        rows = [
            tuple(line[name] for name in columns)
            for line in state
            if all(key[name] is not None and key[name] == line[name] for name in names)
        ]
        found.append(sorted(rows, key=repr))
    return found


@pytest.mark.parametrize(
    ("storage", "small_runs", "sealed"),
    [("full", False, False), ("full", True, False), ("full", True, True), ("memory", True, False)],
)
@pytest.mark.parametrize(
    ("primary", "on", "kind"),
    [
        (("id",), ("id",), PrimaryKeyLookupTable),
        (("id",), ("tag",), SecondaryIndexLookupTable),
        (("id", "n"), ("n", "tag"), SecondaryIndexLookupTable),
        ((), ("tag",), NoPrimaryKeyLookupTable),
        ((), ("id", "n"), NoPrimaryKeyLookupTable),
    ],
)
def test_random_changes_against_a_dictionary(
    make_table: MakeTable,
    monkeypatch: pytest.MonkeyPatch,
    primary: tuple[str, ...],
    on: tuple[str, ...],
    kind: type[LookupTable],
    small_runs: bool,
    sealed: bool,
) -> None:
    if small_runs:
        monkeypatch.setattr(external_sort, "ROWS_PER_RUN", 5)
        monkeypatch.setattr(external_sort, "SPILL_BYTES", 500)
        monkeypatch.setattr(external_sort, "_WRITE_ROWS", 3)
        monkeypatch.setattr(mapped_files, "_SMALL_ROWS", 4)
        monkeypatch.setattr(mapped_files, "_INLINE_ROWS", 30)
        monkeypatch.setattr(layers, "MERGE_ROWS", 7)
    rng = random.Random(repr((primary, on, small_runs)))
    encrypted = {"orc.encrypt": "pii:tag", "keys": KEY} if sealed else {}
    table = make_table(SCHEMA, primary, **encrypted)

    def changes() -> list[tuple[str, dict[str, Any]]]:
        kinds = ["+I", "+U", "-D", "-U"] if primary else ["+I"]
        made = [(rng.choice(kinds), row(rng.randrange(40), rng)) for _ in range(rng.randrange(1, 40))]
        if "n" in primary:
            made = [(change, {**line, "n": line["n"] or 0}) for change, line in made]
        return made

    table.commit([("+I", {**row(key, rng), "n": key % 3}) for key in range(60)])
    columns = ("n", "tag", "id") if on != ("tag",) else ("id", "n")
    lookup = open_lookup(table, on, columns=columns)
    assert type(lookup) is kind
    for _ in range(12):
        keys = pa.RecordBatch.from_pylist(
            [{name: row(rng.randrange(50), rng)[name] for name in on} for _ in range(50)],
            schema=pa.schema([SCHEMA.field(name) for name in on]),
        )
        latest = table.latest_snapshot().id
        assert answers(lookup, keys) == expected(table.state(latest), keys, columns)
        for _ in range(rng.randrange(1, 4)):
            if rng.random() < 0.15:
                table.compact()
            else:
                overwrite = rng.random() < 0.1
                kind_of_commit = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND
                table.commit([("+I", row(1, rng) | {"n": 1})] if overwrite else changes(), kind_of_commit)
        info = lookup.refresh()
        assert info is not None
        if kind is not SecondaryIndexLookupTable:
            with_key = [line for line in table.state(info.snapshot_id) if None not in [line[k] for k in on]]
            assert info.rows == len(with_key)
    lookup.close()


def small(make_table: MakeTable) -> Any:
    table = make_table(SCHEMA, ("id",))
    table.commit([("+I", {"id": n, "tag": f"t{n % 3}", "n": n, "price": None}) for n in range(10)])
    return table


KEYS = pa.RecordBatch.from_pydict({"id": pa.array([3, None, 99, 3], pa.int64())})


def test_the_answer_says_which_row_is_for_which_key(make_table: MakeTable) -> None:
    with open_lookup(small(make_table), "id", columns=["tag"]) as lookup:
        result = lookup.get(KEYS)
        assert result.rows.to_pylist() == [{"tag": "t0"}, {"tag": "t0"}]
        assert result.indices.to_pylist() == [0, 3]
        assert result.matched.to_pylist() == [True, False, False, True]
        assert result.snapshot_id == 1


def test_only_the_needed_columns_are_read_and_kept(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small(make_table)
    asked: list[list[str]] = []
    for method in ("scan", "changes"):
        original = getattr(type(table), method)

        def spy(self: Any, *args: Any, columns: list[str], original: Any = original, **more: Any) -> Any:
            asked.append(sorted(columns))
            return original(self, *args, columns=columns, **more)

        monkeypatch.setattr(type(table), method, spy)
    for on, where, wanted, kept in (
        ("id", None, ["id", "tag"], ["tag"]),
        ("id", col("n") < 5, ["id", "n", "tag"], ["tag"]),
        # A list's rows must be told apart by their primary keys.
        ("n", None, ["id", "n", "tag"], ["id", "tag"]),
    ):
        with open_lookup(table, on, columns=["tag"], where=where) as lookup:
            table.commit([("+U", {"id": 3, "tag": "x", "n": 3, "price": None})])
            lookup.refresh()
            assert asked
            assert all(columns == wanted for columns in asked)
            assert sorted(lookup.layout.row_schema.names) == kept
        asked.clear()


def test_no_keys_at_all(make_table: MakeTable) -> None:
    for on in ("id", "tag"):
        with open_lookup(small(make_table), on) as lookup:
            empty = pa.RecordBatch.from_arrays([pa.array([], SCHEMA.field(on).type)], [on])
            assert lookup.get(empty).rows.num_rows == 0


def test_compaction_writes_nothing(make_table: MakeTable) -> None:
    table = small(make_table)
    with open_lookup(table, "id") as lookup:
        table.compact()
        table.compact()
        info = lookup.refresh()
        assert info is not None
        assert (info.snapshot_id, table.reads) == (1, [1])


def test_compaction_before_the_first_load_and_after_expiry(make_table: MakeTable) -> None:
    table = small(make_table)
    table.compact()
    table.expire(1)
    with open_lookup(table, "id") as lookup:
        assert lookup.status().snapshot_id == 2
        table.commit([("-D", table.state(2)[0])])
        table.compact()
        table.expire(2)
        table.expire(3)
        info = lookup.refresh()
        assert info is not None
        assert (info.snapshot_id, info.full_load, info.rows) == (4, True, 9)


def test_an_unchanged_row_is_not_written(make_table: MakeTable) -> None:
    table = small(make_table)
    with open_lookup(table, "id") as lookup:
        table.commit([("+U", table.state(1)[0]), ("+U", {**table.state(1)[1], "n": 77})])
        info = lookup.refresh()
        assert info is not None
        assert (info.changes, info.full_load) == (1, False)


def test_overwrite_loads_the_table_again(make_table: MakeTable) -> None:
    table = small(make_table)
    with open_lookup(table, "id", columns=["n"]) as lookup:
        table.commit([("+I", {"id": 3, "tag": None, "n": 5, "price": None})], CommitKind.OVERWRITE)
        info = lookup.refresh()
        assert info is not None
        assert (info.full_load, info.rows) == (True, 1)
        assert lookup.get(KEYS).rows.to_pylist() == [{"n": 5}, {"n": 5}]


def test_a_rolled_back_snapshot_is_never_served_again(make_table: MakeTable) -> None:
    table = small(make_table)
    wrong = {"id": 3, "tag": None, "n": -1, "price": None}
    with open_lookup(table, "id", columns=["n"]) as lookup:
        table.commit([("+U", wrong)])
        lookup.refresh()
        table.rollback(1)
        lookup.refresh()
        assert answers(lookup, KEYS)[0] == [(3,)]
        table.commit([("+U", {**wrong, "n": 6})])
        info = lookup.refresh()
        assert info is not None
        assert info.snapshot_id == 2
        assert answers(lookup, KEYS)[0] == [(6,)]


def test_following_across_a_rollback(make_table: MakeTable) -> None:
    table = small(make_table)
    wrong = {"id": 3, "tag": None, "n": -1, "price": None}
    with open_lookup(table, "id", columns=["n"]) as lookup:
        table.commit([("+U", wrong)])
        lookup.refresh()
        table.rollback(1)
        table.commit([("+U", {**wrong, "id": 4})])
        table.commit([("+U", {**wrong, "id": 5})])
        info = lookup.refresh()
        assert info is not None
        assert (info.snapshot_id, info.full_load) == (3, True)
        assert answers(lookup, KEYS)[0] == [(3,)]


def test_too_far_behind_loads_the_table_again(make_table: MakeTable) -> None:
    table = small(make_table)
    options = {"lookup.refresh.full-load-threshold": "2"}
    with open_lookup(table, "id", options=options) as lookup:
        for _ in range(3):
            table.commit([("-D", table.state(1)[0])])
        info = lookup.refresh()
        assert info is not None
        assert info.full_load


def test_rows_enter_and_leave_by_the_condition(make_table: MakeTable) -> None:
    for on in ("id", "tag"):
        table = small(make_table)
        table.table_id = on
        condition = col("n") > 4
        with open_lookup(table, on, columns=["id"], where=condition) as lookup:
            for n, value in ((2, 50), (7, 1), (8, None), (9, 9)):
                table.commit([("+U", {"id": n, "tag": f"t{n % 3}", "n": value, "price": None})])
            info = lookup.refresh()
            assert info is not None
            assert not info.full_load
            keys = pa.RecordBatch.from_pydict(
                {"id": list(range(10))} if on == "id" else {"tag": ["t0", "t1", "t2"]}
            )
            found = sorted(n for rows in answers(lookup, keys) for (n,) in rows)
            assert found == [2, 5, 6, 9]


def test_a_cache_is_found_again_by_the_next_process(make_table: MakeTable) -> None:
    table = small(make_table)
    for _ in range(2):
        with open_lookup(table, "id") as lookup:
            assert answers(lookup, KEYS)[0]
    assert table.reads == [1]
    with open_lookup(table, "id", columns=["tag"]):
        assert table.reads == [1, 1]


def test_a_failing_refresh_leaves_the_state_before(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small(make_table)
    with open_lookup(table, "id", columns=["n"]) as lookup:
        table.commit([("+U", {"id": 3, "tag": None, "n": 30, "price": None})])
        table.commit([("+U", {"id": 3, "tag": None, "n": 31, "price": None})])
        whole = builder.make_step

        def fail(*arguments: Any) -> Any:
            step = whole(*arguments)
            if b"\x1f" in step.values[0]:
                raise OSError("disk on fire")
            return step

        monkeypatch.setattr(builder, "make_step", fail)
        with pytest.raises(OSError, match="disk on fire"):
            lookup.refresh()
        assert answers(lookup, KEYS)[0] == [(3,)]
        with open_lookup(table, "id", columns=["tag"]):
            pass
        monkeypatch.undo()
        info = lookup.refresh()
        assert info is not None
        assert not info.full_load
        assert answers(lookup, KEYS)[0] == [(31,)]


def test_a_table_without_snapshots(make_table: MakeTable) -> None:
    lookup = open_lookup(make_table(SCHEMA, ("id",)), "id")
    assert lookup.status().snapshot_id is None
    with pytest.raises(LookupCacheError, match="no snapshot yet"):
        lookup.get(KEYS)


def test_what_cannot_be_looked_up_is_refused_before_anything_is_read(make_table: MakeTable) -> None:
    table = small(make_table)
    with pytest.raises(ColumnNotFoundError, match="did you mean 'price'"):
        open_lookup(table, "id", columns=["prize"])
    with pytest.raises(ColumnNotFoundError, match=r"db\.t has no column 'idd'"):
        open_lookup(table, "idd")
    with pytest.raises(InputError, match="twice"):
        open_lookup(table, "id", columns=["n", "n"])
    with pytest.raises(OptionError, match=r"did you mean 'lookup\.cache-dir'"):
        open_lookup(table, "id", options={"lookup.cache-dirr": "x"})
    with pytest.raises(OptionError, match=r"lookup\.refresh\.async"):
        open_lookup(table, "id", options={"lookup.refresh.async": "perhaps"})
    nested = make_table(pa.schema([("id", pa.int32()), ("tags", pa.list_(pa.string()))]), ("id",))
    with pytest.raises(UnsupportedTypeError, match="cannot join on column 'tags'"):
        open_lookup(nested, "tags")
    assert table.reads == []


def test_keys_of_a_wrong_type_name_both_types(make_table: MakeTable) -> None:
    with open_lookup(small(make_table), "id") as lookup:
        with pytest.raises(InputError, match=r"'id' has type string in the stream and int64"):
            lookup.get(pa.RecordBatch.from_pydict({"id": ["3"]}))
        with pytest.raises(InputError, match="the keys lack id; they have x"):
            lookup.get(pa.RecordBatch.from_pydict({"x": ["3"]}))
        narrow = lookup.get(pa.RecordBatch.from_pydict({"id": pa.array([3], pa.int8())}))
        assert narrow.matched.to_pylist() == [True]
