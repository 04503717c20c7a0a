"""Ranges of snapshots by their changelogs: the newest change of each key, deletions in the audit log."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from exact_rows import exact_rows

from lockgate import procedures
from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between, selection_of
from lockgate.framework.store.system.system_tables import read_system

MakeTable = Callable[..., Table]
BY_CHANGELOGS = {"incremental-between-scan-mode": "changelog"}


def make_rows(*ids: int, v: str) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [v] * len(ids)})


def range_of(table: Table, ends: str) -> Between:
    found = selection_of(table, {"incremental-between": ends, **BY_CHANGELOGS}).between
    assert found is not None
    return found


def rows_of(table: Table, between: Between) -> pa.Table:
    return table.read(table.scan(between=between))


def test_a_range_of_changelogs(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1", changelog__producer="lookup")
    call = procedures.ProcedureContext(catalog)
    table.append(make_rows(1, 2, 3, v="a"))
    procedures.call(call, "compact", table="db.t")
    table.append(make_rows(1, v="b"))
    table.delete(pa.table({"id": [2]}))
    table.append(make_rows(4, v="c"))  # not yet in a changelog
    between = range_of(table, "2,5")
    assert exact_rows(rows_of(table, between)) == []
    procedures.call(call, "compact", table="db.t")
    between = range_of(table, "2,6")
    assert sorted(exact_rows(rows_of(table, between))) == [[1, "b"], [4, "c"]]
    log = read_system(table, "audit_log", ReadRequest(between=between))
    assert sorted(exact_rows(log)) == [["+I", 4, "c"], ["+U", 1, "b"], ["-D", 2, "a"]]
    with pytest.raises(InputError, match="changes take no changelogs"):
        table.changes(ReadRequest(between=between))
    table.overwrite(make_rows(9, v="d"))
    with pytest.raises(UnsupportedError, match=r"snapshot 7 of table db\.t is an OVERWRITE, so it has no"):
        rows_of(table, range_of(table, "2,7"))


def test_a_table_without_changelogs(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(make_rows(1, v="a"))
    with pytest.raises(UnsupportedError, match="without 'changelog-producer'"):
        rows_of(table, range_of(table, "0,1"))
