"""Attaching to a session that others configured, and the lake that its confs describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, nearest
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.context.driver_jvm import hadoop_confs
from lockgate.framework.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.session.lake import Lake

_PREFIX = "spark.sql.catalog."


@checked_arguments
def attach(spark: SparkSession, *, catalog: str | None = None) -> Lake:
    """Make this process answer the catalogs of `spark` whose confs name `io.lockgate.spark.LockgateCatalog`.

    Returns the lake of `catalog`; without a name that of the only catalog, else of Spark's current one, else
    of the first by name. All catalogs work from then on. Raises BridgeError if the session's jar or extension
    is missing, VersionMismatchError if the jar is of another version, InputError if no conf describes such a
    catalog.
    """
    from lockgate.framework.spark.session.lake import Lake

    session.attach(spark)
    confs: dict[str, str] = dict(spark.conf.getAll)
    name = _chosen(spark, _described(confs), catalog)
    # Refuses what the session may not open, before anything of it is opened here.
    session.loaded_catalog(spark, name)
    prefix = f"{_PREFIX}{name}."
    options = {key.removeprefix(prefix): str(spark.conf.get(key)) for key in confs if key.startswith(prefix)}
    lake = Lake(spark, name, dispatcher().catalogs.open(name, options, lambda: hadoop_confs(spark)))
    session._check_catalog(lake)
    return lake


def _described(confs: dict[str, Any]) -> list[str]:
    names = (key.removeprefix(_PREFIX) for key, value in confs.items() if value == session.CATALOG_CLASS)
    return sorted(name for name in names if "." not in name)


def _chosen(spark: SparkSession, described: list[str], wanted: str | None) -> str:
    if not described:
        raise InputError(
            "no conf of the session describes a Lockgate catalog: set "
            f"{_PREFIX}lake={session.CATALOG_CLASS} and {_PREFIX}lake.warehouse=<folder>, then attach again"
        )
    if wanted is not None:
        if wanted not in described:
            raise InputError(f"the session has no Lockgate catalog {wanted!r}{nearest(wanted, described)}")
        return wanted
    current = spark.catalog.currentCatalog() if len(described) > 1 else described[0]
    return current if current in described else described[0]
