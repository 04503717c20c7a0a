"""A stand-in for Ranger's admin: answers downloads as Ranger's REST service does, and counts who asks."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ranger_admin_policies import PUBLIC, PolicyRooms

VERSIONS = {
    "plugins": ("policyVersion", "lastKnownVersion"),
    "roles": ("roleVersion", "lastKnownRoleVersion"),
    "tags": ("tagVersion", "lastKnownVersion"),
    "xusers": ("userStoreVersion", "lastKnownUserStoreVersion"),
}


class Negotiating:
    """The service's side of a handshake by Negotiate: `legs` tokens of the client, each with a reply."""

    def __init__(self, legs: int = 1, proof: bytes = b"proof") -> None:
        self.legs, self.proof, self.seen = legs, proof, list[bytes]()

    def answer(self, authorization: str | None) -> tuple[bool, str | None]:
        """Return whether the client is known, and the header that challenges it."""
        if authorization is None or not authorization.startswith("Negotiate "):
            return False, "Negotiate"
        self.seen.append(base64.b64decode(authorization.removeprefix("Negotiate ")))
        done = self.seen[-1] == b"token-%d" % self.legs
        reply = self.proof if done else b"reply to " + self.seen[-1]
        return done, f"Negotiate {base64.b64encode(reply).decode()}"


class StandIn:
    """What the admin has, by the first word of the path: plugins, roles, tags, xusers."""

    def __init__(self) -> None:
        self.has: dict[str, dict[str, Any]] = {}
        self.deltas: dict[int, dict[str, Any]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.user: str | None = None
        self.negotiates: Negotiating | None = None
        self.unchanged, self.broken, self.body = 304, 0, None
        # The seconds before an answer, and between two bytes of it.
        self.slow, self.trickle = 0.0, 0.0
        self.url = ""
        self.rooms = PolicyRooms(self.has, "lake")

    def answer(self, target: str, authorization: str | None) -> tuple[int, Any]:
        parts = urlsplit(target)
        names = [each for each in parts.path.split("/") if each]
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, asked))
        if self.broken:
            return self.broken, "a failure"
        secure = "secure" in names
        if self.user is not None and (not secure or authorization != self._basic()):
            return 401, "who are you?"
        if names[-1] != "lake":
            return 404, f'"RANGER_ERROR_SERVICE_NOT_FOUND: ServiceName={names[-1]}"'
        said = self.has.get(names[1])
        if said is None:
            return 404, "Not Found"
        return self._newer(said, asked, *VERSIONS[names[1]])

    def public(self, method: str, target: str, authorization: str | None, sent: Any) -> tuple[int, Any]:
        """Answer what only a known client may ask."""
        parts = urlsplit(target)
        if self.broken:
            return self.broken, "a failure"
        if self.user is not None and authorization != self._basic():
            return 401, "who are you?"
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        return self.rooms.answer(method, parts.path, asked, sent)

    def change(self, target: str, authorization: str | None, document: dict[str, Any]) -> int:
        """Take a grant as it comes: which policies follow from it, is the admin's own affair."""
        path = urlsplit(target).path
        if self.broken or (self.user is not None and authorization != self._basic()):
            return self.broken or 401
        self.changes.append((path, document))
        self.has["plugins"]["policyVersion"] += 1
        return 200

    def _newer(
        self, said: dict[str, Any], asked: dict[str, str], version: str, known: str
    ) -> tuple[int, Any]:
        number = int(asked[known])
        if number == said[version]:
            return self.unchanged, None
        if version == "policyVersion" and number in self.deltas:
            return 200, self.deltas[number]
        return 200, said

    def _basic(self) -> str:
        return "Basic " + base64.b64encode((self.user or "").encode()).decode()


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[StandIn]:  # noqa: C901 - one handler for each path
    """Run a stand-in on a port of its own, with TLS if a context for it is given."""
    found = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.challenge = None
            if found.negotiates is not None:
                known, self.challenge = found.negotiates.answer(self.headers.get("Authorization"))
                if not known:
                    self.answer(401, "who are you?")
                    return
            if self.path.startswith(PUBLIC):
                self.answer(*found.public("GET", self.path, self.headers.get("Authorization"), None))
            else:
                self.answer(*found.answer(self.path, self.headers.get("Authorization")))

        def do_POST(self) -> None:
            document = self.sent()
            who = self.headers.get("Authorization")
            if self.path.startswith(PUBLIC):
                self.answer(*found.public(self.command, self.path, who, document))
            else:
                self.answer(found.change(self.path, who, document), None)

        def do_PUT(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.answer(*found.public("DELETE", self.path, self.headers.get("Authorization"), None))

        def sent(self) -> Any:
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def answer(self, status: int, said: Any) -> None:
            body = (
                said.encode() if isinstance(said, str) else b"" if said is None else json.dumps(said).encode()
            )
            if found.body is not None and status == 200:
                body = found.body
            time.sleep(found.slow)
            self.send_response(status)
            if getattr(self, "challenge", None):
                self.send_header("WWW-Authenticate", self.challenge)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if found.trickle:
                with suppress(OSError):
                    for at in range(len(body)):
                        self.wfile.write(body[at : at + 1])
                        time.sleep(found.trickle)
                return
            with suppress(OSError):  # who waited long enough is gone
                self.wfile.write(body if status != 304 else b"")

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            """Say nothing of clients that end a handshake."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        # A client that does not finish its handshake must not keep the others waiting.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
