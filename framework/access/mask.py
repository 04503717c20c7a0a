"""Masks of a decision: what a principal sees in place of a column's values."""

from __future__ import annotations

from dataclasses import dataclass

# Of two masks the one that leaves less of a value is stricter; every other mask leaves a part of it.
_STRENGTH = {"nullify": 2, "sha256": 1}


@dataclass(frozen=True)
class Mask:
    """A mask by its name, as in the option `orc.mask`, and the parameters that follow the name there."""

    name: str
    parameters: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ",".join([self.name, *self.parameters])


SHA256 = Mask("sha256")


def stricter(one: Mask, other: Mask) -> Mask:
    """Return the mask that hides what either of two hides.

    `nullify` is stricter than `sha256`, and that than any other. Two others may show different parts of a
    value, which together may show all of it: `sha256` takes the place of both.
    """
    if one == other:
        return one
    strengths = [_STRENGTH.get(mask.name, 0) for mask in (one, other)]
    if strengths[0] == strengths[1]:
        return SHA256
    return one if strengths[0] > strengths[1] else other
