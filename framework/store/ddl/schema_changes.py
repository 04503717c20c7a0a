"""The changes that a table's schema can go through.

A column is named by its path: `("address", "zip")`; inside an array the part is called `element`, inside a
map `key` or `value`, as Spark and Paimon call them. Source: Paimon's `SchemaChange`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lockgate.checked_arguments import checked_arguments
from lockgate.framework.types import DataType

ColumnPath: TypeAlias = tuple[str, ...]


@checked_arguments
@dataclass(frozen=True)
class Position:
    """A position among the columns: behind `after`, or at the front if that is None."""

    after: str | None = None


FIRST = Position()


@checked_arguments
@dataclass(frozen=True)
class AddColumn:
    """A new column; old rows have null there. It goes to the end without a position."""

    path: ColumnPath
    type: DataType
    description: str | None = None
    position: Position | None = None


@checked_arguments
@dataclass(frozen=True)
class DropColumn:
    """Drops a column; its values stay in old files, unread. A new column of that name starts empty."""

    path: ColumnPath
    if_exists: bool = False


@checked_arguments
@dataclass(frozen=True)
class RenameColumn:
    """Renames a column; options that name it change too."""

    path: ColumnPath
    name: str


@checked_arguments
@dataclass(frozen=True)
class ChangeType:
    """Widens the type of a column; its nullability stays."""

    path: ColumnPath
    type: DataType


@checked_arguments
@dataclass(frozen=True)
class ChangeNullability:
    """Lets a column hold nulls or, in a table without rows, forbids them."""

    path: ColumnPath
    nullable: bool


@checked_arguments
@dataclass(frozen=True)
class ChangeComment:
    """Changes the comment of a column; None removes it."""

    path: ColumnPath
    description: str | None


@checked_arguments
@dataclass(frozen=True)
class ChangeDefault:
    """Changes the default of a column, a constant of SQL, for new rows; None removes it."""

    path: ColumnPath
    default: str | None


@checked_arguments
@dataclass(frozen=True)
class MoveColumn:
    """Moves a column among its neighbours."""

    path: ColumnPath
    position: Position


@checked_arguments
@dataclass(frozen=True)
class SetOption:
    """Sets an option of the table."""

    key: str
    value: str


@checked_arguments
@dataclass(frozen=True)
class RemoveOption:
    """Resets an option of the table to its default; resetting one that is not set is no error."""

    key: str


@checked_arguments
@dataclass(frozen=True)
class SetComment:
    """Changes the comment of the table; None removes it."""

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
