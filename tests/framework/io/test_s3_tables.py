"""Tables in an S3-compatible store: the same operations as on a disk, and their number of requests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from child_paths import python_path
from s3_server import CREDENTIALS, S3Server

from lockgate.errors import CorruptFileError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, CommitMessage, DataFileMeta, Schema, Table
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis
from lockgate.lookup.driver.lookup_tables import make_spec, open_lookup
from lockgate.lookup.driver.service import Lookup
from lockgate.pushdown import Comparison, Op

WORKER = Path(__file__).with_name("s3_commit_worker.py")
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string())])


def rows(*ids: int, value: str = "v") -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"{value}{one}" for one in ids]}, schema=COLUMNS)


def create(catalog: Catalog, name: str = "t", *, primary_keys: tuple[str, ...] = (), **options: str) -> Table:
    renamed = {key.replace("_", "."): value for key, value in options.items()}
    schema = Schema.from_arrow(COLUMNS, primary_keys=primary_keys, options=renamed)
    return catalog.create_table(f"db.{name}", schema)


def read(table: Table, **how: Any) -> dict[int, str]:
    found = table.read(**how).to_pydict()
    assert len(set(found["id"])) == len(found["id"])
    return dict(sorted(zip(found["id"], found["v"], strict=True)))


def test_a_table_from_its_creation_to_its_end(s3_catalog: Catalog, s3: S3Server, bucket: str) -> None:
    table = create(s3_catalog)
    table.append(rows(1, 2))
    table.append(rows(3))
    assert s3_catalog.list_namespaces() == ["db"]
    assert s3_catalog.list_tables("db") == ["t"]
    again = Catalog(f"s3a://{bucket}/warehouse/", options=s3.options()).load_table("db.t")
    assert again.table_id == table.table_id
    assert read(again) == {1: "v1", 2: "v2", 3: "v3"}
    assert read(again, snapshot_id=1) == {1: "v1", 2: "v2"}
    assert [change.rows.num_rows for change in again.changes(1, 2)] == [1]
    table.create_tag("first", 1)
    table.overwrite(rows(7))
    assert read(table) == {7: "v7"}
    assert read(table, tag="first") == {1: "v1", 2: "v2"}
    s3_catalog.drop_table("db.t")
    assert not s3_catalog.table_exists("db.t")
    s3_catalog.drop_namespace("db")
    assert s3_catalog.file_system.list(f"{bucket}/warehouse") == []


def test_a_key_table(s3_catalog: Catalog) -> None:
    table = create(s3_catalog, primary_keys=("id",), bucket="2")
    table.append(rows(*range(100)))
    table.append(rows(5, 50, value="new"))
    table.delete(pa.table({"id": [7, 8]}))
    expected = {one: f"v{one}" for one in range(100)} | {5: "new5", 50: "new50"}
    del expected[7], expected[8]
    assert read(table) == expected
    five = Comparison(Op.EQ, ("id",), (pa.scalar(5, pa.int64()),))
    assert read(table, predicate=five) == {5: "new5"}


def test_an_encrypted_table(s3: S3Server, bucket: str) -> None:
    keys = MemoryKeyProvider({"pii@0": os.urandom(16)})
    catalog = Catalog(f"s3://{bucket}/lake", keys=keys, options=s3.options())
    catalog.create_namespace("db")
    table = create(catalog, orc_encrypt="pii:v")
    table.append(rows(*range(1000)))
    assert read(table)[999] == "v999"
    content = [table.file_system.read_bytes(path) for path in table.scan().splits[0].paths]
    assert not any(b"v999" in data for data in content)


@pytest.mark.long
def test_commits_of_several_processes_all_succeed(s3_catalog: Catalog, s3: S3Server, bucket: str) -> None:
    options = {"manifest.merge-min-count": "5", "commit.min-retry-wait": "20 ms", "commit.max-retries": "200"}
    schema = Schema.from_arrow(COLUMNS, options=options)
    table = s3_catalog.create_table("db.t", schema)
    support = python_path(Path(__file__).parents[2] / "support")
    workers = [
        subprocess.Popen(
            [sys.executable, str(WORKER), s3.endpoint, f"s3://{bucket}/warehouse", name, "3"],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": support},
        )
        for name in "abc"
    ]
    errors = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0, 0], errors
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 10))
    assert [each.total_record_count for each in table.snapshots()] == [10 * number for number in range(1, 10)]
    names = [entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())]
    assert sorted(names) == sorted(f"{name}-{number}" for name in "abc" for number in range(3))


def test_expiry_and_orphans(s3_catalog: Catalog) -> None:
    table = create(s3_catalog)
    for number in range(4):
        table.overwrite(rows(number))
    assert expire_snapshots(table, retain_min=1, retain_max=1).snapshots == 3
    assert [snapshot.id for snapshot in table.snapshots()] == [4]
    assert read(table) == {3: "v3"}
    files = table.file_system
    data = f"{table.location}/bucket-0"
    assert len(files.list(data)) == 1
    files.write_new(f"{data}/data-orphan-0.orc", b"x")
    files.write_new(f"{table.location}/manifest/manifest-orphan-0", b"x")
    assert remove_orphan_files(table).data_files == 0
    # S3 has times in full seconds, so the two files may have different ones.
    there = [*files.list(data), *files.list(f"{table.location}/manifest")]
    later = max(info.modified_millis for info in there) + 1000
    while now_millis() <= later:
        time.sleep(0.05)
    counted = remove_orphan_files(table, older_than_millis=later, allow_recent=True, dry_run=True)
    removed = remove_orphan_files(table, older_than_millis=later, allow_recent=True, parallelism=4)
    assert (removed.data_files, removed.other_files) == (counted.data_files, counted.other_files) == (1, 1)
    assert len(files.list(data)) == 1
    assert read(table) == {3: "v3"}


def test_a_lookup_cache(s3_catalog: Catalog, tmp_path: Path) -> None:
    table = create(s3_catalog, primary_keys=("id",), bucket="1")
    table.append(rows(*range(100)))
    lookup = open_lookup(table, "id", options={"lookup.cache-dir": str(tmp_path)})
    asked = pa.RecordBatch.from_pydict({"id": [3, 1000]})
    try:
        assert lookup.get(asked).rows["v"].to_pylist() == ["v3"]
        table.append(rows(3, value="new"))
        lookup.refresh()
        assert lookup.get(asked).rows["v"].to_pylist() == ["new3"]
    finally:
        lookup.close()


def test_a_lookup_cache_that_its_owner_builds(s3_catalog: Catalog, tmp_path: Path) -> None:
    table = create(s3_catalog, primary_keys=("id",), bucket="1")
    table.append(rows(*range(100)))
    spec = make_spec(table, "id", options={"lookup.cache-dir": str(tmp_path)})
    lookup = Lookup(s3_catalog, table, spec)
    try:
        assert lookup.pin("query", 0) == 1
        assert lookup.status().rows == 100
    finally:
        lookup.close()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret.encode() in data for data in written for secret in CREDENTIALS.values())


def test_numbers_of_requests_of_a_commit_and_a_read(s3_catalog: Catalog, s3: S3Server) -> None:
    table = create(s3_catalog)
    table.append(rows(1))
    s3.requests.clear()
    table.append(rows(2))
    written = [path for method, path in s3.requests if method == "PUT"]
    # A data file, a manifest, two lists, the snapshot, the hint.
    assert len(written) == 6
    assert len(s3.requests) <= 20
    plan = table.scan()
    s3.requests.clear()
    assert read(table, plan=plan) == {1: "v1", 2: "v2"}
    # A small file comes in one request.
    assert [method for method, _ in s3.requests] == ["GET", "GET"]
    s3.requests.clear()
    # A second plan only needs the snapshot, because manifests are cached.
    table.scan()
    assert len(s3.requests) <= 5


def test_a_column_of_a_large_file_takes_few_requests(s3_catalog: Catalog, s3: S3Server) -> None:
    columns = {f"c{number}": pa.array(range(number, number + 100_000)) for number in range(4)}
    columns["noise"] = pa.array([os.urandom(16).hex() for _ in range(100_000)])
    data = pa.table(columns)
    table = s3_catalog.create_table("db.t", Schema.from_arrow(data.schema))
    table.append(data)
    size = table.scan().total_bytes
    assert size > 1_000_000
    s3.requests.clear()
    assert table.read(columns=["c1"])["c1"].to_pylist() == list(range(1, 100_001))
    data_requests = [path for _, path in s3.requests if path.endswith(".orc")]
    assert 1 <= len(data_requests) <= 4


def test_no_secret_in_messages(s3_catalog: Catalog) -> None:
    table = create(s3_catalog)
    shown = [repr(table), repr(s3_catalog), repr(table.file_system), str(table.scan().report)]
    table.file_system.delete_tree(table.location)
    with pytest.raises(Exception, match=r"db\.t") as raised:
        table.append(rows(1))
    assert not any(secret in text for text in (*shown, str(raised.value)) for secret in CREDENTIALS.values())


def test_files_of_another_writer(s3_catalog: Catalog) -> None:
    table = create(s3_catalog)
    added = DataFileMeta("gone.orc", 100, 10, creation_time_millis=1)
    table.commit([CommitMessage((), 0, -1, (added,), ())])
    with pytest.raises(CorruptFileError, match=r"s3a://.*gone\.orc is missing"):
        table.read()
