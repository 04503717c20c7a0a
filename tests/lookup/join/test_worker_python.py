"""The Python of Spark's workers is checked before a lookup that needs it is planned."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import LookupCacheError
from lockgate.lookup.join.worker_python import check_worker_python


def session(executable: str, *, paths: str = "", inherited: str | None = None, py_files: str = "") -> Any:
    """A session as far as the check looks at it."""
    system = types.SimpleNamespace(getenv=lambda name: inherited)
    context = types.SimpleNamespace(
        pythonExec=executable,
        environment={"PYTHONPATH": paths} if paths else {},
        getConf=lambda: {"spark.submit.pyFiles": py_files},
        _python_includes=[],
        _jvm=types.SimpleNamespace(System=system),
    )
    return types.SimpleNamespace(sparkContext=context)


def test_a_python_without_lockgate_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # without what is installed
    bare.chmod(0o755)
    ours = os.pathsep.join(sys.path)
    with pytest.raises(LookupCacheError, match=rf"run {bare} .* has no module lockgate: install"):
        check_worker_python(session(str(bare)))
    check_worker_python(session(str(bare), paths=ours))
    check_worker_python(session(str(bare), inherited=ours))
    check_worker_python(session(str(bare), py_files="lockgate.zip"))
    check_worker_python(session(sys.executable))
    check_worker_python(session("./environment/bin/python"))  # which is only on the executors
