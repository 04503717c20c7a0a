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

__getattr__ = lazy_attributes(
    __name__,
    {
        "ATLAS_TYPES": "lockgate.framework.lineage",
        "Dataset": "lockgate.framework.lineage",
        "EdgeKind": "lockgate.framework.lineage",
        "Lineage": "lockgate.framework.lineage",
        "Record": "lockgate.framework.lineage",
        "Run": "lockgate.framework.lineage",
        "Shape": "lockgate.framework.lineage",
        "declare": "lockgate.framework.lineage",
    },
)
