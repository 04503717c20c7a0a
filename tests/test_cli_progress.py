"""The progress bar: only on a terminal, only after a second, and gone at the end."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from lockgate import cli_progress
from lockgate.cli_progress import Progress, WatchedSource, watched
from lockgate.framework.orc.source import open_source


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
    return found


def test_it_shows_after_a_second_and_goes(clock: Clock) -> None:
    terminal = Terminal()
    with Progress("reading x", terminal) as progress:
        clock.now += 0.9
        progress.show(10, 100)
        assert terminal.getvalue() == ""
        clock.now += 1.1
        progress.show(25, 100)
        assert "reading x [#######" in terminal.getvalue()
        assert "25%, 0:06 left" in terminal.getvalue()
        size = len(terminal.getvalue())
        clock.now += 0.01
        progress.show(26, 100)
        assert len(terminal.getvalue()) == size, "not so often that it costs time"
        clock.now += 4000
        progress.show(50, 100)
        assert "50%, 1:06:42 left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    progress.show(100, 100)
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_nothing_where_no_terminal_is(clock: Clock) -> None:
    stream = io.StringIO()
    with Progress("reading x", stream) as progress:
        clock.now += 5
        progress.show(1, 2)
    assert stream.getvalue() == ""


def test_quick_work_shows_nothing(clock: Clock) -> None:
    terminal = Terminal()
    with Progress("reading x", terminal) as progress:
        progress.show(1, 1)
    assert terminal.getvalue() == ""


def test_odd_numbers_and_names(clock: Clock) -> None:
    terminal = Terminal()
    with Progress("a\x1b[2J", terminal) as progress:
        clock.now += 2
        progress.show(0, 0)
        clock.now += 2
        progress.show(7, 5)
    assert "\x1b[2J" not in terminal.getvalue()
    assert "  0%\x1b" in terminal.getvalue()
    assert "100%, 0:00 left" in terminal.getvalue()


def test_a_narrow_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with Progress("a long label for it", terminal) as progress:
        clock.now += 2
        progress.show(1, 2)
        assert len(terminal.getvalue().removeprefix("\r").removesuffix("\x1b[K")) == 19


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
