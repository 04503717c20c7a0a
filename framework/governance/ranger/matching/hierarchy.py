"""Hierarchies: the chains of levels that a service's resources have, such as database, table, column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lockgate.framework.governance.ranger.matching.element import Element

Chain = tuple[str, ...]


def is_contiguous(chain: Chain, names: Collection[str]) -> bool:
    """Return whether names are the first levels of a chain, without a gap."""
    present = [level in names for level in chain]
    return present == sorted(present, reverse=True)


class Hierarchies:
    """The chains of a service definition for one kind of policy, and the elements that policies share."""

    def __init__(self, resources: Sequence[Mapping[str, Any]]) -> None:
        """Read the resources of a service definition."""
        self.definitions = {each["name"]: each for each in resources}
        self._elements: dict[tuple[object, ...], Element] = {}
        self._having: dict[frozenset[str], list[Chain]] = {}
        parents = {each.get("parent") or "" for each in resources}
        leaves = (each for each in resources if each["name"] not in parents or each.get("isValidLeaf"))
        self.chains = [self._chain(each["name"]) for each in leaves]

    def _chain(self, leaf: str) -> Chain:
        names: list[str] = []
        while leaf in self.definitions and leaf not in names:
            names.append(leaf)
            leaf = self.definitions[leaf].get("parent") or ""
        return tuple(reversed(names))

    def having(self, names: Collection[str]) -> list[Chain]:
        """Return the chains that have all these levels."""
        key = frozenset(names)
        if key not in self._having:
            self._having[key] = [chain for chain in self.chains if key <= set(chain)]
        return self._having[key]

    def shortest(self, names: Collection[str]) -> Chain | None:
        """Return the shortest chain that has all these levels, None if there is none."""
        return min(self.having(names), key=len, default=None)

    def is_above(self, level: str, other: str) -> bool:
        """Return whether a level is an ancestor of another one."""
        return level in self._chain(other)[:-1]

    def element(self, level: str, document: Mapping[str, Any]) -> Element:
        """Return what a policy says of a level: one element for all policies that say the same."""
        values = tuple(document.get("values") or ())
        key = (level, values, bool(document.get("isExcludes")), bool(document.get("isRecursive")))
        if key not in self._elements:
            self._elements[key] = Element(self.definitions[level], document)
        return self._elements[key]
