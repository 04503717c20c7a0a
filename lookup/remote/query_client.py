"""Asking a query service: a reader of rows by their keys, in place of one that reads the table's files."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.errors import AccessDeniedError, LockgateError, LookupCacheError
from lockgate.lookup.partial.key_reader import KeyReader
from lockgate.lookup.partial.partial_cache import SnapshotName
from lockgate.lookup.remote.certificate import SERVICE_NAME
from lockgate.lookup.remote.questions import HEADER, SnapshotJson, answer_in, descriptor_of
from lockgate.lookup.remote.registration import Registration, registered
from lockgate.lookup.remote.secret import Secret
from lockgate.lookup.spec.failures import error_from_json
from lockgate.lookup.spec.lookup_options import lookup_options

if TYPE_CHECKING:
    from lockgate.framework.store import Snapshot, Table
    from lockgate.lookup.codec.byte_rows import Rows
    from lockgate.lookup.spec.lookup_spec import CacheLayout, LookupSpec

# A killed service is started again within seconds; one whose host is lost may take longer.
WAIT_SECONDS = 60.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
# The most keys of a question, and the time that the answer to one may take.
_MOST_KEYS = 1 << 16
_ANSWER_SECONDS = 300.0


class ServiceReader:
    """Asks the query service that is registered for a table; methods may be called from any thread."""

    def __init__(self, table: Table, spec: LookupSpec, layout: CacheLayout, secret: Secret) -> None:
        self._table = table
        self._secret = secret
        self._layout = layout
        self._descriptor = descriptor_of(table, spec, layout)
        self._connection: tuple[Registration, Any] | None = None
        self._lock = threading.Lock()

    def read(self, snapshot: Snapshot, keys: Rows) -> dict[bytes, bytes]:
        """Return the encoded rows of encoded keys, by key, as `KeyReader.read` does.

        A service that ends is asked again when it is back. Raises LookupCacheError if none answers within a
        minute, AccessDeniedError if it has another secret, and the errors that it met.
        """
        name = SnapshotName.of(snapshot)
        batch = self._layout.key_codec.decode(keys)
        found: list[bytes] = []
        for start in range(0, batch.num_rows, _MOST_KEYS):
            found += self._ask_until_answered(name, batch.slice(start, _MOST_KEYS))
        return {key: row for key, row in zip(keys.to_bytes(), found, strict=True) if row}

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._close()

    def _ask_until_answered(self, name: SnapshotName, batch: pa.RecordBatch) -> list[bytes]:
        from pyarrow import flight

        deadline, pause = time.monotonic() + WAIT_SECONDS, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return self._ask(name, batch)
            except flight.FlightUnauthenticatedError:
                raise AccessDeniedError(
                    f"the query service for {self._table.identifier} has another secret than this process"
                ) from None
            except LockgateError:  # some of which are OSErrors too
                raise
            except (flight.FlightError, pa.ArrowException, OSError) as error:
                # Its own texts name certificates and hosts, and nothing that was asked.
                trouble = type(error).__name__
            except _NoServiceError:
                trouble = "no service is registered"
            self.close()
            if time.monotonic() > deadline:
                raise LookupCacheError(
                    f"no query service answers for {self._table.identifier} ({trouble}): start one by "
                    f"CALL sys.query_service('{self._table.identifier}'), or look up with lookup.remote=false"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _ask(self, name: SnapshotName, batch: pa.RecordBatch) -> list[bytes]:
        from pyarrow import flight

        registration, client = self._connected()
        shown = f"Bearer {self._secret.token(registration.certificate)}".encode()
        options = flight.FlightCallOptions(timeout=_ANSWER_SECONDS, headers=[(HEADER.encode(), shown)])
        question: SnapshotJson = {"snapshot": name.id, "fingerprint": name.fingerprint}
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(self._descriptor), options)
        with writer:
            writer.begin(batch.schema)
            writer.write_with_metadata(batch, json.dumps(question).encode())
            writer.done_writing()
            chunk = reader.read_chunk()
        answer = answer_in(b"" if chunk.app_metadata is None else chunk.app_metadata.to_pybytes())
        if "error" in answer:
            raise error_from_json(answer["error"])
        rows = chunk.data.column(0)
        if answer != question or len(rows) != batch.num_rows or rows.null_count:
            raise LookupCacheError(
                f"the query service for {self._table.identifier} answers {len(rows)} of {batch.num_rows} "
                f"keys from snapshot {answer['snapshot']}, and was asked of {name.id}"
            )
        found: list[bytes] = rows.to_pylist()
        return found

    def _connected(self) -> tuple[Registration, Any]:
        from pyarrow import flight

        with self._lock:
            if self._connection is None:
                found = registered(self._table, self._secret)
                if found is None:
                    raise _NoServiceError
                client = flight.FlightClient(
                    f"grpc+tls://{found.address}",
                    tls_root_certs=found.certificate.encode(),
                    override_hostname=SERVICE_NAME,
                )
                self._connection = found, client
            return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(pa.ArrowException, OSError):
                self._connection[1].close()
            self._connection = None


class _NoServiceError(Exception):
    pass


def reader_for(table: Table, spec: LookupSpec, layout: CacheLayout) -> KeyReader | ServiceReader:
    """Return what reads rows by their keys: the table's query service with `lookup.remote`, else its files.

    Raises InputError and UnsafePathError for a secret that cannot be used (see `Secret.from_environment`).
    """
    if lookup_options(table.options, spec.options).remote:
        return ServiceReader(table, spec, layout, Secret.from_environment())
    return KeyReader(table, spec, layout)
