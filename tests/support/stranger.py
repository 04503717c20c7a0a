"""Another user of this machine: a process without any right, which tries what it can."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
# It must be one that others may start too: the tests' own interpreter often lies in a home.
PYTHON = shutil.which("python3", path="/usr/bin:/bin")

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or PYTHON is None,
    reason="only root starts processes of other users, of /usr/bin",
)


def as_stranger(program: str, *arguments: str, seconds: float = 30) -> Any:
    """Run Python's `program` as user 65534, `arguments` in `sys.argv`; return what it prints as JSON."""
    assert PYTHON is not None
    done = subprocess.run(
        [PYTHON, "-I", "-c", textwrap.dedent(program), *arguments],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def open_to_all(folder: Path) -> Path:
    """Make a folder like /tmp: anybody may write into it, and pass through the folders above it."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o1777)
    # Those of pytest below the place for temporary files, which are closed; nothing else is opened.
    for parent in folder.parents:
        if any(name.startswith("pytest-") for name in parent.parts):
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder
