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

from lockgate.errors import UnsafePathError
from lockgate.framework.governance import AuditLog, Record


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
    whole = []
    for line in path.read_text().splitlines():
        try:
            whole.append(json.loads(line)["resource"])
        except ValueError:
            continue  # the part that the disk took before it was full
    assert whole == [f"lake/db/t{number}" for number in range(10)]


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
