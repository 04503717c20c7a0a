"""Names that scripts may use: macros such as `IS_IN_GROUP`, objects such as `USER` and `TAG`, and `ctx`.

Source of the names and their meaning: Ranger's RangerRequestScriptEvaluator.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest
from lockgate.framework.governance.ranger.conditions.schedule import instant, zone_of
from lockgate.framework.governance.ranger.conditions.script_tokens import ScriptError
from lockgate.framework.governance.ranger.conditions.script_values import (
    JavaList,
    JavaMap,
    JavaObject,
    is_nothing,
    joined,
    size_of,
    text_of,
)

Attributes = Mapping[str, object]
BACKSLASH = "\\"
_ADDED = {"_name", "_type", "_matchType"}
_DATES = (
    "%Y/%m/%dT%H:%M:%S.%fZ",
    "%Y/%m/%d",
    "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%d",
    "%Y/%m/%d %H:%M:%S",
    "%m/%d/%Y",
)


class Environment:
    """The names of one request, each computed when a script first uses it."""

    def __init__(self, asked: RangerRequest) -> None:
        self.asked = asked
        self._found: dict[str, object] = {}

    def __call__(self, name: str) -> object:
        """Return the value of a name; raises ScriptError for one that is not known."""
        if name not in self._found:
            if name not in _NAMES:
                raise ScriptError(f"the name {name!r} is not known")
            self._found[name] = _NAMES[name](self)
        return self._found[name]

    @property
    def user(self) -> Attributes:
        """The user's attributes, its name among them."""
        return {**self.asked.users.get(self.asked.user or "", {}), "_name": self.asked.user}

    @property
    def groups(self) -> dict[str, Attributes]:
        """The attributes of the user's groups, by group."""
        attributes = self.asked.groups_known
        return {name: {**attributes.get(name, {}), "_name": name} for name in sorted(self.asked.groups)}

    @property
    def group_attributes(self) -> dict[str, dict[str, object]]:
        """The attributes of all groups together: the first value of each (sVal), and all of them (mVal)."""
        every = {name: _every(self.groups, name) for name in _names(self.groups.values())}
        return {"sVal": {name: values[0] for name, values in every.items()}, "mVal": dict(every)}

    @property
    def tags(self) -> dict[str, Attributes]:
        """The attributes of the resource's tags, by their type."""
        return {tag["type"]: _of_tag(tag) for tag in self.asked.tags}

    @property
    def tag(self) -> Attributes:
        """The attributes of the tag whose policies are asked, none outside them."""
        return _of_tag(self.asked.current_tag) if self.asked.current_tag else {}

    @property
    def roles(self) -> list[str]:
        """The user's roles, sorted."""
        return sorted(self.asked.roles)

    @property
    def request(self) -> dict[str, object]:
        """Return what is asked for, as the object REQ."""
        asked = self.asked
        return {
            "accessTime": asked.now.timestamp() * 1000,
            "accessType": asked.access,
            "action": asked.action,
            "clientIPAddress": asked.client_ip,
            "clusterName": asked.cluster_name,
            "clusterType": asked.cluster_type,
            "resource": self.resource,
            "resourceMatchingScope": asked.scope,
            "user": asked.user,
            "userGroups": sorted(asked.groups),
            "userRoles": self.roles,
            "userAttributes": self.user,
            "userGroupAttributes": self.groups,
        }

    @property
    def resource(self) -> dict[str, object]:
        """The resource, as the object RES."""
        return {**self.asked.resource, "_ownerUser": self.asked.owner}


def _of_tag(tag: Mapping[str, Any]) -> Attributes:
    return {
        **(tag.get("attributes") or {}),
        "_type": tag.get("type"),
        "_matchType": tag.get("matchType") or "SELF",
    }


