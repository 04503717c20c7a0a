"""Copies of encrypted columns in the clear that a statement would copy further: warned of or refused.

`encryption.on-plaintext` judges one statement, which reads an encrypted column. To the next statement an
allowed copy is a column like any other; only lineage shows its origin.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.errors import LockgateError, PlaintextError, PlaintextWarning, warn_user
from lockgate.framework.lineage.capture import NamedDataset, named
from lockgate.framework.lineage.lineage_messages import LineageFilesFlowRequest, LineageFlowRequest
from lockgate.framework.lineage.lineage_options import ON_PLAINTEXT, choice_of
from lockgate.framework.lineage.model.names import column_path, joined, split_name
from lockgate.framework.lineage.pending_statements import wait_for_this_process
from lockgate.framework.lineage.questions.origins import origins
from lockgate.framework.lineage.questions.secrets import keys_by_column, keys_in
from lockgate.framework.lineage.questions.sensitivity import key_of
from lockgate.framework.lineage.readable import Readable
from lockgate.framework.lineage.warehouse_lineage import lineage_of

if TYPE_CHECKING:
    import sqlite3

    from lockgate.framework.lineage.questions.vertices import Vertex
    from lockgate.framework.plugins import BridgeContext
    from lockgate.framework.spark import OperationContext
    from lockgate.framework.store import Catalog

# Copies that a message names.
_NAMED = 10
# Seconds that a cached answer may serve for warnings; refusals always ask again.
_FRESH = 60.0
_MOST_KNOWN = 10_000
# Waits for statements that have just ended, in milliseconds: a warning is not worth a long one.
_WARN_WAIT, _REFUSE_WAIT = 1_000, 30_000


@dataclass(frozen=True)
class _Target:
    """What is written: its name, its options, its encrypted columns with their keys, and its warehouse."""

    name: str
    options: Mapping[str, str]
    keys: Mapping[str, str]
    catalog: Catalog | None
    table_id: str = ""


@dataclass(frozen=True)
class _Source:
    """A column that is read, or declared by a program to be a source."""

    dataset: NamedDataset
    column: str
    is_declared: bool


@dataclass(frozen=True)
class _EncryptedOrigin:
    """An encrypted column that a source comes from, or is, as the one who asks may see it."""

    key: str
    name: str
    is_source: bool = False


def check_flow(context: Any, request: LineageFlowRequest) -> bool:
    """Judge a query that writes into a table; PlaintextError, before a row is written, where that is
    chosen.
    """
    asked: OperationContext = context  # the connector asks by no other
    table = asked.table()
    name = f"{asked.catalog_name()}.{request['target'] or table.identifier}"
    target = _Target(
        name, table.schema.options, keys_in(table), asked.requested_catalog(), str(table.table_id)
    )
    return _judge(context, request, target)


def check_flow_to_files(context: BridgeContext, request: LineageFilesFlowRequest) -> bool:
    """Judge a query that writes into files, or hands rows to a sink, as `check_flow` does."""
    names = [column_path(text)[0] for text in request["columns"]]
    keys = keys_by_column(request["encrypt"] or "", names)
    return _judge(context, request, _Target(request["path"], {}, keys, None))


def _judge(
    context: BridgeContext, request: LineageFlowRequest | LineageFilesFlowRequest, target: _Target
) -> bool:
    columns = {
        column: [
            _Source(inputs[number], name, request["inputs"][number]["type"] == "named")
            for number, name in found
        ]
        for inputs in [[named(context, each) for each in request["inputs"]]]
        for column, found in request["columns"].items()
    }
    if _was_judged(request["query"], target.name):
        return True
    choice = _choice(target, columns)
    if choice == "allow":
        return True
    found = dict(_flows(target, columns, is_fresh=choice == "refuse"))
    if found:
        text = _message(target.name, found)
        if choice == "refuse":
            raise PlaintextError(f"{text}; refused by {ON_PLAINTEXT.key!r}")
        warn_user(text, PlaintextWarning)
    _note(request["query"], target.name)
    return True


def _choice(target: _Target, columns: Mapping[str, Sequence[_Source]]) -> str:
    """Return the choice of the table, the session or the warehouse: of files, of one that is read."""
    read = (each.dataset.catalog for sources in columns.values() for each in sources)
    catalog = target.catalog or next(filter(None, read), None)
    return choice_of(ON_PLAINTEXT, target.options, {} if catalog is None else catalog.options, default="warn")


def _flows(
    target: _Target, columns: Mapping[str, Sequence[_Source]], *, is_fresh: bool
) -> Iterator[tuple[str, list[tuple[_Source, _EncryptedOrigin]]]]:
    knowledge = _Knowledge(target.catalog, is_fresh=is_fresh)
    for column, sources in columns.items():
        own = key_of(target.keys, column)
        found = [
            (source, origin)
            for source in sources
            if not _stays(target, column, source)
            for origin in knowledge.of(source)
            if origin.key != own
        ]
        if found:
            yield column, found


def _stays(target: _Target, column: str, source: _Source) -> bool:
    """Return whether the values are in that column of the table already, as after an UPDATE of others."""
    is_same = source.dataset.id == target.table_id and source.dataset.catalog is target.catalog
    return bool(target.table_id) and is_same and source.column.lower() == column.lower()


def _message(target: str, found: Mapping[str, Sequence[tuple[_Source, _EncryptedOrigin]]]) -> str:
    flows = [(column, *flow) for column, all_ in found.items() for flow in all_]
    texts = list(dict.fromkeys(
        f"{column} (from {source.dataset.text}.{source.column}, "
        f"{'as the program declares' if origin.is_source else f'a copy of {origin.name}'})"
        for column, source, origin in flows
    ))  # fmt: skip
    more = f" and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    way = "" if all(origin.is_source for *_, origin in flows) else ", from copies of them"
    return (
        f"{target} gets values of encrypted columns in the clear{way}: "
        f"{'; '.join(texts[:_NAMED])}{more}: CALL sys.plaintext() shows all copies"
    )


class _Knowledge:
    """Origins of the columns that one statement reads, from what this process knew a moment ago if it may."""

    def __init__(self, catalog: Catalog | None, *, is_fresh: bool) -> None:
        self._catalog = catalog
        self._is_fresh = is_fresh
        self._has_waited = False

    def of(self, source: _Source) -> Sequence[_EncryptedOrigin]:
        # Lineage of files is where they were read and written: in the warehouse of the target.
        catalog = source.dataset.catalog or self._catalog
        if catalog is None or source.dataset.type not in ("table", "file"):
            return ()
        key = (catalog.warehouse, catalog.principal, source.dataset.parts, source.dataset.id,
               source.dataset.version, source.column, source.is_declared)  # fmt: skip
        found = None if self._is_fresh else _known.get(key)
        if found is None:
            found = self._asked(catalog, source)
            _known.put(key, found)
        return found

    def _asked(self, catalog: Catalog, source: _Source) -> Sequence[_EncryptedOrigin]:
        self._wait()
        lineage = lineage_of(catalog)
        itself = tuple(_itself(source)) if source.is_declared else ()
        if itself or not lineage.is_ready():
            return itself
        with lineage.peeking() as database:
            return tuple(_found(database, catalog, source))

    def _wait(self) -> None:
        if not self._has_waited:
            wait_for_this_process(_REFUSE_WAIT if self._is_fresh else _WARN_WAIT)
            self._has_waited = True


def _found(database: sqlite3.Connection, catalog: Catalog, source: _Source) -> Iterator[_EncryptedOrigin]:
    may_read, keys = Readable(catalog), _Keys(database, catalog)
    for dataset in _datasets(database, source.dataset):
        for origin in origins(database, dataset, source.column, keys):
            shown = origin.vertex.qualified if may_read(origin.vertex) else "a column that is hidden from you"
            yield _EncryptedOrigin(origin.key, shown)


def _itself(source: _Source) -> Iterator[_EncryptedOrigin]:
    """Yield a declared column that is encrypted: no plan reads it, so no plan shows its mark."""
    if source.dataset.catalog is None or source.dataset.type != "table":
        return
    try:
        table = source.dataset.catalog.load_table(".".join(source.dataset.parts))
    except LockgateError:  # it was dropped, and its keys with it
        return
    key = key_of(keys_in(table), source.column)
    if key is not None:
        yield _EncryptedOrigin(key, source.dataset.text, is_source=True)


def _datasets(database: sqlite3.Connection, dataset: NamedDataset) -> Iterable[int]:
    name = joined(dataset.parts) if dataset.type == "table" else dataset.parts[0]
    rows = database.execute(
        "SELECT id FROM dataset WHERE namespace = '' AND name = ? AND uid IN ('', ?)", (name, dataset.id)
    )
    return [number for (number,) in rows.fetchall()]


class _Keys:
    """The keys of tables of the warehouse, each loaded once; other datasets encrypt nothing."""

    def __init__(self, database: sqlite3.Connection, catalog: Catalog) -> None:
        self._database, self._catalog = database, catalog
        self._known: dict[int, Mapping[str, str]] = {}

    def __call__(self, vertex: Vertex) -> Mapping[str, str]:
        if vertex.namespace or vertex.type != "table":
            return {}
        if vertex.dataset not in self._known:
            self._known[vertex.dataset] = self._loaded(vertex)
        return self._known[vertex.dataset]

    def _loaded(self, vertex: Vertex) -> Mapping[str, str]:
        parts, _ = split_name(vertex.name)
        query = "SELECT uid FROM dataset WHERE id = ?"
        [uid] = self._database.execute(query, (vertex.dataset,)).fetchone()
        try:
            table = self._catalog.load_table(".".join(parts))
        except LockgateError:  # it was dropped, and its keys with it
            return {}
        return keys_in(table) if uid in ("", str(table.table_id)) else {}


class _Recent:
    """Origins by column and snapshot of its table, forgotten after a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[Any, ...], tuple[float, Sequence[_EncryptedOrigin]]] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> Sequence[_EncryptedOrigin] | None:
        with self._lock:
            at, found = self._entries.get(key, (0.0, None))
            return found if time.monotonic() - at < _FRESH else None

    def put(self, key: tuple[Any, ...], found: Sequence[_EncryptedOrigin]) -> None:
        with self._lock:
            self._entries[key] = (time.monotonic(), found)
            if len(self._entries) > _MOST_KNOWN:
                self._entries.popitem(last=False)


_known = _Recent()

# Streams that were judged, so that not each of their batches is; the oldest of very many are forgotten.
_judged: deque[tuple[str, str]] = deque(maxlen=1024)


def _was_judged(query: str | None, target: str) -> bool:
    return query is not None and (query, target) in _judged


def _note(query: str | None, target: str) -> None:
    if query is not None and (query, target) not in _judged:
        _judged.append((query, target))
