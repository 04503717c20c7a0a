"""Matching of resources: does what a policy names cover what a request asks for?"""

from lockgate.framework.governance.ranger.matching.hierarchy import Hierarchies
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.tokens import NO_NAMES, Names

__all__ = ["NO_NAMES", "Hierarchies", "Match", "Names", "PolicyResource"]
