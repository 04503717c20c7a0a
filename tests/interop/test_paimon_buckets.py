"""Dynamic buckets: Paimon's core finds the buckets of keys that are written here, and the other way round."""

from __future__ import annotations

import pyarrow as pa
import pytest
from both_engines import check_same
from exact_rows import Rows, exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable

from lockgate import procedures
from lockgate.framework.store import Catalog

pytestmark = pytest.mark.interop

OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "7", "write-only": "true"}
COLUMNS = [("p", "STRING"), ("k", "STRING"), ("n", "BIGINT"), ("v", "INT")]


def rows(first: int, last: int, value: int) -> Rows:
    return [[f"p{n % 2}", f"a longer key {n}", n, value] for n in range(first, last)]


def arrow(some: Rows) -> pa.Table:
    return pa.table(dict(zip("pknv", zip(*some, strict=True), strict=True)))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_keys_keep_their_buckets(catalog: Catalog, paimon_java: PaimonJava, kind: str) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create(
        COLUMNS,
        primary_keys=["p", "k", "n"],
        partition_keys=["p"],
        options={**OPTIONS, "file.format": kind},
    )
    state: dict[int, list[object]] = {}

    def expect(some: Rows) -> None:
        state.update({row[2]: row for row in some})
        expected = in_order(list(state.values()))
        check_same("Paimon", theirs.read().rows, expected)
        check_same("Python", in_order(exact_rows(catalog.load_table("db.t").read())), expected)

    # Both find the keys of the other: a key in two buckets would be read twice.
    catalog.load_table("db.t").append(arrow(rows(0, 20, 1)))
    expect(rows(0, 20, 1))
    theirs.write(rows(10, 35, 2))
    expect(rows(10, 35, 2))
    catalog.load_table("db.t").append(arrow(rows(5, 50, 3)))
    expect(rows(5, 50, 3))
    theirs.write(rows(0, 60, 4))
    expect(rows(0, 60, 4))
    assert len({(file["bucket"]) for file in theirs.files()}) >= 5
    theirs.compact({"write-only": "false"})
    expect([])
    catalog.load_table("db.t").append(arrow(rows(0, 61, 5)))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    theirs.write(rows(0, 62, 6))
    expect(rows(0, 62, 6))
    # An overwritten partition begins with the keys of the overwrite.
    left = [row for row in rows(0, 10, 7) if row[0] == "p0"]
    catalog.load_table("db.t").overwrite(arrow(left), {"p": "p0"})
    for key in [key for key, row in state.items() if row[0] == "p0"]:
        del state[key]
    expect(left)
    theirs.write(rows(0, 30, 8))
    expect(rows(0, 30, 8))
    theirs.expire(1)
    expect([])
