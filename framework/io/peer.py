"""The process at the other end of a Unix domain socket."""

from __future__ import annotations

import os
import socket
import struct

_CREDENTIALS = struct.Struct("3i")


def is_own_peer(connection: socket.socket) -> bool:
    """Return whether a process of this user is at the other end of a Unix domain socket.

    Outside Linux, where the system does not report the peer, only the mode of the socket's folder protects
    it.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(credentials)[1] == os.geteuid())
