"""The command `lockgate`: keys, ORC files, tables and procedures from the shell, without Spark.

Exit codes: 0 done, 1 refused or failed (one line on standard error says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lockgate.cli.command_parts import KEYS_HELP, WholeNames
from lockgate.cli.jar_command import JAR_EXAMPLES, add_jar
from lockgate.cli.key_commands import add_keys
from lockgate.cli.lookup_commands import add_lookup
from lockgate.cli.orc_commands import add_orc
from lockgate.cli.plugin_commands import add_commands_of_plugins
from lockgate.errors import InputError, LockgateError, NotFoundError
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog
    from lockgate.procedures import Procedure

_TABLES_EXAMPLES = """examples:
  lockgate tables --warehouse /data/lake
  lockgate tables --warehouse /data/lake hr --json
"""
_CALL_EXAMPLES = """examples:
  lockgate call compact --warehouse /data/lake --table hr.people
  lockgate call expire_snapshots --warehouse /data/lake --table hr.people --retain-max 5 --dry-run
  lockgate call compact --help
"""
_INTERRUPTED = 130  # what shells give for it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    texts = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            options = _parser(texts).parse_args(texts)
            return int(options.run(options))
    except LockgateError as error:
        print(f"lockgate: {' '.join(str(error).splitlines())}", file=sys.stderr)
    except UnicodeEncodeError:
        print("lockgate: an argument is not text in UTF-8", file=sys.stderr)
    except BrokenPipeError:
        pass
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"lockgate: {where}{error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("lockgate: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"lockgate: warning: {message}", file=sys.stderr)


def _parser(texts: Sequence[str]) -> argparse.ArgumentParser:
    parser = WholeNames(prog="lockgate", description="Manage Lockgate tables and keys from the shell.")
    parser.add_argument("--version", action="version", version=f"lockgate {VERSION}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_keys(_group(commands, "keys", "make, list and roll encryption keys"))
    _add_tables(
        commands.add_parser(
            "tables",
            help="list the tables of a warehouse",
            description="List the tables of a warehouse, one a line.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=_TABLES_EXAMPLES,
        )
    )
    add_jar(
        commands.add_parser(
            "jar",
            help="print the connector jar for a Spark",
            description="Print the path of the connector jar for a Spark, by default for the one that "
            "pyspark starts here.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=JAR_EXAMPLES,
        )
    )
    add_orc(_group(commands, "orc", "inspect, verify, encrypt, decrypt and rekey ORC files"))
    add_lookup(_group(commands, "lookup", "show, rebuild and remove the lookup caches on this host"))
    call = commands.add_parser(
        "call",
        help="run a procedure",
        description="Run a procedure on a warehouse.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_CALL_EXAMPLES,
    )
    _add_call(call, texts)
    add_commands_of_plugins(parser, commands, texts)
    return parser


def _group(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    return parser


# --- tables ---


def _add_warehouse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--warehouse", required=True, metavar="PATH", help="the folder that holds the tables")
    parser.add_argument("--keys", metavar="KEYS", help=KEYS_HELP)


def _add_tables(parser: argparse.ArgumentParser) -> None:
    _add_warehouse(parser)
    parser.add_argument("database", nargs="?", metavar="DATABASE", help="only the tables of this database")
    parser.add_argument("--json", action="store_true", help="print each table as one JSON object")
    parser.set_defaults(run=_list_tables)


def _list_tables(options: argparse.Namespace) -> int:
    catalog = _catalog(options)
    databases = [options.database] if options.database else catalog.list_namespaces()
    for database in databases:
        for table in catalog.list_tables(database):
            found = {"database": database, "table": table}
            print(json.dumps(found) if options.json else f"{database}.{table}")
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

    Plugins are loaded only for `call`, so that a broken one does not stop `keys` or `tables`.
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
            # Sentences are in Markdown for the documentation.
            help=f"{parameter.doc}{default}".replace("%", "%%").replace("`", "'"),
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
