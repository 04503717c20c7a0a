"""Master keys: providers, making and rolling keys, wrapping local keys under them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.lazy_names import lazily

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

__getattr__ = lazily(
    __name__,
    {
        "AwsKmsWrapper": "lockgate.framework.keys",
        "EnvelopeKeyProvider": "lockgate.framework.keys",
        "HadoopKmsKeyProvider": "lockgate.framework.keys",
        "JceksKeyProvider": "lockgate.framework.keys",
        "KeyAlgorithm": "lockgate.framework.keys",
        "KeyFileProvider": "lockgate.framework.keys",
        "KeyMetadata": "lockgate.framework.keys",
        "KeyProvider": "lockgate.framework.keys",
        "KeyWrapper": "lockgate.framework.keys",
        "LocalKey": "lockgate.framework.keys",
        "MemoryKeyProvider": "lockgate.framework.keys",
        "NoKeys": "lockgate.framework.keys",
        "ProviderWrapper": "lockgate.framework.keys",
        "WrappedKey": "lockgate.framework.keys",
        "add_key_version": "lockgate.framework.keys",
        "create_key": "lockgate.framework.keys",
        "create_key_file": "lockgate.framework.keys",
        "list_keys": "lockgate.framework.keys",
        "parse_key_version": "lockgate.framework.keys",
        "provider_from": "lockgate.framework.keys",
        "roll_key": "lockgate.framework.keys",
    },
)
