"""Spools and deliveries from them: what waits on the disk, is refused, or belongs to other processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import RecordsRefusedError
from lockgate.framework.delivery import Delivery, Spool
from lockgate.framework.delivery import spool as spool_module


class Down:
    """A destination that takes nothing until it is `up`."""

    def __init__(self, *, up: bool = False) -> None:
        self.up, self.lines, self.tries = up, list[Mapping[str, Any]](), 0

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self.tries += 1
        if not self.up:
            raise OSError("the destination is down")
        self.lines += lines


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_destination_that_recovers_gets_what_waits(tmp_path: Path) -> None:
    sink = Down()
    spool = Spool(tmp_path / "spool", most_bytes=1 << 20)
    lane = Delivery("down", sink.write, capacity=100, spool=spool, waits=(0.02,))
    for number in range(10):
        lane.offer({"n": number})
    assert not lane.flush(0.2)
    assert sink.tries > 1
    sink.up = True
    assert lane.flush(10)
    assert [line["n"] for line in sink.lines] == list(range(10))
    lane.close(5)
    assert (lane.written, lane.dropped, list((tmp_path / "spool").iterdir())) == (10, 0, [])


def test_without_a_spool_a_batch_is_given_up_in_the_end() -> None:
    sink = Down()
    lane = Delivery("down", sink.write, capacity=100, waits=(0.01,))
    lane.offer({"n": 1})
    assert lane.flush(10), "given up is done"
    sink.up = True
    lane.offer({"n": 2})
    assert lane.flush(10)
    lane.close(5)
    assert ([line["n"] for line in sink.lines], lane.dropped, sink.tries) == ([2], 1, 4)


def test_half_a_line_in_a_spool_is_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", most_bytes=1 << 20)
    spool.add([{"n": 1}, {"n": 2}])
    spool.cut()
    (path,) = (tmp_path / "spool").iterdir()
    path.write_bytes(path.read_bytes()[:-4] + b"\n[1]\n\n")
    with spool.oldest() as found:
        assert found is not None
        assert (found.lines, found.damaged) == ([{"n": 1}], 2)


def test_files_of_living_processes_are_left_alone(tmp_path: Path) -> None:
    mine, other = (Spool(tmp_path / "spool", most_bytes=1 << 20) for _ in range(2))
    other.add([{"n": 1}])
    with mine.oldest() as found:
        assert found is None
    other.cut()
    with mine.oldest() as found, other.oldest() as theirs:
        assert found is not None
        assert theirs is None


def test_a_file_that_was_removed_before_it_was_locked_is_not_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes open the file; the first delivers and removes it before the second locks it."""
    first, second = (Spool(tmp_path / "spool", most_bytes=1 << 20) for _ in range(2))
    first.add([{"n": 1}])
    first.cut()
    opened = spool_module.open_private_file

    def race(path: Path, flags: int) -> int:
        number = opened(path, flags)
        monkeypatch.setattr(spool_module, "open_private_file", opened)
        with first.oldest() as found:
            assert found is not None
            found.remove()
        return number

    monkeypatch.setattr(spool_module, "open_private_file", race)
    with second.oldest() as found:
        assert found is None


def test_a_file_is_written_even_if_it_was_taken_before_it_was_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = (Spool(tmp_path / "spool", most_bytes=1 << 20) for _ in range(2))
    opened = spool_module.open_private_file

    def race(path: Path, flags: int) -> int:
        number = opened(path, flags)
        monkeypatch.setattr(spool_module, "open_private_file", opened)
        with other.oldest() as found:
            assert found is not None
            found.remove()
        return number

    monkeypatch.setattr(spool_module, "open_private_file", race)
    mine.add([{"n": 1}])
    mine.cut()
    with other.oldest() as found:
        assert found is not None
        assert found.lines == [{"n": 1}]


_DELIVERY = """
import sys
from pathlib import Path
from lockgate.framework.delivery import Delivery, Spool
from lockgate.framework.governance.audit.destinations import FileAudit

class Slow(FileAudit):
    def write(self, lines):
        print("writes", flush=True)
        sys.stdin.readline()
        super().write(lines)

folder, waits = Path(sys.argv[1]), sys.argv[2] == "waits"
sink = (Slow if waits else FileAudit)(folder / "audit.json")
lane = Delivery("shared", sink.write, capacity=10, spool=Spool(folder / "spool", most_bytes=1 << 30))
assert lane.flush(60)
lane.close(60)
print("ends", lane.written, flush=True)
"""


