"""Check before a statement copies an exposure of an encrypted column: warn or refuse.

`encryption.on-plaintext` only checks statements that read an encrypted column. An allowed copy looks like any
other column to the next statement; only lineage shows its origin.
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

# The largest number of copies in a message.
_MAX_NAMED = 10
# Seconds that a cached answer may serve for warnings; refusals always ask again.
_FRESH = 60.0
_MAX_ENTRIES = 10_000
# Milliseconds to wait for ended statements; a warning is not worth a long wait.
_WARN_WAIT, _REFUSE_WAIT = 1_000, 30_000


@dataclass(frozen=True)
class _Target:
    """The target of a statement: name, options, keys of encrypted columns, and warehouse."""

    name: str
    options: Mapping[str, str]
    keys: Mapping[str, str]
    catalog: Catalog | None
    table_id: str = ""


@dataclass(frozen=True)
class _Source:
    """A source column, read by the statement or declared by the program."""

    dataset: NamedDataset
    column: str
    is_declared: bool


@dataclass(frozen=True)
class _EncryptedOrigin:
    """An encrypted column that is the source or its origin; `name` hides it from users without rights."""

    key: str
    name: str
    is_source: bool = False


def check_flow(context: Any, request: LineageFlowRequest) -> bool:
    """Check a query that writes into a table; PlaintextError before any row is written if an option refuses
    it.
    """
    operation: OperationContext = context  # the connector sends only these
    table = operation.table()
    name = f"{operation.catalog_name()}.{request['target'] or table.identifier}"
    target = _Target(
        name, table.schema.options, keys_in(table), operation.requested_catalog(), str(table.table_id)
    )
    return _check(context, request, target)


def check_flow_to_files(context: BridgeContext, request: LineageFilesFlowRequest) -> bool:
    """Check a query that writes files or to a sink, as `check_flow` does."""
    names = [column_path(text)[0] for text in request["columns"]]
    keys = keys_by_column(request["encrypt"] or "", names)
    return _check(context, request, _Target(request["path"], {}, keys, None))


def _check(
    context: BridgeContext, request: LineageFlowRequest | LineageFilesFlowRequest, target: _Target
) -> bool:
    columns = {
        column: [
            _Source(inputs[number], name, request["inputs"][number]["type"] == "named")
            for number, name in pairs
        ]
        for inputs in [[named(context, each) for each in request["inputs"]]]
        for column, pairs in request["columns"].items()
    }
    if _is_checked(request["query"], target.name):
        return True
    choice = _choice(target, columns)
    if choice == "allow":
        return True
    flows = dict(_exposing_flows(target, columns, is_fresh=choice == "refuse"))
    if flows:
        text = _message(target.name, flows)
        if choice == "refuse":
            raise PlaintextError(f"{text}; refused by {ON_PLAINTEXT.key!r}")
        warn_user(text, PlaintextWarning)
    _mark_checked(request["query"], target.name)
    return True


def _choice(target: _Target, columns: Mapping[str, Sequence[_Source]]) -> str:
    """Return the choice of the table, session or warehouse; for files, of the first warehouse
    that is read.
    """
    read = (each.dataset.catalog for sources in columns.values() for each in sources)
    catalog = target.catalog or next(filter(None, read), None)
    return choice_of(ON_PLAINTEXT, target.options, {} if catalog is None else catalog.options, default="warn")


def _exposing_flows(
    target: _Target, columns: Mapping[str, Sequence[_Source]], *, is_fresh: bool
) -> Iterator[tuple[str, list[tuple[_Source, _EncryptedOrigin]]]]:
    origin_cache = _Origins(target.catalog, is_fresh=is_fresh)
    for column, sources in columns.items():
        target_key = key_of(target.keys, column)
        source_origins = [
            (source, origin)
            for source in sources
            if not _is_unchanged(target, column, source)
            for origin in origin_cache.of(source)
            if origin.key != target_key
        ]
        if source_origins:
            yield column, source_origins


def _is_unchanged(target: _Target, column: str, source: _Source) -> bool:
    """Return whether the source is the target column itself, as in an UPDATE of other columns."""
    is_same = source.dataset.id == target.table_id and source.dataset.catalog is target.catalog
    return bool(target.table_id) and is_same and source.column.lower() == column.lower()


def _message(target: str, found: Mapping[str, Sequence[tuple[_Source, _EncryptedOrigin]]]) -> str:
    flows = [(column, *flow) for column, all_ in found.items() for flow in all_]
    texts = list(dict.fromkeys(
        f"{column} (from {source.dataset.text}.{source.column}, "
        f"{'as the program declares' if origin.is_source else f'a copy of {origin.name}'})"
        for column, source, origin in flows
    ))  # fmt: skip
    more = f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    origin_text = "" if all(origin.is_source for *_, origin in flows) else ", from copies of them"
    return (
        f"{target} gets values of encrypted columns in the clear{origin_text}: "
        f"{'; '.join(texts[:_MAX_NAMED])}{more}: CALL sys.plaintext() shows all copies"
    )


class _Origins:
    """The encrypted origins of the columns of one statement, cached for a minute unless `is_fresh`."""

    def __init__(self, catalog: Catalog | None, *, is_fresh: bool) -> None:
        self._catalog = catalog
        self._is_fresh = is_fresh
        self._has_waited = False

    def of(self, source: _Source) -> Sequence[_EncryptedOrigin]:
        # The warehouse of the target has the lineage of files.
        catalog = source.dataset.catalog or self._catalog
        if catalog is None or source.dataset.type not in ("table", "file"):
            return ()
        key = (catalog.warehouse, catalog.principal, source.dataset.parts, source.dataset.id,
               source.dataset.version, source.column, source.is_declared)  # fmt: skip
        found = None if self._is_fresh else _recent.get(key)
        if found is None:
            found = self._read(catalog, source)
            _recent.put(key, found)
        return found

    def _read(self, catalog: Catalog, source: _Source) -> Sequence[_EncryptedOrigin]:
        self._wait()
        lineage = lineage_of(catalog)
        declared = tuple(_encrypted_source(source)) if source.is_declared else ()
        if declared or not lineage.is_ready():
            return declared
        with lineage.peeking() as database:
            return tuple(_recorded_origins(database, catalog, source))

    def _wait(self) -> None:
        if not self._has_waited:
            wait_for_this_process(_REFUSE_WAIT if self._is_fresh else _WARN_WAIT)
            self._has_waited = True


def _recorded_origins(
    database: sqlite3.Connection, catalog: Catalog, source: _Source
) -> Iterator[_EncryptedOrigin]:
    may_read, keys = Readable(catalog), _Keys(database, catalog)
    for dataset in _datasets(database, source.dataset):
        for origin in origins(database, dataset, source.column, keys):
            shown = origin.vertex.qualified if may_read(origin.vertex) else "a column that is hidden from you"
            yield _EncryptedOrigin(origin.key, shown)


def _encrypted_source(source: _Source) -> Iterator[_EncryptedOrigin]:
    """Yield a declared source that is encrypted itself: no plan reads it, so no plan shows its encryption."""
    if source.dataset.catalog is None or source.dataset.type != "table":
        return
    try:
        table = source.dataset.catalog.load_table(".".join(source.dataset.parts))
    except LockgateError:  # a dropped table has no keys
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
    """The keys of tables of the warehouse, each loaded once; other datasets have none."""

    def __init__(self, database: sqlite3.Connection, catalog: Catalog) -> None:
        self._database, self._catalog = database, catalog
        self._keys: dict[int, Mapping[str, str]] = {}

    def __call__(self, vertex: Vertex) -> Mapping[str, str]:
        if vertex.namespace or vertex.type != "table":
            return {}
        if vertex.dataset not in self._keys:
            self._keys[vertex.dataset] = self._load(vertex)
        return self._keys[vertex.dataset]

    def _load(self, vertex: Vertex) -> Mapping[str, str]:
        parts, _ = split_name(vertex.name)
        query = "SELECT uid FROM dataset WHERE id = ?"
        [uid] = self._database.execute(query, (vertex.dataset,)).fetchone()
        try:
            table = self._catalog.load_table(".".join(parts))
        except LockgateError:  # a dropped table has no keys
            return {}
        return keys_in(table) if uid in ("", str(table.table_id)) else {}


class _Recent:
    """A cache of origins by column and snapshot, which expire after a minute."""

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
            if len(self._entries) > _MAX_ENTRIES:
                self._entries.popitem(last=False)


_recent = _Recent()

# Checked streams, so that not each batch is checked again; only the latest ones are kept.
_checked_streams: deque[tuple[str, str]] = deque(maxlen=1024)


def _is_checked(query: str | None, target: str) -> bool:
    return query is not None and (query, target) in _checked_streams


def _mark_checked(query: str | None, target: str) -> None:
    if query is not None and (query, target) not in _checked_streams:
        _checked_streams.append((query, target))
