"""Strictness: the refusal of policies that an unknown condition could turn into open access.

Such a condition never holds. That is safe on an item that allows, but not on an item that denies, an
exception to an allowed access, a mask or a row filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lockgate.errors import PolicyError
from lockgate.framework.governance.ranger.policies.definition import ServiceDefinition
from lockgate.framework.governance.ranger.policies.item import conditions_of
from lockgate.framework.governance.ranger.policies.policy import CLOSING

_MOST_NAMED = 5


def check_understood(policies: Iterable[Mapping[str, Any]], service: ServiceDefinition) -> None:
    """Raise PolicyError for policies whose protection would be lost, with the reason for each."""
    refused = [
        f"policy {document.get('name')!r}: {why}"
        for document in policies
        for why in _reasons(document, service)
    ]
    if refused:
        more = "" if len(refused) <= _MOST_NAMED else f" and {len(refused) - _MOST_NAMED} more"
        raise PolicyError(
            "cannot evaluate conditions that protect something: "
            f"{'; '.join(refused[:_MOST_NAMED])}{more}. "
            f"Rewrite them, or load the policies with strict=False: these conditions then never hold"
        )


def _reasons(document: Mapping[str, Any], service: ServiceDefinition) -> Iterator[str]:
    protects = bool(document.get("isDenyAllElse")) or any(document.get(name) for name in CLOSING)
    if document.get("conditions") and protects:
        yield from _unread(document, service)
    for name in CLOSING:
        for item in document.get(name) or ():
            if item.get("conditions"):
                yield from _unread(item, service)


def _unread(document: Mapping[str, Any], service: ServiceDefinition) -> Iterator[str]:
    return (each.unreadable for each in conditions_of(document["conditions"], service) if each.unreadable)
