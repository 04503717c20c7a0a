"""The connector's end of a connection to the bridge, spoken by tests."""

from __future__ import annotations

import socket
import struct

from lockgate.framework.spark.bridge.bridge_server import BridgeServer


class Client:
    """The connector's end of a connection."""

    def __init__(self, server: BridgeServer, secret: str | None = None) -> None:
        self.server = server
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(str(server.folder / "socket"))
        self.name = ""
        if secret is not None:
            self.send(secret.encode())
            self.name = (self.receive() or b"").decode()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, payload: bytes, kind: int = 0, length: int | None = None) -> None:
        self.socket.sendall(struct.pack("!BI", kind, len(payload) if length is None else length) + payload)

    def receive(self) -> bytes | None:
        """The next answer; None if the server closed the connection."""
        kind, length = struct.unpack("!BI", header) if (header := self._take(5)) else (0, -1)
        if length < 0:
            return None
        assert kind == 0 or self.name
        return self._take(length) if kind == 0 else (self.server.folder / f"{self.name}.answer").read_bytes()

    def ask(self, payload: bytes) -> bytes | None:
        self.send(payload)
        return self.receive()

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _take(self, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            try:
                piece = self.socket.recv(count - len(taken))
            except ConnectionResetError:
                return b""
            if not piece:
                return b""
            taken += piece
        return taken
