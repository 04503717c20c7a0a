"""The interface of key providers, and providers in memory."""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import NoReturn

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    AlreadyExistsError,
    KeyDeniedError,
    KeyMissingError,
    UnsupportedError,
    WrongKeyError,
    nearest,
)
from lockgate.framework.keys.local_key_cipher import random_encrypted_key, unwrap
from lockgate.framework.keys.metadata import (
    KeyAlgorithm,
    KeyMetadata,
    LocalKey,
    algorithm_of_bits,
    check_key_name,
    parse_key_version,
)


@checked_arguments
class KeyProvider(ABC):
    """Holds master keys and wraps local keys under them; it never hands out a master key.

    Four failures have different errors: the provider does not hold the key (`KeyMissingError`), this caller
    may not use it (`KeyDeniedError`), the file was written with another key of that name (`WrongKeyError`),
    or the key service does not answer properly (`KeyServiceError`).
    """

    @abstractmethod
    def key_names(self) -> list[str]:
        """Return the names of all keys, sorted."""

    @abstractmethod
    def current_key(self, name: str) -> KeyMetadata:
        """Return the newest version of the key `name`, which encrypts new files."""

    @abstractmethod
    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        """Return the local key of a file: decrypt `encrypted` (16 or 32 bytes) with the master key `key`."""

    def create_local_key(self, key: KeyMetadata) -> LocalKey:
        """Return a fresh local key, never used before, wrapped under `key`."""
        encrypted = random_encrypted_key(key.algorithm)
        return LocalKey(self.decrypt_local_key(key, encrypted), encrypted)

    def usable(self, name: str) -> bool:
        """Return whether new files can use the key `name`: the provider holds it, and this caller may use it.

        For any other failure it raises as `current_key` does, so an unavailable service is no missing
        key.
        """
        try:
            self.create_local_key(self.current_key(name))
        except (KeyMissingError, KeyDeniedError):
            return False
        return True

    def key_versions(self) -> list[KeyMetadata]:
        """Return every version of every key that can be listed, sorted; by default the current ones."""
        return [self.current_key(name) for name in self.key_names()]

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        """Create the key `name` with a fresh version 0; `UnsupportedError` if this provider cannot create
        keys.

        `bits` is 128 or 256. Raises `AlreadyExistsError` if there is a key of that name.
        """
        raise UnsupportedError(f"{self!r} cannot create keys: create them in the key store itself")

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        """Add a fresh version of the key `name`, which new files use; `UnsupportedError` as `create_key`.

        `bits` is 128, 256 or, if None, as the version before. Raises `KeyMissingError` for an unknown name.
        """
        raise UnsupportedError(f"{self!r} cannot roll keys: roll them in the key store itself")

    def for_table(self, options: Mapping[str, str]) -> KeyProvider:
        """Return the provider for a table with these options; by default this provider.

        Equal options return the same object.
        """
        return self

    @property
    def spec(self) -> str | None:
        """The text from which `provider_from` makes this provider in another process; None if there is
        none.
        """
        return None


class NoKeys(KeyProvider):
    """A provider without keys: every encrypted column is read as its mask."""

    def key_names(self) -> list[str]:
        return []

    def current_key(self, name: str) -> KeyMetadata:
        raise KeyMissingError(
            f"there is no key {name!r}: no keys were given; pass keys=... (for instance file:/path/keys.json)"
        )

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        raise KeyMissingError(
            f"there is no key {key}: no keys were given; pass keys=... (for instance file:/path/keys.json)"
        )

    def __repr__(self) -> str:
        return "NoKeys()"


class MasterKeys:
    """Master keys in memory, by name and version, for providers that hold the bytes of keys."""

    def __init__(self, keys: Mapping[tuple[str, int], bytes], holder: str) -> None:
        self._keys = {version: bytes(material) for version, material in keys.items()}
        self._holder = holder
        for material in self._keys.values():
            KeyAlgorithm.of_length(len(material))

    def __repr__(self) -> str:
        return f"MasterKeys({', '.join(self.versions())})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "master keys cannot be pickled: give other processes a key file (file:/path/keys.json)"
        )

    def versions(self) -> list[str]:
        """Return every key, written name@version."""
        return [f"{name}@{version}" for name, version in sorted(self._keys)]

    def with_key(self, key: KeyMetadata, material: bytes) -> MasterKeys:
        """Return a copy with one more key."""
        return MasterKeys({**self._keys, (key.name, key.version): material}, self._holder)

    def metadata(self) -> list[KeyMetadata]:
        """Return the metadata of every key, sorted."""
        return [
            KeyMetadata(name, version, KeyAlgorithm.of_length(len(material)))
            for (name, version), material in sorted(self._keys.items())
        ]

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted({name for name, _ in self._keys})

    def current(self, name: str) -> KeyMetadata:
        """Return the highest version of `name`."""
        versions = [version for key, version in self._keys if key == name]
        if not versions:
            raise KeyMissingError(f"{self._holder} has no key {name!r}{nearest(name, self.names())}")
        newest = max(versions)
        return KeyMetadata(name, newest, KeyAlgorithm.of_length(len(self._keys[name, newest])))

    def unwrap(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        """Decrypt a local key; master key, local key and algorithm must have the same size."""
        master = self._keys.get((key.name, key.version))
        if master is None:
            raise KeyMissingError(f"{self._holder} has no key {key}{nearest(str(key), self.versions())}")
        if len(encrypted) != key.algorithm.key_length or len(master) != key.algorithm.key_length:
            raise WrongKeyError(
                f"the file was written with a key {key} of {key.algorithm.key_length * 8} bits, "
                f"but {self._holder} has one of {len(master) * 8} bits under that name"
            )
        return unwrap(master, encrypted)


@checked_arguments
class MemoryKeyProvider(KeyProvider):
    """Holds keys in memory, for tests and notebooks: `MemoryKeyProvider({"pii@0": key_bytes})`.

    A key has 16 bytes (AES-128) or 32 bytes (AES-256). The provider cannot be pickled, so that no key gets
    into a Spark plan. Keys made by `create_key` and `roll_key` end with the process.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._keys = MasterKeys(
            {parse_key_version(text): material for text, material in keys.items()}, "this provider"
        )
        self._lock = threading.Lock()

    def key_names(self) -> list[str]:
        return self._keys.names()

    def current_key(self, name: str) -> KeyMetadata:
        return self._keys.current(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        return self._keys.unwrap(key, encrypted)

    def key_versions(self) -> list[KeyMetadata]:
        return self._keys.metadata()

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        with self._lock:
            if name in self._keys.names():
                raise AlreadyExistsError(f"this provider has a key {name!r} already: roll it instead")
            return self._add(KeyMetadata(check_key_name(name), 0, algorithm_of_bits(bits)))

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        with self._lock:
            old = self._keys.current(name)
            algorithm = old.algorithm if bits is None else algorithm_of_bits(bits)
            return self._add(KeyMetadata(name, old.version + 1, algorithm))

    def _add(self, key: KeyMetadata) -> KeyMetadata:
        self._keys = self._keys.with_key(key, secrets.token_bytes(key.algorithm.key_length))
        return key

    def versions(self) -> Collection[str]:
        """Return every key, written name@version."""
        return self._keys.versions()

    def __repr__(self) -> str:
        return f"MemoryKeyProvider({', '.join(self._keys.versions())})"
