"""Wrapped plugins, which record what plugin each answer or failure of a hook came from.

pluggy returns the answers of a hook without their plugins, and one plugin that raises ends the call for all.
Lockgate therefore registers a copy of each plugin, whose functions record their answers and failures.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any


class HookError(Exception):
    """Raised inside a hook call when a plugin's function raised; `plugin` names it."""

    def __init__(self, plugin: str, hook: str) -> None:
        super().__init__(f"{hook}() of plugin {plugin!r} failed")
        self.plugin = plugin


class Attribution(threading.local):
    """The answers and failures of the running hook call, by plugin; each thread has its own."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, object]] = []
        self.failures: list[tuple[str, BaseException]] = []

    def clear(self) -> None:
        """Forget the previous call."""
        self.answers.clear()
        self.failures.clear()

    def plugin_of(self, answer: object) -> str:
        """Return the plugin that gave `answer`, or "a hook wrapper" if a wrapper has changed it."""
        return next((plugin for plugin, original in self.answers if original is answer), "a hook wrapper")


class Copy:
    """A copy of a plugin's functions, compared by identity so that pluggy can keep it in sets."""

    def __init__(self, plugin: object) -> None:
        self.original = plugin


def attributed(
    plugin: object, name: str, hooks: frozenset[str], observers: frozenset[str], to: Attribution
) -> Copy:
    """Return a copy of `plugin` whose hook functions record their answers in `to`.

    A function of a hook in `observers` never raises: `to` records its failure. Any other raises HookError.
    Functions of unknown hooks are copied too, so that pluggy refuses them.
    """
    copy = Copy(plugin)
    for attribute in dir(plugin):
        function = getattr(plugin, attribute, None)
        marks = getattr(function, "lockgate_impl", None)
        if not callable(function) or not isinstance(marks, dict):
            continue
        hook = marks.get("specname") or attribute
        if marks.get("wrapper") or marks.get("hookwrapper") or hook not in hooks:
            setattr(copy, attribute, function)
        elif hook in observers:
            setattr(copy, attribute, _observer(function, name, to))
        else:
            setattr(copy, attribute, _responder(function, name, hook, to))
    return copy


def _responder(function: Callable[..., Any], plugin: str, hook: str, to: Attribution) -> Callable[..., Any]:
    @functools.wraps(function)
    def respond(*arguments: Any) -> Any:
        try:
            answer = function(*arguments)
        except (Exception, SystemExit) as error:  # a plugin may raise anything, and must not end the process
            raise HookError(plugin, hook) from error
        to.answers.append((plugin, answer))
        return answer

    return respond


def _observer(function: Callable[..., Any], plugin: str, to: Attribution) -> Callable[..., Any]:
    @functools.wraps(function)
    def observe(*arguments: Any) -> None:
        try:
            function(*arguments)
        except (Exception, SystemExit) as error:  # a plugin may raise anything
            to.failures.append((plugin, error))

    return observe
