"""The two languages must be of one version, and say so when they are not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest
from py4j.protocol import Py4JJavaError

from lockgate.errors import VersionMismatchError
from lockgate.framework.spark.bridge import connector_jars, gateway
from lockgate.framework.spark.context.driver_jvm import java_class
from lockgate.framework.version import BRIDGE_PROTOCOL, VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(code: str, *arguments: str, folder: Path | None = None) -> str:
    """Run Python code in a process of its own and return what it prints."""
    command = [sys.executable, "-W", "ignore::ResourceWarning", "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_jar_tells_its_version(spark: SparkSession) -> None:
    connector = java_class(spark, "io.lockgate.spark.bridge.ConnectorVersion")
    assert connector.version() == VERSION
    assert connector.protocol() == BRIDGE_PROTOCOL
    assert java_class(spark, "io.lockgate.spark.bridge.Bridge").isAttached()


@pytest.mark.parametrize(
    ("version", "protocol"), [("0.0.1", BRIDGE_PROTOCOL), (VERSION, BRIDGE_PROTOCOL + 1)]
)
def test_another_jar_is_refused(version: str, protocol: int) -> None:
    with pytest.raises(VersionMismatchError) as refused:
        gateway.check_version(version, protocol)
    message = str(refused.value)
    assert version in message
    assert VERSION in message
    assert f"spark.jars={connector_jars.jar()}" in message


def test_java_refuses_another_package(spark: SparkSession) -> None:
    bridge = spark.sparkContext._jvm.io.lockgate.spark.bridge.Bridge  # type: ignore[union-attr]  # the session is no remote one
    assert VERSION in bridge.register("/nowhere", "", "9.9.9", BRIDGE_PROTOCOL, False)
    assert bridge.isAttached()


@pytest.mark.parametrize(
    ("compiled", "running", "runs"),
    [
        ("4.3.0", "4.3.1", True),
        ("4.3.0", "4.2.1", False),
        ("4.3.0", "4.3.2-amzn-0", True),
        ("4.1.4", "4.10.0", False),
        ("4.0.5", "4.0.1.7.3.1", True),
        ("4.3.0", "4.1.4", False),
        ("4.1.4", "4.2.0", False),
        ("4.1.0", "4.1.4", True),
        ("unknown", "4.1.4", False),
    ],
)
def test_a_jar_for_another_spark(spark: SparkSession, compiled: str, running: str, *, runs: bool) -> None:
    connector = java_class(spark, "io.lockgate.spark.bridge.ConnectorVersion")
    assert connector.fault() is None
    fault = connector.fault(compiled, running)
    assert (fault is None) == runs
    if fault is not None:
        assert compiled in fault
        assert running in fault


OTHER_SPARK = "4.3.0" if pyspark.__version__.startswith("4.1.") else "4.1.4"


def changed_jar(folder: Path, properties: str) -> Path:
    """The connector's jar, but for what it says of itself."""
    folder.mkdir(exist_ok=True)
    other = folder / "other.jar"
    entry = "io/lockgate/spark/version.properties"
    with zipfile.ZipFile(connector_jars.jar()) as real, zipfile.ZipFile(other, "w") as changed:
        for name in real.namelist():
            content = properties.encode() if name == entry else real.read(name)
            changed.writestr(name, content)
    return other


