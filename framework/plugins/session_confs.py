"""Confs of the requesting Spark session, for plugins outside Spark.

They belong to the running context (`contextvars`): the bridge sets them for each request of a session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_confs: ContextVar[Callable[[str], str] | None] = ContextVar("lockgate_session_confs", default=None)


@contextlib.contextmanager
def answering_session(confs: Callable[[str], str]) -> Iterator[None]:
    """Set the session whose confs code inside `with` reads; `confs` returns "" for a conf that is not set."""
    token = _confs.set(confs)
    try:
        yield
    finally:
        _confs.reset(token)


def session_conf(key: str) -> str:
    """Return a conf of the requesting session; "" if it is not set, or there is no such session."""
    confs = _confs.get()
    return "" if confs is None else confs(key)


# Events carry these settings, because observers run when the session may have changed them.
_EVENT_CONFS = ("spark.lockgate.lineage", "spark.lockgate.lineage.reason", "spark.lockgate.lineage.literals")


def observed_confs() -> dict[str, str]:
    """Return the non-empty confs of the requesting session that events carry."""
    confs = {key: session_conf(key) for key in _EVENT_CONFS}
    return {key: value for key, value in confs.items() if value}
