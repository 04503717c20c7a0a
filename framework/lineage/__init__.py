"""Lineage: which column came from where, recorded in the warehouse and traced in both directions."""

from lockgate.framework.lineage.declared_lineage import declare
from lockgate.framework.lineage.model.edge_kinds import EdgeKind
from lockgate.framework.lineage.model.lineage_records import Dataset, Record, Run, Shape

__all__ = ["Dataset", "EdgeKind", "Record", "Run", "Shape", "declare"]
