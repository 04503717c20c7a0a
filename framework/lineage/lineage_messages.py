"""Messages of the bridge about lineage: ended statements, their datasets, and planned writes."""

from __future__ import annotations

from typing import TypedDict

from lockgate.framework.spark import TableRequest


class DatasetJson(TypedDict):
    """A dataset as a plan names it.

    `parts` are the parts of its name, or its path. `catalog` is a name. Only Lockgate's catalogs have a
    `handle` and a `schema`, the one with which the statement was analysed. The type `named` is a text of a
    program, which Python parses.
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

    Rows and bytes are null if Spark's metrics and the commits do not contain them.
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

    An edge has a target column, the number of an input, a column of it, and kinds; entries of `rows` have no
    target column. `cut`: the plan was too large, so the statement has inputs and columns, but no edges.
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
    """A query that writes into a table, with its source columns that are not encrypted.

    `columns` maps output columns to pairs of the number of an input and its column. `target` is the name of a
    table that the statement creates, `query` the id of a stream.
    """

    inputs: list[DatasetJson]
    columns: dict[str, list[tuple[int, str]]]
    query: str | None
    target: str | None


class LineageFilesFlowRequest(TypedDict):
    """A query that writes elsewhere, as LineageFlowRequest; `encrypt` is ORC's option for files."""

    path: str
    encrypt: str | None
    inputs: list[DatasetJson]
    columns: dict[str, list[tuple[int, str]]]
    query: str | None
