"""The Python of Spark's workers, which must have Lockgate where workers look up."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from lockgate.errors import LookupCacheError

_CHECK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('lockgate') is None)"
_SECONDS = 60.0


def check_worker_python(spark: Any) -> None:
    """Check that the Python of Spark's workers has Lockgate, as far as this host can tell.

    Raises LookupCacheError, which names that Python. Nothing is known of one that this host lacks, nor of
    modules that come by `--py-files`.
    """
    context = spark.sparkContext
    executable = shutil.which(context.pythonExec)
    sent = context.getConf().get("spark.submit.pyFiles", "") or context._python_includes
    if executable is None or sent or Path(executable) == Path(sys.executable):
        return
    inherited = context._jvm.System.getenv("PYTHONPATH")
    paths = [context.environment.get("PYTHONPATH"), inherited]
    if not _has_lockgate(executable, os.pathsep.join(filter(None, paths))):
        raise LookupCacheError(
            f"this lookup needs Spark's Python workers, which run {context.pythonExec} ({executable}), and "
            "that has no module lockgate: install lockgate[spark] there, or set spark.pyspark.python (or "
            "PYSPARK_PYTHON, before Spark starts) to a Python that has it"
        )


@functools.cache
def _has_lockgate(executable: str, python_path: str) -> bool:
    done = subprocess.run(  # noqa: S603 - the Python that Spark runs anyway
        [executable, "-c", _CHECK],
        env={**os.environ, "PYTHONPATH": python_path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode == 0