def _delivery(folder: Path, mode: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _DELIVERY, str(folder), mode]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _spooled(folder: Path, files: int) -> list[dict[str, Any]]:
    spool = Spool(folder / "spool", most_bytes=1 << 30)
    lines = [{"id": f"run-{number}"} for number in range(files)]
    for line in lines:
        spool.add([line])
        spool.cut()
    return lines


@pytest.mark.long
def test_two_processes_deliver_each_record_of_a_spool_once(tmp_path: Path) -> None:
    """The second one delivers while the first is within its write, and again after that one was killed."""
    lines = _spooled(tmp_path, 3)
    with _delivery(tmp_path, "waits") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "writes\n"
        with _delivery(tmp_path, "at once") as second:
            out, _ = second.communicate(timeout=60)
            assert out == "ends 2\n"
        first.kill()
        first.communicate()
    with _delivery(tmp_path, "at once") as third:
        assert third.communicate(timeout=60)[0] == "ends 1\n"
    assert sorted(line["id"] for line in lines_of(tmp_path / "audit.json")) == [line["id"] for line in lines]
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.long
def test_racing_processes_deliver_each_record_once(tmp_path: Path) -> None:
    lines = _spooled(tmp_path, 400)
    racers = [_delivery(tmp_path, "at once") for _ in range(4)]
    outs = [racer.communicate(timeout=120)[0] for racer in racers]
    assert sum(int(out.split()[1]) for out in outs) == 400
    assert sorted(line["id"] for line in lines_of(tmp_path / "audit.json")) == sorted(
        line["id"] for line in lines
    )


class Picky(Down):
    """A destination that takes no batch with a record of these numbers."""

    def __init__(self, *refused: int) -> None:
        super().__init__(up=True)
        self._refused = set(refused)

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self._refused.isdisjoint(line["n"] for line in lines):
            raise RecordsRefusedError("status 400")
        super().write(lines)


@pytest.mark.parametrize("has_spool", [True, False])
def test_a_refused_record_does_not_hold_up_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_spool: bool
) -> None:
    sink = Picky(0, 57)
    spool = Spool(tmp_path / "spool", most_bytes=1 << 20) if has_spool else None
    lane = Delivery("picky", sink.write, capacity=1_000, spool=spool)
    for number in range(100):
        lane.offer({"n": number, "id": f"run-{number}"})
    assert lane.flush(10)
    lane.offer({"n": 100, "id": "run-100"})
    assert lane.flush(10)
    lane.close(5)
    assert sorted(line["n"] for line in sink.lines) == [n for n in range(101) if n not in (0, 57)]
    assert (lane.written, lane.refused, lane.dropped) == (99, 2, 0 if has_spool else 2)
    assert "run-0" in caplog.text
    if has_spool:
        assert [line["n"] for line in lines_of(tmp_path / "spool" / "refused.json")] == [0, 57]
        assert str(tmp_path / "spool" / "refused.json") in caplog.text


def test_a_destination_that_refuses_everything_keeps_the_spool(tmp_path: Path) -> None:
    sink = Picky(*range(1_000))
    spool = Spool(tmp_path / "spool", most_bytes=1 << 20)
    spool.add([{"n": number} for number in range(1_000)])
    lane = Delivery("picky", sink.write, capacity=10, spool=spool, waits=(0.02,))
    assert not lane.flush(0.2)
    sink._refused.clear()
    assert lane.flush(10)
    lane.close(5)
    assert (len(sink.lines), lane.refused, lane.dropped) == (1_000, 0, 0)


def test_refused_records_do_not_fill_the_disk(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", most_bytes=200)
    spool.add([{"text": "x" * 100}])
    spool.cut()
    with spool.oldest() as due:
        assert due is not None
        assert spool.set_aside(due, due.lines) == tmp_path / "spool" / "refused.json"
        assert spool.set_aside(due, due.lines) is None


def test_a_full_spool_is_counted(tmp_path: Path) -> None:
    sink = Down()
    spool = Spool(tmp_path / "spool", most_bytes=5_000, file_bytes=500)
    lane = Delivery("down", sink.write, capacity=10_000, spool=spool, waits=(0.01,))
    for number in range(1_000):
        lane.offer({"n": number, "text": "x" * 100})
        if number % 20 == 0:
            lane.flush(0.02)
    lane.flush(0.1)
    sink.up = True
    assert lane.flush(10)
    lane.close(5)
    assert lane.dropped > 500
    assert len(sink.lines) + lane.dropped == 1_000
