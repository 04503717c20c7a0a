"""Messages on scans: accepted filters and aggregates, and the files to read."""

from __future__ import annotations

from typing import Any, TypedDict

from lockgate.framework.spark.messages.shared_messages import (
    MicroBatch,
    PredicateJson,
    TableRequest,
    TypeJson,
    ValueJson,
)
from lockgate.framework.store import MergePlanJson


class ScanRequest(TableRequest):
    """A scan of the snapshot that was the newest when the table was loaded, or that time travel names.

    `strict`: a missing key is an error. `changes_rows`: keys that are looked for are asked of no row again.
    `grant` is a right to read stored rows, where the plan puts row filter and masks upon them itself.
    `statement` is the beginning of the text of the statement, for records, null if it has none.
    """

    snapshot_id: int
    time_travel: bool
    strict: bool
    changes_rows: bool
    grant: str | None
    statement: str | None


class FiltersRequest(ScanRequest):
    """Filters that Spark offers; `texts` is how it words them."""

    scan_id: str
    filters: list[PredicateJson]
    texts: list[str]


class FiltersAnswer(TypedDict):
    """Filters by index: a filter may be in both lists."""

    accepted: list[int]
    remaining: list[int]


class SortKeyJson(TypedDict):
    """A key of ORDER BY."""

    text: str
    expression: PredicateJson
    descending: bool
    nulls_first: bool


class PushedScan(ScanRequest):
    """A scan and what it has taken over; `offered` counts the filters that Spark offered.

    `whole_files`: files are written again, so that each is read as a whole or not at all.
    `conditions` are those that Spark evaluates itself, with unknown operators where it has no translation.
    """

    filters: list[PredicateJson]
    conditions: list[PredicateJson]
    offered: int
    whole_files: bool
    columns: list[str]
    limit: int | None
    order: list[SortKeyJson]


class JoinedScan(TypedDict):
    """A column that a query joins with equal values of `other_column`, which the scan `other` reads."""

    column: str
    other_column: str
    other: PushedScan


class SelectiveRequest(PushedScan):
    """A scan as it is built, and the scans that its rows must find partners in."""

    joined: list[JoinedScan]


class PlanRequest(SelectiveRequest):
    """A scan to plan; `files` are paths of those that have rows to change, null: all."""

    scan_id: str
    runtime_filters: list[PredicateJson]
    files: list[str] | None
    estimates: bool
    properties: MicroBatch | None


class InnerField(TypedDict):
    """A field inside a column, by its path there."""

    path: list[str]
    id: int


class FileField(TypedDict):
    """A column of files."""

    id: int
    name: str
    type: TypeJson
    inside: list[InnerField]


class VectorSpan(TypedDict):
    """The place of a deletion vector."""

    path: str
    offset: int
    length: int
    cardinality: int


class VectorJson(VectorSpan):
    """A deletion vector; if it `shows`, only rows are read that it deletes and `but_not` does not."""

    shows: bool
    but_not: VectorSpan | None


class FileJson(TypedDict):
    """A data file; `ranges` are the starts and lengths of the bytes of it to read, null: all."""

    path: str
    size: int
    rows: int
    schema_id: int
    first_row_id: int | None
    sequence: int | None
    vector: VectorJson | None
    ranges: list[list[int]] | None


class CommitJson(TypedDict):
    """The snapshot whose changes files tell, and its time in microseconds since 1970."""

    version: int
    micros: int


class SplitJson(TypedDict):
    """Files of one bucket; with `merge` their rows are merged by key.

    `kind` is that of all rows, null where rows have their own; `commit` is known of changes only.
    """

    partition: dict[str, ValueJson]
    partition_text: str
    bucket: int
    merge: bool
    kind: int | None
    commit: CommitJson | None
    files: list[FileJson]


class SplitSizes(TypedDict):
    """Sizes that tasks are packed by, null where Spark's confs say."""

    target_size: int | None
    open_file_cost: int | None


class BucketingJson(TypedDict):
    """How all files of the snapshot were divided into buckets."""

    column: str
    count: int
    partition_columns: list[str]


class ColumnEstimateJson(TypedDict):
    """An estimate of a column's values, null for what is not known."""

    nulls: int
    distinct: int | None
    min: int | None
    max: int | None


class PlanAnswer(TypedDict):
    """The files to read, and all that readers must know.

    `columns` are estimates for an optimizer that counts costs, null where it does not ask. `keepable`:
    the rows may outlive the query, since no column is under a key and they depend on one snapshot alone.
    """

    snapshot_id: int
    rows: int
    bytes: int
    key_scope: str | None
    integrity: str
    merge_plan: MergePlanJson | None
    schema_id: int
    schemas: dict[str, list[FileField]]
    splits: list[SplitJson]
    split_sizes: SplitSizes
    on_driver: bool
    bucketing: BucketingJson | None
    keepable: bool
    columns: dict[str, ColumnEstimateJson] | None
    metrics: dict[str, int]


class AggregatesRequest(ScanRequest):
    """Aggregates that a query asks for; `filters` are those that were accepted."""

    scan_id: str
    filters: list[PredicateJson]
    aggregates: list[PredicateJson]
    group_by: list[PredicateJson]


class AggregatesFound(TypedDict):
    """Rows that answer all aggregates of a query."""

    snapshot_id: int
    schema: TypeJson
    rows: list[list[Any]]
    metrics: dict[str, int]


class AggregatesAnswer(TypedDict):
    """The answer from metadata, null if Spark must compute the aggregates."""

    found: AggregatesFound | None


class SystemRowsRequest(TableRequest):
    """The rows of a system table that are wanted, of some of its columns."""

    columns: list[str]
    properties: MicroBatch


class SystemRowsAnswer(TypedDict):
    """Few rows, each a list of values in the order of the columns, or many as `pages`.

    A page is a stream of Arrow, compressed by zlib, in base64.
    """

    rows: list[list[ValueJson]]
    pages: list[str]


class SingleRowsRequest(TypedDict):
    """Several system tables of one row that a micro-batch reads."""

    tables: list[SystemRowsRequest]
