"""Conversion of the connector's messages to lineage records of their warehouses."""

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

# Longer statements are truncated: generated ones may have megabytes.
_MAX_TEXT = 20_000
# Size of the cache of shapes, and the largest number of edges of a cached shape.
_MOST_SHAPES = 200
_MOST_EDGES = 5_000
# Statements that change the schema with which Spark analysed them.
_CHANGES = frozenset({"RENAME_COLUMN", "RENAME_TABLE", "DROP_COLUMNS", "ADD_COLUMNS", "ALTER_COLUMNS"})


@dataclass(frozen=True)
class NamedDataset:
    """A dataset of a message, with the catalog of its warehouse if it is one of Lockgate's."""

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
        """Return the dataset with its name in records of a warehouse."""
        if self.catalog is None:
            name = self.parts[0] if self.type not in ("table", "view") else joined(self.parts)
            return Dataset(name, self.type, self.catalog_name, self.id)
        own = address_of(self.catalog)
        # A branch has the id of its table, but different rows.
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
    """Answer `lineage.record`: record statements in each warehouse that they read or write, if any.

    Return the errors, a text for each statement that is not recorded.
    """
    problems = []
    for statement in request["statements"]:
        try:
            _record(context, request, statement)
        except Exception as error:  # a store or catalog may fail: record the other statements
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
        shape = _shapes.shape(statement, target, inputs, address)
        lineage_of(catalog, request["application"]).add(Record(shape, run))


def _naming(
    context: BridgeContext, target: NamedDataset | None, inputs: Sequence[NamedDataset]
) -> dict[str, Catalog]:
    """Return the warehouses whose lineage contains an external dataset of the statement."""
    outside = [each.seen_from("") for each in (target, *inputs) if each is not None]
    return naming(outside, context.principal)


def _renaming(statement: StatementJson) -> StatementJson:
    """Return a renaming as a copy within its table; the index treats both names as one column."""
    old, new = statement["columns"]
    inputs = [] if statement["target"] is None else [statement["target"]]
    return {**statement, "inputs": inputs, "edges": [(new, 0, old, 1)], "columns": [new]}


def _with_id(target: NamedDataset) -> NamedDataset:
    """Return the target with its table's id, which a new table only has after the statement."""
    if target.catalog is None or target.id or len(target.parts) != 2:
        return target
    name = ".".join(target.parts)
    if not target.catalog.table_exists(name):
        return target
    return replace(target, id=str(target.catalog.load_table(name).table_id))


class _Shapes:
    """A cache of the shapes of recent statements, because programs repeat statements of the same shape."""

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
        """Return the shape of a statement in records of the warehouse at `address`."""
        key = _cache_key(statement, target, inputs, address)
        if key is None:
            return _shape(statement, target, inputs, address)
        with self._lock:
            cached_shape = self._shapes.pop(key, None)
        cached_shape = cached_shape or _shape(statement, target, inputs, address)
        with self._lock:
            self._shapes[key] = cached_shape
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.popitem(last=False)
        return cached_shape


_shapes = _Shapes()


def _cache_key(
    statement: StatementJson, target: NamedDataset | None, inputs: Sequence[NamedDataset], address: str
) -> bytes | None:
    """Return the cache key of a shape; None if the message does not determine the shape, or is very long."""
    datasets = [each for each in (target, *inputs) if each is not None]
    has_all = all(each.catalog is None or (each.id and each.schema is not None) for each in datasets)
    if not has_all or statement["kind"] in _CHANGES or len(statement["edges"]) > _MOST_EDGES:
        return None
    dataset_keys = [
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
    text = json.dumps([address, target is None, dataset_keys, content, statement["run"]["stream"]])
    return blake2b(text.encode(), digest_size=16).digest()


def _shape(
    statement: StatementJson, target: NamedDataset | None, inputs: Sequence[NamedDataset], address: str
) -> Shape:
    inputs_of_target = {
        number for number, each in enumerate(inputs) if target is not None and _same(each, target)
    }
    changes = statement["kind"] in ("MERGE", "UPDATE", "DELETE")
    edges = [
        (column, number, source, kinds)
        for column, number, source, kinds in statement["edges"]
        # Unchanged values in rows of the target are no lineage.
        if not (changes and number in inputs_of_target and column == source and kinds & ~64 == 1)
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
    how = sql if run["literals"] == "keep" else mask_literals(sql[:_MAX_TEXT])
    why = why_of(run["description"], run["reason"], keep_literals=run["literals"] == "keep")
    if run["stream"]:
        why["stream"] = run["stream"]
    count, error = run["count"], run["error"]
    return Run(
        started=run["started"],
        ended=run["ended"],
        count=count,
        failed=count if error and count == 1 else int(bool(error)),
        how=how[:_MAX_TEXT],
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
