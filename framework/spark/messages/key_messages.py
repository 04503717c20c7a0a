"""Messages on keys, which executors send too."""

from __future__ import annotations

from typing import TypedDict


class ScopeRequest(TypedDict):
    """The keys that one plan may use."""

    scope: str


class UnwrapRequest(TypedDict):
    """A wrapped local key of a file, in base64, and the master key that it is under."""

    scope: str
    name: str
    version: int
    algorithm: str
    encrypted: str


class UnwrapAnswer(TypedDict):
    """The local key in base64, null where the scope has no such master key."""

    plain: str | None


class CreateKeyRequest(TypedDict):
    """A local key to make, under the newest version of a master key or with `version` under that one."""

    scope: str
    name: str
    version: int | None
    algorithm: str | None


class CreatedKey(TypedDict):
    """A local key, open and wrapped, in base64."""

    name: str
    version: int
    algorithm: str
    plain: str
    encrypted: str
