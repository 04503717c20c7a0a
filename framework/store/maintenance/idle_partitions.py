"""Partitions that have had no new files for some time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lockgate.errors import InputError
from lockgate.framework.options import parse_duration
from lockgate.framework.store import ManifestEntry
from lockgate.framework.store.schema.schema import wall_clock_millis

Partition = tuple[Any, ...]


def idle_partitions(entries: Iterable[ManifestEntry], text: str | None) -> Callable[[Partition], bool]:
    """Return a predicate on partitions: whether their newest files are older than a duration such as '1 h'.

    Files without a time of creation count as old. Raises InputError for a text that is no duration.
    """
    if text is None:
        return lambda partition: True
    try:
        idle_millis = int(parse_duration(text).total_seconds() * 1000)
    except (ValueError, OverflowError) as error:
        raise InputError(f"partition_idle_time cannot be {text!r}: {error}") from None
    newest: dict[Partition, int] = {}
    for entry in entries:
        made = entry.file.creation_time_millis or 0
        newest[entry.partition] = max(newest.get(entry.partition, 0), made)
    bound = wall_clock_millis() - idle_millis
    return lambda partition: newest[partition] <= bound
