"""Tables of all merge engines written by Python: what is merged on the way, refused, followed and skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.errors import InputError, OptionError, UnsupportedError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.types import INT, STRING, DataField
from lockgate.pushdown import Comparison, Op, SortKey

FIELDS = (DataField(0, "k", INT), DataField(1, "a", INT), DataField(2, "b", STRING), DataField(3, "g", INT))


def create(tmp_path: Path, **options: str) -> Table:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db", ignore_if_exists=True)
    return catalog.create_table("db.t", Schema(FIELDS, primary_keys=("k",), options=options))


def write(table: Table, *rows: tuple[Any, ...], kinds: list[int] | None = None) -> None:
    columns = zip(*rows, strict=True)
    data = {field.name: pa.array(column) for field, column in zip(FIELDS, columns, strict=True)}
    types = {"b": pa.string()}
    typed = {name: column.cast(types.get(name, pa.int32())) for name, column in data.items()}
    written = None if kinds is None else pa.array(kinds, pa.int8())
    table.commit(table.write(pa.table(typed), kinds=written))


def read(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.read().to_pylist())


SUM = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update"}


def test_rows_of_one_write_are_merged(tmp_path: Path) -> None:
    table = create(tmp_path, **SUM)
    write(table, (1, 5, "x", 1), (1, 7, None, None), (2, 3, None, None), kinds=[0, 0, 3])
    (entry,) = table.manifests.live_files(table.latest_snapshot())
    assert (entry.file.row_count, entry.file.delete_row_count) == (2, 1)
    assert read(table) == [(1, 12, "x", 1)]
    write(table, (2, 10, "y", None))
    assert read(table) == [(1, 12, "x", 1), (2, 7, "y", None)]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"merge-engine": "first-row"}, 3, "takes no row of kind -D"),
        (PARTIAL, 3, "without sequence groups"),
        (PARTIAL, 1, "without sequence groups"),
        ({**SUM, "fields.g.aggregate-function": "min"}, 1, r"columns g \(min\)"),
        (
            {**PARTIAL, "fields.g.sequence-group": "b", "fields.b.aggregate-function": "listagg"},
            3,
            r"columns b \(listagg\)",
        ),
    ],
)
def test_retracts_that_an_engine_cannot_take_are_refused(
    tmp_path: Path, options: dict[str, str], kind: int, message: str
) -> None:
    table = create(tmp_path, **options)
    with pytest.raises(InputError, match=message):
        write(table, (1, 5, "x", 1), kinds=[kind])
    assert table.latest_snapshot() is None


@pytest.mark.parametrize(
    "options",
    [
        PARTIAL,
        SUM,
        {"merge-engine": "first-row"},
        {"ignore-delete": "true"},
        {**PARTIAL, "fields.g.sequence-group": "a"},
    ],
    ids=str,
)
def test_a_deletion_that_would_not_delete_is_refused(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, **options)
    write(table, (1, 5, "x", 1))
    with pytest.raises(UnsupportedError, match="DELETE is not supported"):
        table.delete(pa.table({"k": pa.array([1], pa.int32())}))


@pytest.mark.parametrize(
    "options",
    [
        {**PARTIAL, "partial-update.remove-record-on-delete": "true"},
        {**SUM, "aggregation.remove-record-on-delete": "true"},
    ],
    ids=["partial-update", "aggregation"],
)
def test_deletions_that_remove(tmp_path: Path, options: dict[str, str]) -> None:
    table = create(tmp_path, **options)
    write(table, (1, 5, "x", 1), (2, 6, "y", 2))
    table.delete(pa.table({"k": pa.array([1], pa.int32())}))
    assert read(table) == [(2, 6, "y", 2)]


def test_kinds_by_a_column_and_kinds_passed_over(tmp_path: Path) -> None:
    table = create(tmp_path, **SUM, **{"rowkind.field": "b", "ignore-update-before": "true"})
    write(table, (1, 5, "+I", 0), (1, 5, "-U", 0), (1, 9, "+U", 0), (2, 1, "+I", 0), (2, 1, "-D", 0))
    assert [row[:2] for row in read(table)] == [(1, 14), (2, 0)]
    with pytest.raises(InputError, match="not by a text of 6 characters"):
        write(table, (3, 5, "insert", 0))
    with pytest.raises(InputError, match="not by a null"):
        write(table, (3, 5, None, 0))


def test_changes_hold_the_rows_that_keys_have_now(tmp_path: Path) -> None:
    table = create(tmp_path, **SUM, **{"aggregation.remove-record-on-delete": "true"})
    write(table, (1, 5, "x", 1), (2, 6, "y", 2))
    write(table, (1, 7, None, None))
    write(table, (2, 0, None, None), kinds=[3])
    changes = list(table.changes(1, 3, columns=["k", "a"]))
    assert [change.needs_reload for change in changes] == [False, False]
    assert changes[0].rows.to_pylist() == [{"k": 1, "a": 12, "_VALUE_KIND": 0}]
    assert changes[1].rows.select(["k", "_VALUE_KIND"]).to_pylist() == [{"k": 2, "_VALUE_KIND": 3}]


def test_values_of_merged_rows_are_not_those_of_any_file(tmp_path: Path) -> None:
    table = create(tmp_path, **SUM)
    write(table, (1, 5, "x", 1), (2, 1, "y", 1))
    write(table, (1, 7, "z", 1), (3, 8, "w", 1))
    twelve = Comparison(Op.EQ, ("a",), (pa.scalar(12, pa.int32()),))
    assert table.read(predicate=twelve)["k"].to_pylist() == [1]
    plan = table.scan(order=[SortKey(("a",), descending=True, nulls_first=False)], limit=1)
    assert sum(len(split.files) for split in plan.splits) == 2
    key = Comparison(Op.EQ, ("k",), (pa.scalar(3, pa.int32()),))
    assert sum(len(split.files) for split in table.scan(key).splits) == 1
    assert table.read(predicate=key)["a"].to_pylist() == [8]


def test_options_are_checked_when_a_table_is_made(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="did you mean 'aggregation'"):
        create(tmp_path, **{"merge-engine": "agregation"})
    with pytest.raises(OptionError, match="no column 'aa'"):
        create(tmp_path, **{"merge-engine": "aggregation", "fields.aa.aggregate-function": "sum"})
    with pytest.raises(OptionError, match="not a STRING"):
        create(tmp_path, **{"rowkind.field": "a"})
    with pytest.raises(OptionError, match="first-row"):
        create(tmp_path, **{"merge-engine": "first-row", "sequence.field": "g"})
    with pytest.raises(InputError, match="cannot be encrypted"):
        create(tmp_path, **PARTIAL, **{"fields.g.sequence-group": "a", "orc.encrypt": "key:g"})


def test_order_of_late_rows_by_sequence_fields(tmp_path: Path) -> None:
    table = create(tmp_path, **PARTIAL, **{"sequence.field": "g", "sequence.field.sort-order": "descending"})
    write(table, (1, 5, "new", 1))
    write(table, (1, 9, "old", 2), (2, 1, None, 3))
    assert read(table) == [(1, 5, "new", 1), (2, 1, None, 3)]
    assert pc.sum(table.read()["g"]).as_py() == 4
