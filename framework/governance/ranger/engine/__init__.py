"""The engine: one request, decided in Ranger's own order."""

from lockgate.framework.governance.ranger.conditions.request import ADMIN, ANY, SUPER_USER, Asked
from lockgate.framework.governance.ranger.engine.engine import Engine, Settings
from lockgate.framework.governance.ranger.engine.result import Result
from lockgate.framework.governance.ranger.policies.definition import PolicyType

__all__ = ["ADMIN", "ANY", "SUPER_USER", "Asked", "Engine", "PolicyType", "Result", "Settings"]
