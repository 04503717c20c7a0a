"""Masks of a decision: what a principal sees in place of a column's values."""

from __future__ import annotations

from dataclasses import dataclass

# Higher is stricter. Masks that are not listed leave a part of the value.
_STRENGTH = {"nullify": 2, "sha256": 1}


@dataclass(frozen=True)
class Mask:
    """A mask: its name in the option `orc.mask`, and the parameters that follow the name there."""

    name: str
    parameters: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ",".join([self.name, *self.parameters])


SHA256 = Mask("sha256")


def stricter(one: Mask, other: Mask) -> Mask:
    """Return a mask that hides everything that either of two masks hides.

    `nullify` is stricter than `sha256`, and `sha256` is stricter than any other mask. Two others may show
    different parts of a value, and together all of it: `sha256` replaces both.
    """
    if one == other:
        return one
    strengths = [_STRENGTH.get(mask.name, 0) for mask in (one, other)]
    if strengths[0] == strengths[1]:
        return SHA256
    return one if strengths[0] > strengths[1] else other
