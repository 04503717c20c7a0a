"""Frames over a socket: one question at a time, its answer, and files for what is long.

A frame is one byte for its kind, four for its length (big-endian), and the payload. The payload of a long
message is in the connection's file of the private folder: `<connection>.question` or `<connection>.answer`.
No name travels, so no message can name a file. Java's end is `io.lockgate.spark.bridge.Connection`, with
`FrameHeader`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from pathlib import Path

from lockgate.errors import BridgeError
from lockgate.framework.io import open_private_file

# A longer payload goes through a file.
LARGEST_FRAME = 4 << 20
LARGEST_MESSAGE = 1 << 30

_INLINE = 0
_IN_FILE = 1
_HEADER = struct.Struct("!BI")
_PIECE = 1 << 16


class Frames:
    """The frames of one connection, which `name` tells from others in `folder`."""

    def __init__(self, connection: socket.socket, folder: Path, name: str) -> None:
        self._connection = connection
        self._question = folder / f"{name}.question"
        self._answer = folder / f"{name}.answer"
        self._received = bytearray()

    def receive(self, hello: int | None = None) -> bytes | None:
        """Return the next message, None if the other end closed the connection between two.

        As long as nobody has said who is there, `hello` is the most bytes that are taken. Raises BridgeError
        for a frame that is no frame, is too long, or ends too early.
        """
        header = self._take(_HEADER.size)
        if not header:
            return None
        kind, length = _HEADER.unpack(header)
        if kind == _INLINE and length <= (LARGEST_FRAME if hello is None else hello):
            return self._take(length) if length else b""
        if kind == _IN_FILE and hello is None and length <= LARGEST_MESSAGE:
            return self._read_file(length)
        raise BridgeError(f"the connector sent an invalid frame: kind {kind}, {length} bytes")

    def send(self, payload: bytes) -> None:
        """Send a message; OSError if the other end is gone."""
        if len(payload) > LARGEST_MESSAGE:
            raise BridgeError(f"an answer of {len(payload)} bytes is larger than the bridge allows")
        if len(payload) <= LARGEST_FRAME:
            self._connection.sendall(_HEADER.pack(_INLINE, len(payload)) + payload)
            return
        self._write_file(payload)
        self._connection.sendall(_HEADER.pack(_IN_FILE, len(payload)))

    def forget_files(self) -> None:
        """Remove what a connection that broke off left behind."""
        for path in (self._question, self._answer):
            with contextlib.suppress(OSError):
                path.unlink()

    def _take(self, count: int) -> bytes:
        # Most messages come whole with the first read.
        while len(self._received) < count:
            piece = self._connection.recv(max(count - len(self._received), _PIECE))
            if not piece:
                break
            self._received += piece
        if len(self._received) < count and self._received:
            raise BridgeError("the connector closed the connection in the middle of a message")
        taken = bytes(self._received[:count])
        del self._received[:count]
        if not taken and count != _HEADER.size:
            raise BridgeError("the connector closed the connection in the middle of a message")
        return taken

    def _read_file(self, length: int) -> bytes:
        descriptor = open_private_file(self._question)
        with os.fdopen(descriptor, "rb") as file:
            self._question.unlink()
            content = file.read(length + 1)
        if len(content) != length:
            raise BridgeError(f"the connector announced {length} bytes and left {len(content)} or more")
        return content

    def _write_file(self, payload: bytes) -> None:
        self._answer.unlink(missing_ok=True)
        descriptor = open_private_file(self._answer, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            file.write(payload)
