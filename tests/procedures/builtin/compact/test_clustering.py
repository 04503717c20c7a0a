"""Order of rows by a table's options, and compaction of the partitions that a condition chooses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, OptionError
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance.ordered_compaction import RowOrder
from lockgate.framework.store.write import bucket_writer
from lockgate.procedures import ProcedureResult

pytestmark = pytest.mark.usefixtures("without_lineage")

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("day", pa.date32())])
OPTIONS = {"target-file-size": "1 kb", "file.compression": "none"}


def make(catalog: Catalog, options: dict[str, str], **more: Any) -> Table:
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options={**OPTIONS, **options}, **more))


def rows(first: int, count: int, day: int = 1) -> pa.Table:
    mixed = [n * 7919 % 997 for n in range(first, first + count)]
    return pa.table(
        {
            "id": list(range(first, first + count)),
            "a": pa.array([None if n % 50 == 7 else n for n in mixed], pa.int32()),
            "b": [f"C:\\Files\\{n * 31 % 89:02}" for n in mixed],
            "day": pa.array([dt.date(2026, 1, day)] * count, pa.date32()),
        },
        schema=SCHEMA,
    )


def ids(table: Table) -> list[int]:
    return sorted(table.read(columns=["id"])["id"].to_pylist())


def test_writers_order_new_rows(catalog: Catalog) -> None:
    table = make(catalog, {"clustering.columns": "b,a"})
    table.append(rows(0, 100))
    found = table.read(columns=["b", "a"]).to_pylist()
    assert found == sorted(found, key=lambda row: (row["b"], row["a"] is not None, row["a"]))
    assert ids(table) == list(range(100))


def test_compact_follows_the_options(catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_writer, "_SLICE_ROWS", 100)
    monkeypatch.setattr(bucket_writer, "_LEAST_STRIPE_SIZE", 100)
    table = make(catalog, {"clustering.columns": "a,b", "clustering.strategy": "hilbert"})
    for number in range(4):
        table.append(rows(number * 500, 500))
    (planned,) = run("compact", table="db.t", dry_run=True).to_dicts()
    (done,) = run("compact", table="db.t").to_dicts()
    assert ids(table) == list(range(2000))
    assert planned["pruned_share_before"] == done["pruned_share_before"]
    assert planned["pruned_share_after"] is None
    assert done["pruned_share_before"] < done["pruned_share_after"] <= done["pruned_share_bound"] < 1
    # Nothing is new, so nothing is ordered again; a call that asks for an order gets it.
    assert run("compact", table="db.t").to_dicts()[0]["files_rewritten"] == 0
    (plain,) = run("compact", table="db.t", order_strategy="none", dry_run=True).to_dicts()
    assert plain["pruned_share_before"] is None
    (again,) = run("compact", table="db.t", order_strategy="order", order_by="b").to_dicts()
    assert again["files_rewritten"] == done["files_after"]


@pytest.mark.parametrize(
    ("columns", "strategy"), [("a", "order"), ("a,b", "zorder"), ("a,b,day,id,b2", "hilbert")]
)
def test_auto_chooses_by_the_number_of_columns(catalog: Catalog, columns: str, strategy: str) -> None:
    schema = SCHEMA.append(pa.field("b2", pa.string()))
    table = catalog.create_table("db.t", Schema.from_arrow(schema, options={"clustering.columns": columns}))
    order = RowOrder.of(table, None, None)
    assert order is not None
    assert (order.strategy, order.is_given) == (strategy, False)


def test_only_new_files_are_ordered_incrementally(catalog: Catalog, run: Run) -> None:
    table = make(catalog, {"clustering.columns": "a", "clustering.incremental": "true"})
    table.append(rows(0, 60))
    run("compact", table="db.t")
    before = {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}
    for number in (1, 2):
        table.append(rows(number * 100, 60))
    (result,) = run("compact", table="db.t").to_dicts()
    after = {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}
    assert before < after
    assert result["rows_after"] == 180
    full = run("compact", table="db.t", compact_strategy="full", order_strategy="order", order_by="a")
    assert full.to_dicts()[0]["files_rewritten"] == len(after)
    assert len(ids(table)) == 180


@pytest.mark.parametrize(
    ("where", "days"),
    [
        ("day >= '2026-01-02'", {2, 3}),
        ("day = DATE '2026-01-01' OR NOT day <> '2026-01-03'", {1, 3}),
        ("day IN ('2026-01-02') AND a_part BETWEEN 0 AND 1", {2}),
        ("day IS NULL", set()),
    ],
)
def test_where_chooses_partitions(catalog: Catalog, run: Run, where: str, days: set[int]) -> None:
    schema = SCHEMA.append(pa.field("a_part", pa.int32()))
    table = catalog.create_table("db.t", Schema.from_arrow(schema, partition_keys=["day", "a_part"]))
    for day in (1, 2, 3):
        for first in (0, 10):
            table.append(rows(first, 10, day).append_column("a_part", pa.array([1] * 10, pa.int32())))
    (result,) = run("compact", table="db.t", where=where).to_dicts()
    assert result["files_before"] == 2 * len(days)
    live = table.manifests.live_files(table.latest_snapshot())
    counts = {day: sum(entry.partition[0].day == day for entry in live) for day in (1, 2, 3)}
    assert {day for day, count in counts.items() if count == 1} == days
    assert (
        run("compact", table="db.t", where=where, partitions="a_part=7", dry_run=True).to_dicts()[0][
            "files_before"
        ]
        == 0
    )


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("a > 1", "'a' is not a partition column"),
        ("dya = 1", "'dya' is not a partition column; did you mean 'day'"),
        ("day = 'monday'", "'monday' is not a value of type"),
        ("day = 5", "where: "),
        ("day >", "where: expected a constant"),
        ("day = '2026-01-01'; DROP TABLE t", "where: unexpected character"),
        ("upper(day) = 'X'", "where: expected"),
        ("day = '2026-01-01' OR secret.x = 1", "'secret.x' is not a partition column"),
    ],
)
def test_a_condition_that_is_none_is_refused(catalog: Catalog, run: Run, where: str, error: str) -> None:
    table = make(catalog, {}, partition_keys=["day"])
    table.append(rows(0, 3))
    with pytest.raises(InputError, match=error):
        run("compact", table="db.t", where=where)


def test_columns_without_an_order_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no column 'aa'"):
        make(catalog, {"clustering.columns": "aa"})
    with pytest.raises(OptionError, match="ordered by the key"):
        make(catalog, {"clustering.columns": "a", "bucket": "1"}, primary_keys=["id"])
    with pytest.raises(OptionError, match=r"clustering\.strategy"):
        make(catalog, {"clustering.columns": "a", "clustering.strategy": "random"})
    create_key_file(tmp_path / "keys.json", ["k"])
    secret = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    secret.create_namespace("db")
    make(secret, {"clustering.columns": "b"})
    with pytest.raises(OptionError, match="'b' is encrypted"):
        secret.alter_table("db.t", [SetOption("orc.encrypt", "k:b")])
