"""Types that hooks hand over and receive; nothing here imports Spark or runs a table's code."""

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
    from lockgate.framework.keys.provider import KeyProvider
    from lockgate.framework.lineage.model.records import Record
    from lockgate.framework.store.catalog import Catalog
    from lockgate.framework.store.commit.commit_request import CommitRequest
    from lockgate.framework.store.metadata.snapshot import Snapshot
    from lockgate.framework.store.table import Table
    from lockgate.framework.types import DataField, DataType
    from lockgate.pushdown import Comparison, Predicate


@runtime_checkable
class BridgeContext(Protocol):
    """Context of an operation or a system table while it answers the connector."""

    @property
    def spark(self) -> Any:
        """The SparkSession that asks (typed loosely, because plugins may load without pyspark)."""

    @property
    def principal(self) -> Principal:
        """The identity that asks: the user of the Spark session, or the one that a server acts for."""

    @property
    def request(self) -> Mapping[str, Any]:
        """The request as the connector sent it."""

    def catalog(self, name: str) -> Catalog:
        """Return the warehouse behind Spark's catalog `name`; raises `NotFoundError` when there is none."""


BridgeOperation: TypeAlias = Callable[[BridgeContext, Any], object]
"""Answers one operation: takes the context and the request, a dictionary, and returns what JSON can hold.

A function whose `request` is annotated by a `TypedDict` gets only requests that have all its keys.
"""

KeyProviderFactory: TypeAlias = Callable[[str], "KeyProvider"]
"""Makes a key provider of a key specification `scheme:rest`, which it is given whole."""

MaskFunction: TypeAlias = Callable[["pa.Array"], "pa.Array"]
"""Masks an array of a flat type: returns one of the same type and length. Raises for a type it has no mask
for."""

MaskFactory: TypeAlias = Callable[[Sequence[str]], MaskFunction]
"""Makes a mask of the parameters that follow its name in `orc.mask`; `ValueError` if they mean nothing."""

LakeMethod: TypeAlias = Callable[..., Any]
"""A method of a `Lake`: takes the lake first, then whatever it is called with."""


CommandMaker: TypeAlias = Callable[["argparse.ArgumentParser"], None]
"""Adds arguments to the parser of a command, a `description`, whose first sentence the help of `lockgate`
shows, and the default `run`: a function of the parsed options that returns the exit code, 0 for success."""


