"""Lineage: the sources and targets of each column, recorded in the warehouse and traced both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.lineage.declared_lineage import declare
from lockgate.framework.lineage.model.edge_kinds import EdgeKind
from lockgate.framework.lineage.model.lineage_records import Dataset, Record, Run, Shape
from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.lineage.answer import Lineage
    from lockgate.framework.lineage.export.atlas import ATLAS_TYPES


__all__ = [
    "ATLAS_TYPES",
    "Dataset",
    "EdgeKind",
    "Lineage",
    "Record",
    "Run",
    "Shape",
    "declare",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        ".answer": "Lineage",
        ".export.atlas": "ATLAS_TYPES",
    },
)
