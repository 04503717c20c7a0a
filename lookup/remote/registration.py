"""The registration of a query service: a file in the table's folder, by which askers find and recognize it.

The file is `service/service-lockgate-flight` in the table's folder, where Paimon registers services of its
own under other names. It names the service's address and its certificate, the only one that askers accept,
with a proof that a holder of the secret wrote it.
"""

from __future__ import annotations

import contextlib
import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from lockgate.errors import LookupCacheError, StorageError
from lockgate.framework.spark import fault_in, shape_of

if TYPE_CHECKING:
    from lockgate.framework.store import Table
    from lockgate.lookup.remote.secret import Secret

_FOLDER = "service"
_NAME = "service-lockgate-flight"


class RegistrationJson(TypedDict):
    """A registration: the service's address (host:port), its certificate in PEM, its name, and a proof."""

    address: str
    certificate: str
    service: str
    proof: str


_SHAPE = shape_of(RegistrationJson)


@dataclass(frozen=True)
class Registration:
    """The service that answers for a table: `service` is the random name of one process."""

    address: str
    certificate: str
    service: str

    def write(self, table: Table, secret: Secret) -> None:
        """Register the service in place of any other; raises StorageError."""
        content: RegistrationJson = {
            "address": self.address,
            "certificate": self.certificate,
            "service": self.service,
            "proof": secret.proof(self._proven(table)),
        }
        table.file_system.make_directory(f"{table.location}/{_FOLDER}")
        table.file_system.write_atomic(_path(table), json.dumps(content).encode())

    def remove(self, table: Table) -> None:
        """Remove the registration unless another service has taken its place."""
        with contextlib.suppress(StorageError, FileNotFoundError, LookupCacheError):
            found = _read(table)
            if found is not None and found["service"] == self.service:
                table.file_system.delete(_path(table))

    def _proven(self, table: Table) -> bytes:
        return "\0".join((table.copy_id, self.address, self.certificate, self.service)).encode()


def registered(table: Table, secret: Secret) -> Registration | None:
    """Return the service that is registered for a table, None if there is none.

    Raises LookupCacheError for a registration that no holder of the secret wrote for this table.
    """
    content = _read(table)
    if content is None:
        return None
    found = Registration(content["address"], content["certificate"], content["service"])
    if not hmac.compare_digest(secret.proof(found._proven(table)).encode(), content["proof"].encode()):
        raise LookupCacheError(
            f"the query service registered for {table.identifier} at {content['address']!r} has another "
            "secret, or was registered for another table: nobody asks it. Give both sides the same secret, "
            "or CALL sys.query_service again"
        )
    return found


def is_registered(table: Table) -> bool:
    """Say whether any service is registered for a table."""
    return table.file_system.exists(_path(table))


def remove_registration(table: Table) -> bool:
    """Remove any registration of a table; False if there is none."""
    return table.file_system.delete(_path(table))


def _path(table: Table) -> str:
    return f"{table.location}/{_FOLDER}/{_NAME}"


def _read(table: Table) -> RegistrationJson | None:
    try:
        content: RegistrationJson = json.loads(table.file_system.read_bytes(_path(table)))
        fault = fault_in(_SHAPE, content)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        fault = "it is not JSON"
    if fault is not None:
        raise LookupCacheError(
            f"{_path(table)} is no registration of a query service ({fault}): delete it, or "
            "CALL sys.query_service again"
        )
    return content
