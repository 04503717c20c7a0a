"""Matching of resources: whether a policy's resource covers the one of a request."""

from lockgate.framework.governance.ranger.matching.hierarchy import Hierarchies
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.tokens import NO_NAMES, Names

__all__ = ["NO_NAMES", "Hierarchies", "Match", "Names", "PolicyResource"]
