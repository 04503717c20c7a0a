"""The process at the other end of a Unix domain socket."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether a process of this user is at the other end of a Unix domain socket.

    Where the system does not report it, as outside Linux, the mode of the socket's folder alone keeps
    others out.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.geteuid())
