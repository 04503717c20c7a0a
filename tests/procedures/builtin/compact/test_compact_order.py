"""`compact` with an order: the rows stay, statistics leave out more files, and concurrent rows are kept."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import CommitConflictError, InputError, ProcedureError, UnsupportedError
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import ordered_compaction as order_module
from lockgate.framework.store.maintenance import table_compaction as compact_module
from lockgate.framework.store.maintenance.curves import hilbert, quantiles, ranks_of, zorder
from lockgate.framework.store.write import bucket_writer
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import col

pytestmark = pytest.mark.usefixtures("without_lineage")

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("day", pa.string())])


def make(catalog: Catalog, **more: Any) -> Table:
    options = {"target-file-size": "1 kb", "file.compression": "none", **more.pop("options", {})}
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=options, **more))


def rows(first: int, count: int, day: str = "mon") -> pa.Table:
    numbers = range(first, first + count)
    mixed = [n * 7919 % 997 for n in numbers]
    return pa.table(
        {
            "id": list(numbers),
            "a": pa.array([None if n % 50 == 7 else n for n in mixed], pa.int32()),
            "b": [f"C:\\Files\\{n * 31 % 89:02}" for n in mixed],
            "day": [day] * count,
        },
        schema=SCHEMA,
    )


def content(table: Table) -> list[dict[str, Any]]:
    return sorted(table.read().to_pylist(), key=lambda row: row["id"])


def opened(table: Table, predicate: Any) -> int:
    return sum(len(split.files) for split in table.scan(predicate=predicate).splits)


def test_an_order_by_columns(catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, partition_keys=["day"])
    for number in range(4):
        table.append(pa.concat_tables([rows(number * 100, 50), rows(number * 100 + 50, 50, "tue")]))
    before = content(table)
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 30)
    (result,) = run(
        "compact", table="db.t", order_strategy="order", order_by="b, a", partitions="day=mon"
    ).to_dicts()
    assert content(table) == before
    assert (result["files_rewritten"], result["rows_after"]) == (4, 200)
    found = table.read(predicate=col("day") == "mon", columns=["b", "a"]).to_pylist()
    wanted = sorted(found, key=lambda row: (row["b"], row["a"] is not None, row["a"]))
    assert found == wanted
    assert opened(table, (col("day") == "tue")) == 4
    assert run("compact", table="db.t", order_strategy="order", order_by="a", dry_run=True).to_dicts()[0][
        "files_rewritten"
    ] == len(table.manifests.live_files(table.latest_snapshot()))


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_curves_leave_out_files_by_each_column(
    catalog: Catalog, run: Run, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_writer, "_SLICE_ROWS", 100)
    monkeypatch.setattr(bucket_writer, "_LEAST_STRIPE_SIZE", 100)
    table = make(catalog)
    for number in range(4):
        table.append(rows(number * 500, 500))
    before = content(table)
    run("compact", table="db.t", order_strategy=strategy.upper(), order_by="a,b")
    assert content(table) == before
    files = len(table.manifests.live_files(table.latest_snapshot()))
    assert files >= 16
    for question in (col("a") == 500, col("b") == "C:\\Files\\44"):
        assert opened(table, question) <= files // 2, question


def test_rows_appended_at_the_same_time_stay(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog)
    table.append(rows(0, 100))
    rewrite = compact_module.rewrite

    def slow(*arguments: Any) -> Any:
        made = rewrite(*arguments)
        table.append(rows(100, 10))
        return made

    monkeypatch.setattr(compact_module, "rewrite", slow)
    run("compact", table="db.t", order_strategy="hilbert", order_by="a,b")
    assert [row["id"] for row in content(table)] == list(range(110))

    def meets(*arguments: Any) -> Any:
        monkeypatch.setattr(compact_module, "rewrite", rewrite)
        made = rewrite(*arguments)
        run("compact", table="db.t", order_strategy="order", order_by="b")
        return made

    monkeypatch.setattr(compact_module, "rewrite", meets)
    with pytest.raises(CommitConflictError):
        run("compact", table="db.t", order_strategy="order", order_by="a")
    assert [row["id"] for row in content(table)] == list(range(110))


def test_rows_that_vectors_delete_go(catalog: Catalog, run: Run) -> None:
    table = make(catalog, options={"deletion-vectors.enabled": "true"})
    for number in range(3):
        table.append(rows(number * 20, 20))
    table.delete(col("id").isin([3, 25, 59]))
    before = content(table)
    run("compact", table="db.t", order_strategy="order", order_by="a")
    assert content(table) == before
    assert all(entry.vector is None for entry in table.manifests.live_files(table.latest_snapshot()))


def test_what_has_no_order_is_refused(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    nested = pa.schema([("id", pa.int64()), ("l", pa.list_(pa.int32()))])
    catalog.create_table("db.n", Schema.from_arrow(nested))
    with pytest.raises(InputError, match=r"'l' is .*, which has no order"):
        run("compact", table="db.n", order_strategy="order", order_by="l")
    catalog.create_table("db.k", Schema.from_arrow(SCHEMA, primary_keys=["id"], options={"bucket": "1"}))
    with pytest.raises(UnsupportedError, match="with a primary key are ordered by the key"):
        run("compact", table="db.k", order_strategy="order", order_by="a")
    create_key_file(tmp_path / "keys.json", ["k"])
    secret = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    secret.create_namespace("db")
    table = make(secret, options={"orc.encrypt": "k:b"})
    for columns in ("b", "a,b"):
        with pytest.raises(UnsupportedError, match="'b' is encrypted"):
            order_module.RowOrder.of(table, "order", columns)


def test_an_engine_needs_a_session_and_an_order(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(rows(0, 20))
    ordered = {"order_strategy": "order", "order_by": "a"}
    with pytest.raises(InputError, match=r"order_engine cannot be 'sparc'.*'spark'"):
        run("compact", table="db.t", order_engine="sparc", **ordered)
    with pytest.raises(InputError, match="'spark' needs an order"):
        run("compact", table="db.t", order_engine="spark")
    with pytest.raises(ProcedureError, match=r"order_engine 'spark' needs Spark"):
        run("compact", table="db.t", order_engine="spark", dry_run=True, **ordered)
    for engine in ("python", "AUTO"):
        assert run("compact", table="db.t", order_engine=engine, **ordered).to_dicts()[0]["rows_after"] == 20


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, None, 1, 3], pa.int32()),
        (["b", None, "B", "é", "投"], pa.string()),
        ([b"\xff", b"", b"\x00"], pa.binary()),
        ([1.5, float("nan"), -0.5, None, float("inf")], pa.float64()),
        ([True, False, None], pa.bool_()),
        ([Decimal("1.10"), Decimal("-2.00"), None], pa.decimal128(10, 2)),
        ([dt.date(2026, 1, 2), None, dt.date(1960, 1, 1)], pa.date32()),
        ([dt.datetime(2026, 1, 2), dt.datetime(1960, 1, 1)], pa.timestamp("us")),
        ([], pa.int64()),
    ],
)
def test_ranks_of_all_types(values: list[Any], kind: pa.DataType) -> None:
    ranks = ranks_of(pa.chunked_array([pa.array(values, kind)])).tolist()
    for (one, left), (other, right) in itertools.combinations(zip(values, ranks, strict=True), 2):
        if one is None or other is None:
            assert (one is None) is (left == 0)
        elif one == one and other == other:  # a NaN has some place
            key = [each.encode() if isinstance(each, str) else each for each in (one, other)]
            assert (left < right) is (key[0] < key[1])
            assert (left == right) is (key[0] == key[1])


@pytest.mark.parametrize(("axes", "bits"), [(1, 4), (2, 1), (2, 4), (3, 2), (4, 2)])
def test_curves_visit_each_place_once_and_hilbert_goes_step_by_step(axes: int, bits: int) -> None:
    places = np.array(list(itertools.product(range(2**bits), repeat=axes)), np.uint64)
    columns = [np.ascontiguousarray(places[:, number]) for number in range(axes)]
    for curve in (zorder, hilbert):
        assert sorted(curve(columns, bits).tolist()) == list(range(2 ** (bits * axes)))
    path = places[np.argsort(hilbert(columns, bits))].astype(np.int64)
    assert np.all(np.abs(np.diff(path, axis=0)).sum(axis=1) == 1)


@settings(max_examples=examples(50))
@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(1, 20))
def test_quantiles_keep_the_order(values: list[int], bits: int) -> None:
    ranks = ranks_of(pa.chunked_array([pa.array(values, pa.int64())]))
    places = quantiles(ranks, bits)
    assert int(places.max()) < 2**bits
    order = np.argsort(values, kind="stable")
    assert np.all(np.diff(places[order].astype(np.int64)) >= 0)
    for value in values:
        assert len({int(place) for place, each in zip(places, values, strict=True) if each == value}) == 1
