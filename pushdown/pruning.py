"""Pruning: steps that skip what a query cannot need, and the funnel that runs and counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from lockgate.pushdown.scan_report import Count, Step

T = TypeVar("T")


class Pruner(Protocol[T]):
    """One step of pruning.

    `name` is its line in explain, and part of its metric `skipped_by_<name>`. `by` says what it prunes by.
    """

    @property
    def name(self) -> str:
        """The word for the step."""

    @property
    def by(self) -> str:
        """Return what the step prunes by, for people; empty if there is nothing to say."""

    def prune(self, kept: T) -> T | None:
        """Return the part of `kept`, the survivors of earlier steps, that this step keeps.

        None means that the step does not apply; reports then omit it.
        """


class Funnel(Generic[T]):
    """Runs pruners in order, and counts by `count` what each keeps; `steps` are those that applied."""

    def __init__(self, count: Callable[[T], Count]) -> None:
        self._count = count
        self.steps: tuple[Step, ...] = ()

    def run(self, kept: T, pruners: Iterable[Pruner[T]]) -> T:
        """Return the part of `kept` that all pruners keep."""
        before = self._count(kept)
        for pruner in pruners:
            left = pruner.prune(kept)
            if left is None:
                continue
            after = self._count(left)
            self.steps += (Step(pruner.name, before, after, pruner.by),)
            kept, before = left, after
        return kept
