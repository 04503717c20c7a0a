"""The connector as a Maven artifact: the jar itself says what it is, and Spark's --packages finds it."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pyspark
import pytest
from doors import SPARK_HOME, confs, environment

from lockgate.framework.spark.bridge import connector_jars
from lockgate.framework.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
SPARK = ".".join(pyspark.__version__.split(".")[:2])
ARTIFACT = f"lockgate-spark-{SPARK}_2.13"
COORDINATES = f"io.lockgate:{ARTIFACT}:{VERSION}"
# Older versions read no POM in a jar.
INSTALL = "org.apache.maven.plugins:maven-install-plugin:3.1.4:install-file"
STATEMENTS = """
CREATE NAMESPACE lake.db;
CREATE TABLE lake.db.t (id BIGINT NOT NULL) TBLPROPERTIES ('primary-key'='id', 'bucket'='1');
INSERT INTO lake.db.t VALUES (7);
SELECT id, 'read' FROM lake.db.t;
"""


def test_the_jar_carries_its_pom() -> None:
    with zipfile.ZipFile(connector_jars.jar()) as jar:
        folder = f"META-INF/maven/io.lockgate/{ARTIFACT}"
        pom = ElementTree.fromstring(jar.read(f"{folder}/pom.xml"))
        properties = jar.read(f"{folder}/pom.properties").decode()
    space = {"m": "http://maven.apache.org/POM/4.0.0"}

    def text(path: str) -> str | None:
        return pom.findtext(path, namespaces=space)

    assert ":".join(str(text(f"m:{name}")) for name in ("groupId", "artifactId", "version")) == COORDINATES
    assert properties.splitlines()[-1] == f"version={VERSION}"
    # A program that uses the jar has a Spark, so none is fetched.
    assert text("m:dependencies/m:dependency/m:artifactId") == "spark-sql_2.13"
    assert text("m:dependencies/m:dependency/m:scope") == "provided"
    assert text("m:dependencies/m:dependency/m:version") == pyspark.__version__


def test_the_documentation_names_these_coordinates() -> None:
    for page in ("docs/servers.md", "docs/spark.md"):
        assert f"io.lockgate:lockgate-spark-4.3_2.13:{VERSION}" in (ROOT / page).read_text(), page
    assert f"{INSTALL} -Dfile=" in re.sub(r"\\\n\s*", "", (ROOT / "docs" / "servers.md").read_text())


@pytest.mark.cluster
def test_spark_sql_takes_it_from_a_local_repository(tmp_path: Path) -> None:
    """As on a machine that has the wheel, after `mvn install:install-file` of its jar."""
    if shutil.which("mvn") is None:
        pytest.skip("needs Maven: sudo apt-get install maven")
    repository = tmp_path / ".m2" / "repository"
    command = [
        "mvn",
        "-q",
        "-B",
        INSTALL,
        f"-Dfile={connector_jars.jar()}",
        f"-DlocalRepositoryPath={repository}",
    ]
    subprocess.run(command, check=True, timeout=300)
    # Spark looks in ~/.m2/repository first; it finds the artifact there and asks nobody else.
    without_jar = [each for each in confs(tmp_path / "lake") if not each.startswith("spark.jars=")]
    without_jar.remove("--conf")
    done = subprocess.run(
        [str(SPARK_HOME / "bin" / "spark-sql"), *without_jar, "--packages", COORDINATES, "-e", STATEMENTS],
        env=environment(SPARK_SUBMIT_OPTS=f"-Duser.home={tmp_path}"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == "7\tread"
    assert re.search(rf"found io\.lockgate#{re.escape(ARTIFACT)};\S+ in local-m2-cache", done.stderr)
    fetched = [path.name for path in tmp_path.rglob(".ivy2*/jars/*.jar")]
    assert fetched == [f"io.lockgate_{ARTIFACT}-{VERSION}.jar"], "Spark is there already"
