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


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update", "aggregation", "first-row"])
def test_keys_move_between_partitions(catalog: Catalog, paimon_java: PaimonJava, engine: str) -> None:
    """Paimon reads what is written here, compacts it, and its compacted files are written past."""
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "4", "merge-engine": engine}
    if engine == "aggregation":
        options["fields.v.aggregate-function"] = "sum"
    theirs.create(COLUMNS, primary_keys=["n"], partition_keys=["p"], options=options)

    def written(first: int, last: int, part: str, value: int) -> Rows:
        return [[part, f"k{n}", n, value] for n in range(first, last)]

    def both_have(expected: Rows) -> None:
        check_same("Paimon", theirs.read().rows, in_order(expected))
        check_same("Python", in_order(exact_rows(catalog.load_table("db.t").read())), in_order(expected))

    first, second, third = written(0, 12, "a", 1), written(6, 18, "b", 2), written(0, 3, "c", 3)
    for rows_ in (first, second):
        catalog.load_table("db.t").append(arrow(rows_))
    if engine == "first-row":  # the referee's compaction leaves its level 0, which no query shows
        procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    else:
        theirs.compact()
    moved = {
        "deduplicate": [*first[:6], *second],
        "first-row": [*first, *second[6:]],
        "partial-update": [*first[:6], *[["a", *row[1:]] for row in second[:6]], *second[6:]],
        "aggregation": [*first[:6], *[["a", *row[1:3], 3] for row in second[:6]], *second[6:]],
    }[engine]
    both_have(moved)
    catalog.load_table("db.t").append(arrow(third))
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    start = {
        "deduplicate": third,
        "first-row": first[:3],
        "partial-update": [["a", *row[1:]] for row in third],
        "aggregation": [["a", *row[1:3], 4] for row in third],
    }[engine]
    both_have([*start, *[row for row in moved if row[2] > 2]])
    if engine == "deduplicate":
        catalog.load_table("db.t").delete(pa.table({"n": pa.array(range(10), pa.int64())}))
        both_have([row for row in moved if row[2] > 9])
        assert len({file["bucket"] for file in theirs.files()}) > 1
