"""The tables of a procedure in the documentation: its arguments and the columns of its result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from lockgate.procedures import Parameter, TypedProcedure, find

_DEFAULT = re.compile(r"^(.*) \(default: (.*)\)$")


def tables(name: str) -> str:
    """Return the table of arguments and that of the result; fields that share a sentence are one row."""
    procedure = find(name)
    assert isinstance(procedure, TypedProcedure)
    arguments = _rows((each.name, (each.value_type.ddl, *_explained(each))) for each in procedure.parameters)
    result = _rows((each.name, (each.type, each.doc)) for each in procedure.columns)
    return "\n".join(
        [
            *("| argument | type | default | |", "|---|---|---|---|", *arguments),
            *("", "| result | type | |", "|---|---|---|", *result),
        ]
    )


def _explained(parameter: Parameter) -> tuple[str, str]:
    """Return a parameter's default and its sentence."""
    if parameter.required:
        return "required", parameter.doc
    if parameter.default is None:
        match = _DEFAULT.match(parameter.doc)
        return (match[2], match[1]) if match else ("", parameter.doc)
    default = str(parameter.default)
    if isinstance(parameter.default, bool):
        default = default.lower()
    return f"`{default}`" if default else "", parameter.doc


def _rows(fields: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    for cells, same in groupby(fields, key=itemgetter(1)):
        names = ", ".join(f"`{name}`" for name, _ in same)
        escaped = [cell.replace("|", r"\|") for cell in cells]
        yield f"| {' | '.join((names, *escaped))} |".replace("|  |", "| |")
