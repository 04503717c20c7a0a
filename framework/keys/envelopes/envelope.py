"""Master keys stored with the data: wrapped in a table's option, and unwrapped by a key kept elsewhere."""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import AlreadyExistsError, InputError, KeyMissingError, OptionError, UnsupportedError
from lockgate.framework.keys.envelopes.aws_kms import AwsKmsWrapper
from lockgate.framework.keys.envelopes.key_wrapper import KeyWrapper, ProviderWrapper
from lockgate.framework.keys.envelopes.wrapped_keys import WRAPPED_KEYS_OPTION, WrappedKeys
from lockgate.framework.keys.expiring_cache import ExpiringCache
from lockgate.framework.keys.key_spec import provider_from
from lockgate.framework.keys.metadata import (
    KeyAlgorithm,
    KeyMetadata,
    algorithm_of_bits,
    check_key_name,
    parse_key_version,
)
from lockgate.framework.keys.provider import KeyProvider, MasterKeys

_ROOT_AND_SPEC = re.compile(r"([^@:;,/\s]+)@(.+)", re.DOTALL)
_MAX_TABLES = 1000


@checked_arguments
class EnvelopeKeyProvider(KeyProvider):
    """Unwraps the master keys of each table by `wrapper`: a `KeyWrapper`, or a provider that holds the root
    key.

    The keys come from the option `orc.keys.wrapped` of each table (`for_table`), never from the provider. It
    keeps an unwrapped key in memory for `seconds`, so a key stays usable that long after it was denied.
    """

    def __init__(self, wrapper: KeyWrapper | KeyProvider, *, seconds: float = 600.0) -> None:
        self._wrapper = ProviderWrapper(wrapper) if isinstance(wrapper, KeyProvider) else wrapper
        self._seconds = seconds
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, TableKeyProvider] = OrderedDict()

    # --- methods of a key provider ---

    def for_table(self, options: Mapping[str, str]) -> KeyProvider:
        text = options.get(WRAPPED_KEYS_OPTION)
        return self if not text else self.of_text(text)

    def of_text(self, text: str) -> TableKeyProvider:
        """Return the provider of the keys in a text of the option; equal texts share one provider."""
        with self._lock:
            provider = self._tables.get(text)
            if provider is None:
                provider = TableKeyProvider(WrappedKeys.from_text(text), self._wrapper, self._seconds)
                self._tables[text] = provider
            self._tables.move_to_end(text)
            while len(self._tables) > _MAX_TABLES:
                self._tables.popitem(last=False)
            return provider

    def key_names(self) -> list[str]:
        return []

    def current_key(self, name: str) -> KeyMetadata:
        raise self._missing(repr(name))

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        raise self._missing(str(key))

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        raise UnsupportedError(
            f"the keys of a table are in its option {WRAPPED_KEYS_OPTION}: use create(names)"
        )

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        raise UnsupportedError(
            f"the keys of a table are in its option {WRAPPED_KEYS_OPTION}: use roll(text, name) and "
            "table.set_wrapped_keys(text)"
        )

    @property
    def spec(self) -> str | None:
        inner = self._wrapper.spec
        return None if inner is None else f"envelope:{inner}"

    def __repr__(self) -> str:
        return f"EnvelopeKeyProvider({self._wrapper!r})"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return envelope_provider, (_spec_to_pickle(self.spec),)

    # --- values of the option ---

    def create(self, *names: str, bits: int = 128) -> str:
        """Return the text of `orc.keys.wrapped` for a new table: a fresh key, version 0, for each of
        `names`.
        """
        if not names:
            raise InputError("name at least one key")
        algorithm = algorithm_of_bits(bits)
        keys = [KeyMetadata(check_key_name(name), 0, algorithm) for name in names]
        if len(set(keys)) != len(keys):
            raise InputError(f"a key is named twice: {', '.join(names)}")
        return WrappedKeys(self._new_key(key) for key in keys).text

    def add(self, text: str, name: str, bits: int = 128) -> str:
        """Return `text` with one more key, version 0; `AlreadyExistsError` if there is a key of that name."""
        keys = WrappedKeys.from_text(text)
        if name in keys.names():
            raise AlreadyExistsError(f"there is a key {name!r} already: roll it instead")
        return keys.with_key(
            self._new_key(KeyMetadata(check_key_name(name), 0, algorithm_of_bits(bits)))
        ).text

    def roll(self, text: str, name: str, bits: int | None = None) -> str:
        """Return `text` with a fresh version of a key, which new files use.

        `bits` is 128, 256 or, if None, as the version before. Raises `KeyMissingError` for an unknown name.
        """
        keys = WrappedKeys.from_text(text)
        old = keys.current(name)
        algorithm = old.algorithm if bits is None else algorithm_of_bits(bits)
        return keys.with_key(self._new_key(KeyMetadata(name, old.version + 1, algorithm))).text

    def wrap(self, keys: Mapping[str, bytes]) -> str:
        """Return the option's text for existing master keys: `{"pii@0": key_bytes}`, of 16 or
        32 bytes each.
        """
        wrapped = []
        for version, material in keys.items():
            name, number = parse_key_version(version)
            key = KeyMetadata(check_key_name(name), number, KeyAlgorithm.of_length(len(material)))
            wrapped.append(self._wrapper.wrap(key, material))
        return WrappedKeys(wrapped).text

    def rewrap(self, text: str, wrapper: KeyWrapper | KeyProvider | None = None) -> str:
        """Return `text` with the same master keys, wrapped again under the newest version of the wrapping
        key.

        A `wrapper` wraps them under another key or service. Files stay unchanged and readable.
        """
        new = ProviderWrapper(wrapper) if isinstance(wrapper, KeyProvider) else wrapper or self._wrapper
        keys = WrappedKeys.from_text(text)
        return WrappedKeys(new.wrap(each.key, self._wrapper.unwrap(each)) for each in keys).text

    def _new_key(self, key: KeyMetadata) -> Any:
        return self._wrapper.wrap(key, secrets.token_bytes(key.algorithm.key_length))

    def _missing(self, key: str) -> KeyMissingError:
        return KeyMissingError(
            f"there is no key {key}: {self!r} unwraps the keys of tables with option {WRAPPED_KEYS_OPTION}, "
            "and this is none"
        )


