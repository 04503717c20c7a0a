"""What changed between two tags: the system tables of Paimon's core show the same."""

from __future__ import annotations

from typing import Any

import pytest
from exact_rows import exact_rows, in_order
from paimon_java import PaimonError, PaimonJava, PaimonTable

from lockgate.errors import UnsupportedError
from lockgate.framework.store import Catalog
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import selection_of

pytestmark = pytest.mark.interop

BETWEEN = {"incremental-between": "one,two"}
KEY: dict[str, Any] = {"primary_keys": ["k"], "options": {"bucket": "2"}}
VECTORS: dict[str, Any] = {
    "primary_keys": ["k"],
    "options": {"bucket": "2", "deletion-vectors.enabled": "true"},
}
APPEND: dict[str, Any] = {"options": {"bucket": "-1"}}


@pytest.mark.parametrize("made", [KEY, VECTORS, APPEND], ids=["key", "vectors", "append"])
@pytest.mark.parametrize("compacted", [False, True])
def test_both_show_what_changed(
    catalog: Catalog, paimon_java: PaimonJava, made: dict[str, Any], compacted: bool
) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("k", "INT NOT NULL"), ("v", "STRING")], **made)
    theirs.write([[number, "a"] for number in range(6)])
    tag(catalog, theirs, "one")
    if made is not APPEND:
        theirs.write([[1, "b"], [7, "b"]])
        theirs.write([[2, "a"], [7, "b"]], kind="-D")
        theirs.write([[4, "c"], [8, "c"]])
        if compacted:
            theirs.compact()
    else:
        theirs.write([[1, "b"], [7, "b"]])
    tag(catalog, theirs, "two")
    ours = catalog.load_table("db.t")
    request = ReadRequest(between=selection_of(ours, BETWEEN).between)
    for view in ("audit_log", "ro"):
        shown = PaimonTable(paimon_java, catalog.warehouse, f"db.t${view}").read(options=BETWEEN)
        assert in_order(exact_rows(ours.system(view, request))) == shown.rows, view
    # What it is to show is not defined: Paimon fails.
    with pytest.raises(PaimonError, match="IncrementalSplit cannot be cast"):
        PaimonTable(paimon_java, catalog.warehouse, "db.t$binlog").read(options=BETWEEN)
    with pytest.raises(UnsupportedError, match=r"\$binlog"):
        ours.system("binlog", request)


def tag(catalog: Catalog, table: PaimonTable, name: str) -> None:
    table.refer("create_tag", name=name, snapshot=catalog.load_table("db.t").snapshot_files.latest_id())


@pytest.mark.parametrize("made", [KEY, APPEND], ids=["key", "append"])
def test_paimon_shows_rows_that_were_written_again_and_no_row_that_an_overwrite_removed(
    catalog: Catalog, paimon_java: PaimonJava, made: dict[str, Any]
) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("k", "INT NOT NULL"), ("v", "STRING")], **made)
    theirs.write([[1, "a"], [2, "a"]])
    tag(catalog, theirs, "one")
    if made is APPEND:
        theirs.write([[1, "a"], [3, "c"]], overwrite={})
    else:
        theirs.write([[1, "a"], [3, "c"]])
    tag(catalog, theirs, "two")
    shown = PaimonTable(paimon_java, catalog.warehouse, "db.t$audit_log").read(options=BETWEEN)
    assert shown.rows == [["+I", 1, "a"], ["+I", 3, "c"]]
    ours = catalog.load_table("db.t")
    found = ours.system("audit_log", ReadRequest(between=selection_of(ours, BETWEEN).between))
    gone = [["-D", 2, "a"]] if made is APPEND else []
    assert in_order(exact_rows(found)) == in_order([["+I", 3, "c"], *gone])
