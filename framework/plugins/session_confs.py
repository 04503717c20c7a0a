"""Confs of the requesting Spark session, for plugins that are called below Spark.

They belong to the running context (`contextvars`): the bridge offers them while it answers a session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_confs: ContextVar[Callable[[str], str] | None] = ContextVar("lockgate_session_confs", default=None)


@contextlib.contextmanager
def answering_session(confs: Callable[[str], str]) -> Iterator[None]:
    """Let everything inside `with` see the confs of a session; `confs` returns "" for one that is not set."""
    token = _confs.set(confs)
    try:
        yield
    finally:
        _confs.reset(token)


def session_conf(key: str) -> str:
    """Return a conf of the requesting session; "" if it is not set, or there is no such session."""
    confs = _confs.get()
    return "" if confs is None else confs(key)


# Settings that observers need, who hear of an event when the session has gone on.
_OBSERVED = ("spark.lockgate.lineage", "spark.lockgate.lineage.reason", "spark.lockgate.lineage.literals")


def observed_confs() -> dict[str, str]:
    """Return the confs of the requesting session that events carry, as far as they are set."""
    found = {key: session_conf(key) for key in _OBSERVED}
    return {key: value for key, value in found.items() if value}
