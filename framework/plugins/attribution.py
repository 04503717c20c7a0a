"""Plugins wrapped so that an answer or a failure of a hook names the plugin it came from.

pluggy returns the answers of a hook without saying whose they are, and one plugin that raises ends the call
for all. What is registered with pluggy is therefore a copy of the plugin whose functions remember.
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
    """Owner of the answers of the running hook call; each thread has its own."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, object]] = []
        self.failures: list[tuple[str, BaseException]] = []

    def clear(self) -> None:
        """Forget the call before."""
        self.answers.clear()
        self.failures.clear()

    def plugin_of(self, answer: object) -> str:
        """Return the plugin that gave `answer`; an answer that a wrapper has changed belongs to nobody."""
        return next((plugin for plugin, given in self.answers if given is answer), "a hook wrapper")


class Copy:
    """A plugin's functions; each is equal to itself alone, so that pluggy can keep it in sets."""

    def __init__(self, plugin: object) -> None:
        self.copied = plugin


def attributed(
    plugin: object, name: str, hooks: frozenset[str], observers: frozenset[str], to: Attribution
) -> Copy:
    """Return a copy of `plugin` whose hook functions remember in `to` what they answered.

    A function of a hook in `observers` never raises: its failure is remembered. Any other raises HookError.
    Functions of unknown hooks are taken over too, so that pluggy refuses them.
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
            setattr(copy, attribute, _source(function, name, hook, to))
    return copy


def _source(function: Callable[..., Any], plugin: str, hook: str, to: Attribution) -> Callable[..., Any]:
    @functools.wraps(function)
    def answer(*arguments: Any) -> Any:
        try:
            given = function(*arguments)
        except (Exception, SystemExit) as error:  # a plugin may raise anything, and must not end the process
            raise HookError(plugin, hook) from error
        to.answers.append((plugin, given))
        return given

    return answer


def _observer(function: Callable[..., Any], plugin: str, to: Attribution) -> Callable[..., Any]:
    @functools.wraps(function)
    def observe(*arguments: Any) -> None:
        try:
            function(*arguments)
        except (Exception, SystemExit) as error:  # a plugin may raise anything
            to.failures.append((plugin, error))

    return observe
