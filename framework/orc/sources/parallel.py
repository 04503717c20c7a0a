"""Work on several threads whose results come in order, with a bound on how many of them are in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from lockgate.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: as asked for, or one for each core this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(f"threads must be 1 or more, or None for one per core, not {threads!r}")
    return threads


def in_order(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the results of `work` for each of `items`, in their order, computed by up to `threads` threads.

    At most `threads` results are finished or being made while the caller still holds the one before, so
    `threads + 1` are in memory. An error of `work` is raised in its place, and nothing behind it is begun.
    When the iterator ends, fails or is closed, no thread runs any more. With one thread, or one item, the
    work is done by the calling thread.
    """
    if threads == 1 or len(items) <= 1:
        for item in items:
            yield work(item)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix="lockgate-orc")
    waiting = iter(items)
    running: deque[Future[Result]] = deque()
    try:
        while True:
            # The next is begun when the caller asks again, not before: until then it may hold the last one.
            for item in waiting:
                running.append(pool.submit(work, item))
                if len(running) == threads:
                    break
            if not running:
                return
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
