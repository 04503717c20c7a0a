"""Spark on S3, by Hadoop's own client from Maven Central; the confs of Spark's Hadoop serve Python too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from child_paths import python_path
from s3_server import S3Server

pytestmark = pytest.mark.interop

SESSION = Path(__file__).with_name("s3_session.py")
# The SDK's bundle, which hadoop-aws names, has half a gigabyte; these are the parts that are used.
SDK = "".join(
    f"<dependency><groupId>software.amazon.awssdk</groupId><artifactId>{name}</artifactId>"
    "<version>2.35.4</version></dependency>"
    for name in ("s3-transfer-manager", "apache-client", "netty-nio-client", "sts")
)
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lockgate</groupId><artifactId>s3-for-tests</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>3.5.0</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency><dependency>
<groupId>software.amazon.s3.analyticsaccelerator</groupId><artifactId>analyticsaccelerator-s3</artifactId>
<version>1.3.1</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>{SDK}</dependencies></project>"""


def test_spark_writes_and_reads_a_table_in_s3(tmp_path: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("needs mvn")
    (tmp_path / "pom.xml").write_text(POM)
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    if done.returncode:
        pytest.skip(f"Maven could not fetch Hadoop's client: {done.stdout[-300:]}")
    server = S3Server()
    server.start()
    try:
        server.make_bucket("lake")
        session = subprocess.run(
            [sys.executable, str(SESSION), str(tmp_path / "lib"), server.endpoint, "s3://lake/warehouse"],
            env={**os.environ, "PYTHONPATH": python_path(Path(__file__).parents[1] / "support")},
            capture_output=True,
            text=True,
            timeout=180,
        )
    finally:
        server.stop()
    assert session.returncode == 0, session.stderr[-3000:]
