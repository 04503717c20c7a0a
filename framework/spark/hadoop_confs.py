"""Spark's Hadoop configuration, as far as it says how stores are reached, for the Python side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockgate.framework.io import storage_confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIXES = ("fs.s3a.", "fs.defaultFS", "dfs.", "hadoop.security.")
# What Hadoop ships with is nobody's setting, and Python has defaults of its own.
_DEFAULT_SOURCES = {"core-default.xml", "hdfs-default.xml", "hdfs-rbf-default.xml"}


def hadoop_confs(spark: SparkSession) -> dict[str, str]:
    """Return the confs of S3 and HDFS that somebody set: in `spark.hadoop.*`, `core-site.xml` or the session.

    They may hold secrets: they are handed to the file system, and shown nowhere.
    """
    session: Any = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    found: dict[str, str] = {}
    for key in (prefix + name for prefix in _PREFIXES for name in conf.getPropsWithPrefix(prefix)):
        sources = conf.getPropertySources(key)
        if sources is None or not set(sources) <= _DEFAULT_SOURCES:
            value = conf.get(key)
            if value is not None:
                found[key] = value
    return storage_confs(found)
