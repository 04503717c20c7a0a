"""Options of Spark sessions that plugins declare: confs `spark.lockgate.<key>`."""

from __future__ import annotations

from lockgate.errors import OptionError
from lockgate.framework.options.option import Option, T
from lockgate.framework.plugins.process import plugins
from lockgate.framework.plugins.session_confs import session_conf


def session_option(option: Option[T]) -> T:
    """Return the requesting session's value of an option; its default if it has none, or there is no such
    session.

    Raises OptionError for a malformed value, and for an option that no plugin declares for sessions.
    """
    if plugins().options("session").get(option.key) is not option:
        raise OptionError(f"no plugin declares {option.key!r} for sessions: return it by lockgate_options()")
    text = session_conf(f"spark.lockgate.{option.key}")
    return option.value_of(text) if text else option.default


def check_session_options() -> None:
    """Raise OptionError if the session that asks sets a declared option to a malformed value."""
    for option in plugins().options("session").values():
        session_option(option)
