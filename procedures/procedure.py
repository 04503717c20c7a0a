"""Procedures: a name, typed parameters, typed result columns, and code."""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, ProcedureError
from lockgate.framework.access import Action
from lockgate.framework.plugins import plugins
from lockgate.framework.store import grant, require_full_visibility
from lockgate.procedures.argument_types import ValueType, value_type

if TYPE_CHECKING:
    from lockgate.framework.store import Catalog, Table

log = logging.getLogger("lockgate.procedures")


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()
"""The default of a parameter that must be given."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: a snake_case name, a type in Spark's DDL, a default and a line of description.

    A default of None means "not given", and so does a NULL from the caller.
    """

    name: str
    type: str
    default: Any = REQUIRED
    doc: str = ""

    @property
    def required(self) -> bool:
        """Say whether the caller must give it."""
        return self.default is REQUIRED

    @cached_property
    def value_type(self) -> ValueType:
        """The parsed type."""
        return value_type(self.type)

    @property
    def alias(self) -> str:
        """The name in camelCase, which is accepted too."""
        head, *rest = self.name.split("_")
        return head + "".join(word.capitalize() for word in rest)


@checked_arguments
@dataclass(frozen=True)
class ProcedureContext:
    """The context of a call.

    `spark` is None outside Spark; `report` takes one line of progress.
    """

    catalog: Catalog
    catalog_name: str = "lake"
    spark: Any = None
    report: Callable[[str], None] = field(default=log.info)

    def identifier(self, name: str) -> str:
        """Return `db.table` from a name that may start with the catalog's; raises `InputError` otherwise."""
        parts = [part.strip("`") for part in name.split(".")]
        if len(parts) == 3 and parts[0] == self.catalog_name:
            parts = parts[1:]
        if len(parts) != 2 or not all(parts):
            raise InputError(f"{name!r} does not name a table: write 'database.table'")
        return ".".join(parts)

    def table(self, name: str) -> Table:
        """Return the table `db.table` or `catalog.db.table`; TableNotFoundError offers the nearest names."""
        return self.catalog.load_table(self.identifier(name))

    def require(self, right: Action, name: str) -> None:
        """Check that the caller has a right on the table `db.table`, even for a dry run; AccessDeniedError if
        not.
        """
        if plugins().decides_access():
            grant(self.table(name), right)

    def require_all_rows(self, name: str) -> None:
        """Check that no row filter or mask hides anything of the table `db.table` from the caller;
        AccessDeniedError if one does.
        """
        if plugins().decides_access():
            require_full_visibility(self.table(name), Action.CALL)

    def require_spark(self, why: str) -> Any:
        """Return the Spark session; ProcedureError when there is none."""
        if self.spark is None:
            raise ProcedureError(f"{why} needs Spark: call it by SQL (CALL) or by lake.call(...)")
        return self.spark


class Procedure(ABC):
    """The old form of a procedure: set the class variables, and do the work in `call`.

    New procedures subclass `TypedProcedure`, which derives `parameters`, `result` and `call`.

    `parameters` are in the order of positional arguments. `result` names and types the columns of the rows
    that `call` returns: counts of what was done. A procedure that deletes or rewrites takes a parameter
    `dry_run`. In addition to the right to call, a caller needs `right` on the table that the parameter
    `table` names; None if the procedure checks rights itself. With `asks_itself` it checks all rights itself,
    and the right to call is not needed.

    Results, progress and errors count and name what is stored, also those of a dry run. So a call is refused
    to users from whom a row filter or a mask hides something of a table that it is about: of the tables that
    its arguments `table` and `..._table` name, or of any table of the warehouse if they name none.
    `needs_all_rows = False` declares that the procedure shows such users nothing hidden.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    parameters: ClassVar[Sequence[Parameter]] = ()
    result: ClassVar[Sequence[tuple[str, str]]]
    right: ClassVar[Action | None] = Action.ALTER
    asks_itself: ClassVar[bool] = False
    needs_all_rows: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Procedure in cls.__bases__ and not cls.__module__.startswith("lockgate."):
            warnings.warn(
                f"{cls.__name__} is a Procedure of the old form, which goes with the next release: "
                "subclass TypedProcedure",
                DeprecationWarning,
                stacklevel=2,
            )

    @abstractmethod
    def call(self, context: ProcedureContext, **arguments: Any) -> list[tuple[Any, ...]]:
        """Do the work and return rows of `result`; `arguments` has a checked value for every parameter."""

    def __repr__(self) -> str:
        return f"<procedure {self.name}>"


@dataclass(frozen=True)
class ProcedureResult:
    """The result of a call: the columns' names and the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def __getitem__(self, column: str) -> Any:
        """Return the value of `column` in the only row; InputError if there is no such column or row."""
        if column not in self.columns or len(self.rows) != 1:
            raise InputError(f"{column!r} is not a value of a single row of {', '.join(self.columns)}")
        return self.rows[0][self.columns.index(column)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        """Return the rows as a text table, NULL for a missing value."""
        cells = [
            self.columns,
            *(tuple("NULL" if cell is None else str(cell) for cell in row) for row in self.rows),
        ]
        widths = [max(len(line[index]) for line in cells) for index in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
        ]
        return "\n".join(line.rstrip() for line in lines)
