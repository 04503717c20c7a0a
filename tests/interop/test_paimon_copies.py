"""Rescaled, cloned and purged tables: Paimon's core reads them, and goes on with them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paimon_java import PaimonJava, PaimonTable

from lockgate import procedures
from lockgate.framework.store import Catalog, Table

pytestmark = pytest.mark.interop


def run(catalog: Catalog, name: str, **arguments: Any) -> procedures.ProcedureResult:
    return procedures.call(procedures.ProcedureContext(catalog), name, **arguments)


def shown(theirs: PaimonTable) -> list[list[Any]]:
    return sorted(theirs.read().rows)


def rows(table: Table) -> list[list[Any]]:
    return sorted([list(row.values()) for row in table.read().to_pylist()])


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_paimon_goes_on_with_rescaled_buckets(catalog: Catalog, paimon_java: PaimonJava, kind: str) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create(
        [("k", "INT"), ("v", "STRING")],
        primary_keys=["k"],
        options={"bucket": "2", "file.format": kind},
    )
    theirs.write([[number, f"v{number}"] for number in range(30)])
    theirs.write([[number, "new"] for number in range(5)])
    assert run(catalog, "rescale", table="db.t", bucket_num=4)["rescaled_partitions_count"] == 1
    expected = [[number, "new" if number < 5 else f"v{number}"] for number in range(30)]
    assert shown(theirs) == expected
    assert theirs.schema()["options"]["bucket"] == "4"
    assert theirs.read(where=["=", "k", 17]).rows == [[17, "v17"]]
    assert {file["bucket"] for file in theirs.files()} == {0, 1, 2, 3}
    theirs.write([[7, "again"], [99, "more"]])
    theirs.compact()
    expected[7][1] = "again"
    assert shown(theirs) == rows(catalog.load_table("db.t")) == [*expected, [99, "more"]]
    run(catalog, "rescale", table="db.t", bucket_num=1)
    assert shown(theirs) == [*expected, [99, "more"]]
    theirs.expire(1)
    assert theirs.orphans(2**53) == 0
    assert shown(theirs) == [*expected, [99, "more"]]


def test_paimon_goes_on_with_a_clone(catalog: Catalog, paimon_java: PaimonJava) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("k", "INT"), ("v", "STRING")], primary_keys=["k"], options={"bucket": "-1"})
    theirs.write([[1, "a"], [2, "b"]])
    theirs.alter({"change": "add", "name": ["w"], "type": "INT"})
    theirs.write([[2, "c", 2], [3, "d", 3]])
    run(catalog, "clone", table="db.t", target_table="db.copy")
    copy = PaimonTable(paimon_java, catalog.warehouse, "db.copy")
    assert copy.read().rows == theirs.read().rows
    copy.write([[1, "x", 1], [9, "y", 9]])
    copy.compact()
    assert copy.read().rows == [[1, "x", 1], [2, "c", 2], [3, "d", 3], [9, "y", 9]]
    assert copy.orphans(2**53) == 0
    assert theirs.read().rows == [[1, "a", None], [2, "c", 2], [3, "d", 3]]


def test_paimon_goes_on_with_a_purged_table(catalog: Catalog, paimon_java: PaimonJava) -> None:
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    theirs.create([("k", "INT"), ("v", "STRING")], primary_keys=["k"], options={"bucket": "-1"})
    theirs.write([[1, "a"], [2, "b"]])
    theirs.refer("create_tag", name="kept", snapshot=1)
    theirs.write([[3, "c"]])
    done = run(catalog, "purge_files", table="db.t", confirm=True)
    assert done["deleted_tags_count"] == 1
    assert theirs.read().rows == []
    assert theirs.orphans(2**53) == 0
    theirs.write([[1, "x"]])
    assert theirs.read().rows == [[1, "x"]]
    assert theirs.orphans(2**53) == 0


def test_paimon_reads_adopted_parquet_files(
    catalog: Catalog, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    columns = {
        "id": pa.array(range(5), pa.int64()),
        "tiny": pa.array(range(5), pa.int8()),
        "name": ["a", None, "c", "d", "e"],
        "born": pa.array([datetime.date(2000, 1, 1 + day) for day in range(5)], pa.date32()),
        "size": [0.5, 1.5, None, 2.5, 3.5],
        "good": [True, None, False, True, False],
    }
    (tmp_path / "origin").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "origin" / "a.parquet", compression="zstd")
    source = str(tmp_path / "origin")
    found = run(catalog, "migrate_table", source_type="parquet", table=source, target_table="db.t")
    assert found["files_adopted"] == 1
    theirs = PaimonTable(paimon_java, catalog.warehouse, "db.t")
    assert [row[:3] for row in sorted(theirs.read().rows)] == [
        [number, number, name] for number, name in enumerate(columns["name"])
    ]
    assert [row[0] for row in theirs.read(where=["<", "id", 2]).rows] == [0, 1]
    theirs.write([[9, 9, "z", "2024-01-01", 1.0, True]])
    assert len(rows_of(catalog)) == 6


def rows_of(catalog: Catalog) -> list[Any]:
    return catalog.load_table("db.t").read().to_pylist()
