"""The table option `orc.keys.wrapped`: master keys, each wrapped under a key kept elsewhere."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any

from lockgate.errors import InputError, KeyMissingError, OptionError, nearest
from lockgate.framework.keys.envelopes.key_wrapper import WrappedKey
from lockgate.framework.keys.key_document import FORMAT_VERSION, key_entries
from lockgate.framework.keys.metadata import KeyAlgorithm, KeyMetadata

WRAPPED_KEYS_OPTION = "orc.keys.wrapped"


class WrappedKeys:
    """The wrapped master keys of a table, by name and version; immutable."""

    def __init__(self, keys: Iterable[WrappedKey] = ()) -> None:
        self._keys = {(wrapped.key.name, wrapped.key.version): wrapped for wrapped in keys}

    @classmethod
    def from_text(cls, text: str) -> WrappedKeys:
        """Parse the text of the option; `OptionError` if it is malformed."""
        entries = key_entries(text, f"option {WRAPPED_KEYS_OPTION}", OptionError)
        keys = [_entry(index, entry) for index, entry in enumerate(entries)]
        if len({(wrapped.key.name, wrapped.key.version) for wrapped in keys}) != len(keys):
            raise OptionError(f"option {WRAPPED_KEYS_OPTION} holds a version of a key twice")
        return cls(keys)

    @property
    def text(self) -> str:
        """The text of the option, in one line and without single quotes, so that SQL needs no escapes."""
        entries = [
            {
                "name": wrapped.key.name,
                "version": wrapped.key.version,
                "algorithm": wrapped.key.algorithm.name,
                "by": wrapped.by,
                "wrapped": base64.b64encode(wrapped.content).decode("ascii"),
            }
            for wrapped in self
        ]
        return json.dumps({"format": FORMAT_VERSION, "keys": entries}, separators=(",", ":")).replace(
            "'", "\\u0027"
        )

    def __iter__(self) -> Iterator[WrappedKey]:
        return iter([self._keys[version] for version in sorted(self._keys)])

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"WrappedKeys({', '.join(self.versions())})"

    def versions(self) -> list[str]:
        """Return every key, written name@version."""
        return [str(wrapped.key) for wrapped in self]

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted({name for name, _ in self._keys})

    def current(self, name: str) -> KeyMetadata:
        """Return the highest version of a key; `KeyMissingError` if there is none."""
        versions = [version for key, version in self._keys if key == name]
        if not versions:
            raise KeyMissingError(
                f"option {WRAPPED_KEYS_OPTION} of the table has no key {name!r}{nearest(name, self.names())}"
            )
        return self._keys[name, max(versions)].key

    def get(self, name: str, version: int) -> WrappedKey:
        """Return one wrapped key; `KeyMissingError` if there is none."""
        key = self._keys.get((name, version))
        if key is None:
            key_version = f"{name}@{version}"
            hint = nearest(key_version, self.versions())
            raise KeyMissingError(f"option {WRAPPED_KEYS_OPTION} of the table has no key {key_version}{hint}")
        return key

    def with_key(self, *added: WrappedKey) -> WrappedKeys:
        """Return these keys and `added`, which replace keys of the same name and version."""
        return WrappedKeys([*self, *added])

    def check_successor(self, successor: WrappedKeys) -> None:
        """Raise `InputError` if `successor` lacks a key of these: files may need it."""
        missing = [version for version in self.versions() if version not in set(successor.versions())]
        if missing:
            raise InputError(
                f"the new {WRAPPED_KEYS_OPTION} lacks {', '.join(missing)}, which files may need: "
                "extend the current text by EnvelopeKeyProvider.roll(text, name)"
            )


def _entry(index: int, entry: Any) -> WrappedKey:
    where = f"key number {index} of option {WRAPPED_KEYS_OPTION}"
    if not isinstance(entry, dict):
        raise OptionError(f"{where} is not an object")
    name, version, algorithm, by = (entry.get(part) for part in ("name", "version", "algorithm", "by"))
    if not isinstance(name, str) or not name or type(version) is not int or version < 0:
        raise OptionError(f"{where} has no valid name and version")
    if not isinstance(algorithm, str) or algorithm not in KeyAlgorithm.__members__:
        raise OptionError(
            f"{where} has no known algorithm{nearest(str(algorithm), KeyAlgorithm.__members__)}"
        )
    if not isinstance(by, str) or not by:
        raise OptionError(f"{where} does not name the key that wraps it")
    wrapped = entry.get("wrapped")
    try:
        content = base64.b64decode(wrapped if isinstance(wrapped, str) else "?", validate=True)
    except binascii.Error:
        raise OptionError(f"{where} has no valid base64 content") from None
    return WrappedKey(KeyMetadata(name, version, KeyAlgorithm[algorithm]), by, content)
