"""One Spark session for all tests that need one, with a catalog `lake` that holds a key file."""

from __future__ import annotations

import os
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from java_tests import test_jar
from spark_version import SPARK

from lockgate.errors import LineageWarning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake

# Spark's workers must run the driver's Python, no matter who started pytest.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

# Files in tests/integration whose queries Spark makes code for, as it does for users: they are about values
# of every type, about plans, or about many rows. For few rows, making code takes longer than the query.
GENERATED = {
    "test_filter_matrix",
    "test_governed_masks",
    "test_governed_plans",
    "test_governed_property",
    "test_kept_results",
    "test_large_joins",
    "test_lookup_jvm",
    "test_lookup_sql_random",
    "test_lookup_streams",
    "test_lookup_values",
    "test_masks_spark",
    "test_merge_columns",
    "test_merge_engines",
    "test_merge_read",
    "test_metadata_columns",
    "test_nested_reads",
    "test_orc_spark",
    "test_other_statements",
    "test_plain_formats",
    "test_point_read_values",
    "test_scan",
    "test_sought_rows",
    "test_sql_comparisons",
    "test_timestamps",
    "test_tpch",
    "test_twins",
    "test_vectors_spark",
    "test_written_formats",
    "test_zeros",
}
# By the confs of code: what makes some, and what does not.
CODE = {
    "spark.sql.codegen.wholeStage": ("true", "false"),
    "spark.sql.codegen.factoryMode": ("FALLBACK", "NO_CODEGEN"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--generated", action="store_true", help="let Spark make code for all queries of tests")


def pytest_configure(config: pytest.Config) -> None:
    """Let old pysparks leave the sockets by which they collect rows to Python, and be deprecated."""
    if SPARK < (4, 2):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    if SPARK < (4, 1):
        config.addinivalue_line("filterwarnings", "ignore::lockgate.errors.DeprecatedSparkWarning")


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the session's warehouse, key file and Spark's own files."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def key_file(lake_folder: Path) -> Path:
    """A key file with the keys `pii` and `other`."""
    from lockgate.framework.keys import create_key_file

    path = lake_folder / "keys.json"
    create_key_file(str(path), ["pii", "other"])
    return path


@pytest.fixture(scope="session")
def spark_conf(lake_folder: Path) -> dict[str, str]:
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
        # The default since Spark 4.1.
        "spark.sql.scripting.enabled": "true",
        "spark.sql.warehouse.dir": str(lake_folder / "spark-warehouse"),
        # A catalog of somebody else; nothing is made of it before a statement names it.
        "spark.sql.catalog.folders": "io.lockgate.spark.enforcement.FolderCatalog",
        "spark.sql.catalog.folders.folder": str(lake_folder / "folders"),
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


@pytest.fixture(scope="session")
def public(lake: Lake) -> Lake:
    """The catalog `public` of the same warehouse, without a key."""
    import lockgate

    return lockgate.connect(lake.catalog.warehouse, spark=lake.spark, catalog="public")


def _make_code(spark: SparkSession, *, wanted: bool) -> None:
    """Let all sessions of this Spark make code for queries, or none: new ones take the context's confs."""
    context: Any = spark.sparkContext._jsc.sc()
    for key, (made, not_made) in CODE.items():
        value = made if wanted else not_made
        if context.conf().get(key, made) != value:
            context.conf().set(key, value)
            spark.conf.set(key, value)


@pytest.fixture
def interpreted(spark: SparkSession, pytestconfig: pytest.Config) -> None:
    """For tests of what is planned, or of what Python does, in files of `GENERATED`: Spark makes no code."""
    _make_code(spark, wanted=bool(pytestconfig.getoption("generated")))


@pytest.fixture
def generated(spark: SparkSession) -> None:
    """For tests of values in other files: Spark makes code for queries, as it does for users."""
    _make_code(spark, wanted=True)


@pytest.fixture(autouse=True)
def code_of_queries(request: pytest.FixtureRequest) -> None:
    """Let Spark make code for the queries of `GENERATED` and of attacks, unless a fixture says otherwise."""
    names, folder, file = set(request.fixturenames), request.path.parent.name, request.path.stem
    if (
        folder in ("integration", "attack")
        and names & {"spark", "lake"}
        and not names & {"interpreted", "generated"}
    ):
        makes = folder == "attack" or file in GENERATED
        request.getfixturevalue("generated" if makes else "interpreted")


@pytest.fixture
def event_log(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[], bytes]]:
    """A function that reads the event log of the test, which begins with the session's confs.

    One of all tests would take time in each of them.
    """
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc.sc()
    folder = tmp_path / "events"
    folder.mkdir()
    conf = context.getConf().set("spark.eventLog.compress", "false")
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        context.applicationId(), jvm.scala.Option.empty(), jvm.java.net.URI(folder.as_uri()), conf,
        context.hadoopConfiguration(),
    )  # fmt: skip
    listener.start()
    context.addSparkListener(listener)
    # Spark tells all confs again when a file is added.
    (tmp_path / "added").touch()
    spark.sparkContext.addFile(str(tmp_path / "added"))

    def read() -> bytes:
        context.listenerBus().waitUntilEmpty()
        return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

    yield read
    context.removeSparkListener(listener)
    listener.stop()


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
        with warnings.catch_warnings():
            # Tables go that others were made from; each test drops its own.
            warnings.simplefilter("ignore", LineageWarning)
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
