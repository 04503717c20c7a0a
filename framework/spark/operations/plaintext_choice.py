"""A Spark session's choice for values of encrypted columns that would be stored in the clear."""

from __future__ import annotations

from lockgate.framework.options.table_options import ON_PLAINTEXT
from lockgate.framework.spark.operations.context import Context

# The option of a table goes before it, that of a warehouse after it.
SESSION_CONF = f"spark.lockgate.{ON_PLAINTEXT.key}"


def session_choice(context: Context) -> str:
    """Return what the session chooses; empty if it does not. OptionError for what cannot be chosen."""
    return ON_PLAINTEXT.value_of(str(context.spark.conf.get(SESSION_CONF, "")))
