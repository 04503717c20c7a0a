"""Tags of resources: their own and those of their parents, and for requests about any part those of the
parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json import loads
from typing import Any

from lockgate.framework.governance.ranger.conditions.ranger_request import RangerRequest, Tag
from lockgate.framework.governance.ranger.conditions.schedule import applies
from lockgate.framework.governance.ranger.matching.resource import Match, PolicyResource
from lockgate.framework.governance.ranger.matching.value_tokens import Names
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition


class TagMap:
    """The tags of a service's resources, as Ranger's admin gives them (ServiceTags)."""

    def __init__(self, document: Mapping[str, Any], service: ServiceDefinition) -> None:
        tags = {int(number): tag for number, tag in (document.get("tags") or {}).items()}
        links = {int(number): own for number, own in (document.get("resourceToTagIds") or {}).items()}
        self._entries = [
            (PolicyResource(service.resources, each.get("resourceElements")), own)
            for each in document.get("serviceResources") or ()
            if (own := [tags[number] for number in links.get(each["id"], ()) if number in tags])
        ]

    def of(self, asked: RangerRequest, names: Names) -> list[Tag]:
        """Return the tags of the requested resource, each with how its resource stands to that one."""
        found: dict[tuple[str, str, Match], Tag] = {}
        for match, tag in self._matching(asked, names):
            if match is not Match.NONE and (match is not Match.DESCENDANT or asked.is_wide):
                key = (tag["type"], repr(sorted((tag.get("attributes") or {}).items())), match)
                found.setdefault(key, {**tag, "matchType": match.name})
        return list(found.values())

    def _matching(self, asked: RangerRequest, names: Names) -> Iterator[tuple[Match, Tag]]:
        for resource, tags in self._entries:
            if not asked.resource and asked.is_any:
                match = Match.DESCENDANT
            else:
                match = resource.match(asked.resource, asked.scopes, names)
            yield from ((match, tag) for tag in tags)


def is_valid(tag: Tag, asked: RangerRequest) -> bool:
    """Return whether a tag counts at the time of a request."""
    periods = tag.get("validityPeriods") or ()
    within = (tag.get("options") or {}).get("TAG_VALIDITY_PERIODS")
    if not periods and isinstance(within, str):
        periods = loads(within)
    return not periods or any(applies(each, asked.now) for each in periods)


def with_changes(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return tags of a service with a later download put upon them; one that is no delta replaces all."""
    if not change.get("isDelta"):
        return dict(change)
    resources = {each["id"]: each for each in base.get("serviceResources") or ()}
    links = {int(number): own for number, own in (base.get("resourceToTagIds") or {}).items()}
    tags = {int(number): tag for number, tag in (base.get("tags") or {}).items()}
    new_links = {int(number): own for number, own in (change.get("resourceToTagIds") or {}).items()}
    for each in change.get("serviceResources") or ():
        # A resource without anything but its id is gone.
        if each.get("resourceElements"):
            resources[each["id"]] = each
        else:
            resources.pop(each["id"], None)
            links.pop(each["id"], None)
    tags |= {int(number): tag for number, tag in (change.get("tags") or {}).items()}
    links = {number: own for number, own in (links | new_links).items() if number in resources}
    used = {number for own in links.values() for number in own}
    return {
        **base,
        **{key: value for key, value in change.items() if key not in ("isDelta", "op", "tagsChangeExtent")},
        "serviceResources": list(resources.values()),
        "resourceToTagIds": {str(number): own for number, own in links.items()},
        "tags": {str(number): tag for number, tag in tags.items() if number in used},
    }
