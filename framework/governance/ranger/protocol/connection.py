"""HTTP to Ranger's admin and to Solr: requests with time limits, authentication and cookies.

It follows no redirects and uses no proxies: a password could end elsewhere.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from lockgate.errors import StorageError

LARGEST_ANSWER = 1 << 30
# A large download takes longer than one read of it; an answer of a byte now and then must end too.
_READS_IN_AN_ANSWER = 10
_CHUNK = 1 << 16
_LONGEST_HANDSHAKE = 5
Failure = (OSError, ValueError, http.client.HTTPException)


class AdminError(StorageError):
    """Raised when Ranger's admin does not answer, or not as it should."""


class Handshake(Protocol):
    """The client's side of a handshake by `Negotiate` (RFC 4559)."""

    def step(self, challenge: bytes | None) -> bytes | None:
        """Return the next token for the service's last one, None if there is nothing to send.

        The first call has no challenge. Raises OSError if the handshake fails.
        """

    def close(self) -> None:
        """Free what the handshake holds."""


# Begins a handshake with the host of this name.
Authentication = Callable[[str], Handshake]


class Endpoints(Protocol):
    """The addresses of equal services, and what a client of them needs."""

    @property
    def urls(self) -> tuple[str, ...]:
        """Return the addresses."""

    @property
    def user(self) -> str | None:
        """Return the user of basic authentication."""

    @property
    def password(self) -> str | None:
        """Return the user's password."""

    @property
    def timeout_seconds(self) -> float:
        """Return the longest time to connect, and between two parts of an answer."""

    @property
    def authentication(self) -> Authentication | None:
        """Return what begins a handshake with a host, None for basic authentication or none."""

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for TLS, None without TLS."""


@dataclass(frozen=True)
class AdminAnswer:
    """An answer, whatever its status."""

    status: int
    body: bytes = field(repr=False)

    def document(self) -> Any:
        """Return the JSON of the body; raises ValueError if it is none."""
        return json.loads(self.body)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead a password elsewhere."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


class Connection:
    """Sends requests to one of several equal services; may be used from several threads."""

    def __init__(self, settings: Endpoints) -> None:
        self._settings, self._first, self._lock = settings, 0, threading.Lock()
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.ProxyHandler({}),
            _NoRedirects(),
            urllib.request.HTTPCookieProcessor(),
        ]
        tls = settings.tls()
        if tls is not None:
            handlers.append(urllib.request.HTTPSHandler(context=tls))
        self._opener = urllib.request.build_opener(*handlers)

    @property
    def is_secured(self) -> bool:
        """Say whether this client proves its identity; the admin has other paths for those that do."""
        return self._settings.user is not None or self._settings.authentication is not None

    def turns(self) -> list[str]:
        """Return the addresses, the one that answered last first."""
        urls, first = self._settings.urls, self._first
        return [*urls[first:], *urls[:first]]

    def prefer(self, url: str) -> None:
        """Ask the service at an address first from now on."""
        with self._lock:
            self._first = self._settings.urls.index(url)

    def ask(
        self,
        url: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        *,
        method: str = "GET",
        document: Any = None,
    ) -> AdminAnswer:
        """Return the answer of the service at `url`; raises one of `Failure` if none comes in time."""
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        request = urllib.request.Request(f"{url}{path}{query}", method=method)  # noqa: S310 - http or https, as the settings check
        request.add_header("Accept", "application/json")
        if document is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(document).encode()
        if self._settings.authentication is not None:
            handshake = self._settings.authentication(urllib.parse.urlsplit(url).hostname or "")
            try:
                return self._negotiated(request, handshake)
            finally:
                handshake.close()
        if self._settings.user is not None:
            credentials = f"{self._settings.user}:{self._settings.password or ''}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(credentials).decode()}")
        return self._sent(request)[0]

    def _negotiated(self, request: urllib.request.Request, handshake: Handshake) -> AdminAnswer:
        """Send a request until the service accepts the handshake's tokens, or refuses them."""
        token = handshake.step(None)
        for _ in range(_LONGEST_HANDSHAKE):
            if token is None:
                break
            request.add_header("Authorization", f"Negotiate {base64.b64encode(token).decode()}")
            answer, challenge = self._sent(request)
            if challenge is not None:
                # Also of the last answer: it proves the service's identity.
                token = handshake.step(challenge)
            if answer.status != http.HTTPStatus.UNAUTHORIZED or challenge is None:
                return answer
        raise OSError("the handshake by Negotiate does not end")

    def _sent(self, request: urllib.request.Request) -> tuple[AdminAnswer, bytes | None]:
        """Send a request; returns the answer with the token of its challenge."""
        deadline = time.monotonic() + _READS_IN_AN_ANSWER * self._settings.timeout_seconds
        try:
            with self._opener.open(request, timeout=self._settings.timeout_seconds) as answer:
                return AdminAnswer(answer.status, _whole(answer, deadline)), _challenge(answer)
        except urllib.error.HTTPError as error:
            with error:
                answer = cast(http.client.HTTPResponse, error.fp)
                return AdminAnswer(error.code, _whole(answer, deadline)), _challenge(answer)


def _challenge(answer: http.client.HTTPResponse) -> bytes | None:
    for value in answer.headers.get_all("WWW-Authenticate") or ():
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() == "negotiate" and token.strip():
            return base64.b64decode(token.strip(), validate=True)
    return None


def _whole(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    found = bytearray()
    while piece := answer.read1(_CHUNK):
        found += piece
        if len(found) > LARGEST_ANSWER:
            raise ValueError("the answer is too long")
        if time.monotonic() > deadline:
            raise TimeoutError("the answer took too long")
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    return bytes(found)


def reason_of(error: Exception) -> str:
    """Return why a request failed, without anything that was sent."""
    return str(error) if isinstance(error, OSError) else type(error).__name__
