"""The progress bar: only on a terminal, only after a second, and gone at the end."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest

from lockgate.cli import progress as cli_progress
from lockgate.cli.progress import Progress, WatchedSource, watched
from lockgate.framework.orc.sources.file_source import open_source


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """A clock that only the test moves."""
    found = Clock()
    monkeypatch.setattr(cli_progress, "time", found)
    # Only the tests draw.
    monkeypatch.setattr(cli_progress, "_BETWEEN_SECONDS", 3600)
    return found


def drawn(progress: Progress, done: int, total: int) -> str:
    progress.show(done, total)
    progress.draw()
    return str(progress._stream.getvalue())


def test_it_shows_after_a_second_and_goes(clock: Clock) -> None:
    terminal = Terminal()
    with Progress("reading x", terminal) as progress:
        clock.now += 0.9
        assert drawn(progress, 10, 100) == ""
        clock.now += 1.1
        shown = drawn(progress, 25, 100)
        assert "reading x [#######" in shown
        assert "25%, 0:06 left" in shown
        assert drawn(progress, 25, 100) == shown, "nothing new"
        clock.now += 4000
        assert "50%, 1:06:42 left" in drawn(progress, 50, 100)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nothing_where_no_terminal_is() -> None:
    stream = io.StringIO()
    with Progress("reading x", stream) as progress:
        progress.show(1, 2)
        assert progress._thread is None
    assert stream.getvalue() == ""


def test_quick_work_shows_nothing(clock: Clock) -> None:
    terminal = Terminal()
    with Progress("reading x", terminal) as progress:
        drawn(progress, 1, 1)
    assert terminal.getvalue() == ""


def test_odd_numbers_and_names(clock: Clock) -> None:
    with Progress("a\x1b[2J", Terminal()) as progress:
        clock.now += 2
        assert "  0%\x1b" in drawn(progress, 0, 0)
        clock.now += 2
        assert "100%, 0:00 left" in drawn(progress, 7, 5)
        assert "\x1b[2J" not in drawn(progress, 7, 5)


def test_a_narrow_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with Progress("a long label for it", Terminal()) as progress:
        clock.now += 2
        assert len(drawn(progress, 1, 2).removeprefix("\r").removesuffix("\x1b[K")) == 19


def test_it_draws_while_the_work_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_progress, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(cli_progress, "_BETWEEN_SECONDS", 0.001)
    seen = threading.Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if "40%" in text:
                seen.set()
            return super().write(text)

    with Progress("reading x", Watched()) as progress:
        progress.show(2, 5)
        assert seen.wait(30)


def test_a_watched_source_counts_what_is_read() -> None:
    heard: list[tuple[int, int]] = []
    source = WatchedSource(open_source(b"0123456789"), lambda done, total: heard.append((done, total)))
    assert bytes(source.read_at(2, 3)) == b"234"
    assert [bytes(each) for each in source.read_ranges([(0, 1), (8, 2)])] == [b"0", b"89"]
    assert heard == [(3, 10), (6, 10)]


def test_without_a_terminal_the_path_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with watched("some.orc", "reading") as source:
        assert source == "some.orc"


def test_on_a_terminal_the_file_is_watched(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with watched(__file__, "reading") as source:
        assert isinstance(source, WatchedSource)
        assert source.read_at(0, 3)
