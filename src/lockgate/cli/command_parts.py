"""Shared parts of the commands: options, output and errors."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockgate.errors import NotFoundError

KEYS_HELP = "a key file, or a specification scheme:..."


class WholeNames(argparse.ArgumentParser):
    """A parser, and parsers of subcommands, to which `--ware` is not `--warehouse`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **options})


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str, examples: str
) -> argparse.ArgumentParser:
    """Add a subcommand with `--json`; `examples` are lines to show at the end of its help."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=f"examples:\n{textwrap.indent(textwrap.dedent(examples).strip(), '  ')}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    parser.set_defaults(run=run)
    return parser


def add_keys_option(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add `--keys`."""
    parser.add_argument("--keys", required=required, metavar="KEYS", help=KEYS_HELP)


def existing(path: str) -> str:
    """Return the path of a file; `NotFoundError` if there is none."""
    if not Path(path).is_file():
        raise NotFoundError(f"there is no file {path}")
    return path


def answer(options: argparse.Namespace, found: Any, text: str) -> None:
    """Print `found` as JSON if requested, else `text`."""
    print(json.dumps(found) if options.json else text)
