"""Types that hooks receive and return; nothing here imports Spark or runs a table's code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import argparse

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyroaring import BitMap

    from lockgate.framework.access import Principal
    from lockgate.framework.keys import KeyProvider
    from lockgate.framework.lineage import Record
    from lockgate.framework.store import Catalog, PreparedCommit, Snapshot, Table, TableHandle
    from lockgate.framework.types import DataField, DataType
    from lockgate.pushdown import Comparison, Predicate


@runtime_checkable
class BridgeContext(Protocol):
    """Context of an operation or a system table during a request of the connector."""

    @property
    def spark(self) -> Any:
        """The requesting SparkSession (typed loosely, because plugins may load without pyspark)."""

    @property
    def principal(self) -> Principal:
        """The requesting identity: the user of the Spark session, or the user that a server acts for."""

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as the connector sent it."""

    def catalog(self, name: str) -> Catalog:
        """Return the warehouse behind Spark's catalog `name`; raises `NotFoundError` when there is none."""


BridgeOperation: TypeAlias = Callable[[BridgeContext, Any], object]
"""Answers one operation: takes the context and the request, a dictionary, and returns a JSON value.

If its `request` is annotated with a `TypedDict`, requests with other keys are refused.
"""

KeyProviderFactory: TypeAlias = Callable[[str], "KeyProvider"]
"""Makes a key provider from a key specification `scheme:rest`; it takes the full text."""

MaskFunction: TypeAlias = Callable[["pa.Array"], "pa.Array"]
"""Masks an array of a flat type: returns one of the same type and length. Raises for a type that it cannot
mask."""

MaskFactory: TypeAlias = Callable[[Sequence[str]], MaskFunction]
"""Makes a mask of the parameters that follow its name in `orc.mask`; `ValueError` if they mean nothing."""

LakeMethod: TypeAlias = Callable[..., Any]
"""A method of a `Lake`: takes the lake, then the arguments of the call."""


CommandMaker: TypeAlias = Callable[["argparse.ArgumentParser"], None]
"""Adds arguments to the parser of a command, a `description`, whose first sentence the help of `lockgate`
shows, and the default `run`: a function of the parsed options that returns the exit code, 0 for success."""


@dataclass(frozen=True)
class PlannedChange:
    """A change that may break readers of a table: the table or some columns are dropped or renamed.

    `table` is its name, `database.table`; `options` are those of its schema (empty if the schema cannot be
    read). `columns` are paths of columns, empty for the whole table; `along` names the tables dropped
    together with it.
    """

    catalog: Catalog
    table: str
    options: Mapping[str, str]
    change: Literal["dropped", "renamed"]
    columns: tuple[tuple[str, ...], ...] = ()
    along: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CandidateFile:
    """A data file that a scan has not skipped yet.

    `rows` counts what is stored, deleted rows included; `size` is in bytes. `partition` holds values by
    column name. `schema_id` is the schema that the file was written with. `extra_files` are names of files in
    its folder; `embedded_index` is Paimon's file index if that is small enough for the manifest. Predicates
    name columns of the schema `read_schema_id`, or of the table's schema if it is None. `index_manifest`
    names the list of index files of the snapshot that is read, None if it has none.
    """

    path: str
    partition: Mapping[str, Any]
    bucket: int
    rows: int
    size: int
    schema_id: int
    extra_files: tuple[str, ...] = ()
    embedded_index: bytes | None = None
    read_schema_id: int | None = None
    index_manifest: str | None = None


