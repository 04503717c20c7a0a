"""One Spark session for all tests that need one, with a catalog `lake` that holds a key file."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from java_tests import test_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# Spark's workers must run the driver's Python, no matter who started pytest.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the session's warehouse, key file, event log and Spark's own files."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def key_file(lake_folder: Path) -> Path:
    """A key file with the keys `pii` and `other`."""
    from lockgate.framework.keys import create_key_file

    path = lake_folder / "keys.json"
    create_key_file(str(path), ["pii", "other"])
    return path


@pytest.fixture(scope="session")
def event_log(lake_folder: Path) -> Path:
    """The folder into which the session writes its event log."""
    path = lake_folder / "events"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def spark_conf(lake_folder: Path, event_log: Path) -> dict[str, str]:
    """The confs of a small, quiet Spark session that keeps all its files below `lake_folder`."""
    return {
        "spark.jars": str(test_jar()),
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        # What was compiled for one test serves others of its shape; Spark keeps 100.
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(lake_folder / "spark-warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
    }


@pytest.fixture(scope="session")
def lake(lake_folder: Path, key_file: Path, spark_conf: dict[str, str]) -> Iterator[Lake]:
    """The catalog `lake`, with its key file, on a local session of two cores."""
    import lockgate

    lake = lockgate.connect(
        str(lake_folder / "warehouse"), keys=f"file:{key_file}", master="local[2]", conf=spark_conf
    )
    yield lake
    lake.spark.stop()


@pytest.fixture(scope="session")
def spark(lake: Lake) -> SparkSession:
    """The session that `lake` is a catalog of."""
    return lake.spark


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark makes no code for queries: for few rows that takes longer than the query.

    For tests of what is planned, or of what Python does; rows are also read by generated code elsewhere.
    """
    confs = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {key: str(spark.conf.get(key)) for key in confs}
    for key, value in confs.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture
def database(lake: Lake) -> Iterator[str]:
    """The name of a fresh, empty database, dropped with its tables afterwards unless they are to be kept."""
    with _database(lake) as name:
        yield name


@pytest.fixture(scope="module")
def shared_table(lake: Lake) -> Iterator[Callable[[str], str]]:
    """Like `table`, for tables that all tests of a module read and none changes."""
    with _database(lake) as name:
        yield lambda table: f"lake.{name}.{table}"


@contextmanager
def _database(lake: Lake) -> Iterator[str]:
    name = f"db_{uuid.uuid4().hex[:8]}"
    lake.catalog.create_namespace(name)
    yield name
    if "LOCKGATE_KEEP_TABLES" not in os.environ:
        lake.catalog.drop_namespace(name, cascade=True)


@pytest.fixture
def table(database: str) -> Callable[[str], str]:
    """A function that makes the full name of a table in the test's own database: `lake.<database>.<name>`."""
    return lambda name: f"lake.{database}.{name}"


@pytest.fixture
def lookups_end(lake: Lake) -> Iterator[None]:
    """End the lookups that a test has started, so that the next one starts without any."""
    from lockgate import lookup

    yield
    lookup.close_all()


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Options of lookups: a cache folder of the test's own, quick refreshes, and the cache in any case."""
    return {
        "lookup.cache-dir": str(tmp_path / "cache"),
        "lookup.refresh.interval": "100 ms",
        "lookup.strategy": "lookup",
    }
