"""Messages on writes: begun, committed or aborted, and what they would store in the clear."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict, final

from lockgate.framework.spark.messages.shared_messages import (
    BucketsJson,
    PredicateJson,
    TableRequest,
    TypeJson,
    ValueJson,
)
from lockgate.framework.store import KindsJson, MergePlanJson


class WriteRequest(TableRequest):
    """A write of a query, or of one `epoch` of a stream.

    `filters` say which partitions an overwrite replaces. `base_snapshot_id` and `base_commit_id` tell the
    snapshot that its rows were computed from, null if they were not computed from the table.
    """

    mode: str
    query_id: str
    epoch: int | None
    filters: list[PredicateJson]
    snapshot_id: int
    base_snapshot_id: int | None
    base_commit_id: str | None


class BeginRequest(WriteRequest):
    """A write that begins; `schema` is that of the rows."""

    schema: TypeJson


class WrittenField(TypedDict):
    """A column of the table."""

    id: int
    name: str
    type: TypeJson
    nullable: bool
    key: bool
    precision: int | None


class Sequence(TypedDict):
    """The columns that say which row of a key is newest."""

    columns: list[str]
    descending: bool


class StatisticsMode(TypedDict):
    """What is kept of a column in manifests; `length` null: texts are kept whole."""

    bounds: bool
    length: int | None


class IndexKeyColumn(TypedDict):
    """A column whose keys tasks collect, for a kind of index that takes values in one of its ways."""

    column: str
    kind: str
    values: str


class IndexKeys(TypedDict):
    """What tasks collect of each file for the index database, once for each block of so many rows.

    The messages of all tasks hold up to `inline_bytes` of keys; others are files in `folder`.
    """

    folder: str
    block_rows: int
    inline_bytes: int
    columns: list[IndexKeyColumn]


class WriteSpec(TypedDict):
    """Where and how tasks write.

    With `dynamic_buckets` tasks ask for buckets by `write.assign`, or, if keys may move between partitions
    (`moves_keys`), for both by `write.locate`. `records`: rows are also stored as they
    come, in a changelog. `parquet_footer` is that of a Parquet file of the table without rows, in base64.
    """

    write_id: str
    location: str
    schema_id: int
    fields: list[WrittenField]
    partition_keys: list[str]
    primary_key: list[str]
    bucket: BucketsJson | None
    dynamic_buckets: bool
    moves_keys: bool
    records: bool
    sequence: Sequence
    first_sequence: int
    merge_plan: MergePlanJson | None
    kinds: KindsJson | None
    stats: dict[str, StatisticsMode]
    index_keys: IndexKeys | None
    encrypt: str | None
    mask: str | None
    key_scope: str | None
    dictionaries: bool
    format: str
    parquet_footer: str | None
    compression: str
    target_file_size: int
    partition_default_name: str
    partition_legacy_name: bool


class AssignRequest(TypedDict):
    """Keys of a partition that need buckets: their `hashes`, 32 bits each, in base64."""

    write_id: str
    partition: dict[str, ValueJson]
    hashes: str


class AssignAnswer(TypedDict):
    """The bucket of each hash, 32 bits each, in base64."""

    buckets: str


class LocateRequest(TypedDict):
    """Rows whose keys may move between partitions: columns of the primary key and the partition, by name.

    `attempt` names the try of a task; `kinds` is the kind of each row, 8 bits each, in base64.
    """

    write_id: str
    attempt: str
    columns: dict[str, list[ValueJson]]
    kinds: str


class LocateAnswer(TypedDict):
    """The rows to write, in base64 four numbers of 32 bits each.

    These are: which of the rows that came, its kind, its partition among `partitions` (-1: the one that the
    row names), its bucket.
    """

    rows: str
    partitions: list[dict[str, ValueJson]]


class WrittenStatistics(TypedDict):
    """Statistics of a column of a file, null for what is not known."""

    min: ValueJson
    max: ValueJson
    nulls: int | None


class WrittenFileJson(TypedDict):
    """A file that a task wrote; without a primary key, bounds of it are empty and sequence numbers 0."""

    name: str
    size: int
    rows: int
    min_key: list[Any]
    max_key: list[Any]
    min_sequence: int
    max_sequence: int
    delete_rows: int
    stats: dict[str, WrittenStatistics]


class WrittenKeys(TypedDict):
    """Keys of a file for the index database, in base64; `inline` null: in a file of their own."""

    inline: str | None


@final
class FileMessage(TypedDict):
    """A file of one bucket, with rows or, if it is a `changelog`, with changes of rows.

    `index_keys` null: the task has collected none.
    """

    file: WrittenFileJson
    index_keys: WrittenKeys | None
    changelog: bool
    partition: dict[str, ValueJson]
    bucket: int
    total_buckets: int


@final
class MarkMessage(TypedDict):
    """Rows to delete where they lie: `positions` is a bitmap in base64."""

    marked: str
    positions: str


Message: TypeAlias = FileMessage | MarkMessage


class EndRequest(WriteRequest):
    """A write that ends; `replaced` are names of files that were read and written again, null: none."""

    write_id: str
    replaced: list[str] | None
    messages: list[Message]


class MarkedEntry(TypedDict):
    """An entry of `orc.encrypt` or `orc.mask` that holds for a column, or for a part of it."""

    path: list[str]
    key: str | None
    mask: str | None


class MarkedColumn(TypedDict):
    """An encrypted column that values come from."""

    table: str
    column: str
    entries: list[MarkedEntry]


class FlowRequest(TableRequest):
    """A query that writes values of encrypted columns into a table.

    `columns` maps its output columns to the marks of those that the values come from; `query` is the id of a
    stream. `made`: the statement makes the table.
    """

    columns: dict[str, list[MarkedColumn]]
    query: str | None
    made: bool
    stream: bool


class FlowAnswer(TypedDict):
    """The schema to write under, if the table is now encrypted alike."""

    schema_id: int | None


class FilesFlowRequest(TypedDict):
    """A query that writes values of encrypted columns elsewhere; `encrypt` is ORC's option for files.

    `sink` is the class that takes the rows, `path` what it is called.
    """

    sink: str
    path: str
    encrypt: str | None
    columns: dict[str, list[MarkedColumn]]
    query: str | None


class DeleteRequest(TableRequest):
    """A DELETE by filters."""

    filters: list[PredicateJson]
