"""The notebook of the examples, executed as users do: with a Spark of its own, and on a Connect server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from doors import Server, environment

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "examples" / "notebooks" / "first_steps.ipynb"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
CONFS = {"spark.connect.grpc.binding.port": "{port}", "spark.connect.grpc.binding.address": "127.0.0.1"}
ROWS = [
    ["1", "Ada", "London"],
    ["2", "Grace", "Arlington"],
    ["100", "2", "Grace", "Arlington"],
    ["102", "9", "NULL", "NULL"],
    ["Grace", "New York"],
]


def executed(folder: Path, python: str, **more: str) -> str:
    """Execute the notebook with a Python; return the page that nbconvert makes of it."""
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    launch = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": launch, "display_name": "Python 3", "language": "python"})
    )
    own = {
        "HOME": str(folder),
        "JUPYTER_PATH": str(folder / "jupyter"),
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    done = subprocess.run(
        [
            *(sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "--output-dir", str(folder)),
            "--ExecutePreprocessor.timeout=400",
            str(NOTEBOOK),
        ],
        env=environment(PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python, **own, **more),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return (folder / "first_steps.html").read_text()


def tables(page: str) -> list[list[list[str]]]:
    """Return the cells of each table that the page shows, as HTML or, by Spark's remote client, as text."""
    framed = [
        [_cells(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", found, re.DOTALL)]
        for found in re.findall(r"<table.*?</table>", page, re.DOTALL)
    ]
    drawn = [
        [_cells(r"(?<=\|)([^|]*)\|", line) for line in found.splitlines() if line.startswith("|")]
        for found in re.findall(r"(?:(?:^|(?<=>))(?:\+-|\|).*\n)+", page, re.MULTILINE)
    ]
    return [table for table in framed + drawn if any(table)]


def _cells(pattern: str, row: str) -> list[str]:
    return [unescape(cell).strip() for cell in re.findall(pattern, row)]


def test_it_ships_without_what_a_run_printed() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    ran = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(ran) > 5
    assert [cell for cell in ran if cell["outputs"] or cell["execution_count"] is not None] == []


@pytest.mark.cluster
def test_with_a_spark_of_its_own(tmp_path: Path) -> None:
    shown = tables(executed(tmp_path, sys.executable))
    rows = [row for table in shown for row in table]
    assert [row for row in ROWS if row not in rows] == [], shown
    assert len(shown) == 6, "five statements and the lineage of a column"
    assert any("shop.people.city" in cell for row in shown[-1] for cell in row), shown[-1]


@pytest.mark.cluster
def test_on_a_connect_server(start: Callable[..., Server], tmp_path: Path) -> None:
    """With Python that has neither Spark nor Lockgate."""
    python = os.environ.get("LOCKGATE_CLIENT_PYTHON")
    if python is None:
        pytest.skip("needs Spark's remote client in an environment of its own: ./dev test --cluster makes it")
    server = start(CONNECT, CONFS)
    remote = f"sc://127.0.0.1:{server.port}/;user_id=alice"
    shown = tables(executed(tmp_path, python, SPARK_REMOTE=remote))
    rows = [row for table in shown for row in table]
    assert [row for row in ROWS if row not in rows] == [], shown
    assert len(shown) == 5
    assert "alice" in server.asked.read_text()
