"""Metadata of master keys, which hold no secret, and local keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError


class KeyAlgorithm(IntEnum):
    """The ciphers of ORC column encryption, with their numbers in ORC files."""

    AES_CTR_128 = 1
    AES_CTR_256 = 2

    @property
    def key_length(self) -> int:
        """The length of a key, in bytes."""
        return 16 if self is KeyAlgorithm.AES_CTR_128 else 32

    @classmethod
    def of_length(cls, length: int) -> KeyAlgorithm:
        """Return the algorithm for a key of `length` bytes; `InputError` if there is none."""
        for algorithm in cls:
            if algorithm.key_length == length:
                return algorithm
        raise InputError(f"a master key has 16 bytes (AES-128) or 32 bytes (AES-256), not {length}")


@dataclass(frozen=True, order=True)
class KeyMetadata:
    """One version of a master key: name, version and cipher. Holds no secret."""

    name: str
    version: int
    algorithm: KeyAlgorithm

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


@dataclass(frozen=True)
class LocalKey:
    """The key of one file: `plain` is secret and only in memory; `encrypted` under a master key is stored."""

    plain: bytes = field(repr=False)
    encrypted: bytes = field(repr=False)

    def __reduce__(self) -> str:
        raise TypeError("a local key cannot be pickled: it must not leave the process that uses it")


@checked_arguments
def parse_key_version(text: str) -> tuple[str, int]:
    """Split `"pii@0"` into name and version, by default 0; `InputError` for a malformed text."""
    name, separator, version = text.rpartition("@")
    if not separator:
        name, version = text, "0"
    if not name or not version.isdecimal():
        raise InputError(f"a key is written name@version, as in pii@0, not {text!r}")
    return name, int(version)


def check_key_name(name: str) -> str:
    """Return `name` if it is a valid name of a new key; `InputError` otherwise."""
    # These characters separate keys and columns in orc.encrypt, and the name from the version.
    if not name or any(character in "@:;," or character.isspace() for character in name):
        raise InputError(f"a key name has no '@', ':', ';', ',' or blanks and is not empty: {name!r}")
    return name


def algorithm_of_bits(bits: int) -> KeyAlgorithm:
    """Return the algorithm for keys of 128 or 256 bits; `InputError` for another number."""
    if bits not in (128, 256):
        raise InputError(f"a key has 128 or 256 bits, not {bits}")
    return KeyAlgorithm.of_length(bits // 8)
