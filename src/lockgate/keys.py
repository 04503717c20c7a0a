"""Master keys: providers, and functions that create, list and roll keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.keys import (
        AwsKmsWrapper,
        EnvelopeKeyProvider,
        HadoopKmsKeyProvider,
        JceksKeyProvider,
        KeyAlgorithm,
        KeyFileProvider,
        KeyMetadata,
        KeyProvider,
        KeyWrapper,
        LocalKey,
        MemoryKeyProvider,
        NoKeys,
        ProviderWrapper,
        WrappedKey,
        add_key_version,
        create_key,
        create_key_file,
        list_keys,
        parse_key_version,
        provider_from,
        roll_key,
    )

__all__ = [
    "AwsKmsWrapper",
    "EnvelopeKeyProvider",
    "HadoopKmsKeyProvider",
    "JceksKeyProvider",
    "KeyAlgorithm",
    "KeyFileProvider",
    "KeyMetadata",
    "KeyProvider",
    "KeyWrapper",
    "LocalKey",
    "MemoryKeyProvider",
    "NoKeys",
    "ProviderWrapper",
    "WrappedKey",
    "add_key_version",
    "create_key",
    "create_key_file",
    "list_keys",
    "parse_key_version",
    "provider_from",
    "roll_key",
]

__getattr__ = lazy_attributes(__name__, {"lockgate.framework.keys": " ".join(__all__)})