class ScriptContext(JavaObject):
    """The object `ctx`."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def member(self, name: str) -> object:
        """Return a member; raises ScriptError if there is none."""
        if name == "result":
            return False
        if name not in _CONTEXT:
            raise ScriptError(f"ctx has no {name!r}")
        return _CONTEXT[name](self._environment)


class ScriptTag(JavaObject):
    """The object `tag`: the tag whose policies are asked."""

    def __init__(self, tag: Mapping[str, Any]) -> None:
        self._type, self._attributes = tag.get("type"), JavaMap(tag.get("attributes") or {})

    def member(self, name: str) -> object:
        """Return its type or its attributes; raises ScriptError for anything else."""
        members: Mapping[str, object] = {
            "type": self._type,
            "attributes": self._attributes,
            "getType": lambda: self._type,
            "getAttributes": lambda: self._attributes,
        }
        if name not in members:
            raise ScriptError(f"tag has no {name!r} that Lockgate knows")
        return members[name]


def _tags_of(environment: Environment, kind: object) -> list[Mapping[str, Any]]:
    return [tag for tag in environment.asked.tags if tag["type"] == kind]


def _attributes(environment: Environment, kind: object) -> Mapping[str, Any] | None:
    """Return the attributes of the first tag of a type that has any."""
    return next((own for tag in _tags_of(environment, kind) if (own := tag.get("attributes"))), None)


def _attribute(environment: Environment, *given: Any) -> object:
    """Return an attribute of the current tag, or of the first tag of a type."""
    if len(given) == 1:
        own = (environment.asked.current_tag or {}).get("attributes") or {}
        return own.get(given[0])
    return (_attributes(environment, given[0]) or {}).get(given[1])


def _java_map(attributes: Mapping[str, Any] | None) -> JavaMap | None:
    return None if attributes is None else JavaMap(attributes)


def _all_values(environment: Environment, kind: object, name: object) -> JavaList | None:
    """Return the values of an attribute of all tags of a type, None if the resource has no tags."""
    if not environment.asked.tags:
        return None
    every = ((tag.get("attributes") or {}).get(str(name)) for tag in _tags_of(environment, kind))
    return JavaList(sorted(text_of(each) for each in every if each is not None), has_indexes=True)


def _context_attribute(environment: Environment, name: object) -> str | None:
    found = environment.asked.context.get(str(name))
    return None if found is None else text_of(found)


def _json(value: object) -> str:
    """Return what `JSON.stringify` gives."""
    size_of(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _date(value: object) -> datetime | None:
    for form in _DATES if value else ():
        try:
            return datetime.strptime(str(value), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _is_after(environment: Environment, *given: Any) -> bool:
    when = _date(_attribute(environment, *given))
    return when is None or environment.asked.now >= when


def _is_before(environment: Environment, *given: Any) -> bool:
    when = _date(_attribute(environment, *given))
    return when is not None and environment.asked.now <= when


def _is_between(environment: Environment, start: Any, end: Any, zone: Any = None) -> bool:
    now, own = environment.asked.now, zone_of(zone)
    if not end:
        return not start or instant(start, own) < now
    return (not start or instant(start, own) <= now) and now < instant(end, own)


def _bound(function: Callable[..., object]) -> Callable[[Environment], Callable[..., object]]:
    return lambda environment: lambda *given: function(environment, *given)


def _getter(read: Callable[[Environment], object]) -> Callable[[Environment], Callable[..., object]]:
    return lambda environment: lambda: read(environment)


def _or_empty(value: object) -> str:
    return "" if is_nothing(value) else text_of(value)


def _csv(values: Iterable[object], default: object = None, separator: object = ",", *ignored: object) -> str:
    found = joined((text_of(value) for value in values if value is not None), _or_empty(separator))
    return found or _or_empty(default)


def _quoted(
    values: Iterable[object],
    default: object = None,
    separator: object = ",",
    opening: object = "'",
    closing: object = None,
) -> str:
    """Return values in quotes: what could end the quotes is doubled."""
    mark = _or_empty(opening)
    end = mark if is_nothing(closing) else text_of(closing)

    def quote(value: object) -> str:
        text = text_of(value).replace(BACKSLASH, BACKSLASH * 2)
        return f"{mark}{text.replace(end, end * 2) if end else text}{end}"

    found = (quote(value) for value in values if value is not None)
    return _csv(found, None if is_nothing(default) else quote(default), separator)


def _every(table: Mapping[str, Attributes], name: object) -> list[object]:
    return [attributes[str(name)] for attributes in table.values() if name in attributes]


def _user(environment: Environment, name: object) -> list[object]:
    found = environment.user.get(str(name))
    return [] if found is None else [found]


def _names(table: Iterable[Attributes]) -> list[str]:
    """Return the names of attributes, without those that Ranger adds itself."""
    return sorted({name for attributes in table for name in attributes} - _ADDED)


def _values_of_tags(environment: Environment, name: object) -> list[object]:
    found = ((tag.get("attributes") or {}).get(str(name)) for tag in environment.asked.tags)
    return [*sorted(text_of(value) for value in found if value is not None)]


def _macros(
    word: str, values: Callable[[Environment], Iterable[object]]
) -> dict[str, Callable[[Environment], object]]:
    """Return the macros that list names: GET_x(default, separator), GET_x_Q, x_CSV and x_Q_CSV."""
    return {
        f"GET_{word}": _bound(lambda e, *given: _csv(values(e), *given)),
        f"GET_{word}_Q": _bound(lambda e, *given: _quoted(values(e), *given)),
        f"{word}_CSV": lambda e: _csv(values(e)),
        f"{word}_Q_CSV": lambda e: _quoted(values(e)),
    }


def _attribute_macros(
    word: str, values: Callable[[Environment, object], list[object]]
) -> dict[str, Callable[[Environment], object]]:
    """Return the macros of one attribute: GET_x(name, default), GET_x_Q, GET_x_CSV, GET_x_Q_CSV and HAS_x."""
    plain = _bound(lambda e, name, *given: _csv(values(e, name), *given))
    quoted = _bound(lambda e, name, *given: _quoted(values(e, name), *given))
    return {
        f"GET_{word}": plain,
        f"GET_{word}_CSV": plain,
        f"GET_{word}_Q": quoted,
        f"GET_{word}_Q_CSV": quoted,
        f"HAS_{word}": _bound(lambda e, name: bool(values(e, name))),
    }


_NAMES: dict[str, Callable[[Environment], object]] = {
    "ctx": ScriptContext,
    "tag": lambda e: None if e.asked.current_tag is None else ScriptTag(e.asked.current_tag),
    "tagAttr": lambda e: JavaMap((e.asked.current_tag or {}).get("attributes") or {}),
    "J": lambda e: _json,
    "Object": lambda e: {"keys": lambda value: list(value)},
    "TAG": lambda e: e.tag,
    "TAGS": lambda e: e.tags,
    "TAGNAMES": lambda e: sorted(e.tags),
    "USER": lambda e: e.user,
    "UG": lambda e: e.groups,
    "UGA": lambda e: e.group_attributes,
    "UGNAMES": lambda e: list(e.groups),
    "URNAMES": lambda e: e.roles,
    "REQ": lambda e: e.request,
    "RES": lambda e: e.resource,
    "HAS_TAG": _bound(lambda e, name: name in e.tags),
    "HAS_ANY_TAG": lambda e: bool(e.tags),
    "HAS_NO_TAG": lambda e: not e.tags,
    "IS_IN_GROUP": _bound(lambda e, name: name in e.asked.groups),
    "IS_IN_ROLE": _bound(lambda e, name: name in e.asked.roles),
    "IS_IN_ANY_GROUP": lambda e: bool(e.asked.groups),
    "IS_IN_ANY_ROLE": lambda e: bool(e.asked.roles),
    "IS_NOT_IN_ANY_GROUP": lambda e: not e.asked.groups,
    "IS_NOT_IN_ANY_ROLE": lambda e: not e.asked.roles,
    "IS_ACCESS_TIME_AFTER": _bound(lambda e, start, zone=None: _is_between(e, start, None, zone)),
    "IS_ACCESS_TIME_BEFORE": _bound(lambda e, end, zone=None: _is_between(e, None, end, zone)),
    "IS_ACCESS_TIME_BETWEEN": _bound(_is_between),
    **_macros("TAG_NAMES", lambda e: sorted(e.tags)),
    **_macros("TAG_ATTR_NAMES", lambda e: _names(e.tags.values())),
    **_macros("UG_NAMES", lambda e: list(e.groups)),
    **_macros("UG_ATTR_NAMES", lambda e: _names(e.groups.values())),
    **_macros("UR_NAMES", lambda e: e.roles),
    **_macros("USER_ATTR_NAMES", lambda e: _names([e.user])),
    **_attribute_macros("TAG_ATTR", _values_of_tags),
    **_attribute_macros("UG_ATTR", lambda e, name: _every(e.groups, name)),
    **_attribute_macros("USER_ATTR", _user),
}
KNOWN = frozenset(_NAMES)


def _once(macro: str) -> Callable[[Environment], object]:
    """Return a method without arguments that gives what a macro stands for."""
    return lambda environment: lambda: _NAMES[macro](environment)


# What the macros stand for in Ranger, and what it has no macro for.
_CONTEXT: Mapping[str, Callable[[Environment], object]] = {
    "getUser": _getter(lambda e: e.asked.user),
    "getUserGroups": _getter(lambda e: JavaList(sorted(e.asked.groups))),
    "getUserRoles": _getter(lambda e: JavaList(e.roles)),
    "getAction": _getter(lambda e: e.asked.action),
    "getClientIPAddress": _getter(lambda e: e.asked.client_ip),
    "getClientType": _getter(lambda e: e.asked.client_type),
    "getResourceZone": _getter(lambda e: next(iter(e.asked.zones), "")),
    "getResourceZones": _getter(lambda e: JavaList(sorted(e.asked.zones))),
    "getRequestContextAttribute": _bound(_context_attribute),
    "isAccessTypeAny": _getter(lambda e: e.asked.is_any),
    "isAccessTypeDelegatedAdmin": _getter(lambda e: e.asked.access == "_admin"),
    "getAllTagTypes": _getter(lambda e: JavaList(list(e.tags))),
    "getCurrentTag": _NAMES["tag"],
    "getCurrentTagType": _getter(lambda e: (e.asked.current_tag or {}).get("type")),
    "getTagAttributes": _bound(lambda e, kind: _java_map(_attributes(e, kind))),
    "getAttributeValue": _bound(_attribute),
    "getAttributeNames": _bound(
        lambda e, kind: None if (own := _attributes(e, kind)) is None else JavaList(list(own))
    ),
    "getAttributeValueForAllMatchingTags": _bound(_all_values),
    "isAccessedAfter": _bound(_is_after),
    "isAccessedBefore": _bound(_is_before),
    "tagNames": _NAMES["GET_TAG_NAMES"],
    "tagNamesQ": _NAMES["GET_TAG_NAMES_Q"],
    "tagAttrNames": _NAMES["GET_TAG_ATTR_NAMES"],
    "tagAttrNamesQ": _NAMES["GET_TAG_ATTR_NAMES_Q"],
    "tagAttr": _NAMES["GET_TAG_ATTR"],
    "tagAttrQ": _NAMES["GET_TAG_ATTR_Q"],
    "tagAttrCsv": _NAMES["GET_TAG_ATTR_CSV"],
    "tagAttrCsvQ": _NAMES["GET_TAG_ATTR_Q_CSV"],
    "ugNames": _NAMES["GET_UG_NAMES"],
    "ugNamesQ": _NAMES["GET_UG_NAMES_Q"],
    "ugAttrNames": _NAMES["GET_UG_ATTR_NAMES"],
    "ugAttrNamesQ": _NAMES["GET_UG_ATTR_NAMES_Q"],
    "ugAttr": _NAMES["GET_UG_ATTR"],
    "ugAttrQ": _NAMES["GET_UG_ATTR_Q"],
    "ugAttrCsv": _NAMES["GET_UG_ATTR_CSV"],
    "ugAttrCsvQ": _NAMES["GET_UG_ATTR_Q_CSV"],
    "urNames": _NAMES["GET_UR_NAMES"],
    "urNamesQ": _NAMES["GET_UR_NAMES_Q"],
    "userAttrNames": _NAMES["GET_USER_ATTR_NAMES"],
    "userAttrNamesQ": _NAMES["GET_USER_ATTR_NAMES_Q"],
    "userAttr": _NAMES["GET_USER_ATTR"],
    "userAttrQ": _NAMES["GET_USER_ATTR_Q"],
    "hasTag": _NAMES["HAS_TAG"],
    "hasAnyTag": _once("HAS_ANY_TAG"),
    "hasUserAttr": _NAMES["HAS_USER_ATTR"],
    "hasUgAttr": _NAMES["HAS_UG_ATTR"],
    "hasTagAttr": _NAMES["HAS_TAG_ATTR"],
    "isInGroup": _NAMES["IS_IN_GROUP"],
    "isInRole": _NAMES["IS_IN_ROLE"],
    "isInAnyGroup": _once("IS_IN_ANY_GROUP"),
    "isInAnyRole": _once("IS_IN_ANY_ROLE"),
    "isAccessTimeAfter": _NAMES["IS_ACCESS_TIME_AFTER"],
    "isAccessTimeBefore": _NAMES["IS_ACCESS_TIME_BEFORE"],
    "isAccessTimeBetween": _NAMES["IS_ACCESS_TIME_BETWEEN"],
}
CONTEXT = frozenset((*_CONTEXT, "result"))
