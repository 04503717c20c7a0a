"""pypaimon reads every unencrypted table that other tests write, row for row.

The tests of the store and of Spark's writes run once more, by a pytest of their own whose folders are kept;
then every table found below them is read by both.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError
from lockgate.framework.options import ORC_ENCRYPT
from lockgate.framework.store import Catalog

pytestmark = pytest.mark.interop

TESTS = Path(__file__).parents[1]
WRITERS = [
    "framework/store/history/test_changes.py",
    "framework/store/maintenance/test_snapshot_expiry.py",
    "framework/store/scan/test_read.py",
    "framework/store/scan/test_scan.py",
    "framework/store/tables/test_table.py",
    "framework/store/write/test_write.py",
    "integration/test_stream.py",
    "integration/test_write.py",
    "procedures/builtin/compact/test_compact.py",
]
# Some tests damage their table, or give it a feature that is not supported, so not all can be read.
LEAST_TABLES = 60


def test_every_unencrypted_table(tmp_path: Path) -> None:
    python = os.environ.get("LOCKGATE_INTEROP_PYTHON")
    if not python:
        pytest.skip("pypaimon's Python is not known; run ./dev test --interop")
    below = tmp_path / "tables"
    _run_writers(below)
    tables = [found for place in sorted(below.rglob("schema-0")) if (found := _read_here(place)) is not None]
    (tmp_path / "tables.json").write_text(json.dumps([(warehouse, name) for warehouse, name, _ in tables]))
    script = [python, str(Path(__file__).with_name("referee.py")), "read_all"]
    done = subprocess.run(
        [*script, str(tmp_path / "tables.json"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    problems = json.loads(done.stdout.splitlines()[-1])
    for number, (warehouse, name, ours) in enumerate(tables):
        if str(number) in problems:
            continue
        with pa.ipc.open_file(tmp_path / f"{number}.arrow") as file:
            theirs = file.read_all()
        if _rows(ours) != _rows(theirs.select(ours.column_names)):
            problems[str(number)] = f"{ours.num_rows} rows here, {theirs.num_rows} other rows by pypaimon"
        if str(number) in problems:
            problems[str(number)] = f"{warehouse} {name}: {problems[str(number)]}"
    assert not problems, json.dumps(problems, indent=1)
    assert len(tables) >= LEAST_TABLES


def _run_writers(folder: Path) -> None:
    files = [str(TESTS / name) for name in WRITERS]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(folder),
            *files,
        ],
        env={**os.environ, "LOCKGATE_KEEP_TABLES": "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def _read_here(schema_file: Path) -> tuple[str, str, pa.Table] | None:
    """Return warehouse, name and rows of the table that a schema file belongs to; None if it has none."""
    location = schema_file.parents[1]
    database = location.parent.name
    if not database.endswith(".db"):
        return None
    warehouse, name = str(location.parents[1]), f"{database.removesuffix('.db')}.{location.name}"
    try:
        table = Catalog(warehouse).load_table(name)
        if table.options.get_option(ORC_ENCRYPT):
            return None
        return warehouse, name, table.read()
    except LockgateError:
        return None


def _rows(table: pa.Table) -> Counter[str]:
    return Counter(json.dumps(_plain(row), sort_keys=True) for row in table.to_pylist())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value if value is None or isinstance(value, bool | int) else str(value)
