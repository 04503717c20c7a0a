"""NaN and zeros of either sign in partitions and keys: equal to themselves wherever values are looked up."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.framework.store.manifests.manifest_files import partitions_in
from lockgate.framework.types import partition_key
from lockgate.pushdown import Comparison, Op

MakeTable = Callable[..., Table]
NAN = float("nan")
FLOATS = {"id": pa.int64(), "f": pa.float64()}


def _ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("db.t").read()["id"].to_pylist())


def _rows(*rows: tuple[int, float]) -> pa.Table:
    ids, floats = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "f": pa.array(floats, pa.float64())})


def test_a_partition_of_nan_is_overwritten_as_one(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(columns=FLOATS, partition_keys=("f",))
    table.append(_rows((1, NAN), (2, 1.0), (3, -NAN)))
    table.append(_rows((4, NAN)))
    table.overwrite(_rows((5, NAN)), {"f": float("nan")})
    assert _ids(catalog) == [2, 5]
    table.overwrite(_rows((6, 7.0)))
    assert _ids(catalog) == [6]


def test_the_partitions_that_come_may_be_nan(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(columns=FLOATS, partition_keys=("f",))
    table.append(_rows((1, NAN), (2, 1.0)))
    messages = table.write(_rows((3, NAN)))
    table.commit(messages, kind="OVERWRITE", overwrite={one.partition for one in messages}.__contains__)
    assert _ids(catalog) == [2, 3]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("options", [{}, {"primary_keys": ("id", "f"), "bucket": "2"}])
def test_zeros_of_either_sign_are_two_partitions(
    catalog: Catalog, make_table: MakeTable, kind: pa.DataType, options: dict[str, Any]
) -> None:
    table = make_table(columns={"id": pa.int64(), "f": kind}, partition_keys=("f",), **options)
    zeros = [0.0, -0.0, NAN, -0.0, 0.0]
    rows = pa.table({"id": pa.array(range(5), pa.int64()), "f": pa.array(zeros, kind)})
    for at in range(5):
        table.append(rows.slice(at, 1))
    table.append(rows.set_column(0, "id", pa.array(range(5, 10), pa.int64())))
    table = catalog.load_table("db.t")
    stored = table.read().sort_by("id")
    assert list(map(str, stored["f"].to_pylist())) == [*map(str, zeros)] * 2
    assert {path.name for path in Path(table.location).glob("f=*")} == {"f=0.0", "f=-0.0", "f=NaN"}
    # A predicate compares as SQL does, by which the zeros are equal.
    assert table.read(predicate=Comparison(Op.EQ, ("f",), (pa.scalar(0.0, kind),))).num_rows == 8
    partitions = [each.partition for each in table.manifests.live_files(table.latest_snapshot())]
    assert len(set(partitions)) == 3
    negative = next(each for each in partitions if str(each[0]) == "-0.0")
    messages = table.write(rows.slice(1, 1).set_column(0, "id", pa.array([90], pa.int64())))
    table.commit(messages, kind="OVERWRITE", overwrite={negative}.__contains__)
    assert _ids(catalog) == [0, 2, 4, 5, 7, 9, 90]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_an_overwrite_of_one_zero_leaves_the_other(
    catalog: Catalog, make_table: MakeTable, kind: pa.DataType
) -> None:
    table = make_table(columns={"id": pa.int64(), "f": kind}, partition_keys=("f",))

    def rows(*ids: int, f: float) -> pa.Table:
        return pa.table({"id": pa.array(ids, pa.int64()), "f": pa.array([f] * len(ids), kind)})

    for number, value in enumerate((0.0, -0.0, 0.1, NAN)):
        table.append(rows(number, f=value))
    table.overwrite(rows(10, f=0.0), {"f": 0})
    table.overwrite(rows(11, f=-0.0), {"f": -0.0})
    table.overwrite(rows(12, f=0.1), {"f": 0.1})
    table.overwrite(rows(13, f=NAN), {"f": NAN})
    assert _ids(catalog) == [10, 11, 12, 13]
    table.commit([], overwrite={"f": -0.0})
    assert _ids(catalog) == [10, 12, 13]
    for named, other in ((0.0, -0.0), (-0.0, 0.0), (NAN, 0.0)):
        with pytest.raises(InputError, match="rows of other partitions"):
            table.overwrite(rows(20, f=other), {"f": named})


def test_keys_of_partitions_are_equal_as_their_stored_bytes_are() -> None:
    plus, minus = partition_key([0.0, "a"]), partition_key([-0.0, "a"])
    assert plus != minus
    assert not plus == minus  # noqa: SIM201 - both operators are tested
    assert minus == partition_key(minus) == pickle.loads(pickle.dumps(minus))
    assert len({plus, minus, partition_key((-0.0, "a")), (0.0, "a")}) == 2
    assert {(plus, 1): "plus", (minus, 1): "minus"}[minus, 1] == "minus"
    assert partition_key([NAN]) == partition_key([-NAN])
    assert tuple(minus) == (0.0, "a"), "a plain tuple takes both zeros for one"


def test_deletions_meet_their_additions_in_a_partition_of_nan(
    catalog: Catalog, make_table: MakeTable
) -> None:
    table = make_table(columns=FLOATS, partition_keys=("f",))
    table.append(_rows((1, NAN)))
    # The addition is read from one file and the deletion from another.
    table.overwrite(_rows((2, NAN)))
    kinds = [entry.kind for entry in table.manifests.delta_entries(table.snapshot(2))]
    assert kinds == [FileKind.DELETE, FileKind.ADD]
    (entry,) = catalog.load_table("db.t").manifests.live_files(table.snapshot(2), partitions_in([(NAN,)]))
    assert entry.file.row_count == 1


def test_zeros_of_either_sign_are_one_key(catalog: Catalog, make_table: MakeTable) -> None:
    columns = {"f": pa.float64(), "id": pa.int64()}
    table = make_table(columns=columns, primary_keys=("f",), bucket="1")
    table.append(_rows((1, 0.0), (2, -0.0), (3, NAN)))
    assert _ids(catalog) == [2, 3]
    table.append(_rows((4, 0.0), (5, NAN)))
    assert _ids(catalog) == [4, 5]
    table.delete(pa.table({"f": pa.array([-0.0])}))
    assert _ids(catalog) == [5]
