"""Messages on rights: the relations of a statement, and what of them is seen."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from lockgate.framework.spark.messages.shared_messages import TableRequest


class RelationColumn(TypedDict):
    """A column and its type, as SQL writes it."""

    name: str
    type: str


class OurRelation(TypedDict):
    """A table of a warehouse."""

    kind: Literal["lockgate"]
    table: TableRequest
    columns: list[RelationColumn]


class TableRelation(TypedDict):
    """A table of another catalog of Spark; `name` has its database."""

    kind: Literal["table"]
    catalog: str
    name: str
    columns: list[RelationColumn]


class PathRelation(TypedDict):
    """Files that are read by their addresses."""

    kind: Literal["path"]
    paths: list[str]
    columns: list[RelationColumn]


class SourceRelation(TypedDict):
    """Anything else that is read; `name` is Spark's word for its kind."""

    kind: Literal["source"]
    name: str
    columns: list[RelationColumn]


class SystemRelation(TypedDict):
    """A system table, or a table of the warehouse, which is asked for rows under its reader's rights."""

    kind: Literal["system"]
    table: TableRequest
    columns: list[RelationColumn]


RelationJson: TypeAlias = OurRelation | TableRelation | PathRelation | SourceRelation | SystemRelation


class StatementTarget(TypedDict):
    """A `table`, `database`, `path` or `temporary` view of the session that a statement is about.

    `ours`: the store will be asked.

    `table` is the request of a table of ours that is there; `columns` are those of a table of another catalog
    that is there.
    """

    kind: str
    catalog: str | None
    name: str
    ours: bool
    table: TableRequest | None
    columns: list[RelationColumn] | None


class NodeJson(TypedDict):
    """A node of the statement's plan, by its class in Spark; `setting` is what SET and RESET change.

    `locations` are the files, and `source` the kind of source, to which it binds a name. Options of a read
    are a node too, with their names as `setting`.
    """

    node: str
    targets: list[StatementTarget]
    setting: str | None
    locations: list[str]
    source: str | None


class DecideRequest(TypedDict):
    """The relations that a statement reads, and the nodes of its plan that are not known to be free.

    `settings` are those that its session has changed since the application started, without values.
    `guarded` are relations with a row filter or a mask about which the current user knows already.
    `statement` is the beginning of its text, for records, null if it has none.
    """

    relations: list[RelationJson]
    nodes: list[NodeJson]
    settings: list[str]
    guarded: list[RelationJson]
    statement: str | None


class RelationAnswer(TypedDict):
    """What the current user sees of a relation.

    `filter` and `masks` are expressions of SQL, `denied` columns may not be used, and if `refused` none may.
    `rights` tells decisions apart, and `grant` is sent along where stored rows of the relation are read. The
    rows of a relation of its `own` rights are decided about when it is asked for them. A `removable` barrier
    hides nothing from a query that uses no masked column.
    """

    restricted: bool
    refused: bool
    denied: list[str]
    masks: dict[str, str]
    rights: str
    filter: str | None
    grant: str | None
    own: bool
    removable: bool


class DecideAnswer(TypedDict):
    """The answers, in the order of the relations; `free` nodes and settings need not be asked about again."""

    free: list[str]
    free_settings: list[str]
    relations: list[RelationAnswer]


class UsedColumns(TypedDict):
    """The columns of a relation that a statement uses, or those of them that are denied.

    Denied columns are empty if the whole relation is.

    `whole`: a stream that keeps names of files needs all of them, or takes nothing.
    """

    relation: RelationJson
    columns: list[str]
    whole: bool


class RefuseRequest(TypedDict):
    """Everything that a statement lacks, or reads, and the beginning of its text."""

    used: list[UsedColumns]
    statement: str | None


class FilesRequest(TypedDict):
    """A relation, or files on the driver's own file systems, about to be read by a query.

    `planned` is what it names, and `rights` the word for those that this was planned under, null if nothing
    of it was hidden. `linked` are places outside to which links lead.
    """

    planned: RelationJson | None
    rights: str | None
    linked: PathRelation | None


class StreamedRelation(TypedDict):
    """A relation that a batch of a stream reads, and the word for the rights that it was planned under.

    `folders` are where a source of files finds them, `files` those that the batch reads, or their folders.
    """

    relation: RelationJson
    rights: str
    folders: list[str]
    files: list[str]


class BatchRightsRequest(TypedDict):
    """The relations of others that a batch of a stream reads."""

    streamed: list[StreamedRelation]


class PolicyRequest(TypedDict):
    """A table that a row filter or a mask itself looks at."""

    table: TableRequest
    columns: list[RelationColumn]
