"""Authorization of actions by plugins, and the identity of the caller.

The identity belongs to the running context (`contextvars`): the bridge sets it for each request of the
connector, a server written in Python sets it by `acting_as`. By default it is the operating system's user of
this process.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import (
    ALLOWED,
    AccessRequest,
    Action,
    Caller,
    Decision,
    Principal,
    Target,
)
from lockgate.framework.plugins.events import Denied
from lockgate.framework.plugins.process import plugins, publish

_acting: ContextVar[Caller | Principal | None] = ContextVar("lockgate_acting", default=None)


@contextlib.contextmanager
def acting_as(who: Caller | Principal) -> Iterator[None]:
    """Make `who` the user of everything inside `with`, in this thread or task.

    The hook `lockgate_principal` resolves a Caller to a Principal; a Principal stays as it is.
    """
    token = _acting.set(who)
    try:
        yield
    finally:
        _acting.reset(token)


def current_principal() -> Principal:
    """Return the current identity; raises PluginError if a plugin fails to resolve it."""
    identity = _acting.get() or Caller(_process_user())
    return identity if isinstance(identity, Principal) else plugins().principal(identity)


def _process_user() -> str:
    """Return the user of the process's uid; getpass would trust variables that anyone can set."""
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # a container may run as a user without a name
        return str(uid)


def authorize(
    action: Action,
    target: Target,
    columns: Iterable[str] | None = None,
    principal: Principal | None = None,
) -> Decision:
    """Return the decision about an action of `principal`, by default the current one.

    Without a plugin that decides, it allows everything. Raises AccessDeniedError, which names the missing
    grants, and PluginError if a plugin fails: a failure never allows anything.
    """
    manager = plugins()
    if not manager.decides_access():
        return ALLOWED
    principal = principal or current_principal()
    request = AccessRequest(principal, action, target, None if columns is None else frozenset(columns))
    decision = manager.authorize(request)
    if not decision.allowed:
        publish(_denial(request, decision))
        raise refusal(request, decision)
    return decision


def refusal(request: AccessRequest, decision: Decision) -> AccessDeniedError:
    """Return the error of a denied request."""
    columns = f" (columns {', '.join(sorted(request.columns))})" if request.columns else ""
    return AccessDeniedError(
        f"{request.action} on {request.target}{columns} is denied to user {request.principal.user!r}; "
        f"apply for: {'; '.join(decision.apply_for)}",
        decision.apply_for,
    )


def _denial(request: AccessRequest, decision: Decision) -> Denied:
    return Denied(
        user=request.principal.user,
        action=request.action.value,
        target=str(request.target),
        columns=None if request.columns is None else tuple(sorted(request.columns)),
        apply_for=decision.apply_for,
    )
