"""Ready-made tests for the author of a procedure: subclass, name the procedure, and let pytest find it.

from lockgate.plugins import ProcedureConformance

class TestRowCount(ProcedureConformance):
    procedure = RowCount()
"""

from __future__ import annotations

import re

from lockgate.errors import InputError
from lockgate.procedures import Procedure, bind, check

_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class ProcedureConformance:
    """Tests of what every procedure promises its callers."""

    procedure: Procedure

    def test_declaration(self) -> None:
        """Types are known, defaults fit, names are unique, required parameters come first."""
        check(self.procedure)

    def test_names_are_snake_case(self) -> None:
        """SQL, Python and the shell use the same names; camelCase aliases are derived from them."""
        names = [self.procedure.name, *(each.name for each in self.procedure.parameters)]
        names += [name for name, _ in self.procedure.result]
        assert [name for name in names if not _SNAKE_CASE.fullmatch(name)] == []

    def test_it_explains_itself(self) -> None:
        """Description and parameters are shown by SHOW PROCEDURES, DESCRIBE and --help."""
        assert self.procedure.description.strip().endswith(".")
        assert [each.name for each in self.procedure.parameters if not each.doc] == []

    def test_it_returns_more_than_one_boolean(self) -> None:
        """Counts tell a caller what was done; a boolean does not."""
        assert [kind.upper() for _, kind in self.procedure.result] != ["BOOLEAN"]

    def test_missing_arguments_are_refused(self) -> None:
        """Missing required arguments are named, before the procedure runs."""
        for parameter in self.procedure.parameters:
            if not parameter.required:
                continue
            try:
                bind(self.procedure, [], {})
            except InputError as error:
                assert "needs the argument" in str(error)  # noqa: PT017 - plugins need not have pytest here
            else:
                raise AssertionError(f"{parameter.name} is required, but a call without it was accepted")
