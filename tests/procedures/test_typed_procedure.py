"""Procedures that are declared by two dataclasses."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, cast

import pytest

from lockgate.errors import InputError, ProcedureError, UnsupportedTypeError
from lockgate.procedures import (
    REQUIRED,
    DryRun,
    Int,
    Parameter,
    ProcedureContext,
    TableName,
    TypedProcedure,
    check,
    signature,
)

CONTEXT = cast("ProcedureContext", None)


@dataclass(frozen=True)
class Arguments:
    table: TableName
    size: Annotated[Int | None, "rows (default: all)"] = None
    users: Annotated[list[str] | None, "who it is for"] = None
    options: dict[str, str] | None = None
    since: datetime.datetime | None = None
    dry_run: DryRun = False


@dataclass(frozen=True)
class Row:
    files_before: Annotated[int, "files of the table"]
    files_after: int | None
    share: Annotated[float, "share of them"]


class Measure(TypedProcedure[Arguments, Row]):
    """Measure a table.

    It does not measure much.
    """

    name = "measure"

    def run(self, context: ProcedureContext, arguments: Arguments) -> list[Row]:
        size = cast("int", arguments.size)
        return [Row(size, None if arguments.dry_run else size + 1, 0.5)]


def test_parameters_and_columns_are_derived() -> None:
    assert Measure.description == "Measure a table."
    assert Measure.parameters == (
        Parameter("table", "STRING", REQUIRED, "the table, `database.table`"),
        Parameter("size", "INT", None, "rows (default: all)"),
        Parameter("users", "ARRAY<STRING>", None, "who it is for"),
        Parameter("options", "MAP<STRING,STRING>", None, "who it is for"),
        Parameter("since", "TIMESTAMP", None, "who it is for"),
        Parameter("dry_run", "BOOLEAN", False, "only count"),
    )
    assert Measure.result == (("files_before", "BIGINT"), ("files_after", "BIGINT"), ("share", "DOUBLE"))
    assert [(each.nullable, each.doc) for each in Measure.columns] == [
        (False, "files of the table"),
        (True, "files of the table"),
        (False, "share of them"),
    ]
    assert signature(check(Measure())).startswith("measure(table STRING, size INT DEFAULT NULL, users")


def test_rows_come_in_the_order_of_the_columns() -> None:
    assert Measure().call(CONTEXT, table="db.t", size=3) == [(3, 4, 0.5)]
    assert Measure().call(CONTEXT, table="db.t", size=3, dry_run=True) == [(3, None, 0.5)]


def test_null_in_a_column_without_null_is_refused() -> None:
    with pytest.raises(ProcedureError, match="measure returned NULL in 'files_before'"):
        Measure().call(CONTEXT, table="db.t", size=None, dry_run=True)


def test_a_procedure_inherits_what_another_declares() -> None:
    class Again(Measure):
        """Measure it again."""

        name = "measure_again"

    assert (Again.parameters, Again.result) == (Measure.parameters, Measure.result)
    assert Again.description == "Measure it again."


def test_a_type_that_sql_has_not_is_refused() -> None:
    @dataclass(frozen=True)
    class Pattern:
        pattern: complex

    with pytest.raises(
        UnsupportedTypeError, match=r"Pattern\.pattern: a procedure cannot take .* .class .complex"
    ):

        class Search(TypedProcedure[Pattern, Row]):
            def run(self, context: ProcedureContext, arguments: Pattern) -> Any: ...


def test_a_default_of_none_needs_the_type_that_allows_it() -> None:
    @dataclass(frozen=True)
    class Limit:
        limit: int = cast("int", None)

    with pytest.raises(InputError, match="'limit' is None by default"):

        class Limited(TypedProcedure[Limit, Row]):
            def run(self, context: ProcedureContext, arguments: Limit) -> Any: ...
