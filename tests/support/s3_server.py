"""An S3 on this machine: moto's, one writing request at a time, with a count of what was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

READING = ("GET", "HEAD")


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as a real store keeps them

    def log(self, *arguments: Any, **options: Any) -> None:
        pass


class S3Server:
    """The server of a test session; `requests` are (method, path with query) since the last `clear`.

    `payers` are who pays for them by their headers.
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self.requests: list[tuple[str, str]] = []
        self.payers: list[str | None] = []
        self.ignores_conditions = False
        self._server = make_server(address, 0, self._serve, threaded=True, request_handler=_Quiet)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.endpoint = f"http://{address}:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if self.ignores_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        query = environ.get("QUERY_STRING", "")
        self.requests.append(
            (environ["REQUEST_METHOD"], environ["PATH_INFO"] + (f"?{query}" if query else ""))
        )
        self.payers.append(environ.get("HTTP_X_AMZ_REQUEST_PAYER"))
        # moto looks whether an object exists and then makes it: in a real store that is one step.
        with self._lock:
            return list(self._application(environ, start))

    def make_bucket(self, name: str) -> None:
        client = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", **CREDENTIALS)
        client.create_bucket(Bucket=name)

    def options(self, **more: str) -> dict[str, str]:
        """The confs that reach the server."""
        return {**options_for(self.endpoint), **more}


def options_for(endpoint: str) -> dict[str, str]:
    """The confs that reach a server at `endpoint`."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": CREDENTIALS["aws_access_key_id"],
        "fs.s3a.secret.key": CREDENTIALS["aws_secret_access_key"],
    }


CREDENTIALS = {"aws_access_key_id": "the-access-key", "aws_secret_access_key": "a-secret-that-nobody-may-see"}
