"""Lazy names, loaded at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_attributes(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a module from the names of other modules, which are `.like.this` if below it.

    Names of one module stand in one text, with spaces between.
    """
    homes = {name: home for home, text in names.items() for name in text.split()}

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], module), name)

    return attribute
