"""Which files a write makes: how many, how large, and none that nothing refers to."""

from __future__ import annotations

import threading
import time
import types
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from lockgate.framework.plugins import hookimpl, plugins

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]


@pytest.fixture
def create(spark: SparkSession, lake: Lake, database: str) -> Callable[..., Table]:
    """Create a table of a name, columns and what follows them, and return it as the store sees it."""

    def make(name: str, columns: str, more: str = "", **options: str) -> Table:
        quoted = ", ".join(f"'{key.replace('_', '-')}' = '{value}'" for key, value in options.items())
        properties = f"TBLPROPERTIES ({quoted})" if quoted else ""
        spark.sql(f"CREATE TABLE lake.{database}.{name} ({columns}) {more} {properties}")
        return lake.catalog.load_table(f"{database}.{name}")

    return make


@pytest.fixture
def wide(spark: SparkSession) -> DataFrame:
    """60,000 rows (id, p of 3 values) out of a shuffle of 200 partitions."""
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    yield (
        spark.range(0, 60_000, 1, 4)
        .groupBy(f.expr("id * 7919 % 60000").alias("id"))
        .agg(f.count("*").alias("n"))
        .withColumn("p", f.expr("id % 3"))
    )
    spark.conf.set("spark.sql.shuffle.partitions", "2")


def full(table: Table) -> str:
    return f"lake.{table.identifier}"


def live(table: Table) -> list[tuple[tuple[object, ...], int, int]]:
    """Partition, bucket and size of each live file."""
    entries = table.manifests.live_files(table.latest_snapshot())
    return [(entry.partition, entry.bucket, entry.file.file_size) for entry in entries]


def on_disk(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("data-*")}


def live_names(table: Table) -> set[str]:
    return {each.file.file_name for each in table.manifests.live_files(table.latest_snapshot())}


# --- how many ------------------------------------------------------------------------------------


def test_a_wide_shuffle_makes_one_file_a_partition(create: Callable[..., Table], wide: DataFrame) -> None:
    table = create("t", "id BIGINT, n BIGINT, p BIGINT", "PARTITIONED BY (p)")
    wide.writeTo(full(table)).append()
    assert sorted(partition for partition, _, _ in live(table)) == [(0,), (1,), (2,)]


def test_a_wide_shuffle_makes_one_file_without_partitions(
    create: Callable[..., Table], wide: DataFrame
) -> None:
    table = create("t", "id BIGINT, n BIGINT, p BIGINT")
    wide.writeTo(full(table)).append()
    assert len(live(table)) == 1


@pytest.mark.parametrize("key", [{}, {"primary_key": "id,p"}])
def test_a_wide_shuffle_makes_one_file_a_bucket_of_a_partition(
    create: Callable[..., Table], wide: DataFrame, key: dict[str, str]
) -> None:
    """More buckets than a task keeps open, and all of them in one task where it is adaptive."""
    options = {"bucket": "20", "bucket_key": "id", **key}
    table = create("t", "id BIGINT, n BIGINT, p BIGINT", "PARTITIONED BY (p)", **options)
    wide.writeTo(full(table)).append()
    counts = Counter((partition, bucket) for partition, bucket, _ in live(table))
    assert len(counts) == 60
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("key", [{}, {"primary_key": "id"}])
def test_a_wide_shuffle_makes_one_file_a_bucket(
    create: Callable[..., Table], wide: DataFrame, key: dict[str, str]
) -> None:
    table = create("t", "id BIGINT, n BIGINT, p BIGINT", bucket="20", bucket_key="id", **key)
    wide.writeTo(full(table)).append()
    assert sorted(bucket for _, bucket, _ in live(table)) == list(range(20))


