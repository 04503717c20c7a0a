"""Parquet files, dynamic buckets and changelogs of producer `input`, written by Spark as by Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exact_rows import exact_rows, in_order

from lockgate.framework.store.commit.hash_index import hash_entries, read_hashes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table
    from lockgate.framework.store.manifests.manifest import ManifestEntry
    from lockgate.framework.store.metadata.snapshot import Snapshot

Named = Callable[[str], str]
Load = Callable[[str], "Table"]

COLUMNS = """
    id BIGINT NOT NULL, flag BOOLEAN, tiny TINYINT, small SMALLINT, num INT, real FLOAT, dbl DOUBLE,
    odd DOUBLE, dec DECIMAL(9, 2), mid DECIMAL(17, 5), wide DECIMAL(30, 4), name STRING, code CHAR(4),
    vc VARCHAR(9),
    raw BINARY, day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, tags ARRAY<STRING>, m MAP<STRING, INT>,
    s STRUCT<a: INT, b: ARRAY<STRUCT<c: DECIMAL(20, 1)>>>, nothing INT
"""
ROWS = """
    SELECT /*+ COALESCE(1) */ id,
        IF(id % 7 = 0, NULL, id % 2 = 0), CAST(id % 100 AS TINYINT), CAST(-id AS SMALLINT),
        CAST(id * 3 AS INT), CAST(IF(id = 50, 'NaN', id / 3) AS FLOAT), IF(id % 60 = 0, -0.0D, id / 7),
        IF(id = 7, DOUBLE('Infinity'), -id), CAST(id / 9 AS DECIMAL(9, 2)),
        CAST(-id / 7 AS DECIMAL(17, 5)),
        CAST(-id * 1000000007 AS DECIMAL(30, 4)),
        IF(id % 11 = 0, NULL, concat('a name as long as any näme-', id)),
        concat('c', id % 10), concat('v', id), CAST(concat('r', id) AS BINARY),
        DATE '1500-01-01' + INT(id * 100),
        TIMESTAMP '1899-12-31 23:00:00' + make_interval(0, 0, 0, int(id), 0, 0, 0.123456),
        TIMESTAMP_NTZ '1969-12-31 23:59:59.500004',
        IF(id % 5 = 0, NULL, IF(id % 5 = 1, array(), array('x', NULL))),
        IF(id % 5 = 2, map(), map('k', int(id), 'n', NULL)),
        CAST(IF(id % 13 = 0, NULL, struct(int(id) AS a,
            array(struct(CAST(id AS DECIMAL(20, 1)) AS c), NULL) AS b))
            AS STRUCT<a: INT, b: ARRAY<STRUCT<c: DECIMAL(20, 1)>>>),
        NULL
    FROM range(0, 120)
