"""Records from the connector: their warehouse, the names in them, and what they may contain."""

from __future__ import annotations

import json
import socket
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from lockgate.errors import InputError, NotFoundError
from lockgate.framework.access import mask_literals
from lockgate.framework.lineage.column_ids import ids_of
from lockgate.framework.lineage.lineage_messages import DatasetJson, RecordRequest, StatementJson
from lockgate.framework.lineage.model.lineage_records import Dataset, Record, Run, Shape
from lockgate.framework.lineage.model.names import joined, split_name
from lockgate.framework.lineage.model.run_reasons import why_of
from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of, naming
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.store import Catalog

# Longer texts of statements are cut: generated ones may have megabytes.
_LONGEST = 20_000
# Shapes that are kept for statements like them, and edges of the largest of these.
_MOST_SHAPES = 200
_MOST_EDGES = 5_000
# The schema that such a statement was analysed under is not the one that it leaves.
_CHANGES = frozenset({"RENAME_COLUMN", "RENAME_TABLE", "DROP_COLUMNS", "ADD_COLUMNS", "ALTER_COLUMNS"})


@dataclass(frozen=True)
class NamedDataset:
    """A dataset as the connector names it, with the catalog of its warehouse if that is one of Lockgate's."""

    type: str
    parts: tuple[str, ...]
    catalog_name: str
    id: str
    version: int | None
    catalog: Catalog | None
    schema: int | None = None

    @property
    def text(self) -> str:
        """The name for messages."""
        return self.parts[0] if self.type != "table" else joined(self.parts)

    def seen_from(self, warehouse: str) -> Dataset:
        """Return the dataset as records of a warehouse name it."""
        if self.catalog is None:
            name = self.parts[0] if self.type not in ("table", "view") else joined(self.parts)
            return Dataset(name, self.type, self.catalog_name, self.id)
        own = address_of(self.catalog)
        # A branch has the id of its table, and rows of its own.
        branch = self.parts[-1].partition("$")[2]
        uid = f"{self.id}${branch}" if self.id and branch else self.id
        return Dataset(joined(self.parts), self.type, "" if own == warehouse else own, uid)


class _Counts:
    """Counts of this process, for `lineage_status`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.elsewhere = 0
        self.failed = 0

    def add(self, name: str) -> None:
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)


counts = _Counts()


def record(context: BridgeContext, request: RecordRequest) -> list[str]:
    """Answer `lineage.record`: note statements in each warehouse that they read or write, if any.

    Return what went wrong, a text for each statement that is not noted.
    """
    problems = []
    for statement in request["statements"]:
        try:
            _record(context, request, statement)
        except Exception as error:  # of any store or catalog: the other statements are noted all the same
            problems.append(f"{type(error).__name__}: {error}")
    return problems


def _record(context: BridgeContext, request: RecordRequest, statement: StatementJson) -> None:
    if statement["kind"] == "RENAME_COLUMN":
        statement = _renaming(statement)
    inputs = [named(context, each) for each in statement["inputs"]]
    commits = [named(context, each) for each in statement["run"]["commits"]]
    target = None if statement["target"] is None else named(context, statement["target"])
    if target is not None:
        target = _with_id(target)
    if target is None and not inputs and commits:
        target = commits[0]
    warehouses = {
        address_of(each.catalog): each.catalog
        for each in (target, *inputs)
        if each is not None and each.catalog is not None
    }
    if not warehouses:
        warehouses = _naming(context, target, inputs)
    if not warehouses:
        counts.add("elsewhere")
    run = _run(context, request, statement, target, inputs, commits)
    for address, catalog in warehouses.items():
        shape = _known.shape(statement, target, inputs, address)
        lineage_of(catalog, request["application"]).add(Record(shape, run))


def _naming(
    context: BridgeContext, target: NamedDataset | None, inputs: Sequence[NamedDataset]
) -> dict[str, Catalog]:
    """Return the warehouses that know of what a statement reads, or writes, outside of all of them."""
    outside = [each.seen_from("") for each in (target, *inputs) if each is not None]
    return naming(outside, context.principal)


def _renaming(statement: StatementJson) -> StatementJson:
    """Return a renaming as the copy of a column of its own table; the index knows them to be the same."""
    old, new = statement["columns"]
    inputs = [] if statement["target"] is None else [statement["target"]]
    return {**statement, "inputs": inputs, "edges": [(new, 0, old, 1)], "columns": [new]}


def _with_id(target: NamedDataset) -> NamedDataset:
    """Return the target with its table's id, which it has only now if the statement made the table."""
    if target.catalog is None or target.id or len(target.parts) != 2:
        return target
    name = ".".join(target.parts)
    if not target.catalog.table_exists(name):
        return target
    return replace(target, id=str(target.catalog.load_table(name).table_id))


