"""Evaluators of conditions, by the name of Ranger's class for each.

A condition with an unknown evaluator or script never holds; `unreadable` says why. If that could open access,
the policies are refused (see `policies.strictness`). Not done: evaluators of geolocation and of data shares
(GDS).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from json import JSONDecodeError, loads
from typing import Any, Protocol

from lockgate.errors import InputError, PolicyError
from lockgate.framework.governance.ranger.conditions.environment import KNOWN, Environment
from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.conditions.schedule import applies
from lockgate.framework.governance.ranger.conditions.script import compiled
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError
from lockgate.framework.governance.ranger.conditions.script_values import text_of
from lockgate.framework.governance.ranger.matching.hierarchy import Hierarchies
from lockgate.framework.governance.ranger.matching.resource import PolicyResource

_log = logging.getLogger("lockgate.governance")
_CLOCK = re.compile(r" *(\d{1,2})(?::(\d{1,2}))? *([ap])\.?m\.? *", re.IGNORECASE)
_ALL_ADDRESSES = re.compile(r"\*(\.\*)*|\*(:\*)*")
_MACRO = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
# The wildcards at the end of an address; none begins within others, so that one pass finds them.
_V4_ENDING, _V6_ENDING = re.compile(r"(?<!\.\*)(?:\.\*)++$"), re.compile(r"(?<!:\*)(?::\*)++$")
Holds = Callable[[RangerRequest], bool]


class UnsupportedConditionError(PolicyError):
    """Raised where a script uses more than is understood, which shows only while it runs."""


class Condition:
    """A condition of a policy or an item; `unreadable` is why it can't be understood, None if it can."""

    def __init__(self, holds: Holds, unreadable: str | None = None) -> None:
        self.holds, self.unreadable = holds, unreadable


class ConditionDefinitions(Protocol):
    """The needs of a condition of its service."""

    @property
    def conditions(self) -> Mapping[str, Mapping[str, Any]]:
        """The definitions of conditions, by their names."""

    @property
    def resources(self) -> Hierarchies:
        """The levels of resources."""


def condition_of(document: Mapping[str, Any], service: ConditionDefinitions) -> Condition | None:
    """Return a condition of a policy; None if Ranger skips it, as one that the service does not define."""
    definition = service.conditions.get(document.get("type") or "")
    if definition is None:
        if document.get("type") != "_expression":
            return None
        definition = {"evaluator": "RangerScriptConditionEvaluator"}
    kind = str(definition.get("evaluator") or "").rpartition(".")[2]
    values = [str(value) for value in document.get("values") or ()]
    make = _EVALUATORS.get(kind)
    if make is None:
        return _unreadable(f"its evaluator {kind!r} is not known")
    return make(values, definition.get("evaluatorOptions") or {}, service)


def _never(asked: RangerRequest) -> bool:
    return False


def _unreadable(reason: str) -> Condition:
    _log.warning("a condition of a policy never holds: %s", reason)
    return Condition(_never, reason)


