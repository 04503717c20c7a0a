"""The client of HTTP services against a server that answers what it is told."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from lockgate.framework.net import HttpAnswer, HttpClient, HttpLimits, NoAnswerError, UnusableAnswerError

NOBODY = "http://127.0.0.1:1"


class Service:
    """Answers in the order of `answers`, then status 200; `seen` has path, client's port and cookie."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.seen: list[tuple[str, int, str | None]] = []
        self.headers: dict[str, str] = {}
        self.url, self.ended = "", threading.Event()

    @property
    def connections(self) -> int:
        return len({port for _, port, _ in self.seen})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: ClassVar[Service]

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.service.seen.append((self.path, self.client_address[1], self.headers["Cookie"]))
        answer = self.service.answers.pop(0) if self.service.answers else 200
        if answer == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
        elif answer in ("slow head", "slow body"):
            self.drip("" if answer == "slow head" else "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        elif answer == "short":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self.answer(answer)

    def do_POST(self) -> None:
        self.do_GET()

    def drip(self, head: str) -> None:
        with contextlib.suppress(OSError):
            self.wfile.write(head.encode())
            while not self.service.ended.wait(0.02):
                self.wfile.write(b"x")

    def answer(self, answer: Any) -> None:
        body = b"x" * 2000 if answer == "long" else b"{}"
        self.send_response(answer if isinstance(answer, int) else 200)
        for name, value in self.service.headers.items():
            self.send_header(name, value)
        if answer == 302:
            self.send_header("Location", f"{self.service.url}/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if answer == "close":  # without a word, as services do with idle connections
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()

    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"service": made}))
    made.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    made.ended.set()
    server.shutdown()
    server.server_close()


def status(answer: HttpAnswer) -> int:
    """Return the status of answers that need no other try."""
    if answer.status >= 500 or answer.status == 429:
        raise UnusableAnswerError(f"answered with status {answer.status}")
    return answer.status


def client(*urls: str, waits: tuple[float, ...] = (0.0, 0.0), **values: Any) -> HttpClient:
    named = {name: values.pop(name) for name in ("total", "silence", "largest") if name in values}
    return HttpClient(urls, None, HttpLimits(**{"total": 5.0, **named}, waits=waits), **values)


def test_a_connection_is_used_again(service: Service) -> None:
    asker = client(service.url)
    assert [asker.ask("GET", "/", status) for _ in range(3)] == [200, 200, 200]
    assert service.connections == 1
    asker.close()
    assert asker.ask("GET", "/", status, parameters={"a": "b c"}) == 200
    assert (service.connections, service.seen[-1][0]) == (2, "/?a=b+c")


@pytest.mark.parametrize("failure", [503, 429, "drop", "short"])
def test_what_passes_is_tried_again(service: Service, failure: int | str) -> None:
    service.answers = [failure]
    assert client(service.url).ask("GET", "/", status) == 200


def test_what_lasts_ends_with_the_reason_of_each_host(service: Service) -> None:
    service.answers = [503] * 9
    with pytest.raises(NoAnswerError) as failed:
        client(NOBODY, service.url).ask("GET", "/", status)
    refused, busy = (
        f"{NOBODY} could not be asked (Connection refused)",
        f"{service.url} answered with status 503",
    )
    assert str(failed.value) == f"{refused}; {busy}"
    assert len(service.seen) == 3


def test_pauses_grow_and_vary_and_heed_the_service(service: Service) -> None:
    pauses: list[float] = []
    waits = tuple(0.2 * 2**number for number in range(6))
    asker = client(NOBODY, waits=waits, sleep=pauses.append)
    with pytest.raises(NoAnswerError):
        asker.ask("GET", "/", status)
    assert all(wait / 2 <= pause <= wait for wait, pause in zip(waits, pauses, strict=True))
    pauses.clear()
    service.answers, service.headers = [429, 200], {"Retry-After": "0.7"}
    client(service.url, waits=(0.5,), sleep=pauses.append).ask("GET", "/", status)
    service.answers, service.headers = [429, 200], {"Retry-After": "3600"}
    client(service.url, waits=(0.5,), sleep=pauses.append).ask("GET", "/", status)
    service.answers, service.headers = [429, 200], {"Retry-After": "Sat, 28 Nov 2026 12:00:00 GMT"}
    client(service.url, waits=(0.5,), sleep=pauses.append).ask("GET", "/", status)
    assert pauses[:2] == [0.7, 1.0]
    assert pauses[2] <= 0.5


