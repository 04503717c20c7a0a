"""How often a property is tried: little by default, much with `./dev test --slow`."""

from __future__ import annotations

from hypothesis import settings


def examples(usual: int) -> int:
    """Return how many examples to try: a tenth of `usual` in the profile `dev`, half of it in `quick`."""
    return max(2, usual * settings.default.max_examples // 100)
