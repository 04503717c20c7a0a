"""Paimon's core reads, changes and compacts Parquet files that are written here, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest
from both_engines import check_same
from exact_rows import Rows, exact_rows, in_order
from paimon_java import PaimonJava, PaimonTable
from paimon_values import COLUMNS, ROWS

from lockgate import procedures
from lockgate.framework.store import Catalog, Table
from lockgate.pushdown import col

pytestmark = pytest.mark.interop

KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "append in buckets": {"options": {"bucket": "3", "bucket-key": "id"}},
    "append partitioned": {"partition_keys": ["part"]},
    "key": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "thin": {"primary_keys": ["id"], "options": {"bucket": "1", "data-file.thin-mode": "true"}},
    "levels": {
        "primary_keys": ["id"],
        "options": {
            "bucket": "1",
            "file.format.per.level": "0:orc,5:parquet",
            "file.compression.per.level": "0:lz4,5:gzip",
        },
    },
}
NANOS = [("n", "TIMESTAMP(9)"), ("z", "TIMESTAMP(9) WITH LOCAL TIME ZONE"), ("m", "TIMESTAMP(3)")]


def tables(
    catalog: Catalog, java: PaimonJava, name: str, columns: Any, **kind: Any
) -> tuple[PaimonTable, str]:
    theirs = PaimonTable(java, catalog.warehouse, f"db.{name}")
    options = {"file.format": "parquet", **kind.get("options", {})}
    theirs.create(columns, **{**kind, "options": options})
    return theirs, theirs.name


def rows_of(table: Table) -> Rows:
    return in_order(exact_rows(table.read()))


def both_read(catalog: Catalog, theirs: PaimonTable, expected: Rows) -> None:
    check_same("Paimon", theirs.read().rows, in_order(expected))
    check_same("Python", rows_of(catalog.load_table(theirs.name)), in_order(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_in_parquet(catalog: Catalog, paimon_java: PaimonJava, kind: str) -> None:
    theirs, name = tables(catalog, paimon_java, "theirs", COLUMNS, **KINDS[kind])
    theirs.write(ROWS)
    copy, copied = tables(catalog, paimon_java, "copy", COLUMNS, **KINDS[kind])
    catalog.load_table(copied).append(catalog.load_table(name).read())
    endings = {file["name"].rpartition(".")[2] for file in copy.files()}
    assert endings == ({"orc"} if kind == "levels" else {"parquet"})
    both_read(catalog, copy, ROWS)
    assert copy.read(where=["=", "id", 2]).rows == [row for row in in_order(ROWS) if row[0] == 2]
    more = [[9, *ROWS[0][1:]], *([[1, *ROWS[1][1:]]] if "key" in kind else [])]
    copy.write(more)
    expected = [row for row in ROWS if row[0] not in [each[0] for each in more] or "key" not in kind] + more
    both_read(catalog, copy, expected)
    copy.compact()
    both_read(catalog, copy, expected)
    catalog.load_table(copied).append(catalog.load_table(copied).read(predicate=col("id") == 9))
    expected = expected if KINDS[kind].get("primary_keys") else [*expected, more[0]]
    both_read(catalog, copy, expected)
    procedures.call(procedures.ProcedureContext(catalog), "compact", table=copied)
    both_read(catalog, copy, expected)


def test_nanoseconds_in_parquet(catalog: Catalog, paimon_java: PaimonJava) -> None:
    columns = [("id", "INT"), *NANOS]
    rows = [[1, 1_600_000_000_123_456_789, 1_000_000_001, 5_000_000], [2, None, None, None]]
    theirs, name = tables(catalog, paimon_java, "t", columns)
    theirs.write(rows)
    copy, copied = tables(catalog, paimon_java, "copy", columns)
    catalog.load_table(copied).append(catalog.load_table(name).read())
    both_read(catalog, copy, rows)
