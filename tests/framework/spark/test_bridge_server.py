"""The socket that the connector asks over, spoken to here by a client that may lie."""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bridge_client import Client
from messages import question

from lockgate.errors import BridgeError, LockgateError
from lockgate.framework.spark.bridge import bridge_server as server_module
from lockgate.framework.spark.bridge import transport
from lockgate.framework.spark.bridge.bridge_server import BridgeServer
from lockgate.framework.spark.bridge.dispatcher import Dispatcher

NOBODY = 65534


def echo(question: bytes) -> bytes:
    return question[::-1]


@pytest.fixture
def serve() -> Iterator[Callable[..., BridgeServer]]:
    """A function that starts a server, which is closed afterwards."""
    started: list[BridgeServer] = []

    def start(answer: Callable[[bytes], bytes] = echo) -> BridgeServer:
        started.append(BridgeServer(answer, lambda: None))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_questions_and_answers(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    with Client(server, server.secret) as client:
        assert len(client.name) == 32
        assert client.ask(b"abc") == b"cba"
        assert client.ask(b"") == b""
        long = os.urandom(3 << 20)
        assert client.ask(long) == long[::-1]


def test_a_wrong_secret_is_refused(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    for wrong in ("", "0" * 64, server.secret[:-1], server.secret + "0", server.secret.upper() + " "):
        with Client(server) as client:
            client.send(wrong.encode())
            assert client.is_closed()
    with Client(server) as client:  # a question instead of the secret
        client.send(json.dumps({"operation": "table.drop", "request": {}}).encode())
        assert client.is_closed()
    assert server.secret not in repr(server)


def test_before_the_secret_only_little_is_taken(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    with Client(server) as client:
        client.send(b"", length=1 << 20)
        assert client.is_closed()
    with Client(server) as client:
        client.send(b"", kind=1, length=64)
        assert client.is_closed()


def test_who_says_nothing_is_not_waited_for(
    serve: Callable[..., BridgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_HELLO_SECONDS", 0.2)
    with Client(serve()) as client:
        assert client.is_closed()


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("!BI", 7, 3) + b"abc",
        struct.pack("!BI", 0, (4 << 20) + 1),
        struct.pack("!BI", 0, 0xFFFFFFFF),
        struct.pack("!BI", 1, 0xFFFFFFFF),
        b"c\np0\ncall\nskeys.unwrap\ne\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_garbage_ends_the_connection(serve: Callable[..., BridgeServer], garbage: bytes) -> None:
    server = serve()
    with Client(server, server.secret) as client:
        client.socket.sendall(garbage)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()
    with Client(server, server.secret) as client:
        assert client.ask(b"still there") == b"ereht llits"


def test_a_message_that_ends_too_early_is_not_answered(serve: Callable[..., BridgeServer]) -> None:
    asked: list[bytes] = []
    server = serve(lambda question: asked.append(question) or b"")  # type: ignore[func-returns-value]  # append answers None, so the rest is returned
    for sent in (b"\0", struct.pack("!BI", 0, 10), struct.pack("!BI", 0, 10) + b"drop tab"):
        with Client(server, server.secret) as client:
            client.socket.sendall(sent)
            client.socket.shutdown(socket.SHUT_WR)
            assert client.is_closed()
    assert asked == []


def test_long_messages_are_in_files_of_the_connection(
    serve: Callable[..., BridgeServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LARGEST_FRAME", 64)
    server = serve()
    with Client(server, server.secret) as client:
        content = b"0123456789" * 10
        path = server.folder / f"{client.name}.question"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, content)
        os.close(descriptor)
        client.send(b"", kind=1, length=100)
        assert client.receive() == content[::-1]
        assert not path.exists()
        answer = server.folder / f"{client.name}.answer"
        assert stat.S_IMODE(answer.stat().st_mode) == 0o600
    while server.connections:
        threading.Event().wait(0.01)
    assert [each.name for each in server.folder.iterdir()] == ["socket"]


def test_only_a_plain_file_of_the_right_length_is_taken(
    serve: Callable[..., BridgeServer], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 100)
    asked: list[bytes] = []
    server = serve(lambda question: asked.append(question) or b"")  # type: ignore[func-returns-value]  # append answers None, so the rest is returned

    def link(path: Path) -> None:
        path.symlink_to(secret)

    def short(path: Path) -> None:
        path.write_bytes(b"x" * 99)

    def long(path: Path) -> None:
        path.write_bytes(b"x" * 101)

    def folder(path: Path) -> None:
        path.mkdir()

    for make in (link, short, long, folder, lambda path: None):
        with Client(server, server.secret) as client:
            path = server.folder / f"{client.name}.question"
            make(path)
            client.send(b"", kind=1, length=100)
            assert client.is_closed(), make
        if path.is_dir():
            path.rmdir()
    assert asked == []
    assert secret.read_bytes() == b"x" * 100


def test_a_path_in_a_question_is_only_a_text(serve: Callable[..., BridgeServer], tmp_path: Path) -> None:
    victim = tmp_path / "keys.json"
    victim.write_text('{"operation": "bridge.hello", "request": {}}')
    server = serve(Dispatcher().reply)
    questions: list[object] = [
        {"ref": str(victim)},
        question("keys.unwrap", {"ref": str(victim)}),
        question("bridge.hello", {}),
        question("bridge.hello", {"ref": str(victim)}),
        question("__class__", {}),
        question("reply", {}),
        {**question("bridge.hello", {}), "ref": str(victim)},
        {**question("bridge.hello", {}), "operation": ["bridge.hello"]},
        {**question("bridge.hello", {}), "request": []},
        {**question("bridge.hello", {}), "asker": "1"},
        {**question("bridge.hello", {}), "session": 1},
        {"operation": "bridge.hello", "request": {}},
        {**question("bridge.hello", {}), "user": ""},
        {**question("bridge.hello", {}), "user": 1},
        [],
        None,
    ]
    with Client(server, server.secret) as client:
        answers = [json.loads(client.ask(json.dumps(question).encode()) or b"") for question in questions]
        assert b"BridgeError" in (client.ask(b"\xff\xfe") or b"")
    assert victim.exists()
    assert [list(answer) for answer in answers] == [["error"]] * 2 + [["ok", "governed"]] + [["error"]] * 13


def test_many_at_once_each_get_their_own_answer(serve: Callable[..., BridgeServer]) -> None:
    gate = threading.Barrier(40)

    def together(question: bytes) -> bytes:
        gate.wait(30)  # only passes if 40 questions are answered at the same time
        return question[::-1]

    server = serve(together)

    def ask(number: int) -> bool:
        with Client(server, server.secret) as client:
            return client.ask(b"%04d" % number) == (b"%04d" % number)[::-1]

    with ThreadPoolExecutor(40) as pool:
        assert all(pool.map(ask, range(40)))


def test_threads_end_with_their_connections(serve: Callable[..., BridgeServer]) -> None:
    ended = threading.Semaphore(0)
    server = BridgeServer(echo, ended.release)
    try:
        before = threading.active_count()
        for _ in range(5):
            with Client(server, server.secret) as client:
                client.ask(b"x")
        for _ in range(5):
            assert ended.acquire(timeout=20)
        while threading.active_count() > before:
            threading.Event().wait(0.01)
        assert server.connections == 0
    finally:
        server.close()


def test_closing_ends_everything(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    with Client(server, server.secret) as client:
        server.close()
        assert client.is_closed()
    assert not server.folder.exists()


def test_the_folder_is_this_users_alone(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    status = server.folder.lstat()
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert status.st_uid == os.geteuid()
    assert stat.S_IMODE((server.folder / "socket").lstat().st_mode) == 0o600
    assert len(os.fsencode(server.folder / "socket")) <= 103
    assert len(server.secret) == 64


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """A function that sets the folder for temporary files."""
    return lambda path: monkeypatch.setattr(tempfile, "tempdir", str(path))


def test_a_long_path_is_passed_over(
    serve: Callable[..., BridgeServer], tmp_path: Path, temporary: Callable[[Path], None]
) -> None:
    long = tmp_path / ("n" * 90)
    long.mkdir()
    temporary(long)
    server = serve()
    assert long not in server.folder.parents
    with Client(server, server.secret) as client:
        assert client.ask(b"ab") == b"ba"


def test_a_folder_that_others_can_change_is_passed_over(
    serve: Callable[..., BridgeServer], temporary: Callable[[Path], None]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        temporary(Path(folder))
        assert serve().folder.parent != Path(folder)


def test_without_any_folder_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Path:
        raise PermissionError(f"cannot make {path}")

    monkeypatch.setattr(server_module, "make_private_folder", refuse)
    with pytest.raises(BridgeError, match="TMPDIR"):
        BridgeServer(echo, lambda: None)


def test_what_killed_processes_left_is_removed(
    serve: Callable[..., BridgeServer], monkeypatch: pytest.MonkeyPatch, temporary: Callable[[Path], None]
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        temporary(Path(folder))
        killed = """
            import os, sys, tempfile
            from lockgate.framework.spark.bridge.bridge_server import BridgeServer
            tempfile.tempdir = sys.argv[1]
            BridgeServer(bytes, print)
            os._exit(9)
        """
        code = "\n".join(line.strip() for line in killed.splitlines())
        subprocess.run([sys.executable, "-c", code, folder], check=False, timeout=60)
        (left,) = Path(folder).iterdir()
        living = serve()
        assert left.exists(), "it may be another process that is about to listen"
        monkeypatch.setattr(server_module, "_LEFT_BEHIND_SECONDS", -1.0)
        serve()
        assert not left.exists()
        assert living.folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_gets_no_answer(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    code = """
import os, socket, struct, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
try:
    s.connect(sys.argv[1])
    s.sendall(struct.pack("!BI", 0, 64) + sys.argv[2].encode())
    print(s.recv(100))
except OSError as error:
    print(type(error).__name__)
"""

    def stranger() -> str:
        command = [sys.executable, "-c", code, str(server.folder / "socket"), server.secret]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    assert stranger() == "PermissionError"
    # Even if the folder were open, and the secret known.
    server.folder.chmod(0o777)
    (server.folder / "socket").chmod(0o777)
    assert stranger() in ("b''", "ConnectionResetError", "BrokenPipeError")


def test_what_a_fork_does_at_its_end_leaves_the_server_alone(serve: Callable[..., BridgeServer]) -> None:
    server = serve()
    server.pid += 1
    server.close()
    server.pid -= 1
    assert server.folder.exists()
    with Client(server, server.secret) as client:
        assert client.ask(b"ab") == b"ba"


def test_errors_are_answers() -> None:
    def fail(*_: object) -> None:
        raise LockgateError("plain words")

    made = Dispatcher()
    made._handler = fail  # type: ignore[assignment,method-assign]  # a handler that fails
    answer = json.loads(made.reply(json.dumps(question("table.load", {})).encode()))
    assert answer == {"error": {"type": "LockgateError", "message": "plain words"}}
