"""Permission points: the parts of tables that a query touches, in five grains, and the grants that cover
them."""

from lockgate.framework.governance.points.cover import covers, missing
from lockgate.framework.governance.points.point import Point

__all__ = ["Point", "covers", "missing"]
