"""How often a property is tried: little by default, much with `./dev test --slow`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")


def examples(usual: int) -> int:
    """Return how many examples to try: a tenth of `usual` in the profile `dev`, half of it in `quick`."""
    return max(2, usual * settings.default.max_examples // 100)


def sampled(cases: Sequence[T], few: int) -> list[T]:
    """Return all cases; in the profile `dev` a few of them, the same ones in each run."""
    number = few if settings.default.max_examples < 50 else len(cases)
    return random.Random(29).sample(cases, number)
