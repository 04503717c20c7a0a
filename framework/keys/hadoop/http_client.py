"""A client for several equal HTTP services with JSON: time limits, fail-over, retries; no redirects."""

from __future__ import annotations

import http.client
import io
import os
import random
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lockgate.errors import KeyServiceError

LARGEST_ANSWER = 1 << 20
_IDLE_CONNECTIONS = 8
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class ServiceHost:
    """The address of a service."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True)
class ServiceAnswer:
    """The answer of a service; the content may hold a key, so it is not shown."""

    status: int
    content: bytes = field(repr=False)
    host: ServiceHost


@dataclass(frozen=True)
class Retries:
    """Time limit of an answer, number of retries, and pauses between them.

    `timeout` is the time in seconds for one answer, from connecting to its last byte. Every host is asked
    once in a round; the pause after round n is a random time up to `pause` * 2**n seconds, at most 5.
    """

    timeout: float = 10.0
    rounds: int = 4
    pause: float = 0.2


class HttpClient:
    """Asks `hosts`, the one that answered last first, over TLS unless `tls` is None.

    After an answer of status 5xx or 429, or none at all, the request is retried on the next host and, after
    a pause, in the next round. Proxies and redirects are not followed: they are no place to send keys
    through.
    Connections are kept, for each process, and may be used from many threads.
    """

    def __init__(
        self,
        hosts: Sequence[ServiceHost],
        tls: ssl.SSLContext | None,
        retries: Retries,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._hosts = list(hosts)
        self._tls = tls
        self._retries = retries
        self._sleep = sleep
        self._lock = threading.Lock()
        self._idle: dict[tuple[int, ServiceHost], list[http.client.HTTPConnection]] = {}
        self._first = 0

    def ask(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Callable[[str], Mapping[str, str]] | None = None,
        repeatable: bool = True,
        final: Callable[[ServiceAnswer], bool] = lambda answer: False,
    ) -> ServiceAnswer:
        """Return the first usable answer, whatever its status below 500.

        A request that is not `repeatable` is sent only once, unless no connection was made. An answer for
        which `final` holds is returned although its status would allow a retry. `headers` adds
        to the request, given the name of the host. Raises `KeyServiceError` if no host answered in time.
        """
        failures: dict[ServiceHost, str] = {}
        for number in range(self._retries.rounds):
            if number:
                pause = min(_LONGEST_PAUSE, self._retries.pause * 2 ** (number - 1))
                self._sleep(random.uniform(0, pause))  # noqa: S311 - spreads pauses, guards nothing
            first = self._first
            for index in range(len(self._hosts)):
                host = self._hosts[(first + index) % len(self._hosts)]
                answer = self._try(host, method, target, body, headers, repeatable, failures)
                if answer is None:
                    continue
                if (answer.status < 500 and answer.status != 429) or final(answer):
                    self._first = self._hosts.index(host)
                    return answer
                failures[host] = f"answered with status {answer.status}"
                if not repeatable:
                    raise self._failure(failures)
        raise self._failure(failures)

    def _failure(self, failures: Mapping[ServiceHost, str]) -> KeyServiceError:
        reasons = "; ".join(f"{host} {failure}" for host, failure in failures.items())
        return KeyServiceError(f"the key service did not answer properly: {reasons}")

    def _try(
        self,
        host: ServiceHost,
        method: str,
        target: str,
        body: bytes | None,
        headers: Callable[[str], Mapping[str, str]] | None,
        repeatable: bool,
        failures: dict[ServiceHost, str],
    ) -> ServiceAnswer | None:
        added = dict(headers(host.name)) if headers is not None else {}
        deadline = time.monotonic() + self._retries.timeout
        # A kept connection may have been closed by the other end, which says nothing about the service.
        kept = self._kept(host) if repeatable else None
        if kept is not None:
            try:
                return self._exchange(kept, host, method, target, body, added, deadline)
            except (OSError, http.client.HTTPException):
                kept.close()
                deadline = time.monotonic() + self._retries.timeout
        connection = self._new(host)
        connected = False
        try:
            connection.connect()
            connected = True
            return self._exchange(connection, host, method, target, body, added, deadline)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            failures[host] = _reason(error)
            if connected and not repeatable:
                raise self._failure(failures) from None
            return None

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        host: ServiceHost,
        method: str,
        target: str,
        body: bytes | None,
        added: Mapping[str, str],
        deadline: float,
    ) -> ServiceAnswer:
        sent = {"Accept": "application/json", **added}
        if body is not None:
            sent["Content-Type"] = "application/json"
        cast(socket.socket, connection.sock).settimeout(_left(deadline))
        connection.request(method, target, body, sent)
        connection.response_class = _response_class(deadline)
        response = connection.getresponse()
        content = response.read(LARGEST_ANSWER + 1)
        if len(content) > LARGEST_ANSWER or response.length:
            raise http.client.HTTPException("too long an answer, or not all of it")
        keep = not response.will_close
        response.close()
        if keep:
            self._keep(host, connection)
        else:
            connection.close()
        return ServiceAnswer(response.status, content, host)

    def _new(self, host: ServiceHost) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(host.name, host.port, timeout=self._retries.timeout)
        return http.client.HTTPSConnection(
            host.name, host.port, timeout=self._retries.timeout, context=self._tls
        )

    def _kept(self, host: ServiceHost) -> http.client.HTTPConnection | None:
        with self._lock:
            idle = self._idle.get((os.getpid(), host))
            return idle.pop() if idle else None

    def _keep(self, host: ServiceHost, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            # By process, since two that share a connection after a fork would read each other's answers.
            idle = self._idle.setdefault((os.getpid(), host), [])
            if len(idle) < _IDLE_CONNECTIONS:
                idle.append(connection)
                return
        connection.close()

    def __del__(self) -> None:
        # While Python ends, modules are gone already, this one's names too; the connections end with it.
        is_finalizing = getattr(sys, "is_finalizing", None)
        if is_finalizing is not None and not is_finalizing():
            self.close()

    def close(self) -> None:
        """Close the kept connections; the next request opens another."""
        with self._lock:
            held, self._idle = self._idle, {}
        for (process, _), idle in held.items():
            for connection in idle if process == os.getpid() else ():
                connection.close()


class _UntilDeadline(io.RawIOBase):
    """Reads a socket's stream within one deadline for all reads, so that slow pieces do not add up."""

    def __init__(self, raw: Any, deadline: float) -> None:
        self._raw = raw
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._raw._sock.settimeout(_left(self._deadline))
        return cast("int | None", self._raw.readinto(buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()


def _response_class(deadline: float) -> type[http.client.HTTPResponse]:
    class Response(http.client.HTTPResponse):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.fp = io.BufferedReader(_UntilDeadline(cast(Any, self.fp).detach(), deadline))

    return Response


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no complete answer in time")
    return left


def _reason(error: Exception) -> str:
    """Return the reason of a failure without any text of the other end."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "gave no complete answer in time"
    if isinstance(error, ssl.SSLError):
        return f"did not speak TLS as expected ({error.reason or type(error).__name__})"
    if isinstance(error, OSError):
        return f"could not be asked ({error.strerror or type(error).__name__})"
    return f"gave an answer that is not HTTP ({type(error).__name__})"
