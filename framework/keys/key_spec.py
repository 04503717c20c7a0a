"""Key specifications, resolved to providers."""

from __future__ import annotations

import os
import re

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import InputError, OptionError, nearest
from lockgate.framework.keys.key_file import KeyFileProvider
from lockgate.framework.keys.provider import KeyProvider, NoKeys

# One letter is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)


@checked_arguments
def provider_from(spec: str | os.PathLike[str] | KeyProvider | None) -> KeyProvider:
    """Return the provider that a specification names.

    `None` or `""` means no keys; a provider is returned unchanged; `file:/path/keys.json` or a bare path is a
    key file; any other `scheme:rest` goes to the plugin of its scheme. Raises `OptionError` for an unknown
    scheme.
    """
    if spec is None or spec == "":
        return NoKeys()
    if isinstance(spec, KeyProvider):
        return spec
    if not isinstance(spec, (str, os.PathLike)):
        raise InputError(
            f"keys are a provider, a path or a text such as file:/path/keys.json, not a {type(spec).__name__}"
        )
    text = os.fspath(spec)
    path = key_file_of(text)
    return _from_plugin(text.partition(":")[0].lower(), text) if path is None else KeyFileProvider(path)


def key_file_of(spec: str) -> str | None:
    """Return the path of the key file that a specification names, None for a scheme of a plugin."""
    match = _SCHEME.fullmatch(spec)
    if match is None:
        return spec
    return _path_of(match.group(2)) if match.group(1).lower() == "file" else None


def _path_of(rest: str) -> str:
    # file:/a, file:///a and file:a are all in use.
    return rest[2:] if rest.startswith("///") else rest


def _from_plugin(scheme: str, text: str) -> KeyProvider:
    from lockgate.framework.plugins import plugins

    factories = plugins().key_providers()
    if scheme not in factories:
        # The specification may hold a password, so the message shows only the scheme.
        raise OptionError(f"no key provider has the scheme {scheme!r}{nearest(scheme, ['file', *factories])}")
    provider = factories[scheme](text)
    if not isinstance(provider, KeyProvider):
        raise OptionError(
            f"the plugin for {scheme!r} keys returned a {type(provider).__name__}, not a KeyProvider"
        )
    return provider
