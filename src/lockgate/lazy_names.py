"""Lazy names, loaded at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_attributes(module: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a module whose names are defined in others, `.like.this` if below it."""

    def attribute(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], module), name)

    return attribute
