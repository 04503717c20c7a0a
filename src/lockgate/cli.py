"""The command `lockgate`: keys, ORC files, tables and procedures from the shell, without Spark.

Exit codes: 0 done, 1 refused or failed (one line on standard error says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.cli_orc import add_orc
from lockgate.errors import InputError, LockgateError, NotFoundError
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog
    from lockgate.procedures import Procedure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    texts = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser(texts).parse_args(texts)
        return int(options.run(options))
    except LockgateError as error:
        print(f"lockgate: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1


def _parser(texts: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lockgate", description="Look after Lockgate tables and keys from the shell."
    )
    parser.add_argument("--version", action="version", version=f"lockgate {VERSION}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_keys(commands.add_parser("keys", help="make and list encryption keys"))
    _add_tables(commands.add_parser("tables", help="list the tables of a warehouse"))
    add_orc(commands.add_parser("orc", help="look into ORC files, encrypt, decrypt and rekey them"))
    call = commands.add_parser("call", help="run a procedure", description="Run a procedure on a warehouse.")
    _add_call(call, texts)
    return parser


# --- keys ---


def _add_keys(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    create = commands.add_parser(
        "create", help="make a key file with fresh random keys", description="Make a new key file, mode 0600."
    )
    create.add_argument("path", metavar="FILE", help="the file to make; it must not exist")
    create.add_argument("names", metavar="NAME", nargs="+", help="a key to put into it, for instance pii")
    create.add_argument(
        "--bits", type=int, choices=(128, 256), default=128, help="length of each key (default: 128)"
    )
    create.set_defaults(run=_create_keys)
    listing = commands.add_parser("list", help="list the keys of a key file, never their bytes")
    listing.add_argument("path", metavar="FILE", help="a key file, or a specification scheme:...")
    listing.set_defaults(run=_list_keys)


def _create_keys(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import create_key_file

    provider = create_key_file(options.path, options.names, options.bits)
    print(f"{options.path}: {len(provider.key_names())} new keys of {options.bits} bits (mode 0600)")
    print("Keep a copy where only you can read it: without its keys, encrypted columns are lost.")
    return 0


def _list_keys(options: argparse.Namespace) -> int:
    from lockgate.framework.keys import provider_from

    provider = provider_from(options.path)
    for name in provider.key_names():
        key = provider.current_key(name)
        print(f"{key.name}@{key.version}  {key.algorithm.name}")
    return 0


# --- tables ---


def _add_warehouse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--warehouse", required=True, metavar="PATH", help="the folder that holds the tables")
    parser.add_argument("--keys", metavar="KEYS", help="a key file, or a specification scheme:...")


def _add_tables(parser: argparse.ArgumentParser) -> None:
    _add_warehouse(parser)
    parser.add_argument("database", nargs="?", metavar="DATABASE", help="only the tables of this database")
    parser.set_defaults(run=_list_tables)


def _list_tables(options: argparse.Namespace) -> int:
    catalog = _catalog(options)
    databases = [options.database] if options.database else catalog.list_namespaces()
    for database in databases:
        for table in catalog.list_tables(database):
            print(f"{database}.{table}")
    return 0


def _catalog(options: argparse.Namespace) -> Catalog:
    from lockgate.framework.keys import provider_from
    from lockgate.framework.store import Catalog

    catalog = Catalog(options.warehouse, keys=provider_from(options.keys) if options.keys else None)
    if not catalog.file_system.exists(catalog.warehouse):
        raise NotFoundError(f"there is no warehouse at {catalog.warehouse}")
    return catalog


# --- call ---


def _add_call(parser: argparse.ArgumentParser, texts: Sequence[str]) -> None:
    """Add one subcommand for each procedure, with its parameters as options.

    Plugins are loaded only when `call` is asked for, so that a broken one does not stop `keys` or `tables`.
    """
    if texts[:1] != ["call"]:
        return
    from lockgate import procedures

    commands = parser.add_subparsers(title="procedures", required=True, metavar="PROCEDURE")
    wanted = next((text for text in texts[1:] if not text.startswith("-")), None)
    if wanted is not None:
        procedures.find(wanted)
    for name in procedures.names():
        procedure = procedures.find(name)
        aliases = [_camel(name)] if _camel(name) != name else []
        _add_procedure(
            commands.add_parser(
                name, help=procedure.description, description=procedure.description, aliases=aliases
            ),
            procedure,
        )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _add_procedure(parser: argparse.ArgumentParser, procedure: Procedure) -> None:
    _add_warehouse(parser)
    parser.add_argument("--json", action="store_true", help="print each row of the result as one JSON object")
    group = parser.add_argument_group("arguments of the procedure")
    for parameter in procedure.parameters:
        spellings = dict.fromkeys(
            f"--{spelling}"
            for spelling in (parameter.name.replace("_", "-"), parameter.name, parameter.alias)
        )
        default = (
            "" if parameter.required or parameter.default is None else f" (default: {parameter.default})"
        )
        shared: dict[str, Any] = {"dest": f"argument.{parameter.name}", "default": None}
        if parameter.value_type.ddl == "BOOLEAN":
            # `--dry-run` alone means true, `--dry-run false` is possible too.
            shared |= {"nargs": "?", "const": "true"}
        group.add_argument(
            *spellings,
            metavar=parameter.value_type.ddl,
            required=parameter.required,
            help=f"{parameter.doc}{default}".replace("%", "%%"),
            **shared,
        )
    parser.set_defaults(run=_call, procedure=procedure)


def _call(options: argparse.Namespace) -> int:
    from lockgate import procedures

    procedure: Procedure = options.procedure
    named = {}
    for parameter in procedure.parameters:
        text = getattr(options, f"argument.{parameter.name}")
        if text is not None:
            try:
                named[parameter.name] = parameter.value_type.from_text(text)
            except InputError as error:
                raise InputError(f"--{parameter.name.replace('_', '-')}: {error}") from None
    context = procedures.ProcedureContext(
        _catalog(options), report=lambda line: print(f"lockgate: {line}", file=sys.stderr)
    )
    result = procedures.call(context, procedure.name, **named)
    if options.json:
        for row in result.to_dicts():
            print(json.dumps(row, default=str))
    else:
        print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