"""


@pytest.fixture
def load(lake: Lake, database: str) -> Load:
    return lambda name: lake.catalog.load_table(f"{database}.{name}")


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.read().to_pylist())


def read(spark: SparkSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


def data_files(table: Table) -> dict[str, Any]:
    live = table.manifests.live_files(table.latest_snapshot())
    return {table.paths.data_file(each.partition, each.bucket, each.file): each.file for each in live}


@pytest.mark.parametrize("key", [False, True], ids=["append", "key"])
def test_parquet_as_python_writes_it(spark: SparkSession, table: Named, load: Load, key: bool) -> None:
    """Equal rows, schemas of files with their field ids, and statistics."""
    keyed = "'primary-key' = 'id', 'bucket' = '1'" if key else "'bucket' = '-1'"
    ours, python = table("ours"), table("python")
    for name in (ours, python):
        spark.sql(f"CREATE TABLE {name} ({COLUMNS}) TBLPROPERTIES ('file.format' = 'parquet', {keyed})")
    spark.sql(f"INSERT INTO {ours} {ROWS.strip()}")
    expected = spark.sql(ROWS).toDF(*load("ours").schema.field_names)
    assert in_order(exact_rows(load("ours").read().drop(["code"]))) == in_order(
        exact_rows(expected.drop("code").toArrow())
    )
    load("python").append(load("ours").read())
    assert in_order(exact_rows(spark.table(ours).toArrow())) == in_order(
        exact_rows(spark.table(python).toArrow())
    )
    (one, file), (other, copy) = *data_files(load("ours")).items(), *data_files(load("python")).items()
    assert one.endswith(".parquet")
    assert schema_of(one) == schema_of(other)
    assert pq.read_metadata(one).row_group(0).column(0).compression == "ZSTD"
    assert (file.min_key, file.max_key, file.key_stats) == (copy.min_key, copy.max_key, copy.key_stats)
    told = [statistics(each) for each in (file, copy)]
    assert told[0]["raw"] == (None, None, 0)  # Spark's tasks keep no bounds of bytes, nor of NaN
    assert told[0]["real"] == (None, None, 0)
    for each in told:
        del each["raw"], each["real"]
    assert told[0] == told[1]
    assert told[0]["odd"] == (-119.0, float("inf"), 0)


def schema_of(path: str) -> str:
    """Return the schema of a Parquet file with its field ids."""
    return str(pq.read_metadata(path).schema).partition("\n")[2]


def statistics(file: Any) -> dict[str, tuple[Any, ...]]:
    kept = file.value_stats
    return dict(
        zip(file.value_stats_cols, zip(kept.min, kept.max, kept.null_counts, strict=True), strict=True)
    )


def test_parquet_rolls_files_and_changes_rows(spark: SparkSession, table: Named, load: Load) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v STRING) TBLPROPERTIES ('file.format' = 'parquet', "
        "'target-file-size' = '1 mb', 'file.compression' = 'none')"
    )
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, sha2(string(id), 256) FROM range(60000)")
    files = data_files(load("t"))
    assert len(files) > 2
    assert sum(file.row_count for file in files.values()) == 60000
    spark.sql(f"UPDATE {name} SET v = 'changed' WHERE id = 7")
    spark.sql(f"DELETE FROM {name} WHERE id >= 100")
    assert {path.rpartition(".")[2] for path in data_files(load("t"))} == {"parquet"}
    found = dict(read(spark, name))
    assert len(found) == 100
    assert (found[7], found[8][:6]) == ("changed", "2c6242")


def test_a_task_that_fails_leaves_no_parquet(spark: SparkSession, table: Named, load: Load) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id BIGINT) TBLPROPERTIES ('file.format' = 'parquet')")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(f"INSERT INTO {name} SELECT 1 DIV (id - 30000) FROM range(0, 40000, 1, 1)")
    assert list(Path(load("t").location).rglob("data-*")) == []


# --- dynamic buckets -----------------------------------------------------------------------------


def check_buckets(table: Table) -> dict[Any, dict[int, int]]:
    """Check that the index knows the keys of each bucket once; return how many each has."""
    entries = hash_entries(table, table.latest_snapshot())
    hashes = {partition: read_hashes(table, buckets) for partition, buckets in entries.items()}
    for buckets in hashes.values():
        counted = Counter(int(number) for found in buckets.values() for number in found)
        assert set(counted.values()) <= {1}
    for each in table.manifests.live_files(table.latest_snapshot()):
        assert each.total_buckets == -1
        assert each.bucket in hashes[each.partition]
    return {
        partition: {bucket: len(found) for bucket, found in buckets.items()}
        for partition, buckets in hashes.items()
    }


@pytest.fixture
def dynamic(spark: SparkSession, table: Named) -> str:
    """A table with buckets of 40 keys at most."""
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (p STRING, id INT, v STRING) PARTITIONED BY (p) TBLPROPERTIES ("
        "'bucket' = '-1', 'primary-key' = 'p,id', "
        "'dynamic-bucket.target-row-num' = '40', 'file.format' = 'parquet')"
    )
    return name


def test_dynamic_buckets(spark: SparkSession, dynamic: str, load: Load) -> None:
    """Spark and Python by turns; every statement keeps each key in one bucket."""
    model = {(p, i): "a" for p in "xy" for i in range(100)}
    spark.sql(
        f"INSERT INTO {dynamic} SELECT p, id, 'a' FROM range(0, 100, 1, 3) JOIN (VALUES ('x'), ('y')) AS t(p)"
    )

    def check() -> None:
        expected = sorted((*key, value) for key, value in model.items())
        assert rows_of(load("t")) == expected
        assert read(spark, dynamic) == expected

    check()
    assert check_buckets(load("t")) == {(p,): {0: 40, 1: 40, 2: 20} for p in "xy"}
    load("t").append(
        pa.table({"p": ["x"] * 50, "id": pa.array(range(80, 130), pa.int32()), "v": ["python"] * 50})
    )
    model |= {("x", i): "python" for i in range(80, 130)}
    spark.sql(
        f"MERGE INTO {dynamic} t USING (SELECT 'x' p, CAST(id AS INT) id FROM range(120, 140)) s "
        "ON t.p = s.p AND t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN "
        "INSERT (p, id, v) VALUES (s.p, s.id, 'n')"
    )
    model |= {("x", i): "m" if i < 130 else "n" for i in range(120, 140)}
    spark.sql(f"UPDATE {dynamic} SET v = 'u' WHERE id = 5")
    model |= {(p, 5): "u" for p in "xy"}
    spark.sql(f"DELETE FROM {dynamic} WHERE id = 6")
    model = {key: value for key, value in model.items() if key[1] != 6}
    check()
    spark.sql(f"INSERT INTO {dynamic} VALUES ('x', 6, 'again')")
    model["x", 6] = "again"
    spark.sql(f"INSERT OVERWRITE {dynamic} PARTITION (p = 'y') SELECT CAST(id AS INT), 'o' FROM range(10)")
    model = {key: value for key, value in model.items() if key[0] == "x"} | {("y", i): "o" for i in range(10)}
    check()
    found = check_buckets(load("t"))
    assert found["x",] == {0: 40, 1: 40, 2: 40, 3: 20}
    assert sum(found["y",].values()) == 10  # the keys of an overwritten partition are forgotten
    spark.sql(f"CALL lake.sys.compact('{dynamic.partition('.')[2]}')")
    check()


def test_two_writers_of_a_new_key(
    spark: SparkSession, dynamic: str, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that commits while Spark's tasks write takes the buckets: Spark's rows move to them."""
    from lockgate.framework.store.tables import table as tables

    committing, others = tables.Table.commit, [pa.array(range(90, 10, -1), pa.int32())]

    def commit(self: Table, *arguments: Any, **named: Any) -> Any:
        if others:
            ids = others.pop()
            load("t").append(pa.table({"p": ["x"] * len(ids), "id": ids, "v": ["first"] * len(ids)}))
        return committing(self, *arguments, **named)

    monkeypatch.setattr(tables.Table, "commit", commit)
    spark.sql(f"INSERT INTO {dynamic} SELECT 'x', CAST(id AS INT), 'later' FROM range(60)")
    assert others == []
    assert read(spark, dynamic) == sorted(("x", i, "later" if i < 60 else "first") for i in range(91))
    assert sum(check_buckets(load("t"))["x",].values()) == 91


