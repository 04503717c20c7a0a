"""Messages that several operations share: a database, a table, a value of a filter."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

# A Spark type or schema as Spark writes it, a predicate of `pushdown.json_codec`, and a value of a column.
TypeJson: TypeAlias = Any
PredicateJson: TypeAlias = Any
ValueJson: TypeAlias = Any


class MicroBatch(TypedDict):
    """The micro-batch that is planned, null outside a stream."""

    batch_id: str | None
    query_id: str | None


class NamespaceRequest(TypedDict):
    """A question about a database, or about all of a catalog if `namespace` is empty."""

    catalog: str
    catalog_name: str
    namespace: list[str]


class TableRequest(NamespaceRequest):
    """A question about a table, or about what a name may stand for.

    `privileges` are what Spark said that the statement does to it. The table is the one that the query was
    analysed with, identified by `table_id` and `schema_id` (null: any table of the name), or the unfinished
    `replacement`.
    """

    name: str
    options: dict[str, str]
    privileges: list[str]
    table_id: str | None
    schema_id: int | None
    replacement: str | None


class QualifiedName(TypedDict):
    """A table's name in its catalog."""

    namespace: list[str]
    name: str


class BucketsJson(TypedDict):
    """Fixed buckets, and the columns that choose one."""

    columns: list[str]
    count: int


class RowsJson(TypedDict):
    """Rows, each a list of values in the order of the columns that were described before."""

    rows: list[list[ValueJson]]


class Committed(TypedDict):
    """The snapshot that was made, null if there was nothing to commit."""

    snapshot_id: int | None
