"""Wrapping of local keys under master keys, as in ORC column encryption."""

from __future__ import annotations

import secrets

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from lockgate.framework.keys.metadata import KeyAlgorithm

IV_LENGTH = 16


def aes_ctr(key: bytes, iv: bytes) -> CipherContext:
    """Return an AES cipher in counter mode, which encrypts and decrypts."""
    return Cipher(algorithms.AES(key), modes.CTR(iv)).encryptor()


def unwrap(master: bytes, encrypted: bytes) -> bytes:
    """Return the local key of an encrypted local key.

    The encrypted key contains its own counter: its first 16 bytes are the IV with which all of it is
    decrypted (org.apache.orc.impl.KeyProvider.decryptLocalKey of the in-memory and the Hadoop provider).
    """
    return aes_ctr(master, encrypted[:IV_LENGTH]).update(encrypted)


def random_encrypted_key(algorithm: KeyAlgorithm) -> bytes:
    """Return a fresh encrypted local key: random bytes, which decrypt to the local key."""
    return secrets.token_bytes(algorithm.key_length)