def _script(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
    return _of_script(values[0] if values else "", True)


def _template(
    values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions
) -> Condition | None:
    # Without a value Ranger has no script, and the condition holds.
    if not values or not values[0].strip():
        return None
    text = str(options.get("scriptTemplate") or "")
    return _of_script(text, values[0].lower() not in ("false", "no"))


def _of_script(text: str, wanted: bool) -> Condition:
    if not text.strip():
        return Condition(lambda asked: wanted)  # as in Ranger, which has nothing to evaluate
    try:
        script = compiled(text.strip(), KNOWN)
    except ScriptError as error:
        return _unreadable(str(error))

    def holds(asked: RangerRequest) -> bool:
        try:
            return script.holds(Environment(asked)) == wanted
        except InputError as error:
            raise UnsupportedConditionError(
                f"cannot evaluate a condition of a policy: {error}. Rewrite its script"
            ) from None

    return Condition(holds)


def resolved(template: str, asked: RangerRequest) -> str:
    """Return a text with the values of its `${{...}}`; one that cannot be computed is empty."""
    environment = Environment(asked)
    # Up to the last end every beginning has one, so that none is searched in vain.
    macros, end, rest = template.rpartition("}}")
    return _MACRO.sub(lambda match: _value(match[1], environment), macros + end) + rest


def _value(script: str, environment: Environment) -> str:
    try:
        value = compiled(script, KNOWN).value(environment)
        return "" if value is None else text_of(value)
    except InputError as error:
        _log.warning("an expression of a policy failed and was replaced by nothing: %s", type(error).__name__)
        return ""


def _ip(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
    return Condition(lambda asked: _is_from(values, asked.client_ip))


def _is_from(values: Sequence[str], address: str | None) -> bool:
    if not values or "*" in values or address is None:
        return True
    return any(_is_address(value, address) for value in values)


def _is_address(wanted: str, address: str) -> bool:
    """Return whether a value is an address, or the beginning of it; semantics: RangerIpMatcher."""
    if _ALL_ADDRESSES.fullmatch(wanted):
        return True
    is_v4 = "." in wanted
    beginning = _V4_ENDING.sub(".", wanted) if is_v4 else _V6_ENDING.sub(":", wanted).lower()
    folded = address if "." in address else address.lower()
    return folded == wanted if beginning == wanted else address.lower().startswith(beginning)


def _simple(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
    name = options.get("CONTEXT_NAME")

    def holds(asked: RangerRequest) -> bool:
        if not values or not name:
            return True
        found = asked.context.get(name)
        return bool(found) and any(fnmatchcase(str(found), value) for value in values)

    return Condition(holds)


def _context_value(inside: bool) -> Maker:
    def make(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
        name = str(options.get("attributeName") or "")

        def holds(asked: RangerRequest) -> bool:
            found = asked.context.get(name)
            return not values or found is None or (found in values) is inside

        return Condition(holds)

    return make


def _cluster(attribute: str, inside: bool) -> Maker:
    def make(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
        def holds(asked: RangerRequest) -> bool:
            found = getattr(asked, attribute)
            if not values:
                return True
            return not inside if found is None else (found in values) is inside

        return Condition(holds)

    return make


def _action(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
    return Condition(
        lambda asked: not values or any(fnmatchcase(asked.action or "", value) for value in values)
    )


def _tags(test: Callable[[set[str], set[str]], bool]) -> Maker:
    def make(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
        wanted = {value.strip() for value in values}
        return Condition(lambda asked: test(wanted, {tag["type"] for tag in asked.tags}))

    return make


def _time_of_day(
    values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions
) -> Condition:
    periods = [_period(value) for value in values if value]
    if None in periods:
        return _unreadable("a time of day is not understood: write it as 9:30am - 5pm")

    def holds(asked: RangerRequest) -> bool:
        minute = asked.now.hour * 60 + asked.now.minute
        return not periods or any(_is_within(period, minute) for period in periods if period)

    return Condition(holds)


def _period(text: str) -> tuple[int, int] | None:
    ends = [_CLOCK.fullmatch(part) for part in text.split("-")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return None
    return _minute(ends[0]), _minute(ends[1])


def _minute(match: re.Match[str]) -> int:
    hour, is_afternoon = int(match[1]), match[3].lower() == "p"
    if hour == 12:
        hour = 12 if is_afternoon else 0
    elif is_afternoon:
        hour += 12
    return hour * 60 + int(match[2] or 0)


def _is_within(period: tuple[int, int], minute: int) -> bool:
    start, end = period
    return start <= minute <= end if start < end else start <= minute or minute <= end


def _schedules(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
    try:
        found = [loads(value) for value in values]
    except JSONDecodeError:
        return _unreadable("a validity schedule is not JSON")
    return Condition(lambda asked: not found or any(applies(each, asked.now) for each in found))


def _together(wanted: bool) -> Maker:
    """Return columns of Hive that are read by one query, such as `db.people.name`."""

    def make(values: Sequence[str], options: Mapping[str, Any], service: ConditionDefinitions) -> Condition:
        matchers = [_column(value, service.resources) for value in values]
        return Condition(lambda asked: _are_together(matchers, asked) is wanted)

    return make


def _column(text: str, resources: Hierarchies) -> PolicyResource:
    parts = text.strip().split(".")
    named = zip(("database", "table", "column"), [*parts, "*", "*"], strict=False)
    return PolicyResource(resources, {level: {"values": [value]} for level, value in named})


def _are_together(matchers: Sequence[PolicyResource], asked: RangerRequest) -> bool:
    requested = (asked.context.get("REQUESTED_RESOURCES") or {}).get("requestedResources")
    if requested is None or len(requested) < 2:
        return False
    found = sum(matcher.match(each["elements"]).is_whole for each in requested for matcher in matchers)
    return found > 1


Maker = Callable[[Sequence[str], Mapping[str, Any], ConditionDefinitions], Condition | None]
_EVALUATORS: dict[str, Maker] = {
    "RangerScriptConditionEvaluator": _script,
    "RangerScriptTemplateConditionEvaluator": _template,
    "RangerIpMatcher": _ip,
    "RangerSimpleMatcher": _simple,
    "RangerActionMatcher": _action,
    "RangerTimeOfDayMatcher": _time_of_day,
    "RangerValidityScheduleConditionEvaluator": _schedules,
    "RangerAccessedFromClusterCondition": _cluster("cluster_name", True),
    "RangerAccessedNotFromClusterCondition": _cluster("cluster_name", False),
    "RangerAccessedFromClusterTypeCondition": _cluster("cluster_type", True),
    "RangerAccessedNotFromClusterTypeCondition": _cluster("cluster_type", False),
    "RangerContextAttributeValueInCondition": _context_value(True),
    "RangerContextAttributeValueNotInCondition": _context_value(False),
    "RangerHiveResourcesAccessedTogetherCondition": _together(True),
    "RangerHiveResourcesNotAccessedTogetherCondition": _together(False),
    "RangerAnyOfExpectedTagsPresentConditionEvaluator": _tags(lambda wanted, have: bool(wanted & have)),
    "RangerNoneOfExpectedTagsPresentConditionEvaluator": _tags(lambda wanted, have: not wanted & have),
    "RangerTagsAllPresentConditionEvaluator": _tags(lambda wanted, have: wanted <= have),
}