@pytest.mark.parametrize("key", [{}, {"primary_key": "id", "bucket": "1"}])
@pytest.mark.parametrize("parts", ["", "PARTITIONED BY (p)"])
def test_files_roll_at_the_target_size(
    spark: SparkSession, create: Callable[..., Table], key: dict[str, str], parts: str
) -> None:
    if parts and key:
        key = {**key, "primary_key": "id,p"}
    table = create("t", "id BIGINT, noise STRING, p INT", parts, target_file_size="1 mb", **key)
    rows = spark.range(0, 150_000, 1, 1).selectExpr("id", "sha2(string(id), 256) AS noise", "1 AS p")
    rows.writeTo(full(table)).append()
    sizes = [size for _, _, size in live(table)]
    assert sum(sizes) > 4 * 2**20
    # A file is cut at a stripe, which has half the target's bytes, or a megabyte at least.
    assert len(sizes) <= -(-sum(sizes) // 2**20)
    assert all(size <= 2.5 * 2**20 for size in sizes)
    assert sum(size < 2**19 for size in sizes) <= 1
    assert spark.table(full(table)).count() == 150_000


# --- none but those ------------------------------------------------------------------------------


def test_a_job_that_is_cancelled_leaves_no_file(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create("t", "id BIGINT, p INT", "PARTITIONED BY (p)")
    slow = spark.range(0, 400_000, 1, 4).selectExpr(
        "IF(id % 100000 = 99999, CAST(java_method('java.lang.Thread', 'sleep', 60000L) AS INT), 0) AS z", "id"
    )
    frame = slow.selectExpr("id", "coalesce(z, 0) AS p")
    failed: list[BaseException] = []

    def write() -> None:
        spark.sparkContext.setJobGroup("to be cancelled", "", interruptOnCancel=True)
        try:
            frame.writeTo(full(table)).append()
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: bool(spark.sparkContext.statusTracker().getJobIdsForGroup("to be cancelled")))
    time.sleep(1)
    spark.sparkContext.cancelJobGroup("to be cancelled")
    thread.join(60)
    assert failed
    # A task that still runs deletes its file when it ends, which may be after the statement has failed.
    wait_until(lambda: not on_disk(table))
    assert table.latest_snapshot() is None


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("statement", ["INSERT INTO {t} SELECT id, 1 FROM {t}", "UPDATE {t} SET p = 2"])
def test_a_commit_that_is_refused_leaves_no_file(
    spark: SparkSession, create: Callable[..., Table], monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    from lockgate.errors import CommitConflictError
    from lockgate.framework.store import Table

    table = create("t", "id BIGINT, p INT")
    spark.sql(f"INSERT INTO {full(table)} VALUES (1, 1)")

    def refused(self: Table, *arguments: object, **options: object) -> None:
        raise CommitConflictError("too late")

    monkeypatch.setattr(Table, "commit", refused)
    with pytest.raises(AnalysisException, match="too late"):
        spark.sql(statement.format(t=full(table)))
    assert on_disk(table) == live_names(table)


def test_a_commit_whose_answer_is_lost_keeps_its_files(
    spark: SparkSession, create: Callable[..., Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.framework.store import Table

    table = create("t", "id BIGINT, p INT")
    commit = Table.commit

    def lost(self: Table, *arguments: object, **options: object) -> None:
        commit(self, *arguments, **options)
        raise OSError("the answer is lost")

    monkeypatch.setattr(Table, "commit", lost)
    with pytest.raises(Exception, match="the answer is lost"):
        spark.sql(f"INSERT INTO {full(table)} VALUES (1, 1)")
    monkeypatch.undo()
    assert spark.table(full(table)).count() == 1


# --- commits with a name -------------------------------------------------------------------------


def named(frame: DataFrame, table: Table, identifier: int) -> None:
    writer = frame.writeTo(full(table)).option("commit-user", "nightly")
    writer.option("commit-identifier", str(identifier)).append()


@pytest.mark.parametrize("key", [{}, {"primary_key": "id", "bucket": "1"}])
def test_a_job_that_runs_again_under_its_name_commits_nothing(
    spark: SparkSession, create: Callable[..., Table], key: dict[str, str]
) -> None:
    table = create("t", "id BIGINT, p INT", **key)
    for identifier in (1, 1, 2, 1):
        named(spark.range(identifier * 10, identifier * 10 + 3).selectExpr("id", "0 AS p"), table, identifier)
    assert sorted(row.id for row in spark.table(full(table)).collect()) == [10, 11, 12, 20, 21, 22]
    assert [each.commit_identifier for each in table.snapshots()] == [1, 2]
    assert on_disk(table) == live_names(table)


def test_each_batch_of_a_stream_can_be_written_once_to_several_tables(
    spark: SparkSession, create: Callable[..., Table], tmp_path: Path
) -> None:
    first, second = (create(name, "id BIGINT, p INT") for name in ("first", "second"))
    spark.range(5).coalesce(1).write.parquet(str(tmp_path / "in"))
    broken = [True]

    def write(batch: DataFrame, number: int) -> None:
        named(batch.selectExpr("id", "0 AS p"), first, number)
        if broken:
            broken.clear()
            raise RuntimeError("between the two")
        named(batch.selectExpr("id", "1 AS p"), second, number)

    stream = spark.readStream.schema("id LONG").parquet(str(tmp_path / "in"))
    for _ in range(2):
        query = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
        running = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        fails = pytest.raises(Exception, match="between the two") if broken else nullcontext()
        with fails:
            running.awaitTermination()
    assert spark.table(full(first)).count() == spark.table(full(second)).count() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"commit-user": "u"}, "must be set together"),
        ({"commit-user": "u", "commit-identifier": "one"}, "whole number"),
        ({"comit-user": "u"}, "did you mean 'commit-user'"),
    ],
)
def test_options_of_a_write_are_checked(
    spark: SparkSession, create: Callable[..., Table], options: dict[str, str], message: str
) -> None:
    table = create("t", "id BIGINT")
    with pytest.raises(AnalysisException, match=message):
        spark.range(3).writeTo(full(table)).options(**options).append()
    assert not on_disk(table)


def test_file_collectors_see_the_rows_of_tasks(spark: SparkSession, table: Callable[[str], str]) -> None:
    seen: list[dict[str, bytes]] = []

    class Ids:
        name = "ids"
        columns = ("id", "secret")

        def begin(self) -> Ids:
            self.found: list[str] = []
            return self

        def add(self, rows: pa.Table) -> None:
            self.found += [f"{row['id']}{row['secret']}" for row in rows.to_pylist()]

        def finish(self) -> bytes:
            return ",".join(sorted(self.found)).encode()

    class Hearing:
        def prepare(self, request: Any) -> None:
            seen.extend(dict(made) for made in request.collected.values())

        def committed(self, snapshot: object) -> None: ...

        def aborted(self) -> None: ...

    @hookimpl
    def lockgate_file_collectors(table: object) -> list[Any]:
        return [Ids()]

    @hookimpl
    def lockgate_commit_participants(table: object) -> list[Any]:
        return [Hearing()]

    name = table("collected")
    spark.sql(
        f"CREATE TABLE {name} (id INT, secret STRING, day INT) PARTITIONED BY (day) "
        "TBLPROPERTIES ('orc.encrypt' = 'pii:secret')"
    )
    plugin = types.SimpleNamespace(
        lockgate_file_collectors=lockgate_file_collectors,
        lockgate_commit_participants=lockgate_commit_participants,
    )
    plugins().register(plugin, "ids")
    try:
        spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    finally:
        plugins().unregister("ids")
    assert sorted(part for made in seen for part in made["ids"].split(b",")) == [b"1a", b"2b", b"3c"]
    assert len(seen) >= 2
