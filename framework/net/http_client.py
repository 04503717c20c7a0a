"""A client of equal HTTP services: time limits, other hosts, retries, Negotiate; no redirects, no proxies."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import random
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookiejar import CookieJar
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from lockgate.errors import LockgateError

T = TypeVar("T")
_PIECE = 1 << 16
_IDLE_CONNECTIONS = 8
_LONGEST_HANDSHAKE = 5
# ValueError is for addresses and headers that cannot be sent, and for what a handshake lacks.
_FAILURES = (HTTPError, OSError, http.client.HTTPException, ValueError)


class NoAnswerError(LockgateError):
    """Raised when no host gave a usable answer in time; the text names each host and why."""


class _AnswerError(OSError):
    """Raised for answers that break a rule; the text is our own."""


class UnusableAnswerError(ValueError):
    """Raised by `take` for an answer after which another host, or a later try, may do better."""


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


@dataclass(frozen=True)
class HttpAnswer:
    """An answer, whatever its status. The content may hold a key, so it is not shown."""

    status: int
    body: bytes = field(repr=False)
    url: str
    headers: Mapping[str, str] = field(repr=False)
    challenge: bytes | None = field(default=None, repr=False)

    def document(self) -> Any:
        """Return the JSON of the body; raises ValueError if it is none."""
        return json.loads(self.body)


@dataclass(frozen=True)
class HttpLimits:
    """Limits of an answer, and the pauses before a request is retried.

    `total` is the time in seconds from connecting to the last byte, `silence` the longest between two parts
    of an answer, `largest` the most bytes of one. Every host is asked once in a round; before the next round
    passes half of the next of `waits` to all of it, or what `Retry-After` says, up to twice the longest.
    """

    total: float = 10.0
    silence: float | None = None
    largest: int = 1 << 20
    waits: tuple[float, ...] = (0.2, 0.4, 0.8)


def basic_authorization(user: str, password: str | None) -> dict[str, str]:
    """Return the header of basic authentication."""
    credentials = f"{user}:{password or ''}".encode()
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}


class HttpClient:
    """Asks the services at `urls`, the one that answered last first; may be used from several threads.

    Neither proxies nor redirects are followed: they are no place to send keys and passwords through.
    Connections are kept for each process; `keeps_cookies` keeps cookies, too. `headers` returns what
    to add to a request for a host, `authentication` begins a handshake with it.
    """

    def __init__(
        self,
        urls: Sequence[str],
        tls: ssl.SSLContext | None = None,
        limits: HttpLimits | None = None,
        *,
        headers: Callable[[str], Mapping[str, str]] | None = None,
        authentication: Authentication | None = None,
        keeps_cookies: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._urls, self._tls, self._limits = list(urls), tls, limits or HttpLimits()
        self._headers, self._authentication, self._sleep = headers, authentication, sleep
        self._keeps_cookies, self._first = keeps_cookies, 0
        self._process, self._connections, self._cookies = os.getpid(), self._new_connections(), CookieJar()

    def ask(
        self,
        method: str,
        path: str,
        take: Callable[[HttpAnswer], T],
        *,
        parameters: Mapping[str, str] | None = None,
        document: Any = None,
        repeatable: bool = True,
    ) -> T:
        """Return what `take` makes of the first answer for which it does not raise UnusableAnswerError.

        Any ValueError of `take` counts as an answer that is not JSON. A request that is not `repeatable` is
        sent once only, unless no connection was made. Raises NoAnswerError.
        """
        target = path + (f"?{urlencode(parameters)}" if parameters else "")
        body = None if document is None else json.dumps(document).encode()
        failures: dict[str, str] = {}
        asked_to_wait = 0.0
        for wait in (None, *self._limits.waits):
            if wait is not None:
                longest = 2 * max(self._limits.waits)
                pause = random.uniform(wait / 2, wait)  # noqa: S311 - spreads pauses, guards nothing
                self._sleep(max(pause, min(asked_to_wait, longest)))
            asked_to_wait = 0.0
            for url in [*self._urls[self._first :], *self._urls[: self._first]]:
                host = urlsplit(url).hostname or ""
                added = self._headers(host) if self._headers is not None else {}
                try:
                    answer = self._authenticated(method, url, target, body, added, repeatable)
                except _FAILURES as error:
                    failures[url] = _reason(error)
                    if not repeatable and not _is_unsent(error):
                        raise NoAnswerError(_text(failures)) from None
                    continue
                try:
                    result = take(answer)
                except UnusableAnswerError as error:
                    failures[url] = str(error)
                except ValueError as error:
                    if isinstance(error, LockgateError):
                        raise
                    failures[url] = "gave an answer that is not the JSON expected"
                else:
                    self._first = self._urls.index(url)
                    return result
                if not repeatable:
                    raise NoAnswerError(_text(failures))
                asked_to_wait = max(asked_to_wait, _seconds(answer.headers.get("Retry-After")))
        raise NoAnswerError(_text(failures))

    def close(self) -> None:
        """Close the kept connections; the next request opens another."""
        if self._process == os.getpid():
            self._connections.clear()

    def _authenticated(
        self,
        method: str,
        url: str,
        target: str,
        body: bytes | None,
        added: Mapping[str, str],
        repeatable: bool,
    ) -> HttpAnswer:
        headers = {"Accept": "application/json", **added}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._authentication is None:
            return self._sent(method, url, target, body, headers, repeatable)
        handshake = self._authentication(urlsplit(url).hostname or "")
        try:
            token = handshake.step(None)
            for _ in range(_LONGEST_HANDSHAKE):
                if token is None:
                    break
                headers["Authorization"] = f"Negotiate {base64.b64encode(token).decode()}"
                answer = self._sent(method, url, target, body, headers, repeatable)
                if answer.challenge is not None:
                    # Also of the last answer: it proves the service's identity.
                    token = handshake.step(answer.challenge)
                if answer.status != HTTPStatus.UNAUTHORIZED or answer.challenge is None:
                    return answer
            raise _AnswerError("the handshake by Negotiate does not end")
        finally:
            handshake.close()

    def _sent(
        self,
        method: str,
        url: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
        repeatable: bool,
    ) -> HttpAnswer:
        if self._process != os.getpid():
            # Two processes that share a connection after a fork would read each other's answers.
            self._process, self._connections = os.getpid(), self._new_connections()
            self._cookies = CookieJar()
        if repeatable:
            pool = self._connections.connection_from_url(url)
            made = pool.num_connections
            try:
                return self._exchange(self._connections, method, url, target, body, headers)
            except _FAILURES:
                # A kept connection may have been closed by the other end, which says nothing of the service.
                if not made or pool.num_connections > made:
                    raise
        fresh = self._new_connections()
        try:
            return self._exchange(fresh, method, url, target, body, headers)
        finally:
            fresh.clear()

    def _exchange(
        self,
        connections: urllib3.PoolManager,
        method: str,
        url: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> HttpAnswer:
        limits, cookies = self._limits, urllib.request.Request(url + target)  # noqa: S310 - opens nothing
        if self._keeps_cookies:
            self._cookies.add_cookie_header(cookies)
        response = connections.request(
            method,
            url + target,
            body=body,
            headers={**headers, **dict(cookies.header_items())},
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
            timeout=urllib3.Timeout(total=limits.total, connect=limits.silence),
        )
        try:
            content = bytearray()
            while piece := response.read(_PIECE):
                content += piece
                if len(content) > limits.largest:
                    raise _AnswerError(f"its answer has more than {limits.largest} bytes")
            if self._keeps_cookies:
                self._cookies.extract_cookies(cast(Any, response), cookies)
            response.release_conn()
        finally:
            # Closes what was not read whole; after that it has no connection left.
            response.close()
        challenge = _challenge(response.headers.getlist("WWW-Authenticate"))
        return HttpAnswer(response.status, bytes(content), url, response.headers, challenge)

    def _new_connections(self) -> urllib3.PoolManager:
        # Unlike the functions of urllib3, it asks for no proxy.
        made = urllib3.PoolManager(maxsize=_IDLE_CONNECTIONS, ssl_context=self._tls)
        made.pool_classes_by_scheme = _pool_classes(self._limits.silence or self._limits.total)
        return made


class _UntilDeadline(io.RawIOBase):
    """Reads an answer within one deadline for all reads, so that slow pieces do not add up."""

    def __init__(self, raw: Any, connection: socket.socket, silence: float) -> None:
        self._raw, self._socket, self._silence = raw, connection, silence
        # urllib3 leaves the rest of the total time as the socket's.
        self._deadline = time.monotonic() + (connection.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(min(left, self._silence))
        return cast("int | None", self._raw.readinto(buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()


def _pool_classes(silence: float) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return pools whose answers keep one deadline, their heads included."""

    class Answer(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
            super().__init__(sock, *arguments, **named)
            self.fp = io.BufferedReader(_UntilDeadline(cast(Any, self.fp).detach(), sock, silence))

    class Plain(urllib3.connection.HTTPConnection):
        response_class = Answer

    class Secure(urllib3.connection.HTTPSConnection):
        response_class = Answer

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _challenge(values: Sequence[str]) -> bytes | None:
    for value in values:
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() == "negotiate" and token.strip():
            try:
                return base64.b64decode(token.strip(), validate=True)
            except ValueError:
                raise _AnswerError("its challenge is not Base64") from None
    return None


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:  # a date; our own wait will do
        return 0.0


def _text(failures: Mapping[str, str]) -> str:
    return "; ".join(f"{url} {failure}" for url, failure in failures.items())


def _is_unsent(error: Exception) -> bool:
    """Return whether nothing of a request was sent, since no connection was made."""
    unconnected = isinstance(error, (NewConnectionError, ConnectTimeoutError))
    return unconnected or isinstance(_cause(error), ssl.SSLCertVerificationError)


def _cause(error: Exception) -> Exception:
    """Return the error behind one of urllib3, whose own text has the path, and what was sent in it."""
    while isinstance(error, HTTPError):
        inner = [each for each in (*error.args, error.__cause__) if isinstance(each, Exception)]
        if not inner:
            break
        error = inner[0]
    return error


def _reason(error: Exception) -> str:
    """Return the reason of a failure without any text of the other end."""
    cause = _cause(error)
    if isinstance(cause, LockgateError | _AnswerError):
        return f"could not be asked ({cause})"
    if isinstance(cause, TimeoutError):
        return "gave no complete answer in time"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted ({cause.verify_message})"
    if isinstance(cause, ssl.SSLError):
        return f"did not speak TLS as expected ({cause.reason or type(cause).__name__})"
    if isinstance(cause, OSError):
        return f"could not be asked ({cause.strerror or type(cause).__name__})"
    return f"gave an answer that is not HTTP ({type(cause).__name__})"
