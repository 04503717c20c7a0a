"""The version of Spark that tests run with, where versions differ (docs/compatibility.md)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path


def _version() -> tuple[int, ...]:
    """Return the minor of the pyspark that would be imported: the installed one, or that of `--spark 4.1`."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    found = re.search(r"__version__[^\d]*(\d+)\.(\d+)", text)
    assert found is not None
    return int(found[1]), int(found[2])


SPARK = _version()