@dataclass(frozen=True)
class PlannedChange:
    """A change after which readers of a table may fail: the table or columns are dropped or renamed.

    `table` is its name, `database.table`, `options` are those of its schema (empty if that cannot be read).
    `columns` are paths of columns, none where the whole table is meant; `along` names the tables that are
    dropped together with it.
    """

    catalog: Catalog
    table: str
    options: Mapping[str, str]
    change: Literal["dropped", "renamed"]
    columns: tuple[tuple[str, ...], ...] = ()
    along: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CandidateFile:
    """A data file that a scan has not left out yet.

    `rows` counts what is stored, deleted rows included; `size` is in bytes. `partition` holds values by
    column name. `schema_id` is the schema that the file was written with. `extra_files` are names of files in
    its folder, `embedded_index` is Paimon's file index where that is small enough for the manifest.
    `read_schema_id` is the schema that predicates name columns of, None: the table's. `index_manifest` names
    the list of index files of the snapshot that is read, None if it has none.
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
    """All files of a snapshot in order, those that are left out included."""

    @property
    def index_manifest(self) -> str | None:
        """The name of the list of the snapshot's index files, None if it has none."""

    @property
    def read_schema_id(self) -> int:
        """The schema that predicates name columns of."""

    def __len__(self) -> int: ...

    def places(
        self, key: str, number_of: Callable[[str], int | None]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the places of the files to whose names `number_of` gives a number, and the numbers.

        The answer is remembered under `key`: of the same files, nothing is asked twice.
        """


@runtime_checkable
class WarehouseTable(Protocol):
    """A read-only table about a whole warehouse, read as `lake.sys.<name>` and `catalog.system(name)`."""

    @property
    def columns(self) -> Sequence[DataField]:
        """The columns; ids count from 0."""

    def batches(self, catalog: Catalog) -> Iterator[pa.RecordBatch]:
        """Yield the rows, with these columns; asked once for each execution of a query.

        What the one who asks (`current_principal`) may not see is for the table to leave out.
        """


@runtime_checkable
class LineageSink(Protocol):
    """A receiver of the lineage that this process records."""

    def write(self, warehouse: str, records: Sequence[Record]) -> None:
        """Take in records of statements that have ended, of the warehouse at this address.

        Called on a thread of its own, in order; what is raised is logged and counted, and the records are
        offered again: a sink that has taken some of them must bear them twice.
        """


@runtime_checkable
class FilePruner(Protocol):
    """A step of pruning that a plugin adds; `name` is its word in explain and in Spark's metrics."""

    @property
    def name(self) -> str:
        """A word of lower-case letters, digits and `_` that no other step has."""

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> Sequence[bool]:
        """Return for each file whether one of its stored rows may match; True if that is unknown.

        `predicate` is without NOT but before some text operators. What is raised ends the query.
        """


@runtime_checkable
class RowPruner(FilePruner, Protocol):
    """A step of pruning that also knows which rows of a file may match."""

    def rows(self, predicate: Predicate, file: CandidateFile) -> BitMap | None:
        """Return the numbers, from 0, of the stored rows that may match, None if any may.

        Asked for each file that Python reads without merging it; what is raised ends the query.
        """


@runtime_checkable
class SetPruner(FilePruner, Protocol):
    """A step of pruning that judges all files of a snapshot at once, for tables with very many.

    `note`, if it has one, is what it says of its work in explain.
    """

    def left(self, predicate: Predicate, files: FileSet) -> npt.NDArray[np.bool_] | None:
        """Return for each file what `keeps` would, None if all are kept; what is raised ends the query."""


@runtime_checkable
class SnapshotSource(Protocol):
    """A system table that also chooses the snapshot of scans: read option `scan.snapshot-source` names it."""

    def snapshot_id(
        self,
        context: BridgeContext,
        table: Table,
        options: Mapping[str, str],
        properties: Mapping[str, str | None],
    ) -> int:
        """Return the snapshot that a scan of `table` reads; asked once for each plan."""


class FileCollection(Protocol):
    """The work of a collector on one file."""

    def add(self, rows: pa.Table) -> None:
        """Take in rows of the file in order; they have the columns that the collector wants."""

    def finish(self) -> bytes:
        """Return the output once the file is complete; not called for an aborted file."""


@runtime_checkable
class FileCollector(Protocol):
    """A plugin's view of the rows of each new data file; `name` identifies its output.

    `columns` are the columns that it wants, None for all. With an attribute `makes_file_index` that is true,
    what it makes is Paimon's file index: it becomes part of the file, and participants are not shown it.
    """

    @property
    def name(self) -> str:
        """A name that no other collector has."""

    @property
    def columns(self) -> Sequence[str] | None:
        """The columns it wants."""

    def begin(self) -> FileCollection:
        """Return the collection of a new file; an error of either ends the write."""


@runtime_checkable
class CommitParticipant(Protocol):
    """A participant in one commit."""

    def prepare(self, request: CommitRequest) -> None:
        """Prepare, before the first attempt; an error ends the commit, and nothing becomes visible."""

    def committed(self, snapshot: Snapshot) -> None:
        """Receive the visible snapshot; called again if a stream repeats a committed batch."""

    def aborted(self) -> None:
        """Learn that the commit failed, or that its outcome is unknown: check the table then."""


@dataclass(frozen=True)
class NewIndexFile:
    """An index file that a commit adds to the table's folder `index`, and names in its index manifest.

    `kind` begins with `lockgate-` and is the plugin's own: other engines keep files of kinds that they do not
    know. `partition` holds the values of the one partition that the file is about, None if it is about
    several. `rows` counts what the plugin likes.
    """

    kind: str
    data: bytes
    rows: int
    partition: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class IndexFileChanges:
    """Changes of a plugin's index files in one commit: files added, and names of files that go.

    If one of `removed` is gone already when the commit lands, `otherwise` is done instead; without it the
    commit ends with a CommitConflictError.
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
    """The keys that a comparison asks for: places need one of them, or `every` one."""

    keys: npt.NDArray[np.uint64]
    every: bool = False


@runtime_checkable
class IndexKind(Protocol):
    """A kind of index in segments: the keys of values, and the keys of a comparison.

    A key is a number below 2**40. Whenever a value that is not null meets a comparison, its keys must have
    what that asks for.
    """

    def accepts(self, data_type: DataType) -> bool:
        """Say whether columns of a type can be indexed."""

    def keys(self, values: pa.Array, data_type: DataType) -> npt.NDArray[np.uint64]:
        """Return the keys of some values without nulls, in no order; one may be there several times."""

    def asked(self, comparison: Comparison, data_type: DataType) -> AskedKeys | None:
        """Return the keys of a comparison with literals, None if keys cannot decide it.

        `data_type` is the type that the values were written with; that of the literals may be wider.
        """


@runtime_checkable
class SystemTable(Protocol):
    """A read-only table derived from another, read as `lake.db.t$suffix`.

    With an attribute `single_row` that is true it always has one row, which is asked for when a query runs,
    not when its plan is only shown. It may be read by anyone who may SELECT all columns of the table, without
    row filter and masks; with an attribute `authorizes` that is true, `rows` asks for itself.
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
        """Return the rows, few; asked once for each execution, in a stream once for each micro-batch.

        `options` are the read options of the query; `properties` holds `batch_id` and `query_id`, which are
        None outside a stream.
        """
