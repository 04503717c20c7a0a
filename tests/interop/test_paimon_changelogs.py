"""Changelogs: Paimon's core reads, and goes on with, what is stored here of changes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from exact_rows import Rows
from paimon_java import PaimonJava, PaimonTable

from lockgate import procedures
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

pytestmark = pytest.mark.interop

KINDS = ("+I", "-U", "+U", "-D")
WRITES: list[Rows] = [
    [["+I", 1, "a"], ["+I", 2, "b"]],
    [["-U", 1, "a"], ["+U", 1, "a2"], ["-D", 2, "b"], ["+I", 3, "c"]],
    [["+I", 3, "c"]],
]
EXPECTED = {
    "input": [*WRITES[0], *WRITES[1], *WRITES[2]],
    "lookup": [*WRITES[0], *WRITES[1], ["-U", 3, "c"], ["+U", 3, "c"]],
    "full-compaction": [*WRITES[0], *WRITES[1], ["-U", 3, "c"], ["+U", 3, "c"]],
}


def compact(catalog: Catalog) -> None:
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")


def write(table: Table, rows: Rows) -> None:
    kinds = pa.array([KINDS.index(row[0]) for row in rows], pa.int8())
    data = pa.table({"k": pa.array([row[1] for row in rows], pa.int32()), "v": [row[2] for row in rows]})
    table.commit(table.write(data, kinds=kinds))


def followed(java: PaimonJava, catalog: Catalog, after: int) -> list[list[object]]:
    """What Paimon reads of the changelogs up to the newest snapshot."""
    newest = catalog.load_table("db.t").snapshot_files.latest_id()
    read = PaimonTable(java, catalog.warehouse, "db.t$audit_log").read(
        options={"incremental-between": f"{after},{newest}", "incremental-between-scan-mode": "changelog"}
    )
    at = [read.columns.index(name) for name in ("rowkind", "k", "v")]
    return [[row[place] for place in at] for row in read.rows]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("producer", EXPECTED)
def test_paimon_follows_changes(catalog: Catalog, paimon_java: PaimonJava, producer: str, kind: str) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create(
        [("k", "INT"), ("v", "STRING")],
        primary_keys=["k"],
        options={"bucket": "1", "changelog-producer": producer, "file.format": kind},
    )
    for rows in WRITES:
        write(catalog.load_table("db.t"), rows)
        if producer != "input":
            compact(catalog)
    assert sorted(followed(paimon_java, catalog, 0)) == sorted(EXPECTED[producer])
    before = catalog.load_table("db.t").snapshot_files.latest_id() or 0
    # Paimon goes on: it finds the rows that are stored here where it looks for those before.
    theirs.write([[3, "d"], [4, "e"]])
    theirs.compact()
    came = [["+I", 4, "e"]]
    own = [["+I", 3, "d"]] if producer == "input" else [["-U", 3, "c"], ["+U", 3, "d"]]
    assert sorted(followed(paimon_java, catalog, before)) == sorted([*own, *came])
    theirs.expire(1)
    assert theirs.read().rows == [[1, "a2"], [3, "d"], [4, "e"]]
    assert theirs.orphans(2**53) == 0


@pytest.mark.parametrize("producer", [*EXPECTED, "none"])
def test_paimon_follows_changes_of_expired_snapshots(
    catalog: Catalog, paimon_java: PaimonJava, producer: str
) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    options = {"bucket": "1", "changelog-producer": producer, "changelog.num-retained.max": "20"}
    options["snapshot.num-retained.max"] = "10"
    theirs.create([("k", "INT"), ("v", "STRING")], primary_keys=["k"], options=options)
    for rows in WRITES:
        write(catalog.load_table("db.t"), rows)
        if producer in ("lookup", "full-compaction"):
            compact(catalog)
    before = theirs.follow(1)
    compact(catalog)
    table = catalog.load_table("db.t")
    count = len(table.snapshots())
    assert expire_snapshots(table, retain_max=1, retain_min=1).snapshots == count - 1
    assert theirs.orphans(2**53) == 0
    assert theirs.follow(1) == before
    # -U and -D in level 0 stay what they are, where no changelog was produced.
    assert sorted(before) == sorted(EXPECTED.get(producer, [*WRITES[0], *WRITES[1][1:], *WRITES[2]]))
    # Each goes on with what the other has kept.
    write(table, [["+I", 9, "z"]])
    compact(catalog)
    now = table.snapshot_files.latest_id() or 0
    assert theirs.follow(1)[: len(before)] == before
    assert theirs.expire_changelogs(now - 2) == 2
    assert catalog.load_table("db.t").changelog_files.ids()[0] == 3
    recent = {"older_than_millis": now_millis() - 1, "allow_recent": True}
    # Paimon leaves what an older write added until the changes expire that removed it.
    left = remove_orphan_files(table, **recent, dry_run=True).data_files
    assert left == (2 if producer == "none" else 0)
    found = theirs.follow(3)
    call = procedures.ProcedureContext(catalog)
    done = procedures.call(call, "expire_changelogs", "db.t", retain_max=1, retain_min=1)
    assert done["deleted_changelogs_count"] == len(range(3, count))
    assert theirs.orphans(2**53) == 0
    assert theirs.follow(count) == found[-len(theirs.follow(count)) :]
