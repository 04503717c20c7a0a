"""Confs that a Spark session will start with, including those that its builder does not know."""

from __future__ import annotations

import os
from pathlib import Path


def conf_at_start(key: str) -> str | None:
    """Return the value that `spark-submit`, a JVM that runs or `spark-defaults.conf` gives to a conf.

    A builder's own value would replace it.
    """
    from pyspark import SparkConf, SparkContext

    if SparkContext._jvm is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        return SparkConf().get(key, None)
    return _defaults().get(key)


def _defaults() -> dict[str, str]:
    path = _folder() / "spark-defaults.conf"
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return dict(_entry(line) for line in lines if line and line[0] not in "#!")


def _entry(line: str) -> tuple[str, str]:
    """Return key and value of a line of Java's properties, in which = or : or blanks divide them."""
    end = next((at for at, letter in enumerate(line) if letter in "=: \t"), len(line))
    return line[:end], line[end:].lstrip(" \t").removeprefix("=").removeprefix(":").strip()


def _folder() -> Path:
    """Return where pyspark looks for the confs of the JVM that it starts."""
    if "SPARK_CONF_DIR" in os.environ:
        return Path(os.environ["SPARK_CONF_DIR"])
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()) / "conf"
