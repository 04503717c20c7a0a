"""Tables in HDFS from Python and Spark, in a separate process with a JVM.

hdfs_job.py files HDFS            what file systems promise
hdfs_job.py commit HDFS NAME N    append N rows one by one to `db.t`, as one of several
hdfs_job.py table HDFS            a table from its creation to its end, with several writers
hdfs_job.py spark HDFS FOLDER     the same table from Spark
hdfs_job.py flush HDFS NAME N     record N statements one by one, as one of several drivers
hdfs_job.py lineage HDFS FOLDER   lineage of several drivers, compacted, in an index below a folder

Each prints JSON as its last line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.errors import SnapshotNotFoundError
from lockgate.framework.io import resolve
from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.store.journal import Journal
from lockgate.framework.lineage.store.lineage_index import Index
from lockgate.framework.lineage.store.lineage_segments import Segments
from lockgate.framework.lineage.store.segment_compaction import compact
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def files(address: str) -> dict[str, Any]:
    found, root = resolve(f"{address}/files of ü=%3A")
    winners: list[int] = []

    def create(number: int, name: str) -> None:
        with suppress(FileExistsError):
            found.write_new(f"{root}/{name}", str(number).encode())
            winners.append(number)

    for turn in range(10):
        threads = [threading.Thread(target=create, args=(each, f"prize {turn}")) for each in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    prizes = [int(found.read_bytes(f"{root}/prize {turn}")) for turn in range(10)]
    found.write_atomic(f"{root}/hint", b"1")
    found.write_atomic(f"{root}/hint", b"23")
    with found.open_input(f"{root}/hint") as file:
        file.seek(1)
        end = file.read().decode()
    missing = []
    for call in (found.read_bytes, found.size, found.open_input):
        with suppress(FileNotFoundError):
            call(f"{root}/none")
            missing.append(call.__name__)
    listed = found.list(root)
    deleted = [found.delete(f"{root}/hint"), found.delete(f"{root}/hint")]
    found.delete_tree(root)
    found.delete_tree(root)
    return {
        "one winner each": prizes == winners,
        "end": end,
        "found though missing": missing,
        "names": sorted(info.name for info in listed),
        "plausible": all(info.modified_millis > 1_600_000_000_000 and info.size for info in listed),
        "deleted": deleted,
        "left": found.list(root),
    }


def commit(address: str, name: str, count: str) -> dict[str, Any]:
    table = Catalog(f"{address}/lake").load_table("db.t")
    for number in range(int(count)):
        table.append(pa.table({"id": [number], "v": [name]}, schema=SCHEMA))
    return {}


def table(address: str) -> dict[str, Any]:
    catalog = Catalog(f"{address}/lake")
    catalog.create_namespace("db")
    options = {"commit.min-retry-wait": "5 ms", "commit.max-retries": "100"}
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=options))
    command = [sys.executable, __file__, "commit", address]
    writers = [subprocess.Popen([*command, name, "8"], stdout=subprocess.DEVNULL) for name in "abc"]
    failed = [writer.wait() for writer in writers]
    rows = sorted((row["v"], row["id"]) for row in made.read().to_pylist())
    made.create_tag("kept", 3)
    made.record_consumer("dim", 20)
    expired = expire_snapshots(made, retain_max=1)
    with suppress(SnapshotNotFoundError):
        made.snapshot(19)
        failed.append(19)
    orphans = remove_orphan_files(made, dry_run=True)
    return {
        "failed": failed,
        "all rows": rows == [(name, number) for name in "abc" for number in range(8)],
        "snapshots": [each.id for each in made.snapshots()],
        "expired": expired.snapshots,
        "tag": made.read(tag="kept").num_rows,
        "orphans": orphans.data_files + orphans.other_files + orphans.young_files,
    }


def spark(address: str, folder: str) -> dict[str, Any]:
    import lockgate

    confs = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.sql.shuffle.partitions": "2"}
    confs |= {"spark.sql.warehouse.dir": f"{folder}/spark-warehouse", "spark.driver.host": "127.0.0.1"}
    lake = lockgate.connect(f"{address}/lake", master="local[2]", conf=confs)
    session = lake.spark
    session.sql("INSERT INTO lake.db.t VALUES (100, 'spark')")
    session.sql("CREATE TABLE lake.db.k (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')")
    session.sql("INSERT INTO lake.db.k VALUES (1, 'one'), (2, 'two')")
    session.sql(
        "MERGE INTO lake.db.k t USING (SELECT 2 AS id, 'new' AS v) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    answer = {
        "rows": session.table("lake.db.t").count(),
        "key": sorted(tuple(row) for row in session.table("lake.db.k").collect()),
        "python": sorted(tuple(row.values()) for row in lake.catalog.load_table("db.k").read().to_pylist()),
    }
    session.sql("DROP TABLE lake.db.k")
    session.sql("DROP DATABASE lake.db CASCADE")
    return {**answer, "left": [info.name for info in resolve(f"{address}/lake")[0].list("/lake/db.db")]}


def lineage_segments(address: str) -> Segments:
    found, root = resolve(f"{address}/lineage lake")
    return Segments(found, root)


def flush(address: str, name: str, count: str) -> dict[str, Any]:
    journal = Journal(lineage_segments(address), name)
    for number in range(int(count)):
        shape = Shape(
            "INSERT", Dataset.table("hr", "copy"), (Dataset.table("hr", "people"),), (("n", 0, "n", 1),)
        )
        journal.add(Record(shape, Run(1000 + number, 2000 + number, rows=1)))
        if not journal.flush():
            sys.exit(f"{name} could not write record {number}")
    return {}


def lineage(address: str, folder: str) -> dict[str, Any]:
    segments = lineage_segments(address)
    command = [sys.executable, __file__, "flush", address]
    drivers = [subprocess.Popen([*command, name, "6"], stdout=subprocess.DEVNULL) for name in "abc"]
    failed = [driver.wait() for driver in drivers]

    def runs(index: str) -> list[tuple[Any, ...]]:
        with Index(segments, Path(folder) / index).reading() as database:
            return database.execute("SELECT count, rows FROM process").fetchall()

    early, before = runs("early"), len(segments.all_names())
    compacted = compact(segments, retain_days=100_000)
    return {
        "failed": failed,
        "segments": [before, compacted.segments_after, len(segments.all_names())],
        "runs": [early, runs("early"), runs("late")],
        "damaged": compacted.damaged,
    }


if __name__ == "__main__":
    jobs: Any = {
        "files": files,
        "commit": commit,
        "table": table,
        "spark": spark,
        "flush": flush,
        "lineage": lineage,
    }
    print(json.dumps(jobs[sys.argv[1]](*sys.argv[2:])))
