"""Counting in Spark's Python workers: an accumulator whose values are counts by batch."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeAlias

from py4j.protocol import Py4JError
from pyspark.accumulators import Accumulator, AccumulatorParam

from lockgate.framework.spark import java_class

if TYPE_CHECKING:
    from pyspark import SparkContext

_log = logging.getLogger("lockgate.lookup")

# By the token of a batch: rows asked for, matched rows, those matched by a retry, nanoseconds of the workers.
Counts: TypeAlias = dict[int, tuple[int, int, int, int]]
Counter: TypeAlias = "Accumulator[Counts]"

# The snapshot of a batch and its token go to the tasks in one number, so that a row carries only one.
_SNAPSHOT_BITS = 40
SNAPSHOT_MASK = (1 << _SNAPSHOT_BITS) - 1

_lock = threading.Lock()


def pack(snapshot_id: int, token: int) -> int:
    """Put a snapshot's id and a batch's token (of 22 bits) into one number of 64 bits."""
    return token << _SNAPSHOT_BITS | snapshot_id


def unpack(pinned: int) -> tuple[int, int]:
    """Return the reverse of `pack`.

    >>> unpack(pack(7, 3))
    (7, 3)
    """
    return pinned & SNAPSHOT_MASK, pinned >> _SNAPSHOT_BITS


class _Sum(AccumulatorParam[Counts]):
    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        with _lock:
            for token, (rows, matched, retried, nanos) in value2.items():
                old = value1.get(token, (0, 0, 0, 0))
                value1[token] = (old[0] + rows, old[1] + matched, old[2] + retried, old[3] + nanos)
        return value1


def make_counter(context: SparkContext) -> Counter:
    """Make the accumulator that the workers of a SparkContext count in."""
    return context.accumulator({}, _Sum())


def counts_in_jvm(context: SparkContext) -> Counts:
    """Take the counts of tasks that looked up inside their JVM (`jvm`) since the last call; none without
    Spark.
    """
    try:
        taken = str(java_class(context, "io.lockgate.spark.lookup.LookupCounts").take())
    except (Py4JError, OSError, AttributeError) as error:
        _log.debug("the counts of lookups inside the JVM are unknown: %s", error)
        return {}
    return {token: (rows, matched, 0, nanos) for token, rows, matched, nanos in _lines(taken)}


def _lines(text: str) -> Iterator[list[int]]:
    return ([int(number) for number in line.split()] for line in text.splitlines())


def counts_of(counter: Counter, tokens: Collection[int]) -> Counts:
    """Return the counts for `tokens`; other counts are dropped."""
    value = counter.value
    with _lock:
        for token in [each for each in value if each not in tokens]:
            del value[token]
        return dict(value)
