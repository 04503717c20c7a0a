"""Bugs that recur in readers of this format, by their number in apache/paimon, and the tests that own them.

Each has a test here, of the store, and one of Spark's queries, in `integration/test_known_bugs_spark.py`.

| bug | what was wrong there | here | in Spark |
|---|---|---|---|
| #4296 | LIMIT counted rows that deletion vectors hide | `test_4296_*` | `test_4296_*` |
| #7665 | LIMIT left out files before the filter was applied | `test_7665_*` | `test_7665_*` |
| #8458 | TopN left out files before the filter was applied | `test_8458_*` | `test_8458_*` |
| #6085 | TopN read bounds of a column's former type, or of its former name | `test_6085_*` | `test_6085_*` |
| #5825 | bounds of the texts '9', '10', '11' were taken for numbers | `test_5825_*` | `test_5825_*` |
| #9141 | a file index counted rows that deletion vectors hide | `test_9141_*` | `test_9141_*` |
| #9143 | IS NAN was answered by a file index that knows no NaN | `test_9143_*` | `test_9143_*` |
| #5874 | deletion vectors, switched on for a table with rows, doubled them | `test_5874_*` | `test_9141_*` |
| #8570 | a filter on a masked column pruned by bounds of the raw values | `test_8570_*` | `test_8570_*` |
| none | bounds pruned, or answered, what is not monotone (`pk % 8 = 2`) | `test_bounds_*` | `test_bounds_*` |

More on these: limits in `test_scan.py` and `test_limits.py`, bounds and evolution in `test_scan.py` and
`test_file_table.py`, aggregates in `test_aggregates.py`, random histories in `test_scan_property.py`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from zoo import unpack

from lockgate.errors import MaskedDataWarning, UnsupportedError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeType, RenameColumn, SetOption
from lockgate.framework.types import BIGINT, INT
from lockgate.pushdown import Aggregate, Function, SortKey, col, from_json, smallest

MakeTable = Callable[..., Table]
Compact = Callable[[Table], None]
NUMBERED = {"id": pa.int64(), "v": pa.int64()}


def rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([v] * len(ids), pa.int64())})


def files(table: Table, *args: Any, **wishes: Any) -> int:
    return sum(len(split.files) for split in table.scan(*args, **wishes).splits)


def rewritten_schema(catalog: Catalog, table: Table, change: Callable[[dict[str, Any]], object]) -> Table:
    """Give a table another schema, as a writer would that allows what is refused here."""
    folder = Path(table.location) / "schema"
    schema = json.loads((folder / f"schema-{table.schema.id}").read_text())
    change(schema)
    schema["id"] += 1
    (folder / f"schema-{schema['id']}").write_text(json.dumps(schema))
    return catalog.load_table(f"db.{table.identifier.name}")


def test_4296_a_limit_counts_no_deleted_rows(make_table: MakeTable, compact: Compact) -> None:
    table = make_table(columns=NUMBERED, primary_keys=("id",), bucket="1")
    table.append(rows(*range(100)))
    compact(table)
    table.append(rows(200))
    table.delete(pa.table({"id": list(range(95))}))
    for limit in (1, 5, 6, 7):
        assert table.read(limit=limit).num_rows == min(limit, 6)
    assert set(table.read(limit=6)["id"].to_pylist()) == {95, 96, 97, 98, 99, 200}


def test_7665_a_limit_comes_after_the_filter(make_table: MakeTable) -> None:
    table = make_table(columns=NUMBERED)
    for start in range(0, 50, 10):
        table.append(rows(*range(start, start + 10), v=start))
    # The bounds of every file allow it: only rows decide.
    assert table.read(predicate=col("id").isin([49, 48]), limit=2)["id"].to_pylist() == [48, 49]
    for start in range(0, 50, 10):
        table.append(pa.concat_tables([rows(0, v=-1), rows(start + 100, v=7), rows(0, v=100)]))
    assert table.read(predicate=col("v") == 7, limit=5).num_rows == 5
    assert table.read(predicate=(col("v") == 7) & (col("id") == 140), limit=1)["id"].to_pylist() == [140]


def test_8458_top_rows_are_chosen_after_the_filter(make_table: MakeTable) -> None:
    table = make_table(columns=NUMBERED)
    for start in range(0, 50, 10):
        table.append(rows(*range(start, start + 10), v=start))
    top = (SortKey(("id",), descending=True),)
    assert files(table, order=top, limit=3) == 1
    assert files(table, col("v") >= 0, order=top, limit=3) == 5
    found = table.read(table.scan(col("v") == 20, order=top, limit=3))
    assert found["id"].to_pylist() == list(range(20, 30))


def test_6085_top_rows_of_evolved_columns(make_table: MakeTable, catalog: Catalog) -> None:
    columns = {"id": pa.int64(), "n": pa.int32(), "old": pa.int32()}
    table = make_table(columns=columns)
    ids = list(range(10))
    for start in (0, 10):
        numbers = [start + number for number in ids]
        table.append(
            pa.table({"id": numbers, "n": numbers, "old": numbers}).cast(pa.schema(list(columns.items())))
        )
    changes = [ChangeType(("n",), BIGINT), RenameColumn(("old",), "new"), AddColumn(("old",), INT)]
    catalog.alter_table("db.t", changes)
    table = catalog.load_table("db.t")
    table.append(
        pa.table(
            {"id": [30], "n": [2**40], "new": pa.array([-1], pa.int32()), "old": pa.array([5], pa.int32())}
        )
    )

    def ids_of(name: str, **how: Any) -> set[int]:
        plan = table.scan(order=(SortKey((name,), **how),), limit=1)
        return set(table.read(plan)["id"].to_pylist())

    assert ids_of("n", descending=True) == {30}
    assert ids_of("n") == set(range(10))
    assert ids_of("new") == {30}
    assert ids_of("new", descending=True) == set(range(10, 20))
    # The column that has the former name now: null in old files.
    assert ids_of("old", descending=True, nulls_first=False) == {30}
    assert ids_of("old", nulls_first=False) == {30}
    assert ids_of("old", nulls_first=True) & set(range(20))


def test_6085_bounds_of_another_type_order_nothing(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(columns={"id": pa.int64(), "s": pa.string()})
    for text in ("9", "10", "11"):
        table.append(pa.table({"id": [int(text)], "s": [text]}))
    table = rewritten_schema(catalog, table, lambda schema: schema["fields"][1].update(type="INT"))
    plan = table.scan(order=(SortKey(("s",), descending=True),), limit=1)
    assert set(table.read(plan)["s"].to_pylist()) == {9, 10, 11}


def test_5825_bounds_of_text_are_not_those_of_numbers(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(columns={"id": pa.int64(), "s": pa.string()})
    table.append(pa.table({"id": [1, 2, 3], "s": ["9", "10", "11"]}))
    with pytest.raises(UnsupportedError):
        catalog.alter_table("db.t", [ChangeType(("s",), INT)])
    table = rewritten_schema(catalog, table, lambda schema: schema["fields"][1].update(type="INT"))
    table.append(pa.table({"id": [4, 5], "s": pa.array([8, 12], pa.int32())}))
    for predicate, expected in [
        (col("s") > 9, [10, 11, 12]),
        (col("s") < 10, [8, 9]),
        (col("s") == 10, [10]),
        (col("s").isin([9, 11]), [9, 11]),
        (~(col("s") <= 9), [10, 11, 12]),
    ]:
        assert sorted(table.read(predicate=predicate)["s"].to_pylist()) == expected
    # What was written as INT is left out by its bounds all the same.
    assert files(table, col("s") > 100) == 1


def foreign_index(table: Table, embedded: bytes) -> None:
    """Append a file with a file index of another writer: in the manifest, and in a file of its own."""
    message = table.write(rows(1, 2, 3))
    (added,) = message[0].added
    marked = replace(added, embedded_index=embedded, extra_files=(f"{added.file_name}.index",))
    path = table.paths.data_file((), message[0].bucket, added)
    Path(f"{path}.index").write_bytes(embedded)
    table.commit([replace(message[0], added=(marked,))])


def test_9141_a_foreign_file_index_decides_nothing(make_table: MakeTable) -> None:
    table = make_table(columns=NUMBERED)
    foreign_index(table, bytes(64))  # an index of nothing
    assert table.read(predicate=col("id") == 2)["id"].to_pylist() == [2]
    assert table.read()["id"].to_pylist() == [1, 2, 3]


def test_9141_an_index_together_with_deletion_vectors_decides_nothing(tmp_path: Path) -> None:
    table = Catalog(unpack(tmp_path)).load_table("zoo.dv_append_32")
    assert table.aggregate([Aggregate(Function.COUNT)], snapshot_id=4).rows.to_pylist() == [{"COUNT(*)": 8}]
    assert table.read(limit=8, snapshot_id=4).num_rows == 8
    answer = table.aggregate([smallest("k")], snapshot_id=4)
    assert answer.rows is None
    assert "deleted" in answer.push_down.remaining[0].reason


@pytest.mark.parametrize("index", [{}, {"orc.bloom.filter.columns": "f,d"}], ids=["bounds", "Bloom filter"])
def test_9143_nan_is_found(catalog: Catalog, index: dict[str, str]) -> None:
    schema = pa.schema([("id", pa.int32()), ("f", pa.float32()), ("d", pa.float64())])
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options=index))
    for number, value in enumerate([1.5, math.nan, -0.0, None, math.inf]):
        table.append(
            pa.Table.from_pylist(
                [{"id": number, "f": value, "d": value}, {"id": 10, "f": 1.0, "d": 1.0}], schema
            )
        )
    for name in ("f", "d"):
        for predicate, expected in [
            (col(name) == math.nan, [1]),
            (col(name) >= math.nan, [1]),
            (col(name).isin([math.nan, 0.0]), [1, 2]),
            (col(name) > 1e300, [1, 4]),
            (col(name) == 0.0, [2]),
            (~(col(name) < math.nan), [1]),
        ]:
            assert sorted(table.read(predicate=predicate)["id"].to_pylist()) == expected


def test_5874_deletion_vectors_cannot_be_switched_on(make_table: MakeTable, catalog: Catalog) -> None:
    table = make_table(columns=NUMBERED, primary_keys=("id",), bucket="1")
    table.append(rows(1, 2, v=1))
    table.append(rows(2, 3, v=2))
    with pytest.raises(UnsupportedError, match=r"deletion-vectors\.enabled"):
        catalog.alter_table("db.t", [SetOption("deletion-vectors.enabled", "true")])
    assert sorted(table.read()["id"].to_pylist()) == [1, 2, 3]
    # Paimon shows rows of level 0 once a compaction has looked for older ones of their keys.
    foreign = rewritten_schema(
        catalog, table, lambda schema: schema["options"].update({"deletion-vectors.enabled": "true"})
    )
    assert foreign.read().num_rows == 0
    assert foreign.aggregate([Aggregate(Function.COUNT)]).rows.to_pylist() == [{"COUNT(*)": 0}]


@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "key"])
def test_8570_masks_are_not_pruned_by_what_they_hide(tmp_path: Path, keys: list[str]) -> None:
    schema = pa.schema([("id", pa.int64()), ("pay", pa.int64()), ("name", pa.string())])
    options = {
        "orc.encrypt": "pii:pay,name",
        "orc.mask": "redact:pay,name",
        **({"bucket": "1"} if keys else {}),
    }
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(schema, primary_keys=keys, options=options))
    for start in (100, 200):
        numbers = list(range(start, start + 20))
        table.append(pa.table({"id": numbers, "pay": numbers, "name": [f"n{number}" for number in numbers]}))
    assert table.read(predicate=col("pay") == 111)["id"].to_pylist() == [111]
    blind = Catalog(tmp_path).load_table("db.t")
    with pytest.warns(MaskedDataWarning):
        whole = blind.read()
    for name, hidden in (("pay", 111), ("name", "n111")):
        masks = set(whole[name].to_pylist())
        assert hidden not in masks
        for mask in masks:
            expected = sum(value == mask for value in whole[name].to_pylist())
            with pytest.warns(MaskedDataWarning):
                assert blind.read(predicate=col(name) == mask).num_rows == expected
        with pytest.warns(MaskedDataWarning):
            assert blind.read(predicate=col(name) == hidden).num_rows == 0
        answer = blind.aggregate([Aggregate(Function.MAX, (name,))])
        assert answer.rows is None


def test_bounds_say_nothing_of_expressions(make_table: MakeTable) -> None:
    table = make_table(columns=NUMBERED)
    table.append(rows(0, 7))
    table.append(rows(8, 9, 10))
    modulo = {"op": "%", "args": [{"col": ["id"]}, {"value": 8, "type": "long"}]}
    for node in (
        {"op": "=", "args": [modulo, {"value": 2, "type": "long"}]},
        {"op": ">", "args": [{"op": "ABS", "args": [{"col": ["id"]}]}, {"value": 9, "type": "long"}]},
        {
            "op": "=",
            "args": [
                {"op": "CAST", "type": "string", "args": [{"col": ["id"]}]},
                {"value": "10", "type": "string"},
            ],
        },
    ):
        assert from_json(node) is None  # stays with the engine, as a whole
