"""Work on several threads with results in order, and a limit on the results in memory."""

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
    """Return the number of threads to use: `threads`, or if None one for each available core."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(f"threads must be 1 or more, or None for one per core, not {threads!r}")
    return threads


def in_order(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """Yield the results of `work` for `items`, in order, computed by up to `threads` threads.

    At most `threads` results are finished or in work while the caller holds the previous one, so at most
    `threads + 1` are in memory. An error of `work` is raised in its place in the order, and no later item is
    started. When the iterator ends, fails or is closed, all threads have ended. With one thread, or one item,
    the calling thread does the work.
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
            # Start the next item only now: before, the caller may still hold the last result.
            for item in waiting:
                running.append(pool.submit(work, item))
                if len(running) == threads:
                    break
            if not running:
                return
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
