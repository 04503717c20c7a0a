"""Requests for access: a principal, an action and its target."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lockgate.framework.access.principal import Principal


class Action(StrEnum):
    """An action that needs permission; the first four have the names of Spark's privileges."""

    SELECT = "SELECT"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    CALL = "CALL"


@dataclass(frozen=True)
class Target:
    """The table, database, procedure or other thing that an action is about.

    `name` is `database.table`, `database`, or the name of a procedure. `branch` names the branch of a table,
    and `location` its folder, which distinguishes tables of the same name in two warehouses; both may be
    None. A target outside warehouses has a `catalog`, the name of Spark's catalog. It is a table, a database,
    a path (`name` is an address or a kind of source) or a statement (`name` is Spark's name for it).
    """

    kind: Literal["table", "database", "procedure", "path", "statement"]
    name: str
    branch: str | None = None
    location: str | None = None
    catalog: str | None = None

    def __str__(self) -> str:
        branch = "" if self.branch is None else f" (branch {self.branch})"
        catalog = "" if self.catalog is None or self.kind in ("path", "statement") else f"{self.catalog}."
        return f"{self.kind} {catalog}{self.name}{branch}"


@dataclass(frozen=True)
class AccessRequest:
    """A request to authorizers, who decide whether `principal` may do `action` to `target`.

    `columns` are the top-level columns that the action reads or writes, None for all of them or if it has
    none.
    """

    principal: Principal
    action: Action
    target: Target
    columns: frozenset[str] | None = None
