"""The version of Spark that tests run with, where versions differ (docs/compatibility.md)."""

from __future__ import annotations

from importlib.metadata import version

SPARK = tuple(map(int, version("pyspark").split(".")[:2]))
