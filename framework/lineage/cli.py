"""The command `lockgate lineage`: questions about columns, a page, exports and imports, without Spark."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lockgate.errors import InputError, NotFoundError

FORMATS_HELP = (
    "openlineage: events, one JSON object a line; atlas: entities, in one JSON object; atlas-types: the "
    "definitions of their types, which Atlas needs once"
)
Run = Callable[[argparse.Namespace], int]


def add_lineage(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands to the parser of `lockgate lineage`."""
    parser.description = "Ask where columns come from and where they go."
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    traced = _command(commands, "trace", _trace, "show what a column comes from, or what is made of it")
    _add_question(traced)
    traced.add_argument(
        "--format",
        choices=("text", "json", "dot", "mermaid", "graphml"),
        default="text",
        help="output format (default: text)",
    )
    impact = _command(commands, "impact", _impact, "list everything that reads a table or a column")
    impact.add_argument("name", metavar="NAME", help="db.table or db.table.column")
    plain = _command(
        commands, "plaintext", _plaintext, "list columns that hold values of encrypted columns in the clear"
    )
    plain.add_argument("--key", metavar="KEY", help="only values of columns that this key encrypts")
    page = _command(commands, "page", _page, "write a page that shows the graph in a browser")
    _add_question(page)
    page.add_argument("--output", required=True, metavar="FILE", help="the page to write")
    export = _command(
        commands, "export", _export, "write OpenLineage events or Atlas entities for other catalogs"
    )
    export.add_argument(
        "--format", choices=("openlineage", "atlas", "atlas-types"), required=True, help=FORMATS_HELP
    )
    target = export.add_mutually_exclusive_group()
    target.add_argument("--output", metavar="FILE", help="the file to write (default: standard output)")
    target.add_argument(
        "--send",
        nargs="?",
        const="",
        metavar="URL",
        help="post the events to an OpenLineage service (default: the variable OPENLINEAGE_URL)",
    )
    imported = _command(commands, "import", _import, "add OpenLineage events of other engines")
    imported.add_argument("file", metavar="FILE", help="events, one JSON object a line")


def _command(commands: Any, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    parser.add_argument("--warehouse", required=True, metavar="PATH", help="the folder that holds the tables")
    parser.set_defaults(run=run)
    return parser


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="db.table, db.table.column or path#column")
    parser.add_argument(
        "--direction",
        choices=("back", "forward", "both"),
        default="back",
        help="back to the origins, forward to what is made of it, or both (default: back)",
    )
    parser.add_argument("--depth", type=int, metavar="EDGES", help="how far to go (default: no limit)")
    parser.add_argument(
        "--kinds",
        default="direct",
        help="edges to follow: direct, plain, all, or a list such as identity,join (default: direct)",
    )


def _catalog(options: argparse.Namespace) -> Any:
    from lockgate.framework.store import Catalog

    catalog = Catalog(options.warehouse)
    if not catalog.file_system.exists(catalog.warehouse):
        raise NotFoundError(f"there is no warehouse at {catalog.warehouse}")
    return catalog


def _answer(options: argparse.Namespace) -> Any:
    from lockgate.framework.lineage.answer import answer
    from lockgate.framework.lineage.readable import Readable
    from lockgate.framework.lineage.warehouse_lineage import lineage_of

    catalog = _catalog(options)
    with lineage_of(catalog).reading() as database:
        return answer(
            *(database, options.name, Readable(catalog)),
            catalog="lake",
            direction=options.direction,
            depth=options.depth,
            kinds=options.kinds,
        )


def _trace(options: argparse.Namespace) -> int:
    found = _answer(options)
    if options.format == "json":
        for edge in found.found:
            print(json.dumps(edge.row()))
    elif options.format == "text":
        print(found)
    else:
        print(getattr(found, f"to_{options.format}")(), end="")
    return 0


def _impact(options: argparse.Namespace) -> int:
    return _call(options, "impact", table=options.name)


def _plaintext(options: argparse.Namespace) -> int:
    return _call(options, "plaintext", key=options.key)


def _call(options: argparse.Namespace, name: str, **arguments: Any) -> int:
    from lockgate import procedures

    given = {key: value for key, value in arguments.items() if value is not None}
    print(procedures.call(procedures.ProcedureContext(_catalog(options)), name, **given))
    return 0


def _page(options: argparse.Namespace) -> int:
    _answer(options).to_html(options.output)
    return 0


def _export(options: argparse.Namespace) -> int:
    from lockgate.framework.lineage.export import atlas, openlineage
    from lockgate.framework.lineage.readable import Readable, readable_processes
    from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of

    if options.send is not None and options.format != "openlineage":
        raise InputError("only OpenLineage events can be sent: write what Atlas reads with --output")
    if options.format == "atlas-types":
        return _write([atlas.ATLAS_TYPES], options.output)
    catalog = _catalog(options)
    with lineage_of(catalog).reading() as database:
        address, numbers = address_of(catalog), readable_processes(database, Readable(catalog))
        if options.send is not None:
            return _send(options.send, openlineage.events(database, address, numbers))
        if options.format == "atlas":
            lines: Sequence[Any] = [atlas.entities(database, address, numbers)]
        else:
            lines = list(openlineage.events(database, address, numbers))
    return _write(lines, options.output)


def _write(lines: Iterable[Any], output: str | None) -> int:
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    if output:
        Path(output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _send(url: str, events: Iterable[Mapping[str, Any]]) -> int:
    from lockgate.framework.lineage.export.delivery import Delivery

    print(f"{Delivery.from_environment(url or None).send(events)} events sent")
    return 0


def _import(options: argparse.Namespace) -> int:
    from lockgate.framework.lineage.export.openlineage_import import record_of
    from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of

    catalog = _catalog(options)
    lineage = lineage_of(catalog)
    count = 0
    for number, line in enumerate(Path(options.file).read_text(encoding="utf-8").splitlines(), 1):
        try:
            found = record_of(json.loads(line), address_of(catalog)) if line.strip() else None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{options.file}:{number}: this is not an OpenLineage event: {error}") from error
        if found is not None:
            lineage.journal.add(found)
            count += 1
    if not lineage.journal.flush():
        raise InputError(f"the lineage of {catalog.warehouse} cannot be written: the log says why")
    print(f"{count} runs imported")
    return 0