@pytest.mark.parametrize("failure", [503, "drop", "short", "slow head"])
def test_what_must_not_be_repeated_is_sent_once(service: Service, failure: int | str) -> None:
    service.answers = [failure]
    with pytest.raises(NoAnswerError):
        client(service.url, service.url, total=0.3).ask("POST", "/", status, document={}, repeatable=False)
    assert len(service.seen) == 1


def test_what_was_not_sent_goes_to_another_host(service: Service) -> None:
    asker = client(NOBODY, service.url)
    assert asker.ask("POST", "/", status, document={}, repeatable=False) == 200
    service.answers = [200, 200]
    assert [asker.ask("GET", "/", status) for _ in range(2)] == [200, 200]
    assert asker._first == 1, "the host that answered last is asked first"


def test_a_kept_connection_that_the_service_closed_is_no_failure(service: Service) -> None:
    asker = client(service.url, waits=())
    service.answers = ["close", 200, 200, "drop", 200]
    # The third answer leaves a kept connection, whether or not the second found the first one closed in time.
    assert [asker.ask("GET", "/", status) for _ in range(3)] == [200, 200, 200]
    assert asker.ask("GET", "/", status) == 200, "dropped on the kept connection, asked on a new one"
    service.answers = ["drop"] * 2
    with pytest.raises(NoAnswerError):
        asker.ask("GET", "/", status)


def test_redirects_are_answers(service: Service) -> None:
    service.answers = [302]
    assert client(service.url).ask("GET", "/", status) == 302
    assert len(service.seen) == 1


def test_no_proxy_of_the_environment(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, NOBODY)
    monkeypatch.delenv("no_proxy", raising=False)
    assert client(service.url).ask("GET", "/", status) == 200


@pytest.mark.parametrize("failure", ["slow head", "slow body"])
def test_a_byte_now_and_then_ends(service: Service, failure: str) -> None:
    service.answers = [failure]
    with pytest.raises(NoAnswerError, match="gave no complete answer in time"):
        client(service.url, waits=(), total=0.3).ask("GET", "/", status)


def test_silence_ends_before_the_whole_time(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NoAnswerError, match="gave no complete answer in time"):
            client(url, waits=(), total=600.0, silence=0.05).ask("GET", "/", status)


def test_an_answer_is_not_cut_and_not_too_long(service: Service) -> None:
    service.answers = ["short", "long"]
    with pytest.raises(NoAnswerError, match=r"not HTTP \(IncompleteRead\)"):
        client(service.url, waits=()).ask("GET", "/", status)
    with pytest.raises(NoAnswerError, match="has more than 1999 bytes"):
        client(service.url, waits=(), largest=1999).ask("GET", "/", status)
    service.answers = ["long"]
    assert client(service.url, largest=2000).ask("GET", "/", lambda answer: len(answer.body)) == 2000


def test_what_take_raises(service: Service) -> None:
    asker = client(service.url, waits=())
    with pytest.raises(NoAnswerError, match="not the JSON expected"):
        asker.ask("GET", "/", lambda answer: int("secret"))
    with pytest.raises(KeyError):
        asker.ask("GET", "/", lambda answer: answer.document()["absent"])


def test_cookies_are_kept_where_asked_for(service: Service) -> None:
    service.headers = {"Set-Cookie": "session=7; Path=/"}
    for keeps, sent in ((True, "session=7"), (False, None)):
        asker = client(service.url, keeps_cookies=keeps)
        asker.ask("GET", "/", status)
        asker.ask("GET", "/", status)
        assert service.seen[-1][2] == sent


def test_a_forked_process_has_connections_of_its_own(service: Service) -> None:
    asker = client(service.url)
    asker.ask("GET", "/", status)
    child = os.fork()
    if not child:
        try:
            asker.ask("GET", "/", status)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    asker.ask("GET", "/", status)
    ports = [port for _, port, _ in service.seen]
    assert ports[0] == ports[2] != ports[1]


def test_neither_bodies_nor_what_is_sent_is_shown(service: Service) -> None:
    service.answers = ["drop"] * 2
    with pytest.raises(NoAnswerError) as failed:
        client(service.url, waits=(), headers=lambda host: {"Authorization": "Bearer s3cret"}).ask(
            "GET", "/s3cret", status, parameters={"password": "s3cret"}
        )
    shown = client(service.url).ask("GET", "/", lambda answer: answer)
    assert not re.search("s3cret|body|headers", f"{failed.value!r} {shown!r}")
