"""Pruning: steps that skip data that a query does not need, and the funnel that runs and counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from lockgate.pushdown.scan_report import Count, Step

T = TypeVar("T")


class Pruner(Protocol[T]):
    """One step of pruning.

    `name` labels it in explain and in its metric `skipped_by_<name>`. `by` describes the condition or index
    that it prunes by.
    """

    @property
    def name(self) -> str:
        """The step's name, one word."""

    @property
    def by(self) -> str:
        """A description of what the step prunes by, such as a filter; may be empty."""

    def prune(self, kept: T) -> T | None:
        """Return the part of `kept`, the survivors of earlier steps, that this step keeps.

        None means that the step does not apply; reports then omit it.
        """


class Funnel(Generic[T]):
    """Runs pruners in order, and counts what each keeps by `count`; `steps` has those that applied."""

    def __init__(self, count: Callable[[T], Count]) -> None:
        self._count = count
        self.steps: tuple[Step, ...] = ()

    def run(self, kept: T, pruners: Iterable[Pruner[T]]) -> T:
        """Return the part of `kept` that all pruners keep."""
        before = self._count(kept)
        for pruner in pruners:
            survivors = pruner.prune(kept)
            if survivors is None:
                continue
            after = self._count(survivors)
            self.steps += (Step(pruner.name, before, after, pruner.by),)
            kept, before = survivors, after
        return kept
