"""Making a Spark session with a Lockgate catalog, or attaching to one."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    BridgeError,
    DeprecatedSparkWarning,
    InputError,
    UnprotectedKeysWarning,
    warn_user,
)
from lockgate.framework.io import absolute_address
from lockgate.framework.keys import KeyProvider, key_file_of
from lockgate.framework.plugins import check_setting_names, plugins
from lockgate.framework.spark.bridge.connector_jars import jar, life_of
from lockgate.framework.spark.bridge.dispatcher import dispatcher
from lockgate.framework.spark.bridge.gateway import register
from lockgate.framework.spark.context.driver_jvm import hadoop_confs, java_class
from lockgate.framework.spark.enforcement.catalog_rights import name_of
from lockgate.framework.spark.session.start_confs import conf_at_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.session.lake import Lake

CATALOG_CLASS = "io.lockgate.spark.LockgateCatalog"
PLUGIN_CLASS = "io.lockgate.spark.LockgatePlugin"
GOVERNED_CONF = "spark.lockgate.governed"
EXTENSIONS_CONF = "spark.sql.extensions"
EXTENSIONS_CLASS = "io.lockgate.spark.LockgateExtensions"

Keys = KeyProvider | str | os.PathLike[str] | None


@checked_arguments
def connect(
    warehouse: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    catalog: str = "lake",
    keys: Keys = None,
    conf: Mapping[str, str] | None = None,
    master: str | None = None,
    app_name: str = "lockgate",
) -> Lake:
    """Return the lake in the folder `warehouse`, as catalog `catalog` of a Spark session.

    Without `spark`, it uses the running session, or starts one with `master` and `conf`. `keys` is a key
    provider or a text such as `file:/path/keys.json`; confs hold the path only. Raises BridgeError if a
    session runs without the connector jar, InputError if it has another warehouse under that name, and
    OptionError for a setting `spark.lockgate.*` that nobody reads.
    """
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.session.lake import Lake

    check_setting_names(conf or {})
    confs = catalog_confs(warehouse, catalog, keys)
    spark = spark or SparkSession.getActiveSession()
    if spark is not None:
        _check_session(spark, master, {**(conf or {}), **confs}, confs)
    else:
        builder = SparkSession.builder.appName(app_name)
        if master is not None:
            builder = builder.master(master)
        for key, value in (conf or {}).items():
            builder = builder.config(key, value)
        spark = configure(builder, warehouse=warehouse, catalog=catalog, keys=keys).getOrCreate()
    attach(spark)
    dispatcher().scopes.grant(confs.get(f"spark.sql.catalog.{catalog}.keys"), name_of(spark))
    for key, value in confs.items():
        _set(spark, key, value)
    options = _options_of(confs, catalog)
    lake = Lake(spark, catalog, dispatcher().catalogs.open(catalog, options, lambda: hadoop_confs(spark)))
    _check_catalog(lake)
    return lake


def _set(spark: SparkSession, key: str, value: str) -> None:
    """Set a conf of a session as its application does, which those who decide about access let pass."""
    java_class(spark, "io.lockgate.spark.enforcement.parts.ChangedSettings").ofApplication(
        spark._jsparkSession, key, value
    )
    spark.conf.set(key, value)


def _check_session(
    spark: SparkSession, master: str | None, wanted: Mapping[str, str], may_be_set: Mapping[str, str]
) -> None:
    """Raise InputError if a session that runs differs from the one that is asked for."""
    if master is not None and spark.sparkContext.master != master:
        raise InputError(f"a session runs already, with master {spark.sparkContext.master!r}: stop it first")
    for key, value in wanted.items():
        present = spark.conf.get(key, None)
        if present == str(value) or (present is None and key in may_be_set):
            continue
        # Other confs are not quoted: some are secrets.
        if key in may_be_set:
            raise InputError(
                f"the session has {key}={present}, not {value}: choose another name by catalog=..., "
                "or a new session by spark.newSession()"
            )
        raise InputError(f"a session runs already, with another value of {key}: stop it first")


@checked_arguments
def configure(
    builder: SparkSession.Builder,
    *,
    warehouse: str | os.PathLike[str],
    catalog: str = "lake",
    keys: Keys = None,
) -> SparkSession.Builder:
    """Add the jar, the plugin, the extension and a catalog to a session's builder; `attach` it afterwards.

    Jars, plugins and extensions that the builder, `spark-submit` or `spark-defaults.conf` name stay.
    """
    earlier: Mapping[str, Any] = getattr(builder, "_options", {})
    check_setting_names(earlier)
    _use_this_python(str(earlier.get("spark.master", "local")))
    added = {"spark.jars": str(jar()), "spark.plugins": PLUGIN_CLASS, EXTENSIONS_CONF: EXTENSIONS_CLASS}
    confs = {
        **{
            key: _with(earlier[key] if key in earlier else conf_at_start(key), value)
            for key, value in added.items()
        },
        **catalog_confs(warehouse, catalog, keys),
    }
    for key, value in confs.items():
        builder = builder.config(key, value)
    return builder


def _use_this_python(master: str) -> None:
    """Let workers of a local session run this Python; spark-submit and clusters have their own settings."""
    if master.startswith("local") and "PYSPARK_GATEWAY_PORT" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def attach(spark: SparkSession, *, is_child: bool = False) -> None:
    """Let this process answer the catalogs of `spark`, whose confs name `io.lockgate.spark.LockgateCatalog`.

    A child that the JVM has started does so only where no program does.
    Raises BridgeError if the session's jar or extension is missing, VersionMismatchError if the jar is of
    another version.
    """
    confs = dict(spark.sparkContext.getConf().getAll())
    plugins().require_decisions(confs.get(GOVERNED_CONF, "").strip().lower() == "true")
    check_setting_names([*confs, *spark.conf.getAll])
    plugins().before_attach(confs)
    register(spark, dispatcher(), is_child=is_child)
    _check_extension(spark)
    # `configure` knows no session yet, and Spark gives its confs to one that runs already.
    name = name_of(spark)
    for key, value in spark.conf.getAll.items():
        if key.startswith("spark.sql.catalog.") and key.endswith(".keys"):
            dispatcher().scopes.claim(value, name)
    _warn_of_open_network(spark)
    if life_of(spark.version) == "deprecated":
        warn_user(
            f"Spark {spark.version} is deprecated: a later version of Lockgate will have no connector for "
            "it; docs/compatibility.md says which Spark is supported for how long",
            DeprecatedSparkWarning,
        )


def _check_extension(spark: SparkSession) -> None:
    """Raise BridgeError unless the session has Lockgate's rules, which Spark takes only when it starts."""
    if java_class(spark, "io.lockgate.spark.LockgateExtensions").isIn(spark._jsparkSession):
        return
    present = str(spark.sparkContext.getConf().get(EXTENSIONS_CONF, ""))
    raise BridgeError(
        f"the Spark session runs without Lockgate's rules: start it with {EXTENSIONS_CONF}="
        f"{_with(present, EXTENSIONS_CLASS)} (lockgate.configure(builder) sets it), before the first session "
        "of the process; a running session cannot add them"
    )


