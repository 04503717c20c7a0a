"""Where Python programs that a test starts find modules."""

from __future__ import annotations

import os
from pathlib import Path


def python_path(*folders: Path | str) -> str:
    """Return a PYTHONPATH of folders and this process's own, by which `./dev test --spark` names a Spark."""
    return os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")]))
