"""Tables of Paimon's own core: every one is read as Paimon reads it, at each snapshot, or refused by name."""

from __future__ import annotations

import pytest
from exact_rows import exact_rows, in_order
from zoo import REFUSED, expected, unpack

from lockgate.errors import LockgateError, SnapshotNotFoundError
from lockgate.framework.store import Catalog


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(unpack(tmp_path_factory.mktemp("zoo")))


@pytest.mark.parametrize("name", sorted(set(expected()) - set(REFUSED)))
def test_a_table_is_read_as_paimon_reads_it(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(f"zoo.{name}")
    snapshots = expected()[name]["snapshots"]
    assert in_order(exact_rows(table.read())) == in_order(snapshots[max(snapshots)]["rows"])
    for number, snapshot in snapshots.items():
        try:
            rows = exact_rows(table.read(snapshot_id=int(number)))
        except SnapshotNotFoundError:
            assert "expired" in name or "decoupled" in name, "only these have lost snapshots"
            continue
        assert in_order(rows) == in_order(snapshot["rows"]), number


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_table_is_refused_by_name(catalog: Catalog, name: str) -> None:
    with pytest.raises(LockgateError, match=REFUSED[name]):
        catalog.load_table(f"zoo.{name}").read()