class TableKeyProvider(KeyProvider):
    """The master keys of one table, unwrapped on first use."""

    def __init__(self, keys: WrappedKeys, wrapper: KeyWrapper, seconds: float = 600.0) -> None:
        self._keys = keys
        self._wrapper = wrapper
        self._seconds = seconds
        self._unwrapped: ExpiringCache[KeyMetadata, MasterKeys] = ExpiringCache(max(1, len(keys)), seconds)
        self._usable: ExpiringCache[str, bool] = ExpiringCache(max(1, len(keys)), min(seconds, 30.0))

    def key_names(self) -> list[str]:
        return self._keys.names()

    def current_key(self, name: str) -> KeyMetadata:
        return self._keys.current(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        wrapped = self._keys.get(key.name, key.version)
        master_keys = self._unwrapped.get(wrapped.key)
        if master_keys is None:
            material = self._wrapper.unwrap(wrapped)
            master_keys = MasterKeys({(key.name, key.version): material}, f"option {WRAPPED_KEYS_OPTION}")
            self._unwrapped.put(wrapped.key, master_keys)
        return master_keys.unwrap(key, encrypted)

    def usable(self, name: str) -> bool:
        return self._usable.get_or_make(name, super().usable)

    def key_versions(self) -> list[KeyMetadata]:
        return [wrapped.key for wrapped in self._keys]

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        raise UnsupportedError(
            f"the keys of a table are in its option {WRAPPED_KEYS_OPTION}: use EnvelopeKeyProvider.roll("
            "text, name) and table.set_wrapped_keys(text)"
        )

    create_key = EnvelopeKeyProvider.create_key

    def __repr__(self) -> str:
        return f"TableKeyProvider({', '.join(self._keys.versions())}; {self._wrapper!r})"

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        inner = self._wrapper.spec
        spec = _spec_to_pickle(None if inner is None else f"envelope:{inner}")
        return _table_provider, (spec, self._keys.text)


def envelope_provider(text: str) -> EnvelopeKeyProvider:
    """Make a provider from `envelope:aws-kms:KEY`, or from `envelope:NAME@SPEC` with a provider's SPEC.

    `NAME@` is the key to wrap under, and may be omitted if SPEC has only one. Raises `OptionError` for a
    malformed text, and what the inner specification raises.
    """
    inner = text.partition(":")[2]
    if inner.startswith("aws-kms:"):
        return EnvelopeKeyProvider(AwsKmsWrapper.from_spec(inner))
    match = _ROOT_AND_SPEC.fullmatch(inner)
    root, spec = match.groups() if match else (None, inner)
    if not spec or spec.startswith("envelope:"):
        raise OptionError(
            "name the service that unwraps: write envelope:aws-kms:KEY?region=..., or envelope:NAME@SPEC "
            "with a provider such "
            "as kms://https@host:9600/kms or file:/path/root.json, whose key NAME wraps the others"
        )
    return EnvelopeKeyProvider(ProviderWrapper(provider_from(spec), root))


def _table_provider(spec: str, text: str) -> TableKeyProvider:
    return envelope_provider(spec).of_text(text)


def _spec_to_pickle(spec: str | None) -> str:
    if spec is None:
        raise TypeError("keys wrapped under keys in memory cannot be pickled: use a key file or a service")
    return spec
