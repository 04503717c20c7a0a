"""Requests to Ranger's engine, and the facts about their user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

ANY, ADMIN, SUPER_USER = "_any", "_admin", "_super_user"
Tag = Mapping[str, Any]
NO_ATTRIBUTES: Mapping[str, Mapping[str, object]] = {}


@dataclass(frozen=True, kw_only=True)
class RangerRequest:
    """A request: whether `user` may do `access` to `resource`, a value (or several) by level.

    `access` is an access type of the service, `_any`, `_admin` or `_super_user`. Roles are looked up if none
    are given, and tags likewise. `scope` is SELF or SELF_OR_DESCENDANTS, `scopes` says the same by level (and
    SELF_OR_PREFIX, SELF_OR_CHILD). `all_accesses`, `access_groups` and `if_not_denied` ask for several access
    types at once: one of each group is needed. `users` and `groups_known` hold attributes. `inline` is a
    policy that comes with the request. `tag` is the tag whose policies are asked, `current_tag` the one that
    scripts see: in policies on resources, too, as Ranger leaves it there.
    """

    resource: Mapping[str, Any]
    access: str = ANY
    user: str | None
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    owner: str | None = None
    action: str | None = None
    at: datetime | None = None
    client_ip: str | None = None
    client_type: str | None = None
    cluster_name: str | None = None
    cluster_type: str | None = None
    scope: str = "SELF"
    scopes: Mapping[str, str] = field(default_factory=dict)
    ignores_descendant_deny: bool = True
    all_accesses: tuple[str, ...] = ()
    access_groups: tuple[tuple[str, ...], ...] = ()
    if_not_denied: frozenset[str] = frozenset()
    context: Mapping[str, Any] = field(default_factory=dict)
    tags: Sequence[Tag] = ()
    tag: Tag | None = None
    current_tag: Tag | None = None
    zones: frozenset[str] = frozenset()
    users: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    groups_known: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)
    inline: Mapping[str, Any] | None = None

    @property
    def is_any(self) -> bool:
        """Return whether any access at all is asked for."""
        return self.access in ("", ANY)

    @property
    def is_wide(self) -> bool:
        """Return whether a policy about a part of the resource counts."""
        return self.is_any or self.scope == "SELF_OR_DESCENDANTS"

    @property
    def now(self) -> datetime:
        """The time of the request: its own, else the present."""
        return self.at or datetime.now(UTC)

    def of_tag(self, tag: Tag) -> RangerRequest:
        """Return the request that a tag's policies are asked."""
        return replace(self, resource={"tag": tag["type"]}, tag=tag, current_tag=tag, scopes={})