class FileSet(Protocol):
    """All files of a snapshot in order, skipped ones included."""

    @property
    def index_manifest(self) -> str | None:
        """The name of the list of the snapshot's index files, None if it has none."""

    @property
    def read_schema_id(self) -> int:
        """The id of the schema whose columns predicates name."""

    def __len__(self) -> int: ...

    def positions(
        self, key: str, number_of: Callable[[str], int | None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the positions of the files whose names `number_of` knows, and their numbers.

        It remembers the answer under `key`, so it calls `number_of` once for each file.
        """


@runtime_checkable
class WarehouseTable(Protocol):
    """A read-only table about a whole warehouse, read as `lake.sys.<name>` and `catalog.system(name)`."""

    @property
    def columns(self) -> Sequence[DataField]:
        """The columns; ids count from 0."""

    def batches(self, catalog: Catalog) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with these columns; called once for each execution of a query.

        The table must omit what the user (`current_principal`) may not see.
        """


@runtime_checkable
class LineageSink(Protocol):
    """A receiver of the lineage that this process records."""

    def write(self, warehouse: str, records: Sequence[Record]) -> None:
        """Receive the records of ended statements in the warehouse at this address.

        A thread for this sink calls it, in order. An error is logged and counted, and the same records are
        offered again, so a sink must tolerate records that it already has. Raise RecordsRefusedError for
        records that it will never take: the others are offered without them.
        """


@runtime_checkable
class AuditSink(Protocol):
    """A destination of audit."""

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Take records of decisions, each a mapping with Ranger's fields.

        A thread for this sink calls it, in order. After an error the same records are offered again, so a
        destination must tolerate records that it already has, by their `id`. Raise RecordsRefusedError for
        records that it will never take: the others are offered without them.
        """


@runtime_checkable
class FilePruner(Protocol):
    """A step of pruning that a plugin adds; explain and Spark's metrics show it by `name`."""

    @property
    def name(self) -> str:
        """A word of lower-case letters, digits and `_` that no other step has."""

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> Sequence[bool]:
        """Return for each file whether one of its stored rows may match; True if that is unknown.

        `predicate` has no NOT, except around operators of texts. An error ends the query.
        """


@runtime_checkable
class RowPruner(FilePruner, Protocol):
    """A step of pruning that also selects rows of a file."""

    def rows(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the positions, from 0, of the stored rows that may match, None if any may match.

        Called for each file that Python reads without a merge; an error ends the query.
        """


@runtime_checkable
class SetPruner(FilePruner, Protocol):
    """A step of pruning that checks all files of a snapshot at once, for tables with very many files.

    An attribute `note`, if there is one, appears in explain.
    """

    def keep_files(self, predicate: Predicate, files: FileSet) -> npt.NDArray[np.bool_] | None:
        """Return for each file whether a row of it may match, None to keep all; an error ends the query."""


@dataclass(frozen=True)
class JoinedColumn:
    """A join condition: `column` equals `other_column` of the table `other`.

    `other_files` are the files of `other` that the query reads.
    """

    column: str
    other: TableHandle
    other_column: str
    other_files: Sequence[CandidateFile]


@runtime_checkable
class JoinPruner(FilePruner, Protocol):
    """A step of pruning that also compares the values of files on both sides of a join."""

    def joins(self, files: Sequence[CandidateFile], joined: Sequence[JoinedColumn]) -> Sequence[bool]:
        """Return for each file whether one of its rows may match in all joins; True if that is unknown."""


@runtime_checkable
class SnapshotSource(Protocol):
    """A system table that also chooses the snapshot of scans that name it in the read option
    `scan.snapshot-source`.
    """

    def snapshot_id(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> int:
        """Return the snapshot that a scan of `table` reads; called once for each plan."""


class FileCollection(Protocol):
    """The state of a collector for one file."""

    def add(self, rows: pa.Table) -> None:
        """Receive rows of the file in order, with the columns that the collector requested."""

    def finish(self) -> bytes:
        """Return the output once the file is complete; not called for an aborted file."""


@runtime_checkable
class FileCollector(Protocol):
    """Receives the rows of each new data file; `name` identifies its output.

    `columns` are the columns that it needs, None for all. With an attribute `makes_file_index` that is true,
    the output is Paimon's file index: it becomes part of the file, and participants do not see it.
    """

    @property
    def name(self) -> str:
        """A name that no other collector has."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns that it needs, None for all."""

    def begin(self) -> FileCollection:
        """Return the collection of a new file; an error in either ends the write."""


@runtime_checkable
class CommitParticipant(Protocol):
    """A participant in one commit."""

    def prepare(self, request: PreparedCommit) -> None:
        """Prepare, before the first attempt; an error ends the commit, and nothing becomes visible."""

    def committed(self, snapshot: Snapshot) -> None:
        """Receive the visible snapshot; called again if a stream repeats a committed batch."""

    def aborted(self) -> None:
        """Receive the failure of the commit, or its unknown outcome: check the table then."""


@dataclass(frozen=True)
class NewIndexFile:
    """An index file that a commit adds to the table's folder `index`, and names in its index manifest.

    `kind` begins with `lockgate-` and belongs to the plugin; other engines keep files of unknown kinds.
    `partition` holds the values of the file's only partition, None if it covers several. The plugin chooses
    what `rows` counts.
    """

    kind: str
    data: bytes
    rows: int
    partition: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class IndexFileChanges:
    """Changes of a plugin's index files in one commit: new files, and names of removed files.

    If another commit has already removed one of `removed`, `otherwise` applies instead; without it the commit
    ends with a CommitConflictError.
    """

    added: tuple[NewIndexFile, ...] = ()
    removed: frozenset[str] = frozenset()
    otherwise: IndexFileChanges | None = None


@runtime_checkable
class IndexParticipant(CommitParticipant, Protocol):
    """A participant that changes index files in the same commit as the data."""

    def index_files(self) -> IndexFileChanges:
        """Return the changes; called once, after `prepare`. An error ends the commit."""


@dataclass(frozen=True)
class AskedKeys:
    """The keys of a comparison, ascending: a block needs one of them, or all of them if `every` is true.

    A block that satisfies one of `others` matches as well.
    """

    keys: npt.NDArray[np.uint64]
    every: bool = False
    others: tuple[AskedKeys, ...] = ()

    def are_in(self, block_keys: npt.NDArray[np.uint64]) -> bool:
        """Return whether a block with these keys may contain a match."""
        present = set(block_keys.tolist())
        hits = [key in present for key in self.keys.tolist()]
        matches = bool(hits) and all(hits) if self.every else any(hits)
        return matches or any(each.are_in(block_keys) for each in self.others)


@runtime_checkable
class IndexKind(Protocol):
    """A kind of index in segments: the keys of values, and the keys of a comparison.

    A key is a number below 2**40. If a value that is not null satisfies a comparison, its keys must include
    those of the comparison. A kind with several keys per value may give their number in an attribute
    `keys_a_value`, which `auto` uses to count values. A kind whose keys of some values have changed has an
    attribute `version`, 2 or more: scans ignore keys of other versions, and `build_index` replaces them.
    """

    def accepts(self, data_type: DataType) -> bool:
        """Return whether columns of a type can be indexed."""

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return the keys of values without nulls, in any order, perhaps with duplicates."""

    def lookup_keys(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the keys of a comparison with literals, None if keys cannot answer it.

        `data_type` is the type of the stored values; the literals may have a wider one.
        """


@runtime_checkable
class SystemTable(Protocol):
    """A read-only table derived from another, read as `lake.db.t$suffix`.

    With an attribute `single_row` that is true it always has one row; `rows` then runs with the query,
    not for EXPLAIN, and in a stream while Spark plans the micro-batch. Anyone who may SELECT all columns of
    the table, without row filter and masks, may read it. With an attribute `authorizes` that is true, `rows`
    checks rights itself.
    """

    def schema(self, context: BridgeContext, table: Table) -> list[DataField]:
        """Return the columns of the system table of `table`."""

    def rows(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> pa.Table:
        """Return the rows, which should be few; called once for each execution, in a stream once for each
        micro-batch.

        `options` are the read options of the query; `properties` holds `batch_id` and `query_id`, which are
        None outside a stream.
        """
