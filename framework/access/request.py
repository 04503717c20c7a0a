"""Requests for access: an action on a target, and the principal that wants it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from lockgate.framework.access.principal import Principal


class Action(StrEnum):
    """An action that needs to be allowed; the values of the first four are Spark's own words."""

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
    """The table, database or procedure that an action is about.

    `name` is `database.table`, `database`, or the name of a procedure. `branch` names the branch of a table,
    and `location` its folder, which tells apart tables of one name in two warehouses; both may be None.
    """

    kind: Literal["table", "database", "procedure"]
    name: str
    branch: str | None = None
    location: str | None = None

    def __str__(self) -> str:
        branch = "" if self.branch is None else f" (branch {self.branch})"
        return f"{self.kind} {self.name}{branch}"


@dataclass(frozen=True)
class AccessRequest:
    """A question to those who decide: may `principal` do `action` to `target`?

    `columns` are the top-level columns that are read or written, None for all of them or where an action has
    no columns.
    """

    principal: Principal
    action: Action
    target: Target
    columns: frozenset[str] | None = None
