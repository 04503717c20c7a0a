"""Principals: identities with groups and roles, and callers, whose groups and roles are not resolved yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from lockgate.errors import InputError


@dataclass(frozen=True)
class Caller:
    """A caller before its groups and roles are resolved.

    `user` is the user of the Spark session; in Python and on the command line it is the operating system's
    user. `session` is an unguessable name of the requesting Spark session, None outside Spark.
    """

    user: str
    door: Literal["spark", "python"] = "python"
    session: str | None = None


@dataclass(frozen=True)
class Principal:
    """An identity: a user with groups, roles and attributes.

    `attributes` maps names to texts, such as `{"country": "CH"}`. Raises InputError for an empty user.
    """

    user: str
    groups: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.user:
            raise InputError("a principal needs a user: give the name of the requesting user")
        for what, names in (("groups", self.groups), ("roles", self.roles)):
            if isinstance(names, str):
                raise InputError(f"{what} of a principal are names, such as {{{names!r}}}, not a text")
        object.__setattr__(self, "groups", frozenset(self.groups))
        object.__setattr__(self, "roles", frozenset(self.roles))
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __str__(self) -> str:
        return self.user
