"""Key providers: storage of master keys, and wrapping of local keys under them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.keys.hadoop.jceks import JceksKeyProvider
from lockgate.framework.keys.key_file import KeyFileProvider, add_key_version, create_key_file
from lockgate.framework.keys.key_spec import key_file_of, provider_from
from lockgate.framework.keys.management import create_key, list_keys, roll_key
from lockgate.framework.keys.metadata import KeyAlgorithm, KeyMetadata, LocalKey, parse_key_version
from lockgate.framework.keys.provider import KeyProvider, MemoryKeyProvider, NoKeys
from lockgate.lazy_names import lazy_attributes

if TYPE_CHECKING:
    from lockgate.framework.keys.envelopes.aws_kms import AwsKmsWrapper
    from lockgate.framework.keys.envelopes.envelope import EnvelopeKeyProvider
    from lockgate.framework.keys.envelopes.key_wrapper import KeyWrapper, ProviderWrapper, WrappedKey
    from lockgate.framework.keys.envelopes.wrapped_keys import WrappedKeys
    from lockgate.framework.keys.hadoop.hadoop_kms import HadoopKmsKeyProvider
    from lockgate.framework.keys.local_key_cipher import aes_ctr, unwrap

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
    "WrappedKeys",
    "add_key_version",
    "aes_ctr",
    "create_key",
    "create_key_file",
    "key_file_of",
    "list_keys",
    "parse_key_version",
    "provider_from",
    "roll_key",
    "unwrap",
]

# Loaded when first asked for: a reader with a key file needs no HTTP, no TLS and no ciphers.
__getattr__ = lazy_attributes(
    __name__,
    {
        ".envelopes.aws_kms": "AwsKmsWrapper",
        ".envelopes.envelope": "EnvelopeKeyProvider",
        ".envelopes.key_wrapper": "KeyWrapper ProviderWrapper WrappedKey",
        ".envelopes.wrapped_keys": "WrappedKeys",
        ".hadoop.hadoop_kms": "HadoopKmsKeyProvider",
        ".local_key_cipher": "aes_ctr unwrap",
    },
)
