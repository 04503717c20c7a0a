"""Audit on a full disk, and with the spool of another account: nothing blocks, and losses are counted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from full_disk import largest_file

from lockgate.errors import RecordsRefusedError, UnsafePathError
from lockgate.framework.delivery import Delivery, Spool
from lockgate.framework.delivery.spool import REFUSED
from lockgate.framework.governance import AuditLog, Record
from lockgate.framework.governance.audit.destinations import FileAudit


class Held:
    """A destination that takes lines once it is `up`."""

    def __init__(self) -> None:
        self.up, self.lines = False, list[Mapping[str, Any]]()

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.up:
            raise OSError("the destination is down")
        self.lines += lines


def record(number: int) -> Record:
    return Record("ann", "select", f"lake/db/t{number}", "table", True, 1, 7)


def offer(log: AuditLog, first: int, count: int) -> float:
    """Offer records as statements do; return the seconds that the slowest one took."""
    slowest = 0.0
    for number in range(first, first + count):
        start = time.monotonic()
        log(record(number))
        slowest = max(slowest, time.monotonic() - start)
    return slowest


def test_a_spool_on_a_full_disk_holds_up_nothing(tmp_path: Path) -> None:
    sink = Held()
    log = AuditLog(sink, service="lake", spool=tmp_path / "spool")
    offer(log, 0, 10)
    log.flush(0.3)
    with largest_file(20_000):  # room for about 50 records a file
        assert offer(log, 10, 1_000) < 1
        log.flush(1)
        assert log.dropped > 0
    offer(log, 1_010, 10)
    sink.up = True
    assert log.flush(30)
    log.close()
    names = [line["resource"] for line in sink.lines]
    assert len(names) == len(set(names))
    assert names[:10] == [f"lake/db/t{number}" for number in range(10)]
    assert names[-10:] == [f"lake/db/t{number}" for number in range(1_010, 1_020)]
    assert len(names) + log.dropped == 1_020, "every record arrives, or is counted"
    assert list((tmp_path / "spool" / "destination-0").iterdir()) == []


def test_a_log_file_on_a_full_disk_holds_up_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    log = AuditLog(path, service="lake", spool=tmp_path / "spool")
    offer(log, 0, 5)
    assert log.flush(10)
    with largest_file(path.stat().st_size + 100):
        assert offer(log, 5, 5) < 1
        assert not log.flush(0.5)
    assert log.flush(30)
    log.close()
    assert log.dropped == 0, "the spool had room"
    lines = [json.loads(line)["resource"] for line in path.read_text().splitlines()]
    assert lines == [f"lake/db/t{number}" for number in range(10)]


def test_a_full_disk_leaves_no_part_of_a_batch(tmp_path: Path) -> None:
    """What comes again after an error is not there yet, neither a part of a line nor whole lines."""
    path = tmp_path / "audit.json"
    destination = FileAudit(path)
    destination.write([{"n": 0}])
    with largest_file(path.stat().st_size + 25), pytest.raises(OSError, match="too large"):
        destination.write([{"n": number} for number in range(1, 5)])
    destination.write([{"n": number} for number in range(1, 5)])
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == [0, 1, 2, 3, 4]


class Picky:
    """A destination that refuses records of even numbers for good."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
        if any(line["n"] % 2 == 0 for line in lines):
            raise RecordsRefusedError("status 400")
        self.numbers += [line["n"] for line in lines]


def test_refused_records_on_a_full_disk_are_kept_and_accepted_ones_come_once(tmp_path: Path) -> None:
    sink, folder = Picky(), tmp_path / "spool"
    lane = Delivery("picky", sink.write, capacity=100, spool=Spool(folder, most_bytes=1 << 20), waits=(0.0,))
    lane.offer({"n": 0, "text": "x" * 2_000})
    assert lane.flush(10)
    size = (folder / REFUSED).stat().st_size
    with largest_file(size + 20):
        for number in range(1, 11):
            lane.offer({"n": number})
        assert lane.flush(10)
    lane.offer({"n": 12})
    assert lane.flush(10)
    lane.close(5)
    assert sorted(sink.numbers) == [1, 3, 5, 7, 9]
    assert (lane.written, lane.refused, lane.dropped) == (5, 7, 0)
    kept = [json.loads(line)["n"] for path in folder.iterdir() for line in path.read_text().splitlines()]
    assert sorted(kept) == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_the_spool_of_another_account_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "spool" / "destination-0"
    folder.mkdir(parents=True, mode=0o700)
    os.chown(folder, 12345, 12345)
    with pytest.raises(UnsafePathError, match="destination-0"):
        AuditLog(Held(), service="lake", spool=tmp_path / "spool")
    os.chown(folder, 0, 0)
    log = AuditLog(Held(), service="lake", spool=tmp_path / "spool")
    os.chown(folder, 12345, 12345)
    assert offer(log, 0, 20) < 1
    log.flush(0.5)
    log.close()
    assert log.dropped == 20
    assert list(folder.iterdir()) == [], "no record is written where another account can change it"
