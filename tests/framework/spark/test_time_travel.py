"""VERSION AS OF, as the connector asks for it, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from messages import request

from lockgate.errors import InputError, NotFoundError, SnapshotNotFoundError, UnsupportedError
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.scan.snapshot_selection import number_called, selection_of
from lockgate.procedures import ProcedureContext, call

SCHEMA = pa.schema([("id", pa.int64())])


class Asker:
    """The table `db.t` of three snapshots, each of which replaces the rows of the one before."""

    def __init__(self, folder: Path) -> None:
        self.dispatcher = Dispatcher()
        self.warehouse = warehouse = str(folder / "warehouse")
        opened: Any = self.dispatcher.answer(
            "catalog.open", request("catalog.open", {"catalog": "lake", "options": {"warehouse": warehouse}})
        )
        self.request = {"catalog": opened["handle"], "namespace": ["db"], "name": "t"}
        catalog = Catalog(warehouse)
        catalog.create_namespace("db")
        self.table: Table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
        for number in (1, 2, 3):
            self.table.overwrite(pa.table({"id": [number]}))

    def snapshot(self, version: str) -> int:
        asked = request("table.load", {**self.request, "version": version})
        loaded: Any = self.dispatcher.answer("table.load", asked)
        return int(loaded["table"]["snapshot_id"])

    def ids(self, version: str) -> list[int]:
        return self.table.read(snapshot_id=self.snapshot(version))["id"].to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    return Asker(tmp_path)


def test_a_tag_whose_snapshot_has_expired(asker: Asker) -> None:
    asker.table.create_tag("first", 1)
    assert asker.snapshot("first") == 1
    expire_snapshots(asker.table, retain_max=1)
    assert asker.ids("first") == asker.ids("1") == [1]
    assert asker.ids("3") == [3]
    with pytest.raises(SnapshotNotFoundError):
        asker.snapshot("2")
    with pytest.raises(NotFoundError, match=r"name of a tag.*did you mean 'first'"):
        asker.snapshot("fist")


def test_a_tag_that_is_a_number(asker: Asker) -> None:
    asker.table.create_tag("20240101", 1)
    asker.table.create_tag("3", 1)
    assert asker.snapshot("20240101") == 1
    assert asker.snapshot("3") == 1
    table = asker.table
    for ends, found in (("20240101,2", (1, 2)), ("3,2", (1, 2)), (" 0 , 20240101", (0, 1)), ("1,2", (1, 2))):
        selected = selection_of(table, {"incremental-between": ends}).between
        assert selected is not None
        assert (selected.after, selected.upto) == found
    assert number_called(table, "20240101") == number_called(table, "3") == 1
    assert number_called(table, "17") == 17
    context = ProcedureContext(Catalog(asker.warehouse))
    with pytest.raises(InputError, match="snapshot => 3 or tag => '3'"):
        call(context, "rollback", "db.t", "3")
    assert call(context, "rollback", "db.t", "20240101", dry_run=True)["current_snapshot_id"] == 1


def test_a_number_that_another_snapshot_has_after_a_rollback(asker: Asker) -> None:
    asker.table.create_tag("third", 3)
    (Path(asker.table.location) / "snapshot" / "snapshot-3").unlink()
    asker.table.overwrite(pa.table({"id": [4]}))
    with pytest.raises(UnsupportedError, match="after a rollback"):
        asker.snapshot("third")
    assert asker.table.read(tag="third")["id"].to_pylist() == [3]