@pytest.mark.cluster
@pytest.mark.parametrize("both", [False, True])
def test_an_application_does_not_start_with_a_jar_of_another_spark(tmp_path: Path, *, both: bool) -> None:
    """By plain confs: neither the plugin nor the extension lets Spark come as far as the catalog, and that
    refuses, too. `./dev jars` tries the real jars of other Sparks.
    """
    other = changed_jar(tmp_path, f"version={VERSION}\nprotocol={BRIDGE_PROTOCOL}\nspark={OTHER_SPARK}\n")
    printed = run(
        """
        import sys
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
        confs = {"spark.plugins": "io.lockgate.spark.LockgatePlugin",
                 "spark.sql.extensions": "io.lockgate.spark.LockgateExtensions"}
        for key in [*confs, "neither"]:
            builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
            builder = builder.config("spark.jars", sys.argv[1]).config("spark.log.level", "OFF")
            builder = builder.config("spark.sql.catalog.lake", "io.lockgate.spark.LockgateCatalog")
            for each in confs:
                builder = builder.config(each, confs[each] if each == key else "")
            try:
                builder.getOrCreate().sql("SHOW NAMESPACES IN lake").collect()
            except Exception as error:
                print(key, str(error).replace(chr(10), " ")[:1000])
            if SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()
        """,
        f"{connector_jars.jar()},{other}" if both else str(other),
    )
    plugin, extension, catalog = printed.splitlines()
    assert plugin.startswith("spark.plugins ")
    assert extension.startswith("spark.sql.extensions ")
    assert catalog.startswith("neither VersionMismatchError: ")
    for line in (plugin, extension, catalog):
        if both:
            assert "two different connector jars are on the class path" in line
            assert f"for Spark {pyspark.__version__} and {VERSION} for Spark {OTHER_SPARK}" in line
        else:
            assert f"compiled for Spark {OTHER_SPARK}, and this is Spark {pyspark.__version__}" in line
            assert f"lockgate jar --spark {'.'.join(pyspark.__version__.split('.')[:2])}" in line


@pytest.mark.cluster
@pytest.mark.long
def test_jobs_end_where_executors_have_no_jar_or_another(tmp_path: Path) -> None:
    """Spark alone would start executors for ever. The driver has the jar on its class path, which brings it
    to no executor; that another Spark or Lockgate runs there is simulated, by a jar that says so.
    """
    others = {
        name: changed_jar(tmp_path / name, f"version={version}\nprotocol={BRIDGE_PROTOCOL}\nspark={spark}\n")
        for name, version, spark in (
            ("version", "0.0.7", pyspark.__version__),
            ("spark", VERSION, OTHER_SPARK),
        )
    }
    printed = run(
        """
        import sys
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.extraClassPath", sys.argv[1]).config("spark.log.level", "OFF")
        builder = builder.config("spark.plugins", "io.lockgate.spark.LockgatePlugin")
        for path in sys.argv[2:]:
            spark = builder.config("spark.executor.extraClassPath", path).getOrCreate()
            try:
                spark.sparkContext.parallelize([1], 1).count()
            except Exception as error:
                print(str(error).replace(chr(10), " ")[:2000])
            spark.stop()
        """,
        str(connector_jars.jar()),
        "",
        *map(str, others.values()),
        folder=tmp_path,
    )
    missing, version, spark = printed.splitlines()
    ours = f"{VERSION} for Spark {pyspark.__version__}"
    assert f"Error: executors have no connector jar, and the driver has {ours}: " in missing
    theirs = f"0.0.7 for Spark {pyspark.__version__}"
    assert f"Error: this executor has the connector jar {theirs}, and the driver has {ours}: " in version
    assert f"compiled for Spark {OTHER_SPARK}, and this is Spark {pyspark.__version__}: " in spark


