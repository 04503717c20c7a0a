"""Delivery to one receiver: order, failures, full queues, ends, and forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from lockgate.framework.delivery import Delivery, Line, Spool


class Receiver:
    """Takes records, but fails so many times before; `gate` holds it up."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.records, self.sizes = fails, list[int](), list[int]()
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()

    def write(self, records: Sequence[int]) -> None:
        self.entered.set()
        assert self.gate.wait(30)
        if self.fails:
            self.fails -= 1
            raise OSError("away")
        self.records += records
        self.sizes.append(len(records))


def test_records_arrive_in_order_and_nothing_runs_without_them() -> None:
    receiver = Receiver()
    delivery = Delivery("receiver", receiver.write, capacity=10_000)
    assert delivery.flush(0)
    assert delivery._thread is None
    for number in range(5_000):
        delivery.offer(number)
    assert delivery.flush(30)
    assert receiver.records == list(range(5_000))
    assert (delivery.written, delivery.dropped) == (5_000, 0)
    delivery.close(10)
    assert not delivery._thread.is_alive()  # type: ignore[attr-defined]  # it has started by now
    delivery.offer(5_000)
    assert delivery.flush(1)
    assert (delivery.written, delivery.dropped) == (5_000, 1), "what comes after the end is counted"


def test_a_failure_is_tried_again_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    receiver = Receiver(fails=2)
    delivery = Delivery("receiver 'r'", receiver.write, capacity=10, waits=(0.0,))
    delivery.offer(1)
    assert delivery.flush(30)
    assert receiver.records == [1]
    receiver.fails = 3
    delivery.offer(2)
    assert delivery.flush(30)
    assert (receiver.records, delivery.dropped) == ([1], 1)
    texts = [each.getMessage() for each in caplog.records]
    assert texts == ["receiver 'r': it takes no records (OSError: away)"] * 2


def test_records_linger_for_others_unless_someone_waits() -> None:
    receiver = Receiver()
    delivery = Delivery("receiver", receiver.write, capacity=10_000, linger=3_600.0)
    for number in range(3_999):
        delivery.offer(number)
    assert receiver.entered.wait(30), "a full batch waits for nothing"
    assert delivery.flush(30)
    assert max(receiver.sizes) == 2_000
    assert sum(receiver.sizes) == 3_999
    delivery.offer(1)
    delivery.close(30)
    assert receiver.records[-1] == 1


def test_a_full_queue_drops_the_newest() -> None:
    receiver = Receiver()
    receiver.gate.clear()
    delivery = Delivery("receiver", receiver.write, capacity=3)
    delivery.offer(0)
    assert receiver.entered.wait(30)
    for number in range(1, 20):
        delivery.offer(number)
    assert not delivery.flush(0.01)
    receiver.gate.set()
    assert delivery.flush(30)
    assert (receiver.records, delivery.dropped) == ([0, 1, 2, 3], 16)


def test_a_delivery_ends_although_the_receiver_is_away(tmp_path: Path) -> None:
    def away(records: Sequence[object]) -> None:
        raise OSError("away")

    without = Delivery("receiver", away, capacity=10_000, waits=(3_600.0,))
    spooled = Delivery(
        "receiver", away, capacity=10_000, waits=(3_600.0,), spool=Spool(tmp_path, most_bytes=1 << 20)
    )
    for number in range(5_000):
        without.offer(number)
        spooled.offer({"n": number})
    without.close(30)
    spooled.close(30)
    assert (without.written, without.dropped) == (0, 5_000)
    assert (spooled.written, spooled.dropped) == (0, 0)
    found = list[Line]()
    later: Delivery[Line] = Delivery("r", found.extend, capacity=1, spool=Spool(tmp_path, most_bytes=1 << 20))
    assert later.flush(30)
    later.close(30)
    assert [line["n"] for line in found] == list(range(5_000))


def test_a_living_process_takes_over_what_another_one_leaves(tmp_path: Path) -> None:
    arrived, found = threading.Event(), list[Line]()

    def take(lines: Sequence[Line]) -> None:
        found.extend(lines)
        arrived.set()

    delivery = Delivery("receiver", take, capacity=1, spool=Spool(tmp_path, most_bytes=1 << 20))
    assert delivery.flush(30)
    other = Spool(tmp_path, most_bytes=1 << 20)
    other.add([{"n": 1}])
    other.cut()
    assert arrived.wait(30), "without a record of its own"
    delivery.close(30)
    assert found == [{"n": 1}]


def test_a_forked_process_has_a_queue_of_its_own(tmp_path: Path) -> None:
    receiver = Receiver()
    receiver.gate.clear()
    delivery = Delivery("receiver", receiver.write, capacity=10)
    delivery.offer(1)
    assert receiver.entered.wait(30)
    delivery.offer(2)
    child = os.fork()
    if not child:
        status = 1
        try:
            receiver.gate.set()
            delivery.offer(3)
            status = 0 if delivery.flush(30) and receiver.records == [3] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    receiver.gate.set()
    assert delivery.flush(30)
    assert receiver.records == [1, 2]
