"""The specification of a Hadoop KMS: `kms://https@host1;host2:9600/kms?user=etl&ca=/path/ca.pem`."""

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
    """Host and port of a service."""

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
    an answer), `cache` (seconds that local keys stay in memory), `cache-entries`. Raises
    `OptionError`, which never shows the text, since it may hold a password.
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
    return replace(settings, spec=_canonical_spec(scheme, hosts, path, options))


def _canonical_spec(scheme: str, hosts: tuple[ServiceHost, ...], path: str, options: dict[str, Any]) -> str:
    one_port = len({host.port for host in hosts}) == 1
    addresses = [str(host).rpartition(":")[0] if one_port else str(host) for host in hosts[:-1]]
    query = "&".join(f"{name.replace('_', '-')}={quote(_text(options[name]), safe='/')}" for name in options)
    return f"kms://{scheme}@{';'.join([*addresses, str(hosts[-1])])}{path}{'?' + query if query else ''}"


def tls_context(ca: str | None) -> ssl.SSLContext:
    """Return a context that verifies certificate and host name, with the system's authorities or those in a
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
    hosts_and_ports = []
    for piece in pieces:
        match = _HOST.fullmatch(piece)
        if match is None or not 0 < int(match[2] or 1) < 65536:
            raise OptionError(f"this is not the specification of a Hadoop KMS: {_EXAMPLE}")
        hosts_and_ports.append((match[1].strip("[]"), match[2]))
    # Hadoop writes the common port once, after the last host.
    default_port = int(hosts_and_ports[-1][1] or DEFAULT_PORT)
    return tuple(ServiceHost(name, int(port or default_port)) for name, port in hosts_and_ports)


_TEXT_OPTIONS, _NUMBER_OPTIONS, _COUNT_OPTIONS = ("user", "ca"), ("timeout", "cache"), ("cache_entries",)


def _options(query: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        name = key.replace("-", "_")
        if name in options:
            raise OptionError(f"option {key} of a Hadoop KMS is given twice")
        if name in _TEXT_OPTIONS and value:
            options[name] = value
        elif name in _NUMBER_OPTIONS and re.fullmatch(r"\d{1,6}(\.\d+)?", value):
            options[name] = float(value)
        elif name in _COUNT_OPTIONS and re.fullmatch(r"\d{1,8}", value):
            options[name] = int(value)
        elif name in (*_TEXT_OPTIONS, *_NUMBER_OPTIONS, *_COUNT_OPTIONS):
            raise OptionError(f"option {key} of a Hadoop KMS has no usable value")
        else:
            # The text may hold a password by mistake, so the message does not show it.
            raise OptionError(
                "a Hadoop KMS has no such option; its options are user, ca, timeout, cache, cache-entries. "
                "A password or token is never part of a setting"
            )
    if options.get("timeout") == 0:
        raise OptionError("option timeout of a Hadoop KMS has no usable value")
    return options


def _text(value: str | float | int) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