def test_an_executor_compares_its_jar_with_the_drivers(spark: SparkSession) -> None:
    """Where each has the jar of its own Spark, and the Sparks differ; a newer patch is no difference."""
    connector = java_class(spark, "io.lockgate.spark.bridge.ConnectorVersion")
    mine = dict(connector.told())
    minor = ".".join(pyspark.__version__.split(".")[:2])
    assert mine == {
        "jar": f"{VERSION} for Spark {pyspark.__version__}",
        "same": f"{VERSION} {BRIDGE_PROTOCOL} {minor}",
    }
    connector.checkWith({**mine, "jar": f"{VERSION} for Spark {minor}.99"})
    drivers = {"jar": f"{VERSION} for Spark {OTHER_SPARK}", "same": f"{VERSION} {BRIDGE_PROTOCOL} 0.0"}
    for driver, named in ((drivers, drivers["jar"]), ({}, "one of another version")):
        with pytest.raises(Py4JJavaError, match=re.escape(f"{mine['jar']}, and the driver has {named}: ")):
            connector.checkWith(driver)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ("version=0.0.7\nprotocol=1\n", "0.0.7"),
        (f"version={VERSION}\nprotocol={BRIDGE_PROTOCOL}\nspark={{other}}\n", "compiled for Spark {other}"),
    ],
)
def test_a_jar_of_another_version_is_refused_at_attach(tmp_path: Path, properties: str, named: str) -> None:
    properties, named = properties.format(other=OTHER_SPARK), named.format(other=OTHER_SPARK)
    other = changed_jar(tmp_path, properties)
    printed = run(
        """
        import sys, lockgate
        from pyspark.sql import SparkSession
        spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                 .config("spark.jars", sys.argv[1]).config("spark.log.level", "OFF").getOrCreate())
        try:
            lockgate.attach(spark)
        except Exception as error:
            print(type(error).__name__, error)
        spark.stop()
        """,
        str(other),
    )
    assert printed.startswith("VersionMismatchError")
    assert named in printed
    assert VERSION in printed or pyspark.__version__ in printed


@pytest.mark.cluster
def test_a_session_without_the_jar_says_how_to_get_it(tmp_path: Path) -> None:
    printed = run(
        """
        import sys, lockgate
        from pyspark.sql import SparkSession
        spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                 .config("spark.log.level", "OFF").getOrCreate())
        try:
            lockgate.connect(sys.argv[1], spark=spark)
        except Exception as error:
            print(type(error).__name__, error)
        spark.stop()
        """,
        str(tmp_path),
    )
    assert printed.startswith("BridgeError")
    assert f"spark.jars={connector_jars.jar()}" in printed


@pytest.mark.cluster
def test_plain_confs_need_attach_where_no_python_may_start(tmp_path: Path) -> None:
    """Without `attach` the catalog says what to do; with it, the same session works."""
    printed = run(
        """
        import json, sys, lockgate, lockgate.errors
        from pyspark.sql import SparkSession
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.log.level", "OFF").config("spark.lockgate.python.start", "never")
        spark = lockgate.configure(builder, warehouse=sys.argv[1], catalog="house").getOrCreate()
        try:
            spark.sql("SHOW NAMESPACES IN house").collect()
        except Exception as error:
            first = str(error)
        lake = lockgate.attach(spark)
        lake.sql("CREATE NAMESPACE house.db")
        names = [row[0] for row in spark.sql("SHOW NAMESPACES IN house").collect()]
        lake.sql("CREATE TABLE house.db.t AS SELECT 1 AS id")
        rows = lake.table("db.t").count() + lake.catalog.load_table("db.t").read().num_rows
        spark.conf.set("spark.sql.catalog.annex", "io.lockgate.spark.LockgateCatalog")
        spark.conf.set("spark.sql.catalog.annex.warehouse", sys.argv[1] + "/annex")
        chosen = [lockgate.attach(spark).name, lockgate.attach(spark, catalog="house").name]
        spark.sql("USE house")
        chosen.append(lockgate.attach(spark).name)
        try:
            lockgate.attach(spark, catalog="hous")
        except lockgate.errors.InputError as error:
            chosen.append(str(error))
        print(json.dumps([first, names, lake.name, rows, chosen]))
        spark.stop()
        """,
        str(tmp_path),
    )
    first, names, name, rows, chosen = json.loads(printed)
    assert "call lockgate.attach(spark) first" in first
    assert "Traceback" not in first
    assert names == ["db", "sys"]
    assert (name, rows) == ("house", 2)
    assert chosen == [
        "annex",
        "house",
        "house",
        "the session has no Lockgate catalog 'hous'; did you mean 'house'?",
    ]


def test_a_missing_jar_names_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(connector_jars, "JARS", tmp_path)
    with pytest.raises(VersionMismatchError, match=r"\./dev build"):
        connector_jars.jar()
