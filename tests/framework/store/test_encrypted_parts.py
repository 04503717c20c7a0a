"""Tables of which parts of columns are encrypted: reading, filters and metadata, with and without the key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.pushdown import col

ROWS = pa.table(
    {
        "id": pa.array(range(100), pa.int64()),
        "address": pa.array([{"zip": f"z{i:03d}", "street": f"s{i:03d}"} for i in range(100)]),
        "orders": pa.array([[{"item": f"i{i}", "n": i}] for i in range(100)]),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with two encrypted leaves."""
    catalog = Catalog(tmp_path, keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("db")
    options = {"orc.encrypt": "pii:address.zip,orders._elem.item", "orc.mask": "redact:address.zip"}
    made = catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, options=options))
    made.append(ROWS)
    return catalog.load_table("db.t")


def test_values_with_the_key(table: Table) -> None:
    assert table.read().sort_by("id").to_pylist() == ROWS.to_pylist()
    assert table.read(predicate=col("address", "zip") == "z042").to_pylist() == ROWS.slice(42, 1).to_pylist()
    assert table.read(predicate=col("address", "street") == "s042")["id"].to_pylist() == [42]


def test_masks_without_it(table: Table, tmp_path: Path) -> None:
    blind = Catalog(tmp_path).load_table("db.t")
    with pytest.warns(MaskedDataWarning):
        shown = blind.read(predicate=col("id") == 7).to_pylist()
    assert shown == [
        {"id": 7, "address": {"zip": "x999", "street": "s007"}, "orders": [{"item": None, "n": 7}]}
    ]
    with pytest.warns(MaskedDataWarning):
        assert blind.read(predicate=col("address", "zip") == "z042").num_rows == 0
    with pytest.warns(MaskedDataWarning):
        assert blind.read(predicate=col("address", "zip") == "x999").num_rows == 100


def test_metadata_has_nothing_of_it(table: Table) -> None:
    for entry in table.manifests.live_files(table.latest_snapshot()):
        assert entry.file.value_stats_cols == ("id",)
    for path in Path(table.location).rglob("*"):
        assert not path.is_file() or b"z042" not in path.read_bytes()
