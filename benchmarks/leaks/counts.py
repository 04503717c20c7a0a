"""What the driver's Python, its JVM and an executor hold: threads, descriptors, memory maps and memory."""

from __future__ import annotations

import contextlib
import gc
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

# Counted after Spark's pools have let their idle threads go, which they do after 60 s.
SETTLE_SECONDS = 75.0


class Counts:
    """Counts what this process and the JVM of a Spark context hold."""

    def __init__(self, context: Any) -> None:
        self._jvm = context._jvm
        self._pid = int(self._jvm.java.lang.ProcessHandle.current().pid())
        self._threads = self._jvm.java.lang.management.ManagementFactory.getThreadMXBean()

    def take(self) -> dict[str, int]:
        """Collect garbage in both processes, and count."""
        gc.collect()
        self._jvm.System.gc()
        found = {f"python_{name}": value for name, value in _of_process("self").items()}
        found |= {f"jvm_{name}": value for name, value in _of_process(str(self._pid)).items()}
        for executor in _executors(self._pid):
            found |= {f"executor_{name}": value for name, value in _of_process(executor).items()}
        found["java_threads"] = int(self._threads.getThreadCount())
        found["bridge_connections"] = int(self._jvm.io.lockgate.spark.bridge.Bridge.python().connections())
        return found

    def settled(self, seconds: float = SETTLE_SECONDS) -> dict[str, int]:
        """Wait until idle threads of Spark's pools have ended, and count."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(min(5.0, seconds))
            self._jvm.System.gc()
        return self.take()

    def java_threads(self) -> Counter[str]:
        """How many threads of each name, without its numbers, live in the JVM."""
        dump = self._threads.dumpAllThreads(False, False)
        return Counter("".join(c for c in str(info.getThreadName()) if not c.isdigit()) for info in dump)

    def descriptors(self) -> Counter[str]:
        """What the descriptors of this process lead to, without numbers."""
        found: Counter[str] = Counter()
        for link in Path("/proc/self/fd").iterdir():
            try:
                found["".join(c for c in str(link.readlink()) if not c.isdigit())] += 1
            except FileNotFoundError:
                continue
        return found


def _of_process(pid: str) -> dict[str, int]:
    home = Path("/proc") / pid
    status = dict(line.split(":", 1) for line in (home / "status").read_text().splitlines())
    return {
        "threads": len(list((home / "task").iterdir())),
        "descriptors": len(list((home / "fd").iterdir())),
        "maps": (home / "maps").read_text().count("\n"),
        "rss_kb": int(status["VmRSS"].split()[0]),
    }


def _executors(driver: int) -> list[str]:
    """The executor that the worker in a driver's JVM has started, if there is one."""
    found = []
    for children in (Path("/proc") / str(driver) / "task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread or a child that ended
            found += [pid for pid in children.read_text().split() if _is_executor(pid)]
    return found[:1]


def _is_executor(pid: str) -> bool:
    return b"ExecutorBackend" in (Path("/proc") / pid / "cmdline").read_bytes()


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """How much more there is of each."""
    return {name: after[name] - before[name] for name in after}


def repeat(work: Callable[[int], object], times: int, first: int = 0) -> float:
    """Do something so many times; returns the seconds it took."""
    started = time.monotonic()
    for number in range(first, first + times):
        work(number)
    return time.monotonic() - started


def as_text(counts: Mapping[str, int]) -> str:
    """Write counts for a person."""
    return json.dumps(dict(counts))