# --- the changelog of producer input -------------------------------------------------------------


def changed_files(table: Table, snapshot: Snapshot) -> list[ManifestEntry]:
    metas = table.manifests.changelog_manifests(snapshot)
    return [entry for meta in metas for entry in table.manifests.read_manifest(meta)]


def changelog(table: Table) -> list[list[tuple[Any, ...]]]:
    """Return the changes of each snapshot: kinds and rows, in the order of their file."""
    from lockgate.framework.store.scan.read import FileReader

    found = []
    for snapshot in table.snapshots():
        rows: list[tuple[Any, ...]] = []
        for each in changed_files(table, snapshot):
            path = table.paths.data_file(each.partition, each.bucket, each.file)
            assert Path(path).name.startswith("changelog-")
            names = ["_VALUE_KIND", *table.schema.field_names]
            read_rows = FileReader(table, table.schema, strict=True).whole(path, each.file, names, {})
            rows += [tuple(row[name] for name in names) for row in read_rows.to_pylist()]
        found.append(rows)
    return found


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
def test_a_changelog_of_what_is_written(
    spark: SparkSession, table: Named, load: Load, file_format: str
) -> None:
    name = table("t")
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1', "
        f"'changelog-producer' = 'input', 'file.format' = '{file_format}')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b'), (1, 'a'), (2, 'c')")
    spark.sql(f"UPDATE {name} SET v = 'u' WHERE id = 1")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM VALUES (1, 'm'), (3, 'n') AS v(id, v)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"INSERT OVERWRITE {name} VALUES (9, 'o')")
    assert read(spark, name) == [(9, "o")]
    assert changelog(load("t")) == [
        [(0, 1, "a"), (0, 2, "b"), (0, 2, "c")],
        [(2, 1, "u")],
        [(3, 2, "c")],
        [(2, 1, "m"), (0, 3, "n")],
        [],
    ]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(f"INSERT INTO {name} SELECT INT(1 DIV (id - 30000)), 'x' FROM range(0, 40000, 1, 1)")
    live = {Path(path).name for path in data_files(load("t"))}
    assert len(list(Path(load("t").location).rglob("changelog-*"))) == 4
    assert live <= {path.name for path in Path(load("t").location).rglob("data-*")}


# --- rows that deletion vectors mark -------------------------------------------------------------


def test_a_stream_names_only_rows_that_vectors_delete(
    spark: SparkSession, table: Named, tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) TBLPROPERTIES ('deletion-vectors.enabled' = 'true')")
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'a' FROM range(10)")
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    spark.sql(f"UPDATE {name} SET v = 'u' WHERE id IN (5, 6)")
    reader = spark.readStream.option("read.changelog", "true").option("scan.snapshot-id", "2")
    query = reader.table(name).writeStream.format("memory").queryName("marked")
    query = query.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True)
    query.start().awaitTermination()
    assert read(spark, "marked") == [
        ("+I", 5, "u"),
        ("+I", 6, "u"),
        ("-D", 3, "a"),
        ("-D", 5, "a"),
        ("-D", 6, "a"),
    ]


def test_files_lie_in_the_folder_that_the_table_names(lake: Lake, table: Named) -> None:
    """`data-file.path-directory`: tasks write there, and an aborted write leaves nothing there."""
    name = table("folder")
    lake.sql(
        f"CREATE TABLE {name} (id INT, p INT) PARTITIONED BY (p) "
        "TBLPROPERTIES ('data-file.path-directory' = 'stored/here')"
    )
    lake.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
    root = Path(lake.catalog.load_table(name.removeprefix("lake.")).location)
    written = {str(path.relative_to(root).parent) for path in root.rglob("data-*")}
    assert written == {"stored/here/p=1/bucket-0", "stored/here/p=2/bucket-0"}
    failing = f"INSERT INTO {name} SELECT IF(id = 9, raise_error('raised'), 3), 3 FROM range(10)"
    with pytest.raises(Exception, match="raised"):
        lake.sql(failing)
    assert len(list(root.rglob("data-*"))) == 2
    assert sorted(lake.sql(f"SELECT id FROM {name}").collect()) == [(1,), (2,)]
