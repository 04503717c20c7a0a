"""One table under two connectors of Spark: Lockgate's here, Paimon's own in a process with its Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from both_engines import check_same
from exact_rows import Rows, exact_rows, in_order
from paimon_spark import Engine

from lockgate import Lake
from lockgate.framework.store import Table


@dataclass(frozen=True)
class Sparks:
    """One table, here and there; both call the warehouse's catalog `lake`."""

    lake: Lake
    theirs: Engine
    database: str
    table: str = "t"

    @property
    def sql_name(self) -> str:
        """Its name in both sessions."""
        return f"lake.{self.database}.`{self.table}`"

    @property
    def ours(self) -> Table:
        """The table as Python sees it now."""
        return self.lake.catalog.load_table(f"{self.database}.{self.table}")

    def next_to(self, table: str) -> Sparks:
        """Another table of the same database, or a branch (`t$branch_b`)."""
        return replace(self, table=table)

    def here(self, *statements: str) -> None:
        """Run statements by Lockgate; {t} stands for the table."""
        for statement in statements:
            self.lake.sql(statement.replace("{t}", self.sql_name)).collect()

    def there(self, *statements: str) -> None:
        """Run statements by Paimon's connector; {t} stands for the table."""
        for statement in statements:
            self.theirs.run(statement.replace("{t}", self.sql_name))

    def call_here(self, procedure: str, **arguments: object) -> None:
        """Run a procedure by Lockgate."""
        self.lake.call(procedure, table=f"{self.database}.{self.table}", **arguments)

    def call_there(self, procedure: str, **arguments: object) -> None:
        """Run a procedure by Paimon's connector."""
        given = {"table": f"{self.database}.{self.table}", **arguments}
        named = ", ".join(f"{name} => {value!r}" for name, value in given.items())
        self.theirs.run(f"CALL lake.sys.{procedure}({named})")

    def rows_here(self, select: str = "*", rest: str = "") -> Rows:
        """What Lockgate's connector reads."""
        return in_order(exact_rows(self.lake.sql(f"SELECT {select} FROM {self.sql_name} {rest}").toArrow()))

    def rows_there(self, select: str = "*", rest: str = "") -> Rows:
        """What Paimon's connector reads."""
        return in_order(exact_rows(self.theirs.read(f"SELECT {select} FROM {self.sql_name} {rest}")))

    def rows_in_python(self, **options: Any) -> Rows:
        """What Python reads."""
        return in_order(exact_rows(self.ours.read(**options)))

    def agree(self, rows: Rows | None = None) -> Rows:
        """Check that both connectors and Python read the same rows (these, if given); return them."""
        theirs = self.rows_there()
        if rows is not None:
            check_same("Paimon's Spark", theirs, in_order(rows))
        check_same("Spark", self.rows_here(), theirs)
        check_same("Python", self.rows_in_python(), theirs)
        return theirs
