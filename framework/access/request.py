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
    """The table, database, procedure or other thing that an action is about.

    `name` is `database.table`, `database`, or the name of a procedure. `branch` names the branch of a table,
    and `location` its folder, which tells apart tables of one name in two warehouses; both may be None.

    What is of no warehouse has a `catalog`: Spark's name for it, with tables, databases, paths (`name` is an
    address, or says what kind of source is read) and statements (`name` is Spark's word for what is done).
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
    """A question to authorizers: may `principal` do `action` to `target`?

    `columns` are the top-level columns that are read or written, None for all of them or where an action has
    no columns.
    """

    principal: Principal
    action: Action
    target: Target
    columns: frozenset[str] | None = None
