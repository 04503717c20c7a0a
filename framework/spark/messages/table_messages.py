"""Messages on tables: their description, and how they are made, changed and named."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

from lockgate.framework.spark.messages.shared_messages import (
    BucketsJson,
    QualifiedName,
    TableRequest,
    TypeJson,
    ValueJson,
)


class FigureName(TypedDict):
    """A figure of scans in Spark's UI."""

    name: str
    description: str


class TableSpec(TypedDict):
    """A table as Spark must know it."""

    name: str
    table_id: str
    schema: TypeJson
    partitioning: list[str]
    primary_key: list[str]
    sequence_fields: list[str]
    clustering: list[str]
    marks_rows: bool
    refused_statements: dict[str, str]
    bucket: BucketsJson | None
    properties: dict[str, str]
    location: str
    scan_metrics: list[FigureName]
    target_file_size: int
    snapshot_id: int
    commit_id: str | None
    schema_id: int
    time_travel: bool
    compares_states: bool


class StagedSpec(TypedDict):
    """A table in the making: its name until then, `staging`, and the handle of a replacement."""

    table: TableSpec
    staging: str
    replacement: str | None


class SystemSpec(TypedDict):
    """A table of few rows that the driver makes; `selects` are options that say the time travel asked for."""

    name: str
    schema: TypeJson
    single_row: bool
    selects: dict[str, str]


class ViewSpec(TypedDict):
    """The way in which a system table shows rows of a table."""

    suffix: str
    schema: TypeJson


class LoadRequest(TableRequest):
    """A name to look up, `VERSION AS OF` or `TIMESTAMP AS OF` (microseconds)."""

    version: str | None
    timestamp: int | None


class LoadAnswer(TypedDict):
    """What a name stands for: `missing` says why it is nothing.

    Else it is a `system` table or a `table`, which a `view` may show in its own way; `named` is its other
    name, if it was written as `t.suffix`.
    """

    missing: str | None
    named: QualifiedName | None
    system: SystemSpec | None
    table: TableSpec | None
    view: ViewSpec | None


class Definition(TableRequest):
    """A table to be made."""

    schema: TypeJson
    properties: dict[str, str]
    partitioning: list[str]
    default_format: bool


class CreateRequest(Definition):
    """A table to make; `for_stream` if `toTable` of a stream asks."""

    for_stream: bool


class CreateLikeRequest(TableRequest):
    """A table to make like `source`."""

    source: TableRequest
    properties: dict[str, str]


class StageRequest(Definition):
    """A table to make out of sight, for a name that may be free or taken."""

    may_create: bool
    may_replace: bool


class CommitStagedRequest(TableRequest):
    """A staged table that is to have the name `target`, and the snapshot that its rows were computed from."""

    target: str
    base_snapshot_id: int | None
    base_commit_id: str | None


class RenameRequest(TableRequest):
    """A table that is to have another name."""

    to: QualifiedName


# --- ALTER TABLE ---------------------------------------------------------------------------------


class PositionJson(TypedDict):
    """The position of a column: behind another one, or with null the first."""

    after: str | None


class AddColumnJson(TypedDict):
    """ADD COLUMN."""

    change: Literal["add"]
    path: list[str]
    type: TypeJson
    nullable: bool
    comment: str | None
    default: str | None
    position: PositionJson | None


class DropColumnJson(TypedDict):
    """DROP COLUMN."""

    change: Literal["drop"]
    path: list[str]
    if_exists: bool


class RenameColumnJson(TypedDict):
    """RENAME COLUMN."""

    change: Literal["rename"]
    path: list[str]
    name: str


class ChangeTypeJson(TypedDict):
    """ALTER COLUMN ... TYPE."""

    change: Literal["type"]
    path: list[str]
    type: TypeJson


class ChangeNullabilityJson(TypedDict):
    """ALTER COLUMN ... SET or DROP NOT NULL."""

    change: Literal["nullability"]
    path: list[str]
    nullable: bool


class ChangeDefaultJson(TypedDict):
    """ALTER COLUMN ... SET or DROP DEFAULT; empty: none."""

    change: Literal["default"]
    path: list[str]
    default: str | None


class ChangeCommentJson(TypedDict):
    """ALTER COLUMN ... COMMENT."""

    change: Literal["comment"]
    path: list[str]
    comment: str | None


class MoveColumnJson(TypedDict):
    """ALTER COLUMN ... FIRST or AFTER."""

    change: Literal["move"]
    path: list[str]
    position: PositionJson | None


class SetProperty(TypedDict):
    """SET TBLPROPERTIES."""

    change: Literal["set"]
    key: str
    value: str


class RemoveProperty(TypedDict):
    """UNSET TBLPROPERTIES."""

    change: Literal["remove"]
    key: str


Change: TypeAlias = (
    AddColumnJson
    | DropColumnJson
    | RenameColumnJson
    | ChangeTypeJson
    | ChangeNullabilityJson
    | ChangeDefaultJson
    | ChangeCommentJson
    | MoveColumnJson
    | SetProperty
    | RemoveProperty
)


class AlterRequest(TableRequest):
    """Changes to make, all or none."""

    changes: list[Change]


class MergeColumnsRequest(TableRequest):
    """The rows that a stream writes, whose columns the table is to have too; `schema` is that of the rows."""

    schema: TypeJson


# --- partitions ----------------------------------------------------------------------------------


class ListPartitionsRequest(TableRequest):
    """The values that the partitions have in some of the partition columns."""

    where: dict[str, ValueJson]


class DropPartitionsRequest(TableRequest):
    """Partitions to empty, by the values of all partition columns."""

    partitions: list[list[Any]]
