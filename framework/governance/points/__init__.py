"""Permission points: what a query touches, in five grains, and which grants cover it."""

from lockgate.framework.governance.points.cover import covers, missing
from lockgate.framework.governance.points.point import Point

__all__ = ["Point", "covers", "missing"]
