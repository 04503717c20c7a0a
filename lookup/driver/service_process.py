"""The process of a query service: `python -m lockgate.lookup.driver.service_process`, started by a driver.

It reads a `ServiceOrder` from its standard input, which is also its lease: when that closes, it removes its
registration and ends. It answers with a `ServiceEvent`. The secret is in the file that its environment names.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from typing import TypedDict

from lockgate.framework.store import Catalog, Table
from lockgate.lookup.partial.choice import check_servable
from lockgate.lookup.remote.certificate import fingerprint_of, make_certificate
from lockgate.lookup.remote.query_server import QueryService
from lockgate.lookup.remote.registration import Registration
from lockgate.lookup.remote.secret import Secret
from lockgate.lookup.server.standby import private_stdout
from lockgate.lookup.spec.failures import error_to_json
from lockgate.lookup.spec.lookup_spec import LookupSpec


class ServiceOrder(TypedDict):
    """The table to serve, and where: a host's name or address, and a port (0: any)."""

    warehouse: str
    options: dict[str, str]
    table: str
    host: str
    port: int


class ServiceEvent(TypedDict):
    """A service that answers: its address, the SHA-256 of its certificate, and its process."""

    address: str
    fingerprint: str
    pid: int


def check_table(table: Table) -> None:
    """Check that a query service may serve a table; errors as `check_servable`."""
    keys = tuple(table.schema.primary_keys)
    columns = tuple(name for name in table.schema.field_names if name not in keys) or keys
    check_servable(table, LookupSpec(str(table.identifier), keys or columns, columns))


def main() -> None:
    """Serve until the lease ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the driver, which decides
    stdout = private_stdout()
    order: ServiceOrder = json.loads(sys.stdin.buffer.readline())
    try:
        service, registration, table = _start(order)
    except Exception as error:  # the driver must hear of it, whatever it is
        stdout.write(json.dumps({"error": error_to_json(error)}).encode() + b"\n")
        stdout.flush()
        sys.exit(1)
    event: ServiceEvent = {
        "address": registration.address,
        "fingerprint": fingerprint_of(registration.certificate),
        "pid": os.getpid(),
    }
    stdout.write(json.dumps(event).encode() + b"\n")
    stdout.flush()
    while sys.stdin.buffer.read(1):
        pass
    registration.remove(table)
    service.shutdown()


def _start(order: ServiceOrder) -> tuple[QueryService, Registration, Table]:
    secret = Secret.from_environment()
    catalog = Catalog(order["warehouse"], options=order["options"] or None)

    def load() -> Table:
        return catalog.load_table(order["table"])

    table = load()
    check_table(table)
    made = make_certificate()
    host = f"[{order['host']}]" if ":" in order["host"] else order["host"]
    service = QueryService(load, f"{host}:{order['port']}", secret.token(made.certificate), made)
    registration = Registration(f"{host}:{service.port}", made.certificate, uuid.uuid4().hex)
    # Only now: askers find no service that does not answer.
    registration.write(table, secret)
    return service, registration, table


if __name__ == "__main__":
    main()
