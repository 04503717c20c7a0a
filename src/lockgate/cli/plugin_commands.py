"""Commands that plugins add to `lockgate`: each with its line of help, and each broken one by its name."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from lockgate.cli.command_parts import WholeNames
from lockgate.errors import PluginError
from lockgate.framework.plugins import CommandMaker


def add_commands_of_plugins(parser: argparse.ArgumentParser, commands: Any, texts: Sequence[str]) -> None:
    """Add what plugins bring, unless one of our own commands is requested: broken ones must not stop it.

    Raises PluginError if the requested command is missing and a plugin is broken. The help names broken ones.
    """
    if texts and texts[0] in commands.choices:
        return
    problems = _added(commands)
    if not problems:
        return
    if texts and not texts[0].startswith("-") and texts[0] not in commands.choices:
        raise problems[0]
    parser.epilog = "\n".join(["broken plugins:", *(f"  {problem}" for problem in problems)])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def _added(commands: Any) -> list[PluginError]:
    """Add the commands that work, and return the errors of those that do not."""
    from lockgate.framework.plugins import plugins

    problems = []
    try:
        makers = plugins().cli_commands()
    except PluginError as error:
        return [error]
    for name, make in makers.items():
        try:
            _add(commands, name, make)
        except PluginError as error:
            problems.append(error)
    return problems


def _add(commands: Any, name: str, make: CommandMaker) -> None:
    if name in commands.choices:
        raise _broken(name, make, "lockgate already has this command: rename it")
    parser = commands.add_parser(name, help=_summary(name, make).replace("%", "%%"))
    parser.set_defaults(run=_without_run(name, make))
    make(parser)


def _summary(name: str, make: CommandMaker) -> str:
    """Return a command's line in the help: its description, which it sets on a parser made for this."""
    parser = WholeNames(prog=name)
    try:
        make(parser)
    except Exception as error:  # a plugin may raise anything
        raise _broken(name, make, f"{type(error).__name__}: {error}") from error
    sentence = (parser.description or "added by a plugin").partition(". ")[0].removesuffix(".")
    return f"{sentence[:1].lower()}{sentence[1:]}"


def _without_run(name: str, make: CommandMaker) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise _broken(name, make, "it does not set `run`: call parser.set_defaults(run=...)")

    return run


def _broken(name: str, make: CommandMaker, why: str) -> PluginError:
    origin = getattr(make, "__module__", None) or type(make).__module__
    return PluginError(f"the command {name!r} of a plugin (module {origin}) cannot be used: {why}", name)
