"""Tags made here are read by pypaimon, and the other way round, after their snapshots have expired."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("retained", [None, datetime.timedelta(hours=36)])
def test_tags_of_both(catalog: Catalog, referee: Any, retained: datetime.timedelta | None) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
    for number in (1, 2, 3, 4):
        table.overwrite(pa.table({"id": [number]}, schema=SCHEMA))
    table.create_tag("ours", 1, retained=retained)
    referee.create_tag("db.t", "theirs", 2)
    expire_snapshots(table, retain_max=1)
    assert referee.read_tag("db.t", "ours")["id"].to_pylist() == [1]
    assert table.read(tag="theirs")["id"].to_pylist() == [2]
    theirs = table.tag("theirs")
    assert theirs.retained == datetime.timedelta(days=2)
    assert theirs.created is not None
    assert abs(theirs.created - datetime.datetime.now()) < datetime.timedelta(minutes=5)
    assert table.delete_tag("theirs").data_files == 1
    assert referee.read_tag("db.t", "ours")["id"].to_pylist() == [1]
    assert referee.read("db.t")["id"].to_pylist() == [4]
