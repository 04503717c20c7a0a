"""Audit: Ranger's fields, queues, spools, and what happens while a destination is down."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.errors import OptionError, RecordsRefusedError, UnsafePathError
from lockgate.framework.governance import AuditLog, Record
from lockgate.framework.plugins import hookimpl, plugins


def record(number: int = 0, **more: Any) -> Record:
    return Record(
        **{
            "user": "ann",
            "access": "select",
            "resource": f"lake/db/t{number}",
            "kind": "table",
            "allowed": False,
            "policy": -1,
            "version": 7,
            **more,
        }
    )


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


def test_records_have_rangers_fields(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.json", service="lake", cluster="east")
    for number in range(3):
        log(record(number, action="SELECT", service_type=42, zone="z", statement="SELECT 1"))
    log.close()
    lines = lines_of(tmp_path / "audit.json")
    assert [line["resource"] for line in lines] == ["lake/db/t0", "lake/db/t1", "lake/db/t2"]
    assert {
        "repo": "lake",
        "repoType": 42,
        "reqUser": "ann",
        "access": "SELECT",
        "action": "select",
        "result": 0,
        "policy": -1,
        "policy_version": 7,
        "zone_name": "z",
        "cluster_name": "east",
        "resType": "table",
        "enforcer": "ranger-acl",
        "logType": "RangerAudit",
        "event_count": 1,
        "reqData": "SELECT ?",
        "seq_num": 1,
    }.items() <= lines[0].items()
    assert time.strptime(lines[0]["evtTime"][:-4], "%Y-%m-%d %H:%M:%S")
    assert len({line["id"] for line in lines}) == 3
    assert log.written == 3


def test_literals_are_masked_unless_wanted(tmp_path: Path) -> None:
    text = "SELECT * FROM t WHERE ssn = '123-45' AND salary > 90000 -- the boss"
    for literals in (False, True):
        log = AuditLog(tmp_path / f"{literals}", service="lake", literals=literals)
        log(record(statement=text))
        log(record(statement="'" + "x" * 10_000_000))
        log.close()
    masked, long = lines_of(tmp_path / "False")
    assert masked["reqData"] == "SELECT * FROM t WHERE ssn = ? AND salary > ?"
    assert long["reqData"] == "?"
    shown, long = lines_of(tmp_path / "True")
    assert shown["reqData"] == text
    assert len(long["reqData"]) == 1800


def test_what_cannot_be_written_is_counted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "absent" / "audit.json", service="lake", capacity=2)
    for number in range(50):
        log(record(number))
    log.close()
    assert (log.dropped, log.written) == (50, 0)


def test_no_query_waits_for_a_destination() -> None:
    held, entered = threading.Event(), threading.Event()

    def write(lines: Sequence[Mapping[str, Any]]) -> None:
        entered.set()
        held.wait(30)

    log = AuditLog(SimpleNamespace(write=write), service="lake", capacity=5)
    log(record())
    assert entered.wait(10)
    start = time.monotonic()
    for number in range(1_000):
        log(record(number))
    assert time.monotonic() - start < 25, "the destination holds up others for 30 s"
    assert log.dropped == 995
    held.set()
    log.close()
    assert log.written == 6


def test_the_spool_outlives_a_process(tmp_path: Path) -> None:
    first = AuditLog(Down(), service="lake", spool=tmp_path / "spool")
    for number in range(5):
        first(record(number))
    first.close()
    assert first.dropped == 0
    sink = Down(up=True)
    second = AuditLog(sink, service="lake", spool=tmp_path / "spool")
    assert second.flush(10)
    second.close()
    assert [line["resource"] for line in sink.lines] == [f"lake/db/t{number}" for number in range(5)]


WRITER = """
import sys
from test_audit import Down, record
from lockgate.framework.governance import AuditLog
log = AuditLog(Down(), service="lake", spool=sys.argv[1])
number = 0
while True:
    log(record(number))
    number += 1
    if number % 500 == 0:
        log._lanes[0].flush(0.01)
        print(number, flush=True)
"""


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    """Kill -9 while the spool is written: the next process delivers it, but for the last half line."""
    paths = [str(Path(__file__).parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "spool")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.stdout is not None
    while int(process.stdout.readline()) < 5_000:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    sink = Down(up=True)
    log = AuditLog(sink, service="lake", spool=tmp_path / "spool")
    assert log.flush(10)
    log.close()
    numbers = [line["seq_num"] for line in sink.lines]
    assert len(numbers) > 1_000
    assert numbers == sorted(set(numbers))
    assert log.dropped <= 1
    assert list((tmp_path / "spool" / "destination-0").iterdir()) == []


def test_the_log_counts_what_destinations_refuse(tmp_path: Path) -> None:
    class Refusing(Down):
        def write(self, lines: Sequence[Mapping[str, Any]]) -> None:
            if any(line["resource"] == "lake/db/t1" for line in lines):
                raise RecordsRefusedError("status 400")
            super().write(lines)

    sink = Refusing(up=True)
    log = AuditLog(sink, tmp_path / "audit.json", service="lake", spool=tmp_path / "spool")
    for number in range(3):
        log(record(number))
    log.close()
    assert (log.refused, log.written, log.dropped) == (1, 5, 0)
    assert [line["resource"] for line in sink.lines] == ["lake/db/t0", "lake/db/t2"]


def test_a_spool_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir(mode=0o777)
    (tmp_path / "spool").chmod(0o777)
    with pytest.raises(UnsafePathError):
        AuditLog(Down(), service="lake", spool=tmp_path / "spool")


def test_one_destination_does_not_hold_up_another(tmp_path: Path) -> None:
    log = AuditLog(Down(), tmp_path / "audit.json", service="lake", spool=tmp_path / "spool")
    log(record())
    assert not log.flush(0.5)
    assert len(lines_of(tmp_path / "audit.json")) == 1
    log.close()


def test_plugins_add_destinations(tmp_path: Path) -> None:
    sink = Down(up=True)
    log = AuditLog(service="lake", spool=tmp_path / "spool")
    log(record(1))
    hook = hookimpl(lambda: {"mine": sink}, specname="lockgate_audit_sinks")
    plugins().register(SimpleNamespace(lockgate_audit_sinks=hook), "mine")
    try:
        log(record(2))
        assert log.flush(10)
        log.close()
    finally:
        plugins().unregister("mine")
    assert [line["resource"] for line in sink.lines] == ["lake/db/t2"]
    assert (tmp_path / "spool" / "plugin-mine").is_dir()


def test_what_is_no_destination_is_refused() -> None:
    with pytest.raises(OptionError, match=r"needs a path, or write\(lines\)"):
        AuditLog(42, service="lake")  # type: ignore[arg-type]  # that is the test
