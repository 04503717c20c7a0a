"""Spark's Hadoop configuration, as far as it says how stores are reached, for the Python side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockgate.framework.io import storage_confs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3 = "fs.s3a."
# What Hadoop ships with is nobody's setting, and Python has defaults of its own.
_DEFAULT_SOURCE = "core-default.xml"


def hadoop_confs(spark: SparkSession) -> dict[str, str]:
    """Return the confs `fs.s3a.*` that somebody set: in `spark.hadoop.*`, a `core-site.xml`, or the session.

    They may hold secrets: they are handed to the file system, and shown nowhere.
    """
    session: Any = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    found: dict[str, str] = {}
    for name in conf.getPropsWithPrefix(_S3):
        key = _S3 + name
        sources = conf.getPropertySources(key)
        if sources is None or list(sources) != [_DEFAULT_SOURCE]:
            value = conf.get(key)
            if value is not None:
                found[key] = value
    return storage_confs(found)
