"""Options of Spark sessions that plugins declare: confs `spark.lockgate.<key>`."""

from __future__ import annotations

from collections.abc import Iterable

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError, nearest
from lockgate.framework.options import SESSION_OPTIONS, Option, T
from lockgate.framework.plugins.process import plugins
from lockgate.framework.plugins.session_confs import session_conf

_PREFIX = "spark.lockgate."


@checked_arguments
def session_option(option: Option[T]) -> T:
    """Return the requesting session's value of an option; its default if no session has set it.

    Raises OptionError for a malformed value, and for an option that no plugin declares for sessions.
    """
    if plugins().options("session").get(option.key) is not option:
        raise OptionError(f"no plugin declares {option.key!r} for sessions: return it by lockgate_options()")
    text = session_conf(f"{_PREFIX}{option.key}")
    return option.value_of(text) if text else option.default


def session_settings() -> frozenset[str]:
    """Return every setting `spark.lockgate.<key>` that the connector, this package or a plugin reads."""
    declared = (*SESSION_OPTIONS, *plugins().options("session").values())
    return frozenset(f"{_PREFIX}{option.key}" for option in declared)


def check_setting_names(settings: Iterable[str]) -> None:
    """Raise OptionError, with the nearest name, for an unknown setting `spark.lockgate.<key>`."""
    valid_settings = session_settings()
    for setting in settings:
        if setting.startswith(_PREFIX) and setting not in valid_settings:
            raise OptionError(f"there is no setting {setting!r}{nearest(setting, valid_settings)}")


def check_session_options() -> None:
    """Raise OptionError if the requesting session has a malformed value of a declared option."""
    for option in plugins().options("session").values():
        session_option(option)
