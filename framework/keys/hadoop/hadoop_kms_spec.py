"""The setting of a Hadoop KMS: `kms://https@host1;host2:9600/kms?user=etl&ca=/path/ca.pem`."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote

from lockgate.errors import KeyServiceError, OptionError

DEFAULT_PORT = 9600
_SPEC = re.compile(r"kms:(?://)?(https?)@([^/?#@]+)(/[^?#]*)?(?:\?(.*))?", re.DOTALL)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")
_EXAMPLE = "write kms://https@host:9600/kms, or kms://https@host1;host2:9600/kms for several"


@dataclass(frozen=True)
class ServiceHost:
    """The address of a service."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True)
class KmsSettings:
    """The content of a specification; nothing in it is secret. Times are in seconds."""

    spec: str
    tls: bool
    hosts: tuple[ServiceHost, ...]
    path: str
    user: str | None = None
    ca: str | None = None
    timeout: float = 10.0
    cache: float = 600.0
    cache_entries: int = 10_000

    @property
    def address(self) -> str:
        """The hosts, for messages."""
        return ", ".join(str(host) for host in self.hosts)

    @property
    def urls(self) -> list[str]:
        """The addresses of the hosts."""
        return [f"http{'s' if self.tls else ''}://{host}" for host in self.hosts]


def parse_kms(text: str) -> KmsSettings:
    """Parse Hadoop's address of a KMS, followed by options.

    Options: `user` (of the requests), `ca` (a file of trusted certificate authorities, PEM), `timeout`
    (seconds for
    one answer), `cache` (seconds that local keys are kept, 0: not at all), `cache-entries`. Raises
    `OptionError`, which shows nothing of a text that may hold a password.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        raise OptionError(f"this is not the specification of a Hadoop KMS: {_EXAMPLE}")
    scheme, authority, path, query = match.groups()
    path = (path or "/kms").rstrip("/")
    hosts = _hosts(authority)
    options = _options(query or "")
    settings = KmsSettings("", scheme == "https", hosts, path, **options)
    if settings.ca is not None and not settings.tls:
        raise OptionError("option ca= of a Hadoop KMS is about TLS: write kms://https@...")
    return replace(settings, spec=_spelling(scheme, hosts, path, options))


def _spelling(scheme: str, hosts: tuple[ServiceHost, ...], path: str, options: dict[str, Any]) -> str:
    one_port = len({host.port for host in hosts}) == 1
    places = [str(host).rpartition(":")[0] if one_port else str(host) for host in hosts[:-1]]
    query = "&".join(f"{name.replace('_', '-')}={quote(_text(options[name]), safe='/')}" for name in options)
    return f"kms://{scheme}@{';'.join([*places, str(hosts[-1])])}{path}{'?' + query if query else ''}"


def tls_context(ca: str | None) -> ssl.SSLContext:
    """Return a context that verifies certificate and host name, by the system's authorities or those in a
    file.
    """
    try:
        context = ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        reason = "" if isinstance(error, ssl.SSLError) else f": {error.strerror}"
        raise KeyServiceError(f"the certificate authorities in {ca} cannot be read{reason}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _hosts(authority: str) -> tuple[ServiceHost, ...]:
    pieces = authority.split(";")
    parsed = []
    for piece in pieces:
        match = _HOST.fullmatch(piece)
        if match is None or not 0 < int(match[2] or 1) < 65536:
            raise OptionError(f"this is not the specification of a Hadoop KMS: {_EXAMPLE}")
        parsed.append((match[1].strip("[]"), match[2]))
    # Hadoop writes the port once, behind the last host.
    common = int(parsed[-1][1] or DEFAULT_PORT)
    return tuple(ServiceHost(name, int(port or common)) for name, port in parsed)


_TEXTS, _NUMBERS, _COUNTS = ("user", "ca"), ("timeout", "cache"), ("cache_entries",)


def _options(query: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        name = key.replace("-", "_")
        if name in found:
            raise OptionError(f"option {key} of a Hadoop KMS is given twice")
        if name in _TEXTS and value:
            found[name] = value
        elif name in _NUMBERS and re.fullmatch(r"\d{1,6}(\.\d+)?", value):
            found[name] = float(value)
        elif name in _COUNTS and re.fullmatch(r"\d{1,8}", value):
            found[name] = int(value)
        elif name in (*_TEXTS, *_NUMBERS, *_COUNTS):
            raise OptionError(f"option {key} of a Hadoop KMS has no usable value")
        else:
            # A password may stand here by mistake, so the text is not shown.
            raise OptionError(
                "a Hadoop KMS has no such option; known: user, ca, timeout, cache, cache-entries. "
                "A password or token is never part of a setting"
            )
    if found.get("timeout") == 0:
        raise OptionError("option timeout of a Hadoop KMS has no usable value")
    return found


def _text(value: str | float | int) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
