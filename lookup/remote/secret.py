"""The secret that a query service and those who ask it share: a file that the environment names.

The secret itself is in no message, registration, plan, conf or log. Both sides derive from it, by HMAC-SHA256
(RFC 2104), the proof of a registration and the token of a certificate. So a service that somebody else
registered is not asked, and a token is of no use to any other service.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
from pathlib import Path

from lockgate.errors import InputError, UnsafePathError

VARIABLE = "LOCKGATE_QUERY_SERVICE_SECRET"
LEAST_BYTES = 32

_HOW = f"head -c 64 /dev/urandom | base64 -w 0 > FILE; chmod 600 FILE; export {VARIABLE}=FILE"
_OTHERS = stat.S_IWGRP | stat.S_IRWXO


class Secret:
    """The shared secret; it never shows its bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @classmethod
    def from_environment(cls) -> Secret:
        """Read the file that `LOCKGATE_QUERY_SERVICE_SECRET` names.

        Raises InputError if the variable is not set or the file holds too little, and UnsafePathError if
        other users can read or change the file.
        """
        named = os.environ.get(VARIABLE)
        if not named:
            raise InputError(
                f"a query service needs a secret, and {VARIABLE} names no file with one: make one by "
                f"`{_HOW}`, the same on all hosts"
            )
        path = Path(named)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                content = file.read().strip()
        except OSError as error:
            raise InputError(
                f"the file {path} that {VARIABLE} names cannot be read: {error.strerror}"
            ) from error
        if status.st_uid not in (0, os.geteuid()) or stat.S_IMODE(status.st_mode) & _OTHERS:
            raise UnsafePathError(
                f"{path}, the secret of query services, must belong to this user or root, and be closed to "
                f"others (mode {stat.S_IMODE(status.st_mode):04o}): chmod 600 it"
            )
        if len(content) < LEAST_BYTES:
            raise InputError(
                f"{path}, the secret of query services, has {len(content)} bytes, and needs {LEAST_BYTES}: "
                f"make one by `{_HOW}`"
            )
        return cls(content)

    def proof(self, registered: bytes) -> str:
        """Return what only a holder of the secret can write into a registration."""
        return self._derived(b"registration", registered)

    def token(self, certificate: str) -> str:
        """Return what an asker shows to the service with this certificate."""
        return self._derived(b"token", certificate.encode())

    def _derived(self, purpose: bytes, content: bytes) -> str:
        message = b"lockgate query service " + purpose + b"\0" + content
        return hmac.new(self._content, message, hashlib.sha256).hexdigest()

    def __repr__(self) -> str:
        return "Secret()"