class _Shapes:
    """Shapes of the last statements: a program runs many of the same shape, which take a fraction of the
    time then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: OrderedDict[bytes, Shape] = OrderedDict()

    def shape(
        self,
        statement: StatementJson,
        target: NamedDataset | None,
        inputs: Sequence[NamedDataset],
        address: str,
    ) -> Shape:
        """Return the shape of a statement, as records of the warehouse at `address` have it."""
        key = _key_of(statement, target, inputs, address)
        if key is None:
            return _shape(statement, target, inputs, address)
        with self._lock:
            found = self._shapes.pop(key, None)
        found = found or _shape(statement, target, inputs, address)
        with self._lock:
            self._shapes[key] = found
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.popitem(last=False)
        return found


_known = _Shapes()


def _key_of(
    statement: StatementJson, target: NamedDataset | None, inputs: Sequence[NamedDataset], address: str
) -> bytes | None:
    """Return what tells a shape from others; None if that is not all in the message, or very long."""
    datasets = [each for each in (target, *inputs) if each is not None]
    has_all = all(each.catalog is None or (each.id and each.schema is not None) for each in datasets)
    if not has_all or statement["kind"] in _CHANGES or len(statement["edges"]) > _MOST_EDGES:
        return None
    named_by = [
        (
            each.type,
            each.parts,
            each.catalog_name,
            each.id,
            each.schema,
            each.catalog and address_of(each.catalog),
        )
        for each in datasets
    ]
    content = [value for name, value in statement.items() if name not in ("run", "target", "inputs")]
    text = json.dumps([address, target is None, named_by, content, statement["run"]["stream"]])
    return blake2b(text.encode(), digest_size=16).digest()


def _shape(
    statement: StatementJson, target: NamedDataset | None, inputs: Sequence[NamedDataset], address: str
) -> Shape:
    carried = {number for number, each in enumerate(inputs) if target is not None and _same(each, target)}
    changes = statement["kind"] in ("MERGE", "UPDATE", "DELETE")
    edges = [
        (column, number, source, kinds)
        for column, number, source, kinds in statement["edges"]
        # Rows that a statement carries over come from where they are.
        if not (changes and number in carried and column == source and kinds & ~64 == 1)
    ]
    rows = tuple(sorted({(number, source, kinds) for number, source, kinds in statement["rows"]}))
    columns = tuple(statement["columns"])
    return Shape(
        kind=statement["kind"],
        target=None if target is None else target.seen_from(address),
        inputs=tuple(each.seen_from(address) for each in inputs),
        edges=tuple(sorted(set(edges))),
        rows=rows,
        columns=columns,
        views=tuple(statement["views"]),
        opaque=tuple(statement["opaque"]),
        cut=statement["cut"],
        name=statement["run"]["stream"] or "",
        ids=ids_of(statement["kind"], target, inputs, edges, rows, columns),
    )


def _same(one: NamedDataset, other: NamedDataset) -> bool:
    return (
        one.parts == other.parts and one.catalog is other.catalog and one.catalog_name == other.catalog_name
    )


def _run(
    context: BridgeContext,
    request: RecordRequest,
    statement: StatementJson,
    target: NamedDataset | None,
    inputs: Sequence[NamedDataset],
    commits: Sequence[NamedDataset],
) -> Run:
    run = statement["run"]
    written = [
        each.version
        for each in commits
        if each.version is not None
        and (target is None or each.parts == target.parts or each.parts[-1].startswith("__lockgate_staged_"))
    ]
    sql = run["sql"] or ""
    how = sql if run["literals"] == "keep" else mask_literals(sql[:_LONGEST])
    why = why_of(run["description"], run["reason"], keep_literals=run["literals"] == "keep")
    if run["stream"]:
        why["stream"] = run["stream"]
    count, error = run["count"], run["error"]
    return Run(
        started=run["started"],
        ended=run["ended"],
        count=count,
        failed=count if error and count == 1 else int(bool(error)),
        how=how[:_LONGEST],
        reads={number: each.version for number, each in enumerate(inputs) if each.version is not None},
        written=max(written, default=None),
        rows=run["rows_written"],
        bytes=run["bytes_written"],
        rows_read=run["rows_read"],
        bytes_read=run["bytes_read"],
        first_written=min(written) if len(written) > 1 else None,
        error=error,
        where={"application": request["application"], "host": socket.gethostname()},
        who={"user": context.principal.user},
        which={"lockgate": VERSION, "spark": request["spark"]},
        why=why,
    )


def named(context: BridgeContext, found: DatasetJson) -> NamedDataset:
    """Return a dataset of a message of the connector, with its warehouse if that is one of Lockgate's."""
    if found["type"] == "named":
        return _declared(context, found["parts"][0])
    catalog = _catalog(context, found["handle"])
    return NamedDataset(
        type=found["type"],
        parts=tuple(found["parts"]),
        catalog_name="" if catalog is not None else found["catalog"] or "",
        id=found["id"] or "",
        version=found["version"],
        catalog=catalog,
        schema=found["schema"],
    )


def _catalog(context: BridgeContext, handle: str | None) -> Catalog | None:
    if not handle:
        return None
    try:
        return context.catalog(handle)
    except NotFoundError:
        return None


def _declared(context: BridgeContext, text: str) -> NamedDataset:
    """Return what a program named: a table of a catalog of this session, or a path."""
    if "/" in text:
        return NamedDataset("file", (text,), "", "", None, None)
    try:
        parts, _ = split_name(text)
    except InputError:  # metadata of a file may hold any text
        return NamedDataset("file", (text,), "", "", None, None)
    catalog, rest = _catalog_of(context.spark, context, parts[0]), tuple(parts[1:])
    if catalog is None or len(rest) != 2:
        return NamedDataset("table", rest or tuple(parts), parts[0], "", None, None)
    name = ".".join(rest)
    table_id = str(catalog.load_table(name).table_id) if catalog.table_exists(name) else ""
    return NamedDataset("table", rest, "", table_id, None, catalog)


def _catalog_of(spark: Any, context: BridgeContext, name: str) -> Catalog | None:
    """Return the warehouse of a catalog of a session; None if it is not one of Lockgate's."""
    from lockgate.framework.spark import CATALOG_CLASS, loaded_catalog

    if spark.conf.get(f"spark.sql.catalog.{name}", None) != CATALOG_CLASS:
        return None
    return _catalog(context, loaded_catalog(spark, name).handle())
