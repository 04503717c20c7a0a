"""NaN and zeros of either sign in partitions and keys: equal to themselves wherever values are looked up."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.framework.store.manifests.manifest_files import partitions_in

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
