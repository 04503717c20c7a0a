"""How often a property is tried: little by default, much with `./dev test --slow`."""

from __future__ import annotations

from hypothesis import settings

QUICK = settings.get_profile("quick").max_examples


def examples(quick: int) -> int:
    """Return how many examples to try: `quick` of them, 15 times as many in the profile `full`."""
    return quick * settings.default.max_examples // QUICK
