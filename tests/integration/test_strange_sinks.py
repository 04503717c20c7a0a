"""Values of encrypted columns on their way into sinks that nobody here knows: they count as plaintext."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import PySparkException

from lockgate.framework.spark.context.operation_context import SESSION_CONF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Named = Callable[[str], str]

pytestmark = pytest.mark.usefixtures("interpreted")

OLD = "io.lockgate.spark.rules.StrangeSinks$Old"
YOUNG = "io.lockgate.spark.rules.StrangeSinks$Young"
KAFKA_JOB = Path(__file__).parent / "executor" / "kafka_job.py"


@pytest.fixture
def people(spark: SparkSession, table: Named) -> str:
    name = table("people")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'pii:ssn')")
    spark.sql(f"INSERT INTO {name} VALUES (0, 'secret'), (1, 'secret too')")
    return name


@pytest.fixture
def refused(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(SESSION_CONF, "refuse")
    yield
    spark.conf.unset(SESSION_CONF)


def insert(spark: SparkSession, values: DataFrame, folder: Path) -> None:
    spark.sql(f"CREATE TABLE spark_catalog.default.strange (id BIGINT, ssn STRING) USING `{OLD}`")
    values.createOrReplaceTempView("values_to_insert")
    try:
        spark.sql("INSERT INTO spark_catalog.default.strange SELECT * FROM values_to_insert")
    finally:
        spark.sql("DROP TABLE spark_catalog.default.strange")
        spark.catalog.dropTempView("values_to_insert")


def in_python(spark: SparkSession, values: DataFrame, folder: Path) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceWriter, InputPartition, WriterCommitMessage

    class Strange(DataSource):
        @classmethod
        def name(cls) -> str:
            return "noop-table"

        def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
            class Reached(DataSourceWriter):
                def write(self, iterator: Iterator[InputPartition]) -> WriterCommitMessage:
                    raise ValueError("rows have reached the sink")

            return Reached()

    spark.dataSource.register(Strange)
    values.write.format("noop-table").mode("append").save()


def stream(spark: SparkSession, values: DataFrame, folder: Path, sink: str = OLD) -> None:
    ids = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    joined = ids.withColumnRenamed("value", "id").join(values, "id").select("id", "ssn")
    writer = joined.writeStream.format(sink).option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.start()
    try:
        assert running.awaitTermination(60), "the stream must end with an error"
    finally:
        running.stop()


ROADS: dict[str, Callable[[SparkSession, DataFrame, Path], None]] = {
    "save": lambda spark, values, folder: values.write.format(OLD).save(),
    "insert": insert,
    "in Python": in_python,
    "stream": stream,
    "save, second interface": lambda spark, values, folder: values.write.format(YOUNG).mode("append").save(),
    "stream, second interface": lambda spark, values, folder: stream(spark, values, folder, YOUNG),
}


@pytest.mark.parametrize("road", ROADS)
def test_a_sink_that_nobody_knows_is_refused(
    spark: SparkSession, people: str, refused: None, tmp_path: Path, road: str
) -> None:
    values = spark.table(people).select("id", "ssn")
    with pytest.raises(
        PySparkException, match=r"gets values of encrypted columns in the clear: ssn .*refused"
    ):
        ROADS[road](spark, values, tmp_path)


@pytest.mark.cluster
def test_values_for_kafka_are_noticed_before_a_broker_is_asked(tmp_path: Path) -> None:
    """In a JVM of its own, because Kafka's jars must be there when Spark starts."""
    jars = kafka_jars(tmp_path)
    done = subprocess.run(
        [sys.executable, str(KAFKA_JOB), str(tmp_path), ",".join(map(str, jars))],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for form in ("batch", "stream"):
        refused, warned = found[form]["refuse"], found[form]["warn"]
        assert "gets values of encrypted columns in the clear" in refused["error"]
        assert "refused by 'encryption.on-plaintext'" in refused["error"]
        assert refused["asked"] == 0, "no broker may be asked"
        [warning] = warned["warnings"]
        assert "value (from ssn of " in warning
        # What answers the questions is no broker, so that the write fails, but later.
        assert warned["asked"] > 0
        assert "in the clear" not in warned["error"]


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>kafka-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId><version>{}</version>
</dependency></dependencies></project>"""
PARTS = "spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2"


def kafka_jars(folder: Path) -> list[Path]:
    """Fetch Spark's connector to Kafka: of this Spark, or the newest that Maven has of its line."""
    if shutil.which("mvn") is None:
        pytest.skip("needs mvn")
    minor = ".".join(pyspark.__version__.split(".")[:2])
    said = ""
    for version in dict.fromkeys((pyspark.__version__, f"{minor}.0", "4.2.0")):
        (folder / "pom.xml").write_text(POM.format(version))
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=kafka"]
        command.append(f"-DincludeArtifactIds={PARTS}")
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ)
        )
        if done.returncode == 0:
            return sorted((folder / "kafka").glob("*.jar"))
        said = done.stdout[-300:]
    pytest.skip(f"Maven could not fetch Spark's connector to Kafka: {said}")
