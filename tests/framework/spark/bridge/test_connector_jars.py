"""Which connector jar belongs to which Spark: by name, by an installation, by what pyspark would start."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext

import lockgate
from lockgate.cli.main import main
from lockgate.errors import BridgeError, InputError, VersionMismatchError
from lockgate.framework.spark.bridge import connector_jars
from lockgate.framework.version import VERSION


@pytest.fixture(autouse=True)
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with jars for 4.1 and 4.3, in a process without a JVM."""
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in (f"4.1_2.13-{VERSION}", f"4.3_2.13-{VERSION}", "4.2_2.13-0.0.1"):
        (folder / f"lockgate-spark-{name}.jar").touch()
    monkeypatch.setattr(connector_jars, "JARS", folder)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    return folder


def home(tmp_path: Path, version: str) -> Path:
    """An installation of Spark, as far as its name goes."""
    jars = tmp_path / f"spark-{version}" / "jars"
    jars.mkdir(parents=True)
    (jars / f"spark-core_{version}.jar").touch()
    return jars.parent


def name(minor: str) -> str:
    return f"lockgate-spark-{minor}_2.13-{VERSION}.jar"


@pytest.mark.parametrize("version", ["4.1", "4.1.4", "4.1.0-amzn-0", "4.1.1.7.3.1", "4.1-SNAPSHOT"])
def test_a_version_that_is_named(version: str) -> None:
    assert lockgate.jar(version).name == name("4.1")


@pytest.mark.parametrize("version", ["4.10.1", "4.2.1", "5.0.0"])
def test_a_version_that_has_no_jar(version: str) -> None:
    with pytest.raises(
        VersionMismatchError, match=r"there are connectors for Spark 4\.1 and 4\.3"
    ) as refused:
        lockgate.jar(version)
    newer = version != "4.2.1"
    assert str(refused.value).endswith("or a newer lockgate" if newer else "use one of these")


def test_spark_3_5_is_told_what_works_there(tmp_path: Path) -> None:
    with pytest.raises(VersionMismatchError) as refused:
        lockgate.jar(spark_home=home(tmp_path, "2.12-3.5.9"))
    message = str(refused.value)
    assert f"no connector for Spark 3.5.9 with Scala 2.12 (from {tmp_path}/spark-2.12-3.5.9)" in message
    assert "lockgate.Catalog" in message
    assert "Paimon's own connector" in message


def test_another_scala_has_no_jar(tmp_path: Path) -> None:
    with pytest.raises(VersionMismatchError, match=r"Spark 4\.1\.1 with Scala 3\.3 "):
        lockgate.jar(spark_home=home(tmp_path, "3.3-4.1.1"))


def test_spark_home_decides_not_the_version_of_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyspark starts the JVM of SPARK_HOME, whatever its own version is."""
    monkeypatch.setenv("SPARK_HOME", str(home(tmp_path, "2.13-4.1.0-amzn-0")))
    assert not pyspark.__version__.startswith("4.1.0")
    assert lockgate.jar().name == name("4.1")
    monkeypatch.setenv("SPARK_HOME", str(home(tmp_path, "2.13-4.4.0")))
    with pytest.raises(VersionMismatchError, match=rf"Spark 4\.4\.0 .* \(from {re.escape(str(tmp_path))}"):
        lockgate.jar()


def test_without_spark_home_the_installed_pyspark_decides(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    (jars / name(".".join(pyspark.__version__.split(".")[:2]))).touch()
    assert lockgate.jar() == lockgate.jar(pyspark.__version__)


def test_a_python_without_a_jvm_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with pyspark-client, whose Spark runs elsewhere."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(BridgeError, match=r"lockgate\.jar\('4\.1'\)"):
        lockgate.jar()
    assert lockgate.jar("4.3").name == name("4.3")


def test_bad_arguments(tmp_path: Path) -> None:
    for version in ("newest", "", "4"):
        with pytest.raises(InputError, match=f"not {version!r}"):
            lockgate.jar(version)
    with pytest.raises(InputError, match="not both"):
        lockgate.jar("4.1", spark_home=tmp_path)
    with pytest.raises(InputError, match=r"no Spark: there is no jars/spark-core_\*\.jar"):
        lockgate.jar(spark_home=tmp_path)


def test_the_command(jars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spark_home = str(home(tmp_path, "2.13-4.3.1"))
    assert main(["jar", "--spark", "4.1"]) == 0
    assert main(["jar", "--spark-home", spark_home]) == 0
    assert main(["jar", "--spark-home", spark_home, "--maven"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        str(jars / name("4.1")),
        str(jars / name("4.3")),
        f"io.lockgate:lockgate-spark-4.3_2.13:{VERSION}",
    ]
    assert main(["jar", "--spark", "4.2", "--maven"]) == 1
    assert "lockgate: lockgate" in capsys.readouterr().err


def test_how_long_each_spark_is_supported() -> None:
    assert connector_jars.life_of("4.0.5") == "deprecated"
    assert connector_jars.life_of("4.3.0-amzn-1") == "current"
    assert connector_jars.life_of("3.5.9") == "unknown"
