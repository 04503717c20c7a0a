"""The demo as a user runs it: whole, and told off for a folder that is in use."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "flights" / "demo.py"


def run(*arguments):
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(DEMO), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_refuses_a_folder_with_content(tmp_path):
    (tmp_path / "file").touch()
    done = run("--warehouse", tmp_path)
    assert done.returncode == 1
    assert f"{tmp_path} is not empty" in done.stderr


@pytest.mark.slow
def test_every_check_holds_and_nothing_is_left(tmp_path):
    from flights.data import DataError, fetch

    try:
        fetch()
    except DataError as error:
        pytest.skip(str(error))
    before = set(Path(tempfile.gettempdir()).glob("lockgate-demo-*"))
    done = run("--page", tmp_path / "page.html")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert "lookup join" in (tmp_path / "page.html").read_text()
    assert set(Path(tempfile.gettempdir()).glob("lockgate-demo-*")) <= before
