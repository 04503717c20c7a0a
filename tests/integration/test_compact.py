"""`compact` on what Spark wrote, and what Spark reads afterwards."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lockgate.framework.store import Catalog
from lockgate.procedures import ProcedureContext, call

if TYPE_CHECKING:
    from lockgate import Lake

Names = Callable[[str], str]


def digest(folder: str) -> str:
    state = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        state.update(str(path).encode())
        state.update(path.read_bytes() if path.is_file() else b"")
    return state.hexdigest()


@pytest.fixture
def secret(lake: Lake, database: str, table: Names) -> str:
    """`<database>.people`: a key table with an encrypted column, upserts and deletions."""
    lake.sql(
        f"""CREATE TABLE {table("people")} (id BIGINT, ssn STRING, day DATE) PARTITIONED BY (day)
        TBLPROPERTIES ('primary-key' = 'id,day', 'bucket' = '2', 'orc.encrypt' = 'pii:ssn')"""
    )
    for start in (0, 50):
        lake.sql(
            f"""INSERT INTO {table("people")} SELECT id, concat('s', id, '-{start}'),
            date_add(DATE'2026-01-01', CAST(id % 2 AS INT)) FROM range({start}, {start + 100})"""
        )
    lake.sql(f"DELETE FROM {table('people')} WHERE id < 10")
    return f"{database}.people"


def test_rows_stay_and_files_get_fewer(lake: Lake, secret: str) -> None:
    before = lake.table(secret).orderBy("id").collect()
    assert len(before) == 140
    (row,) = lake.call("compact", table=secret)
    assert row.files_after == 4
    assert row.files_after < row.files_before
    assert lake.table(secret).orderBy("id").collect() == before
    assert lake.table(secret).where("ssn = 's77-50'").count() == 1


def test_only_the_named_partition_is_compacted(lake: Lake, secret: str) -> None:
    before = lake.table(secret).orderBy("id").collect()
    (row,) = lake.call("compact", table=secret, partitions="day=2026-01-02")
    assert row.files_after == 2
    assert lake.table(secret).orderBy("id").collect() == before


def test_without_the_key_the_table_stays_byte_for_byte(lake: Lake, secret: str) -> None:
    from lockgate.errors import KeyMissingError

    location = lake.catalog.load_table(secret).location
    state = digest(location)
    with pytest.raises(KeyMissingError, match="pii"):
        call(ProcedureContext(Catalog(lake.catalog.warehouse)), "compact", table=secret)
    assert digest(location) == state


def test_upserts_at_the_same_time_survive(lake: Lake, database: str, table: Names) -> None:
    lake.sql(
        f"""CREATE TABLE {table("k")} (id BIGINT, v BIGINT)
        TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"""
    )
    lake.sql(f"INSERT INTO {table('k')} SELECT id, 0 FROM range(1000)")
    failures: list[BaseException] = []

    def write() -> None:
        try:
            for number in range(1, 5):
                lake.sql(f"INSERT INTO {table('k')} SELECT id, {number} FROM range({number * 100})")
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        lake.call("compact", table=f"{database}.k")
    writer.join()
    lake.call("compact", table=f"{database}.k")
    assert not failures
    found = {row.id: row.v for row in lake.table(f"{database}.k").collect()}
    assert found == {each: 4 if each < 400 else 0 for each in range(1000)}
