"""Lockgate's own procedures, and the example's, pass the tests that authors of plugins are given."""

from __future__ import annotations

import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockgate.framework.testing.procedure_suite import ProcedureConformance
from lockgate.procedures import Procedure, TypedProcedure
from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.procedures.builtin.history.expire_snapshots import ExpireSnapshots
from lockgate.procedures.builtin.migrate.migrate_table import MigrateTable

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin" / "lockgate_row_count.py"


class TestCompact(ProcedureConformance):
    procedure = Compact()


class TestExpireSnapshots(ProcedureConformance):
    procedure = ExpireSnapshots()


class TestMigrateTable(ProcedureConformance):
    procedure = MigrateTable()


class TestExample(ProcedureConformance):
    procedure: Procedure = runpy.run_path(str(EXAMPLE))["RowCount"]()


def test_it_finds_what_is_wrong() -> None:
    @dataclass(frozen=True)
    class Arguments:
        table: str

    @dataclass(frozen=True)
    class Row:
        ok: bool

    class Wrong(TypedProcedure[Arguments, Row]):
        """does it"""

        name = "doIt"

        def run(self, context: Any, arguments: Arguments) -> list[Row]:
            return [Row(True)]

    suite = ProcedureConformance()
    suite.procedure = Wrong()
    for test in (
        "test_names_are_snake_case",
        "test_it_explains_itself",
        "test_it_returns_more_than_one_boolean",
    ):
        with pytest.raises(AssertionError):
            getattr(suite, test)()
