"""Lineage: names to declare the origins of columns, and to describe the answers of `lake.lineage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.lineage import (
        ATLAS_TYPES,
        Dataset,
        EdgeKind,
        Lineage,
        Record,
        Run,
        Shape,
        declare,
    )

__all__ = ["ATLAS_TYPES", "Dataset", "EdgeKind", "Lineage", "Record", "Run", "Shape", "declare"]

__getattr__ = lazy_attributes(__name__, {"lockgate.framework.lineage": " ".join(__all__)})
