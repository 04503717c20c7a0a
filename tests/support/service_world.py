"""Askers of query services, for their tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from lockgate.framework.store.tables.table import Table
from lockgate.lookup.driver.lookup_tables import PartialLookupTable, make_spec, open_lookup
from lockgate.lookup.remote.certificate import SERVICE_NAME
from lockgate.lookup.remote.query_client import ServiceReader
from lockgate.lookup.remote.registration import Registration
from lockgate.lookup.remote.secret import Secret
from lockgate.lookup.spec.lookup_spec import layout_of

REMOTE = {"lookup.remote": "true"}
Serve = Callable[[Table], Registration]
BYTES = b"a secret of more than thirty-two bytes for tests"


def remote(table: Table, **options: Any) -> PartialLookupTable:
    lookup = open_lookup(table, "id", options={**REMOTE, **options})
    assert isinstance(lookup, PartialLookupTable)
    return lookup


def found(lookup: Any, ids: list[int]) -> list[int | None]:
    result = lookup.get(pa.record_batch({"id": pa.array(ids, pa.int64())}))
    answers: list[int | None] = [None] * len(ids)
    for index, row in zip(result.indices.to_pylist(), result.rows.to_pylist(), strict=True):
        answers[index] = row["n"]
    return answers


def registration(table: Table) -> Path:
    return Path(table.location) / "service" / "service-lockgate-flight"


def reader_of(table: Table, content: bytes = BYTES) -> ServiceReader:
    spec = make_spec(table, "id", options=REMOTE)
    return ServiceReader(table, spec, layout_of(spec, table.schema), Secret(content))


def guest_of(known: Registration) -> Any:
    return flight.FlightClient(
        f"grpc+tls://{known.address}",
        tls_root_certs=known.certificate.encode(),
        override_hostname=SERVICE_NAME,
    )


def asked_once(guest: Any, command: bytes, metadata: bytes, batch: pa.RecordBatch, shown: Any) -> Any:
    options = flight.FlightCallOptions(timeout=20, headers=shown)
    writer, answers = guest.do_exchange(flight.FlightDescriptor.for_command(command), options)
    with writer:
        writer.begin(batch.schema)
        writer.write_with_metadata(batch, metadata)
        writer.done_writing()
        return answers.read_chunk()


def keys_of(table: Table, ids: list[int]) -> Any:
    layout = layout_of(make_spec(table, "id"), table.schema)
    return layout.key_codec.encode([pa.array(ids, pa.int64())]).rows
