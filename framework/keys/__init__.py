"""Where master keys live, and how local keys are wrapped under them."""

from lockgate.framework.keys.aws_kms import AwsKmsWrapper
from lockgate.framework.keys.envelope import EnvelopeKeyProvider
from lockgate.framework.keys.hadoop_kms import HadoopKmsKeyProvider
from lockgate.framework.keys.jceks import JceksKeyProvider
from lockgate.framework.keys.key_file import KeyFileProvider, add_key_version, create_key_file
from lockgate.framework.keys.management import create_key, list_keys, roll_key
from lockgate.framework.keys.metadata import KeyAlgorithm, KeyMetadata, LocalKey, parse_key_version
from lockgate.framework.keys.provider import KeyProvider, MemoryKeyProvider, NoKeys
from lockgate.framework.keys.spec import provider_from
from lockgate.framework.keys.wrapping import KeyWrapper, ProviderWrapper, WrappedKey

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
