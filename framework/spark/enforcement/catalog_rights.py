"""Rights of sessions: the catalogs that each may open, and with which keys.

Confs of a catalog come from two places: the application's start, for all its sessions, and a session's own
settings, which anyone who may send it SQL can change. Keys passed to a session as an object have a handle in
its confs. It is valid for that session alone, and for those that Spark clones from it, as streams do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockgate.errors import KeyDeniedError, OptionError
from lockgate.framework.spark.context.driver_jvm import java_class
from lockgate.framework.spark.context.open_catalogs import handle_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.spark.context.open_catalogs import KeyScopes
    from lockgate.framework.spark.messages.catalog_messages import OpenRequest

FIXED_CATALOGS = "spark.lockgate.fixed-catalogs"


def check_rights(
    scopes: KeyScopes, name: str, options: Mapping[str, str], opened: OpenRequest, session: str | None
) -> None:
    """Check that `session` may open the catalog `name` with these confs.

    `opened` says what the application started with: `started`, the confs of this catalog then, and whether
    they are `fixed`. Raises OptionError for a catalog that differs from a fixed one, KeyDeniedError for keys
    that were given to another session.
    """
    started: Mapping[str, str] | None = opened["started"]
    if opened["fixed"] and started != options:
        raise OptionError(_not_fixed(name, options, started))
    handle = handle_in(options.get("keys"))
    if handle is None or (started or {}).get("keys") == options["keys"]:
        return
    if not scopes.is_granted(handle, session):
        raise KeyDeniedError(
            f"spark.sql.catalog.{name}.keys names keys given to another session: connect this one "
            "with keys of its own, by lockgate.connect(warehouse, spark=session, keys=...)"
        )


def _not_fixed(name: str, options: Mapping[str, str], started: Mapping[str, str] | None) -> str:
    why = f"this application has {FIXED_CATALOGS}=true, so a session cannot set"
    if started is None:
        return f"{why} a catalog of its own: {name!r} is none of those that the application started with"
    changed = [key for key in sorted({*options, *started}) if options.get(key) != started.get(key)]
    confs = ", ".join(f"spark.sql.catalog.{name}.{key}" for key in changed)
    return f"{why} {confs}: RESET what it has set, and use the catalog as the application started with it"


def name_of(session: SparkSession) -> str:
    """Return the name of a session under which its questions come; its jar must be there."""
    context: Any = session.sparkContext
    return str(java_class(context, "io.lockgate.spark.bridge.RequestSessions").nameOf(session._jsparkSession))
