"""Functions that create, roll and list keys of any provider, also behind the command `lockgate keys`."""

from __future__ import annotations

import os
from typing import TypeAlias

from lockgate.checked_arguments import checked_arguments
from lockgate.framework.keys.key_spec import provider_from
from lockgate.framework.keys.metadata import KeyMetadata
from lockgate.framework.keys.provider import KeyProvider

Keys: TypeAlias = KeyProvider | str | os.PathLike[str]


@checked_arguments
def create_key(keys: Keys, name: str, bits: int = 128) -> KeyMetadata:
    """Create a key with a fresh version 0 in `keys`, a provider or its specification.

    `bits` is 128 or 256. Raises `AlreadyExistsError` if the key exists, `UnsupportedError` if this provider
    only reads, and the provider's own errors.
    """
    return provider_from(keys).create_key(name, bits)


@checked_arguments
def roll_key(keys: Keys, name: str, bits: int | None = None) -> KeyMetadata:
    """Add a fresh version of a key, which new files use; older versions stay for older files.

    `bits` is 128, 256 or, if None, as the version before. Raises `KeyMissingError` for an unknown name,
    `UnsupportedError` if this provider only reads, and the provider's own errors.
    """
    return provider_from(keys).roll_key(name, bits)


@checked_arguments
def list_keys(keys: Keys) -> list[KeyMetadata]:
    """Return the metadata of every version of every key that can be listed, sorted."""
    return provider_from(keys).key_versions()
