"""The service: an Arrow Flight server that answers keys from partial caches of one table.

It answers any snapshot that still exists, and a cache follows the newest one that was asked for. It knows
that askers have the secret, not who they are: so it serves no table with encrypted columns, and none under
policies.
"""

from __future__ import annotations

import hmac
import json
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight

from lockgate.errors import InputError, SnapshotNotFoundError
from lockgate.lookup.partial.choice import check_plaintext, check_servable
from lockgate.lookup.partial.partial_cache import PartialCache, SnapshotName
from lockgate.lookup.remote.questions import (
    ANSWER_SCHEMA,
    HEADER,
    asked_lookup,
    asked_table,
    snapshot_in,
)
from lockgate.lookup.spec.failures import error_to_json
from lockgate.lookup.spec.planned_schema import with_nulls

if TYPE_CHECKING:
    from collections.abc import Callable

    from lockgate.framework.store import Table
    from lockgate.lookup.remote.certificate import Certificate

# Lookups with other columns or conditions that are answered at the same time, each with a cache of its own.
_MOST_LOOKUPS = 8
_MOST_DESCRIPTOR_BYTES = 1 << 20
_MOST_NAMES = 64


class QueryService(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Answers askers who show the token; `load` opens the table as it is now."""

    def __init__(self, load: Callable[[], Table], address: str, token: str, certificate: Certificate) -> None:
        super().__init__(
            f"grpc+tls://{address}",
            tls_certificates=[(certificate.certificate.encode(), certificate.key)],
            middleware={"secret": _Doorkeeper(token)},
        )
        self._load = load
        self._lookups: OrderedDict[bytes, _AnsweredLookup] = OrderedDict()
        self._lock = threading.Lock()

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Answer the batches of one exchange, in their order."""
        writer.begin(ANSWER_SCHEMA)
        for chunk in reader:
            try:
                lookup = self._lookup(bytes(descriptor.command or b""))
                asked = snapshot_in(b"" if chunk.app_metadata is None else chunk.app_metadata.to_pybytes())
                name = SnapshotName(asked["snapshot"], asked["fingerprint"])
                rows = pa.record_batch([lookup.find(name, chunk.data)], schema=ANSWER_SCHEMA)
                metadata = json.dumps(asked)
            except Exception as error:  # the service must go on, and the asker hear of it
                rows = pa.record_batch([pa.array([], pa.large_binary())], schema=ANSWER_SCHEMA)
                metadata = json.dumps({"error": error_to_json(error)})
            writer.write_with_metadata(rows, metadata.encode())

    def _lookup(self, descriptor: bytes) -> _AnsweredLookup:
        if len(descriptor) > _MOST_DESCRIPTOR_BYTES:
            raise InputError(f"a lookup is described in {len(descriptor):,} bytes, which nobody needs")
        with self._lock:
            found = self._lookups.get(descriptor)
            if found is None:
                found = self._lookups[descriptor] = _AnsweredLookup(self._load, descriptor)
            self._lookups.move_to_end(descriptor)
            while len(self._lookups) > _MOST_LOOKUPS:
                self._lookups.popitem(last=False)
            return found


class _AnsweredLookup:
    """One lookup and its cache, which follows the snapshots that are asked for."""

    def __init__(self, load: Callable[[], Table], descriptor: bytes) -> None:
        newest = load()
        self._load = load
        self._asked = asked_lookup(descriptor, newest)
        table, self._layout = asked_table(self._asked, newest)
        self._table = with_nulls(table)
        check_plaintext(newest)
        check_servable(self._table, self._asked.spec)
        self._cache = PartialCache(self._table, self._asked.spec, self._layout)
        self._known: OrderedDict[SnapshotName, None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: SnapshotName, batch: pa.RecordBatch) -> pa.Array:
        """Return the encoded rows of keys, empty where there is none."""
        wanted = self._layout.key_schema
        if batch.schema.names != wanted.names or batch.schema.types != wanted.types:
            raise InputError(f"a query service is asked by {wanted.names}, not by {batch.schema.names}")
        if any(column.null_count for column in batch.columns):
            raise InputError("a query service is asked for a key that is null, which matches nothing")
        self._follow(name)
        return pa.array(
            self._cache.find(name, self._layout.key_codec.encode(batch.columns).rows), pa.large_binary()
        )

    def _follow(self, name: SnapshotName) -> None:
        with self._lock:
            if name in self._known:
                return
            # Somebody may have encrypted a column since, or made another table of this name.
            check_plaintext(newest := self._load())
            check_servable(asked_table(self._asked, newest)[0], self._asked.spec)
            snapshot = self._table.snapshot(name.id)
            if SnapshotName.of(snapshot) != name:
                raise SnapshotNotFoundError(
                    f"snapshot {name.id} of {self._table.identifier} was rolled back, and another has its "
                    "number since"
                )
            self._cache.advance(snapshot)
            self._known[name] = None
            while len(self._known) > _MOST_NAMES:
                self._known.popitem(last=False)


class _Doorkeeper(flight.ServerMiddlewareFactory):  # type: ignore[misc]  # pyarrow has no types
    """Refuses every call without the token, before anything of it is read."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._wanted = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: Any) -> None:
        """Let the call in, or raise FlightUnauthenticatedError."""
        shown = [str(value) for name, values in headers.items() if name.lower() == HEADER for value in values]
        if len(shown) != 1 or not hmac.compare_digest(shown[0].encode(), self._wanted):
            raise flight.FlightUnauthenticatedError("this query service has another secret")
