"""The plugin of examples/plugin, installed as a stranger would, adds a procedure that Spark can CALL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from child_paths import python_path

ROOT = Path(__file__).resolve().parent.parent.parent

SCRIPT = """
import sys
import lockgate

lake = lockgate.connect(sys.argv[1], master="local[1]", conf={
    "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.log.level": "ERROR"})
lake.sql("CREATE NAMESPACE lake.db")
lake.sql("CREATE TABLE lake.db.t (id BIGINT, day STRING) PARTITIONED BY (day)")
lake.sql("INSERT INTO lake.db.t VALUES (1, 'mon'), (2, 'mon'), (3, 'tue')")
for row in lake.sql("CALL lake.sys.row_count(table => 'db.t')").collect():
    print("row", row.partition, row.row_count)
print("shown", [row.procedure_name for row in lake.sql("SHOW PROCEDURES IN lake.sys").collect()])
lake.spark.stop()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example, without network."""
    target = tmp_path_factory.mktemp("installed")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    # pip builds in the source folder, which stays as it is in the repository.
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "lockgate_row_count.py"):
        (source / name).write_text((ROOT / "examples" / "plugin" / name).read_text())
    subprocess.run([*command, "--target", str(target), str(source)], check=True)
    return target


def run(installed: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": python_path(installed), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.cluster
def test_it_is_called_through_spark(installed: Path, tmp_path: Path) -> None:
    output = run(installed, "-c", SCRIPT, str(tmp_path / "warehouse"))
    assert [line for line in output.splitlines() if line.startswith("row ")] == [
        "row day=mon 2",
        "row day=tue 1",
    ]
    assert "'row_count'" in output


def test_it_is_called_from_the_shell(installed: Path, tmp_path: Path) -> None:
    import pyarrow as pa

    from lockgate.framework.store import Catalog, Schema

    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2], "day": ["mon", "mon"]})
    catalog.create_table("db.t", Schema.from_arrow(rows.schema, partition_keys=["day"])).append(rows)
    where = ["--warehouse", str(tmp_path / "warehouse")]
    output = run(installed, "-m", "lockgate.cli", "call", "row_count", *where, "--table", "db.t")
    assert output.split() == ["partition", "row_count", "day=mon", "2"]
    assert "row_count" in run(installed, "-m", "lockgate.cli", "call", "--help")


def test_it_is_as_short_as_promised() -> None:
    source = (ROOT / "examples" / "plugin" / "lockgate_row_count.py").read_text()
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
