"""The funnel runs pruners in order, counts what each keeps, and skips those that do not apply."""

from __future__ import annotations

from dataclasses import dataclass

from lockgate.pushdown import Count, Funnel, Pruner


@dataclass
class Below:
    """Keeps the numbers below a limit; a negative limit does not apply."""

    name: str
    limit: int

    @property
    def by(self) -> str:
        return f"n < {self.limit}"

    def prune(self, kept: list[int]) -> list[int] | None:
        return None if self.limit < 0 else [number for number in kept if number < self.limit]


def test_a_funnel_counts_each_step() -> None:
    counted: list[int] = []

    def count(kept: list[int]) -> Count:
        counted.append(len(kept))
        return Count(files=len(kept))

    funnel = Funnel(count)
    pruners: list[Pruner[list[int]]] = [Below("ten", 10), Below("none", -1), Below("three", 3)]
    assert funnel.run(list(range(20)), pruners) == [0, 1, 2]
    steps = [(step.name, step.before.files, step.after.files, step.by) for step in funnel.steps]
    assert steps == [("ten", 20, 10, "n < 10"), ("three", 10, 3, "n < 3")]
    assert counted == [20, 10, 3], "each state is counted once"
