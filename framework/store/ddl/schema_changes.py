"""The changes that a table's schema can go through.

A column is named by its path: `("address", "zip")`; inside an array the part is called `element`, inside a
map `key` or `value`, as Spark and Paimon call them. Source: Paimon's `SchemaChange`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lockgate.framework.types import DataType

ColumnPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Position:
    """The place of a column among its neighbours: behind `after`, or at the front if that is None."""

    after: str | None = None


FIRST = Position()


@dataclass(frozen=True)
class AddColumn:
    """A new column; old rows have null there. It goes to the end without a position."""

    path: ColumnPath
    type: DataType
    description: str | None = None
    position: Position | None = None


@dataclass(frozen=True)
class DropColumn:
    """A column goes; its values stay in old files, unread. A new column of that name starts empty."""

    path: ColumnPath
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    """A column gets another name in the same position; options that name it follow."""

    path: ColumnPath
    name: str


@dataclass(frozen=True)
class ChangeType:
    """A column gets a wider type; its nullability stays."""

    path: ColumnPath
    type: DataType


@dataclass(frozen=True)
class ChangeNullability:
    """A column may hold nulls from now on, or, in a table without rows, may not."""

    path: ColumnPath
    nullable: bool


@dataclass(frozen=True)
class ChangeComment:
    """A column gets another comment; None removes it."""

    path: ColumnPath
    description: str | None


@dataclass(frozen=True)
class ChangeDefault:
    """A column gets another default, a constant of SQL, for rows to come; None removes it."""

    path: ColumnPath
    default: str | None


@dataclass(frozen=True)
class MoveColumn:
    """A column goes to another place among its neighbours."""

    path: ColumnPath
    position: Position


@dataclass(frozen=True)
class SetOption:
    """An option of the table gets a value."""

    key: str
    value: str


@dataclass(frozen=True)
class RemoveOption:
    """An option of the table gets its default again; one that is not set is no error."""

    key: str


@dataclass(frozen=True)
class SetComment:
    """The table gets another comment; None removes it."""

    comment: str | None


SchemaChange: TypeAlias = (
    AddColumn
    | DropColumn
    | RenameColumn
    | ChangeType
    | ChangeNullability
    | ChangeComment
    | ChangeDefault
    | MoveColumn
    | SetOption
    | RemoveOption
    | SetComment
)
