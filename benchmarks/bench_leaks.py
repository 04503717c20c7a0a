#!/usr/bin/env python3
"""What is left behind by many queries of each kind: threads, descriptors, memory maps, memory.

Each count is one JSON line: how much more there is after `--times` repetitions, with the count before as the
baseline. Both are taken when Spark's pools have let go of their idle threads (`--settle`), which are no leak.
What there is after fewer repetitions (`--at`) is counted at once, with such threads. `--cluster` runs tasks
in an executor's JVM of its own, which asks for keys over Spark's RPC.
`--bridge` measures what one question of the JVM to Python takes, next to a callback of py4j.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from harness import REPETITIONS, describe_machine, emit, note
from leaks.counts import SETTLE_SECONDS, Counts, growth, repeat
from leaks.kinds import EVERY, Kinds, working
from sessions import open_lake

TIMES = 2000
MARKS = (200, 1000, 2000)
# Spark compiles nothing: its compiled code would count too, one for each number in a statement.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "1g",
}
UNITS = {"rss_kb": "KB"}


def main() -> int:
    """Repeat every kind of query, or those that are asked for."""
    arguments = _arguments()
    describe_machine()
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-leaks-"))
    try:
        if arguments.bridge:
            from leaks.calls import calls

            calls(folder, arguments.repetitions)
            return 0
        master = "local-cluster[1,1,1024]" if arguments.cluster else "local[1]"
        lake = open_lake(folder, keys=["pii"], master=master, more=QUICK)
        kinds, counts = Kinds(lake, folder), Counts(lake.spark.sparkContext)
        for name in arguments.only:
            measure(kinds, counts, name, arguments)
        from lockgate import lookup

        lookup.close_all()
        lake.spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def measure(kinds: Kinds, counts: Counts, name: str, arguments: argparse.Namespace) -> None:
    """Repeat one kind and print what there is more of."""
    with working(kinds, name) as work:
        repeat(work, arguments.warm_up)
        before = counts.settled(arguments.settle)
        threads = counts.java_threads()
        seconds = 0.0
        for done, mark in pairwise(marks(arguments)):
            seconds += repeat(work, mark - done, arguments.warm_up + done)
            for count, held in counts.take().items():
                emit("leaks", f"{name}_{count}_at_{mark}", held, unit(count))
        after = counts.settled(arguments.settle)
        more = counts.java_threads() - threads
    emit("leaks", f"{name}_times", arguments.times, "queries")
    emit("leaks", f"{name}_ms", 1000 * seconds / arguments.times, "ms a query")
    for count, added in growth(before, after).items():
        emit("leaks", f"{name}_{count}", added, unit(count, "more"), before[count])
    note(f"{name}: Java threads that there are more of: {dict(more)}")


def unit(count: str, usual: str = "held") -> str:
    """The unit of a count."""
    return UNITS.get(count.partition("_")[2], usual)


def marks(arguments: argparse.Namespace) -> list[int]:
    """After how many repetitions to count, from none on to all."""
    return [0, *sorted({each for each in arguments.at if each < arguments.times}), arguments.times]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=EVERY, default=list(EVERY), help="some kinds only")
    parser.add_argument("--times", type=int, default=TIMES, help="repetitions that are counted")
    parser.add_argument("--at", type=int, nargs="*", default=MARKS, help="repetitions to count after too")
    parser.add_argument("--cluster", action="store_true", help="run tasks in a JVM of their own")
    parser.add_argument("--warm-up", type=int, default=100, help="repetitions before the first count")
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS, help="seconds before each count")
    parser.add_argument("--bridge", action="store_true", help="measure one question to Python instead")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
