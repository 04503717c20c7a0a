"""A stand-in for Solr: keeps the documents that are posted to a collection, by their id."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Solr:
    """What it was sent; `status` is its answer, 400 to batches with one of the `refused` ids."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.paths: list[str] = []
        self.users: list[str] = []
        self.status = 200
        self.refused: set[str] = set()
        self.url = ""


@contextmanager
def running() -> Iterator[Solr]:
    """Run a stand-in on a port of its own."""
    found = Solr()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found.paths.append(self.path)
            who = self.headers.get("Authorization")
            if who:
                found.users.append(base64.b64decode(who.removeprefix("Basic ")).decode())
            status = found.status
            if not found.refused.isdisjoint(each["id"] for each in body):
                status = 400  # Solr takes a batch as a whole
            if status == 200:
                found.documents.update({each["id"]: each for each in body})
            answer = b'{"responseHeader": {"status": 0}}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
