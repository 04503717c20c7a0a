"""Orders of more rows than memory holds: the same rows, in the same order, and nothing is left in files."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import order_ranges as ranges_module
from lockgate.framework.store.maintenance import ordered_compaction as order_module
from lockgate.framework.store.maintenance.curves import hilbert, zorder
from lockgate.framework.store.maintenance.order_ranges import Sample
from lockgate.framework.store.write import bucket_writer
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import col

pytestmark = pytest.mark.usefixtures("without_lineage")

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string())])
COUNT = 1200


@pytest.fixture(autouse=True)
def spilled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[int]]:
    """Let memory hold 100 rows; the rows of each file of a range, none of which may be left in the end."""
    folder = tmp_path / "waiting"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(order_module, "_ROWS_AT_ONCE", 100)
    monkeypatch.setattr(ranges_module.Sample, "MOST_ROWS", 300)
    monkeypatch.setattr(bucket_writer, "_SLICE_ROWS", 50)
    monkeypatch.setattr(bucket_writer, "_LEAST_STRIPE_SIZE", 100)
    counts: list[int] = []
    written = ranges_module.Ranges.written

    def counted(ranges: ranges_module.Ranges) -> list[Path]:
        paths = written(ranges)
        assert all(path.parent.stat().st_mode & 0o777 == 0o700 for path in paths)
        counts.extend(sum(part.num_rows for part in ranges_module.batches_of(path, ["id"])) for path in paths)
        return paths

    monkeypatch.setattr(ranges_module.Ranges, "written", counted)
    yield counts
    assert list(folder.iterdir()) == []


def make(catalog: Catalog, **options: str) -> Table:
    table = catalog.create_table(
        "db.t",
        Schema.from_arrow(
            SCHEMA, options={"target-file-size": "1 kb", "file.compression": "none", **options}
        ),
    )
    chance = random.Random(3)
    for first in range(0, COUNT, 300):
        numbers = range(first, first + 300)
        table.append(
            pa.table(
                {
                    "id": list(numbers),
                    "a": [None if n % 50 == 7 else chance.randrange(400) for n in numbers],
                    "b": [f"C:\\Files\\{chance.randrange(89):02}" for _ in numbers],
                },
                schema=SCHEMA,
            )
        )
    return table


def test_rows_are_ordered_as_in_memory(catalog: Catalog, run: Run, spilled: list[int]) -> None:
    table = make(catalog)
    before = table.read().sort_by("id")
    (result,) = run("compact", table="db.t", order_strategy="order", order_by="b,a").to_dicts()
    assert result["rows_after"] == COUNT
    found = table.read()
    assert found.sort_by("id") == before
    keys = [(row["b"], row["a"] is not None, row["a"] or 0) for row in found.to_pylist()]
    assert keys == sorted(keys)
    assert sum(spilled) == COUNT
    assert len(spilled) > 12
    assert max(spilled) < 300


@pytest.mark.parametrize("strategy", ["zorder", "hilbert"])
def test_curves_leave_out_files(catalog: Catalog, run: Run, strategy: str, spilled: list[int]) -> None:
    table = make(catalog)
    before = table.read().sort_by("id")
    run("compact", table="db.t", order_strategy=strategy, order_by="a,b")
    assert table.read().sort_by("id") == before
    files = len(table.manifests.live_files(table.latest_snapshot()))
    assert files >= 8
    for question in (col("a") == 200, col("b") == "C:\\Files\\44"):
        assert sum(len(split.files) for split in table.scan(question).splits) <= 2 * files // 3, question
    assert len(spilled) > 12


def test_many_equal_values_are_one_range(catalog: Catalog, run: Run, spilled: list[int]) -> None:
    table = make(catalog)
    table.append(pa.table({"id": range(2000, 3000), "a": [7] * 1000, "b": ["x"] * 1000}, schema=SCHEMA))
    run("compact", table="db.t", order_strategy="order", order_by="b")
    assert table.read()["b"].to_pylist() == sorted(table.read()["b"].to_pylist())
    assert max(spilled) >= 1000


class Unwritable(io.BytesIO):
    """A disk that takes a header and nothing more."""

    def write(self, data: Any) -> int:
        if self.tell():
            raise OSError(28, "No space left on device")
        return super().write(data)


def test_an_error_leaves_no_file(catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog)
    before = table.latest_snapshot()
    add = ranges_module.Ranges.add

    def full(self: Any, rows: pa.Table, columns: Any) -> None:
        add(self, rows, columns)
        # The end of a file does not fit either.
        self._writers[0].close()
        self._writers[0] = pa.ipc.new_stream(Unwritable(), self._schema)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ranges_module.Ranges, "add", full)
    with pytest.raises(Exception, match="No space left"):
        run("compact", table="db.t", order_strategy="order", order_by="b")
    assert table.latest_snapshot() == before


def test_files_that_cannot_be_begun_are_removed(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(catalog)
    begin, begun = pa.ipc.new_stream, []

    def full(path: str, schema: pa.Schema, **options: Any) -> Any:
        if len(begun) == 3:
            raise OSError(28, "No space left on device")
        begun.append(path)
        return begin(path, schema, **options)

    monkeypatch.setattr(pa.ipc, "new_stream", full)
    with pytest.raises(Exception, match="No space left"):
        run("compact", table="db.t", order_strategy="order", order_by="b")


def test_rows_that_are_all_deleted_have_no_order() -> None:
    nothing = SCHEMA.empty_table()
    for curve in (None, zorder, hilbert):
        sample = Sample(nothing.select(["a", "b"]), curve)
        assert len(sample.starts(4)) == 0
        assert len(sample.keys(nothing.select(["a", "b"]))) == 0


def test_encrypted_values_wait_in_no_file(run: Run, tmp_path: Path, spilled: list[int]) -> None:
    create_key_file(tmp_path / "keys.json", ["k"])
    catalog = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    catalog.create_namespace("db")
    table = make(catalog, **{"orc.encrypt": "k:b"})
    order = order_module.RowOrder.of(table, "order", "a")
    assert order is not None
    from lockgate.procedures import ProcedureContext
    from lockgate.procedures import call as call_procedure

    call_procedure(ProcedureContext(catalog), "compact", table="db.t", order_strategy="order", order_by="a")
    found = [row if row is not None else -1 for row in table.read()["a"].to_pylist()]
    assert found == sorted(found)
    assert spilled == []


VALUES = st.lists(st.tuples(st.none() | st.integers(0, 9), st.sampled_from("abc")), min_size=1, max_size=60)


@settings(max_examples=examples(40))
@given(VALUES, VALUES)
def test_numbers_grow_in_the_order(sampled: list[Any], asked: list[Any]) -> None:
    def table(rows: list[Any]) -> pa.Table:
        return pa.table({"a": pa.array([r[0] for r in rows], pa.int32()), "b": [r[1] for r in rows]})

    keys = Sample(table(sampled), None).keys(table(asked))
    plain = [(row[0] is not None, row[0] or 0, row[1]) for row in asked]
    from_sample = [(row[0] is not None, row[0] or 0, row[1]) for row in sampled]
    assert keys.tolist() == [sum(other < one for other in from_sample) for one in plain]
    for curve in (zorder, hilbert):
        places = Sample(table(sampled), curve).keys(table(asked))
        assert len(places) == len(asked)
        same: dict[Any, int] = {}
        for row, number in zip(asked, places.tolist(), strict=True):
            assert same.setdefault(row, number) == number
    assert np.all(np.diff(np.sort(keys).astype(np.int64)) >= 0)
