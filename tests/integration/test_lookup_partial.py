"""Lookup joins by partial caches: the rows of Spark's own join, while the table changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from same_frames import same

from lockgate import lookup
from lockgate.errors import UnsupportedError
from lockgate.lookup import lookup_join
from lockgate.lookup.cache.directory import CacheDirectory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeName = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("lookups_end")


def test_a_partial_cache_answers_as_the_table_while_it_changes(
    spark: SparkSession, table: MakeName, options: dict[str, str]
) -> None:
    name, given = table("partial"), {**options, "lookup.cache": "partial"}
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, n INT) "
        "TBLPROPERTIES ('primary-key'='id', 'bucket'='2')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, concat('name ', id), cast(id AS INT) FROM range(400)")
    stream = spark.range(-20, 460, 3, numPartitions=2).selectExpr("id", "id * 2 AS twice")

    def compare() -> None:
        joined = lookup_join(stream, name, on="id", select=["name", "n"], options=given)
        same(joined, stream.join(spark.table(name), "id", "left").select(*joined.columns))

    compare()
    for change in (
        f"DELETE FROM {name} WHERE id % 9 = 0",
        f"INSERT INTO {name} SELECT id + 390, 'new', 7 FROM range(50)",
    ):
        spark.sql(change)
        lookup.wait_for(name)
        for _ in range(2):  # read, then known
            compare()
    status = lookup.status(name)
    state = CacheDirectory(Path(status.directory)).version(status.served_snapshot or 0)
    assert state is not None
    assert (state.storage, state.full_load) == ("partial", False)
    assert not list(Path(status.directory).rglob("*.sst"))
    with pytest.raises(UnsupportedError, match="joined by name, and its key is id"):
        lookup_join(
            stream.selectExpr("cast(id AS STRING) AS name"), name, on="name", select=["n"], options=given
        ).collect()


def test_a_query_service_answers_a_statement(
    spark: SparkSession,
    table: MakeName,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a secret of more than thirty-two bytes for a test")
    secret.chmod(0o600)
    monkeypatch.setenv("LOCKGATE_QUERY_SERVICE_SECRET", str(secret))
    name = table("served")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, n INT) TBLPROPERTIES ('primary-key'='id', 'bucket'='2')")
    spark.sql(f"INSERT INTO {name} SELECT id, cast(id AS INT) FROM range(400)")
    spark.range(-20, 460, 3).createOrReplaceTempView("asks")
    hint = ", ".join(f"'{key}'='{value}'" for key, value in {**options, "lookup.remote": "true"}.items())
    short = name.removeprefix("lake.")
    (started,) = spark.sql(f"CALL lake.sys.query_service('{short}')").collect()
    assert started.address.rpartition(":")[2].isdigit()
    assert len(started.fingerprint.split(":")) == 32
    try:
        joined = spark.sql(
            f"SELECT a.id, d.n FROM asks a LEFT JOIN {name} /*+ OPTIONS({hint}) */ "
            "FOR SYSTEM_TIME AS OF PROCTIME() AS d ON a.id = d.id"
        )
        same(joined, spark.sql(f"SELECT a.id, d.n FROM asks a LEFT JOIN {name} d ON a.id = d.id"))
        assert "secret of more" not in joined._jdf.queryExecution().toString()
    finally:
        (stopped,) = spark.sql(f"CALL lake.sys.stop_query_service('{short}')").collect()
    assert stopped.stopped_services_count == 1
