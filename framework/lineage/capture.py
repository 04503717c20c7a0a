"""Records from the connector: whose warehouse they belong to, by which names, and what may stand in them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import NotFoundError
from lockgate.framework.lineage.model.literals import mask_literals
from lockgate.framework.lineage.model.names import joined, split_name
from lockgate.framework.lineage.model.records import Dataset, Record, Run, Shape
from lockgate.framework.lineage.warehouse import address_of, lineage_of
from lockgate.framework.version import VERSION

if TYPE_CHECKING:
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.store.catalog import Catalog

# Longer texts of statements are cut: generated ones may have megabytes.
_LONGEST = 20_000


@dataclass(frozen=True)
class _Named:
    """A dataset as the connector names it, with the catalog of its warehouse if that is one of Lockgate's."""

    type: str
    parts: tuple[str, ...]
    catalog_name: str
    id: str
    version: int | None
    catalog: Catalog | None

    def seen_from(self, warehouse: str) -> Dataset:
        """Return the dataset as records of a warehouse name it."""
        if self.catalog is None:
            name = self.parts[0] if self.type not in ("table", "view") else joined(self.parts)
            return Dataset(name, self.type, self.catalog_name, self.id)
        own = address_of(self.catalog)
        return Dataset(joined(self.parts), self.type, "" if own == warehouse else own, self.id)


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


def record(context: BridgeContext, request: dict[str, Any]) -> object:
    """Answer `lineage.record`: note one statement in each warehouse that it reads or writes."""
    inputs = [_named(context, each) for each in request.get("inputs", ())]
    commits = [_named(context, each) for each in request["run"].get("commits", ())]
    target = None if request.get("target") is None else _named(context, request["target"])
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
        counts.add("elsewhere")
    run = _run(context, request, target, inputs, commits)
    for address, catalog in warehouses.items():
        shape = _shape(request, target, inputs, address)
        lineage_of(catalog, request.get("application")).journal.add(Record(shape, run))
    return {"warehouses": len(warehouses)}


def _with_id(target: _Named) -> _Named:
    """Return the target with its table's id, which it has only now if the statement made the table."""
    if target.catalog is None or target.id or len(target.parts) != 2:
        return target
    name = ".".join(target.parts)
    if not target.catalog.table_exists(name):
        return target
    return replace(target, id=str(target.catalog.load_table(name).table_id))


def _shape(
    request: Mapping[str, Any], target: _Named | None, inputs: Sequence[_Named], address: str
) -> Shape:
    carried = {number for number, each in enumerate(inputs) if target is not None and _same(each, target)}
    changes = request["kind"] in ("MERGE", "UPDATE", "DELETE")
    edges = [
        (str(column), int(number), str(source), int(kinds))
        for column, number, source, kinds in request.get("edges", ())
        # Rows that a statement carries over come from where they are.
        if not (changes and number in carried and column == source and kinds & ~64 == 1)
    ]
    return Shape(
        kind=str(request["kind"]),
        target=None if target is None else target.seen_from(address),
        inputs=tuple(each.seen_from(address) for each in inputs),
        edges=tuple(sorted(set(edges))),
        rows=tuple(sorted({(int(a), str(b), int(c)) for a, b, c in request.get("rows", ())})),
        columns=tuple(map(str, request.get("columns", ()))),
        views=tuple(map(str, request.get("views", ()))),
        opaque=tuple(map(str, request.get("opaque", ()))),
        cut=bool(request.get("cut", False)),
        name=str(request["run"].get("stream") or ""),
    )


def _same(one: _Named, other: _Named) -> bool:
    return (
        one.parts == other.parts and one.catalog is other.catalog and one.catalog_name == other.catalog_name
    )


def _run(
    context: BridgeContext,
    request: Mapping[str, Any],
    target: _Named | None,
    inputs: Sequence[_Named],
    commits: Sequence[_Named],
) -> Run:
    run = request["run"]
    written = [
        each.version
        for each in commits
        if each.version is not None
        and (target is None or each.parts == target.parts or each.parts[-1].startswith("__lockgate_staged_"))
    ]
    sql = run.get("sql") or ""
    how = sql if run.get("literals") == "keep" else mask_literals(sql[:_LONGEST])
    why = {"job": run.get("description"), "reason": run.get("reason"), "stream": run.get("stream")}
    # Spark describes a job by the text of the statement, or where in a program it began.
    if run.get("literals") != "keep" and why["job"]:
        why["job"] = mask_literals(str(why["job"])[:500])
    count = int(run.get("count", 1))
    return Run(
        started=int(run["started"]),
        ended=int(run["ended"]),
        count=count,
        failed=count if run.get("error") and count == 1 else int(bool(run.get("error"))),
        how=how[:_LONGEST],
        reads={number: each.version for number, each in enumerate(inputs) if each.version is not None},
        written=max(written, default=None),
        first_written=min(written) if len(written) > 1 else None,
        error=run.get("error"),
        where={"application": str(request.get("application", "")), "host": socket.gethostname()},
        who={"user": context.principal.user},
        which={"lockgate": VERSION, "spark": str(request.get("spark", ""))},
        why={key: str(value) for key, value in why.items() if value},
    )


def _named(context: BridgeContext, found: Mapping[str, Any]) -> _Named:
    version = found.get("version")
    catalog = _catalog(context, found.get("handle"))
    if found["type"] == "named":
        return _declared(context, str(found["name"]))
    parts = tuple(map(str, found["parts"])) if "parts" in found else (str(found["name"]),)
    return _Named(
        type=str(found["type"]),
        parts=parts,
        catalog_name="" if catalog is not None else str(found.get("catalog") or ""),
        id=str(found.get("id") or ""),
        version=None if version is None else int(version),
        catalog=catalog,
    )


def _catalog(context: BridgeContext, handle: object) -> Catalog | None:
    if not handle:
        return None
    try:
        return context.catalog(str(handle))
    except NotFoundError:
        return None


def _declared(context: BridgeContext, text: str) -> _Named:
    """Return what a program named: a table of a catalog of this session, or a path."""
    if "/" in text:
        return _Named("file", (text,), "", "", None, None)
    parts, _ = split_name(text)
    catalog, rest = _catalog_of(context.spark, context, parts[0]), tuple(parts[1:])
    if catalog is None or len(rest) != 2:
        return _Named("table", rest or tuple(parts), parts[0], "", None, None)
    name = ".".join(rest)
    table_id = str(catalog.load_table(name).table_id) if catalog.table_exists(name) else ""
    return _Named("table", rest, "", table_id, None, catalog)


def _catalog_of(spark: Any, context: BridgeContext, name: str) -> Catalog | None:
    """Return the warehouse of a catalog of a session; None if it is not one of Lockgate's."""
    from lockgate.framework.spark.session import CATALOG_CLASS, loaded_catalog

    if spark.conf.get(f"spark.sql.catalog.{name}", None) != CATALOG_CLASS:
        return None
    return _catalog(context, loaded_catalog(spark, name).handle())
