"""Random events of security tools: usual programs, and now and then one that is hunted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

PROGRAMS = ("backup", "chrome", "cron", "java", "powershell", "python", "sshd", "update")
TOOL = "mimikatz"
START = datetime(2026, 1, 1, tzinfo=UTC)

Event = dict[str, Any]


def batches(count: int, size: int, seed: int = 1) -> Iterator[list[Event]]:
    """Yield batches of events; each fourth batch has one event of a hunted tool."""
    chance = random.Random(seed)
    for number in range(count):
        events = [_event(chance, START + timedelta(seconds=number * size + each)) for each in range(size)]
        if number % 4 == 3:
            event = events[chance.randrange(size)]
            event |= {"command": f"C:\\Temp\\{TOOL}.exe /dump {number}", "md5": indicator(number)}
        yield events


def indicator(number: int) -> str:
    """Return the hash of the tool that a batch may have."""
    return f"{number:032x}"


def _event(chance: random.Random, at: datetime) -> Event:
    program = chance.choice(PROGRAMS)
    return {
        "at": at.isoformat(),
        "host": f"host-{chance.randrange(200)}",
        "user": f"user-{chance.randrange(50)}",
        "command": f"{program} --task {chance.randrange(1000)}",
        "md5": f"{chance.getrandbits(128):032x}",
    }