def catalog_confs(warehouse: str | os.PathLike[str], catalog: str, keys: Keys) -> dict[str, str]:
    """Return the confs of a catalog; they hold the path of a key file, never a key."""
    if not catalog.isidentifier():
        raise InputError(f"a catalog's name is a plain word such as 'lake', not {catalog!r}")
    prefix = f"spark.sql.catalog.{catalog}"
    confs = {prefix: CATALOG_CLASS, f"{prefix}.warehouse": absolute_address(warehouse)}
    if isinstance(keys, KeyProvider):
        confs[f"{prefix}.keys"] = dispatcher().scopes.conf_of(keys)
    elif keys is not None:
        confs[f"{prefix}.keys"] = _keys_conf(os.fspath(keys))
    return confs


def _keys_conf(spec: str) -> str:
    """Return what stands for keys in a conf: a path, or a handle, for a plugin's text may hold a password."""
    path = key_file_of(spec)
    if path is not None:
        return absolute_address(path)
    scopes = dispatcher().scopes
    return scopes.conf_of(scopes.of_spec(spec))


def _options_of(confs: Mapping[str, str], catalog: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{catalog}."
    return {key.removeprefix(prefix): value for key, value in confs.items() if key.startswith(prefix)}


def _with(present: object, added: str) -> str:
    parts = [part for part in str(present or "").split(",") if part]
    return ",".join(parts if added in parts else [*parts, added])


def _check_catalog(lake: Lake) -> None:
    """Raise if the session has another catalog of this name: Spark makes a catalog once for a session."""
    loaded = loaded_catalog(lake.spark, lake.name)
    if loaded.getClass().getName() != CATALOG_CLASS:
        raise InputError(f"the session has another catalog {lake.name!r}: choose another name by catalog=...")
    if loaded.handle() != lake.handle:
        raise InputError(
            f"the session has a Lockgate catalog {lake.name!r} with another warehouse or other keys: "
            "choose another name by catalog=..., or a new session by spark.newSession()"
        )


def loaded_catalog(spark: SparkSession, name: str) -> Any:
    """Return the JVM's catalog of a session, made now if this is its first use."""
    return java_class(spark, "io.lockgate.spark.bridge.RequestSessions").catalog(spark._jsparkSession, name)


def _warn_of_open_network(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    if str(conf.get("spark.master", "")).startswith("local[") or conf.get("spark.master") == "local":
        return
    if conf.get("spark.network.crypto.enabled", "false") != "true":
        warnings.warn(
            "executors fetch the keys of files from the driver over Spark's network, which is not encrypted: "
            "set spark.network.crypto.enabled=true and spark.authenticate=true",
            UnprotectedKeysWarning,
            stacklevel=3,
        )
