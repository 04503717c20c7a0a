"""Indexes in tables that Paimon changes: its own in manifest entries, and segments that it does not know."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pytest
from golden_indexes import Column, columns, golden
from paimon_java import PaimonJava, PaimonTable

from lockgate.framework.index.database.index_segments import entries_of
from lockgate.framework.index.database.maintenance import BuildIndex, MergeIndex
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import Predicate, col

pytestmark = pytest.mark.interop

OPTIONS = {
    "bucket": "-1",
    "manifest.merge-min-count": "3",
    "manifest.target-file-size": "4 kb",
    "file-index.bloom-filter.columns": "id",
    "file-index.in-manifest-threshold": "1 mb",
}


def test_files_that_paimon_has_indexed(catalog: Catalog, paimon_java: PaimonJava) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("id", "BIGINT")], options=OPTIONS)
    table = catalog.load_table("db.t")
    table.commit([message for n in range(40) for message in table.write(pa.table({"id": [n]}))])
    theirs.index()
    live = table.manifests.live_files(table.latest_snapshot())
    assert len(live) == 40
    assert all(entry.file.embedded_index for entry in live)
    for n in range(40, 46):  # more manifests than stay apart
        table.append(pa.table({"id": [n]}))
        assert sorted(table.read()["id"].to_pylist()) == list(range(n + 1))
        assert sorted(row[0] for row in theirs.read().rows) == list(range(n + 1))
    theirs.write([[46]])
    assert theirs.expire(1) > 0
    assert sorted(table.read()["id"].to_pylist()) == list(range(47))


def test_containers_are_those_of_paimon(paimon_java: PaimonJava) -> None:
    """Paimon writes what is kept of it, and reads what Lockgate writes as it reads its own."""

    def answers(column: Column, container: bytes) -> list[Any]:
        asked = {"container": base64.b64encode(container).decode(), "filters": column.questions}
        return list(paimon_java.ask("/", "db.t", "ask_index", type=column.type, **asked))

    kept = golden()
    assert [column for column, _, _ in kept] == list(columns())
    for column, container, told in kept:
        written = base64.b64decode(paimon_java.ask("/", "db.t", "write_index", **column.ask()))
        assert len(written) == len(container)
        assert written == container or column.kind == "bitmap"
        assert told == answers(column, container) == answers(column, column.container())


def numbered(first: int, end: int) -> pa.Table:
    """Rows of which each file has the even or the odd numbers, so that statistics tell nothing."""
    return pa.table(
        {"id": pa.array(range(first, end, 2), pa.int64()), "host": [f"h{n}" for n in range(first, end, 2)]}
    )


def opened(table: Table, predicate: Predicate) -> int:
    return sum(len(split.files) for split in table.scan(predicate=predicate).splits)


@pytest.mark.parametrize("keyed", [False, True])
def test_segments_outlive_what_paimon_does(catalog: Catalog, paimon_java: PaimonJava, keyed: bool) -> None:
    """Paimon reads, writes, compacts and expires a table with segments; no row or segment is lost."""
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    columns = [("id", "BIGINT NOT NULL" if keyed else "BIGINT"), ("host", "STRING")]
    theirs.create(columns, primary_keys=["id"] if keyed else [], options={"bucket": "1" if keyed else "-1"})
    table = catalog.alter_table("db.t", [SetOption("index.values.columns", "id,host")])
    for first in (0, 1):
        table.append(numbered(first, 100))
    assert opened(table, col("id") == 51) == (2 if keyed else 1)  # files that share keys stay together
    assert len(theirs.read().rows) == 100
    theirs.write([[1000, "h1000"]])
    assert len(entries_of(table, table.latest_snapshot())) == 2
    assert table.read(predicate=col("host") == "h1000").num_rows == 1
    theirs.compact()
    assert table.read(predicate=col("host") == "h51")["id"].to_pylist() == [51]
    assert theirs.expire(1) > 0
    assert theirs.orphans(2**60) >= 0
    assert len(entries_of(table, table.latest_snapshot())) == 2
    assert sorted(table.read()["id"].to_pylist()) == [*range(100), 1000]
    for procedure in (BuildIndex(), MergeIndex()):
        procedure.call(ProcedureContext(catalog), table="db.t", dry_run=False)
    assert len(entries_of(table, table.latest_snapshot())) == 1
    assert opened(table, col("host") == "nobody") == 0
    assert table.read(predicate=col("host") == "h51")["id"].to_pylist() == [51]
    assert len(theirs.read().rows) == 101


def test_bounds_of_manifests_outlive_what_paimon_does(catalog: Catalog, paimon_java: PaimonJava) -> None:
    """Paimon writes and merges manifests of which the bounds know nothing; they are opened, and no row is
    lost."""
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create(
        [("id", "BIGINT"), ("host", "STRING")], options={"bucket": "-1", "manifest.merge-min-count": "4"}
    )
    table = catalog.alter_table("db.t", [SetOption("index.bounds.columns", "id,host")])
    for first in range(3):
        table.append(numbered(first, 100))
    assert manifests_opened(table, col("id") == -5) == 0
    for number in range(6):
        theirs.write([[1000 + number, f"h{1000 + number}"]])
        assert table.read(predicate=col("id") == 1000 + number).num_rows == 1
        assert table.read(predicate=col("host") == "h51")["id"].to_pylist() == [51]
        assert table.read(predicate=col("id") < 0).num_rows == 0
    table.append(numbered(3, 100))
    assert manifests_opened(table, col("id") == -5) == 0
    theirs.compact()
    assert theirs.expire(1) > 0
    assert theirs.orphans(2**60) >= 0
    assert table.read(predicate=col("id") == 51).num_rows == 2
    BuildIndex().call(ProcedureContext(catalog), table="db.t", dry_run=False)
    assert table.read(predicate=col("id") >= 1003).num_rows == 3
    assert len(theirs.read().rows) == table.read().num_rows
    assert sorted(row[0] for row in theirs.read().rows) == sorted(table.read()["id"].to_pylist())


def manifests_opened(table: Table, predicate: Predicate) -> int:
    """The manifests that a plan opens, as its report says."""
    report = table.scan(predicate).report
    if report.steps[0].name != "manifests":
        return report.manifests
    return int(report.steps[0].by.rpartition("(")[2].split()[0])
