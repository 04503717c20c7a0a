"""Wrapping of master keys under a key kept elsewhere, so that they can be stored with the data."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import KeyMissingError, OptionError, WrongKeyError, nearest
from lockgate.framework.keys.metadata import KeyAlgorithm, KeyMetadata
from lockgate.framework.keys.provider import KeyProvider

_PURPOSE = b"lockgate.envelope.v1"
_WRAPPING_KEY = re.compile(rf"(.+)@(\d{{1,9}})/({'|'.join(KeyAlgorithm.__members__)})")
# A constant nonce is safe: its key is derived from a fresh local key and used once.
_NONCE = bytes(12)


@dataclass(frozen=True)
class WrappedKey:
    """A wrapped master key and the key (`by`) that wraps it; only users of `by` can open it."""

    key: KeyMetadata
    by: str
    content: bytes = field(repr=False)


class KeyWrapper(ABC):
    """Wraps and unwraps master keys.

    A wrapped key is bound to its name, version and algorithm: it does not open under any other.
    """

    @abstractmethod
    def wrap(self, key: KeyMetadata, material: bytes) -> WrappedKey:
        """Wrap the bytes of a master key."""

    @abstractmethod
    def unwrap(self, wrapped: WrappedKey) -> bytes:
        """Return the bytes of a master key.

        Raises `WrongKeyError` if it was changed or wrapped for another key, and `KeyMissingError`,
        `KeyDeniedError` or `KeyServiceError` as a provider does for the wrapping key.
        """

    @property
    @abstractmethod
    def spec(self) -> str | None:
        """The text after `envelope:` that makes this wrapper in another process, None if there is none."""


@checked_arguments
class ProviderWrapper(KeyWrapper):
    """Wraps under a key of any provider: AES-256-GCM with a key derived from one of its fresh local keys.

    `root` is the name of that key, by default the provider's only key. With a `root`, keys
    wrapped under any other key are refused.

    The content is the encrypted local key (16 or 32 bytes), the ciphertext and a tag of 16 bytes; the
    AES-GCM key is HKDF-SHA256(local key, info="lockgate.envelope.v1", 32 bytes), the nonce is zero, and the
    additional data name the key.
    """

    def __init__(self, provider: KeyProvider, root: str | None = None) -> None:
        self._provider = provider
        self._root = root

    def wrap(self, key: KeyMetadata, material: bytes) -> WrappedKey:
        root = self._provider.current_key(self._root or self._only_name())
        local = self._provider.create_local_key(root)
        ciphertext = _cipher(local.plain).encrypt(_NONCE, material, _associated_data(key))
        return WrappedKey(key, f"{root}/{root.algorithm.name}", local.encrypted + ciphertext)

    def unwrap(self, wrapped: WrappedKey) -> bytes:
        root = self._wrapping_key(wrapped)
        length = root.algorithm.key_length
        plain = self._provider.decrypt_local_key(root, wrapped.content[:length])
        try:
            return _cipher(plain).decrypt(_NONCE, wrapped.content[length:], _associated_data(wrapped.key))
        except InvalidTag:
            raise WrongKeyError(
                f"the wrapped key {wrapped.key} does not open with {root} of {self._provider!r}: it was "
                "wrapped under another key of that name, or changed"
            ) from None

    @property
    def spec(self) -> str | None:
        inner = self._provider.spec
        return inner if inner is None or self._root is None else f"{self._root}@{inner}"

    def __repr__(self) -> str:
        return f"ProviderWrapper({self._provider!r}{'' if self._root is None else f', root={self._root!r}'})"

    def _only_name(self) -> str:
        names = self._provider.key_names()
        if len(names) != 1:
            raise OptionError(
                f"name the key of {self._provider!r} that wraps others: write envelope:NAME@..."
                f"{nearest('', names) if names else ''}"
            )
        return names[0]

    def _wrapping_key(self, wrapped: WrappedKey) -> KeyMetadata:
        match = _WRAPPING_KEY.fullmatch(wrapped.by)
        if match is None:
            raise KeyMissingError(
                f"the key {wrapped.key} is wrapped under {wrapped.by!r}, which the configured "
                "provider does not hold: configure the service that wrapped it"
            )
        name, version, algorithm = match[1], int(match[2]), match[3]
        if self._root is not None and name != self._root:
            raise KeyMissingError(
                f"the key {wrapped.key} is wrapped under {name!r}, and only {self._root!r} is trusted here"
            )
        return KeyMetadata(name, version, KeyAlgorithm[algorithm])


def _cipher(local_key: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(local_key))


def _associated_data(key: KeyMetadata) -> bytes:
    return _PURPOSE + f"\0{key.name}\0{key.version}\0{key.algorithm.name}".encode()
