"""Messages of the bridge on lineage: an ended statement, and the datasets that it named."""

from __future__ import annotations

from typing import TypedDict

from lockgate.framework.spark import TableRequest


class DatasetJson(TypedDict):
    """A dataset as a plan names it.

    `parts` are those of its name, or its path alone. `catalog` is a name; `handle` is given for catalogs of
    ours, and the `schema` that the statement was analysed with. The type `named` is a program's own text, of
    which Python makes the parts.
    """

    type: str
    parts: list[str]
    catalog: str | None
    handle: str | None
    id: str | None
    version: int | None
    schema: int | None


class RunJson(TypedDict):
    """One execution of a statement, or `count` batches of a stream; times are milliseconds since 1970.

    Rows and bytes are null where Spark's metrics and the commits do not say them.
    """

    started: int
    ended: int
    count: int
    sql: str | None
    description: str | None
    reason: str | None
    literals: str | None
    error: str | None
    stream: str | None
    rows_read: int | None
    bytes_read: int | None
    rows_written: int | None
    bytes_written: int | None
    commits: list[DatasetJson]


class StatementJson(TypedDict):
    """A statement that has ended.

    An edge is the column, the number of an input, the column there, and kinds; `rows` lack the first.
    `cut`: the plan was too large to walk, so it has inputs and columns, but no edges.
    """

    kind: str
    target: DatasetJson | None
    inputs: list[DatasetJson]
    columns: list[str]
    edges: list[tuple[str, int, str, int]]
    rows: list[tuple[int, str, int]]
    views: list[str]
    opaque: list[str]
    cut: bool
    run: RunJson


class RecordRequest(TypedDict):
    """Statements of one session, and the application and version of Spark that ran them."""

    application: str
    spark: str
    statements: list[StatementJson]


class LineageFlowRequest(TableRequest):
    """A query that writes into a table, and the columns that are not encrypted where they are read.

    `columns` maps output columns to pairs of the number of an input and its column. `target` is the name of a
    table that the statement makes, `query` the id of a stream.
    """

    inputs: list[DatasetJson]
    columns: dict[str, list[tuple[int, str]]]
    query: str | None
    target: str | None


class LineageFilesFlowRequest(TypedDict):
    """The same of a query that writes elsewhere; `encrypt` is ORC's option for files."""

    path: str
    encrypt: str | None
    inputs: list[DatasetJson]
    columns: dict[str, list[tuple[int, str]]]
    query: str | None
