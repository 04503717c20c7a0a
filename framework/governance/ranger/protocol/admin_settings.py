"""Settings of a connection to Ranger's admin, from a mapping or from the XML files of Ranger's plugins.

The names are Ranger's: `ranger.plugin.<type>.service.name`, `.policy.rest.url`, `.policy.cache.dir`,
`.policy.pollIntervalMs`, `.policy.rest.client.username`, `.policy.rest.client.password`,
`.policy.rest.client.connection.timeoutMs` and `.policy.rest.ssl.config.file`, a further XML file with
`xasecure.policymgr.clientssl.truststore` and `.keystore`. These name key stores of Java or files in PEM; a
`.credential.file` with each has its password. `.policy.maxAgeMs` is Lockgate's own: the oldest policies to
use.
"""

from __future__ import annotations

import ssl
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import OptionError, StorageError
from lockgate.framework.governance.ranger.protocol.credential_files import credential
from lockgate.framework.governance.ranger.protocol.key_stores import KeyStore, identify, trust
from lockgate.framework.net import Authentication, HttpClient, HttpLimits, address_fault, basic_authorization

_TLS = "xasecure.policymgr.clientssl."
_KINDS = ("JKS", "JCEKS", "PKCS12", "PEM")
# A large download takes longer than one read of it; an answer of a byte now and then must end too.
_READS_IN_AN_ANSWER = 10
_LARGEST_ANSWER = 1 << 30


class AdminError(StorageError):
    """Raised when Ranger's admin does not answer, or not as it should."""


@checked_arguments
@dataclass(frozen=True)
class AdminSettings:
    """Settings of the admin: its addresses, the service whose policies to fetch, and the folder that keeps
    them.

    `poll_seconds` pass between two downloads; policies older than `oldest_seconds` allow nothing. `ca` holds
    the certificates that this client trusts, `certificate` the one that it shows with its private key: each
    is a file in PEM, PKCS12, JKS or JCEKS, with a password if it needs one. In PEM the private key may be in
    a file of its own, `key`. `authentication` begins a handshake by Negotiate with a host, such as
    `Negotiation` for Kerberos, in place of user and password.
    """

    urls: tuple[str, ...]
    service: str
    cache_folder: Path
    app_id: str = "lockgate"
    cluster: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    poll_seconds: float = 30.0
    timeout_seconds: float = 30.0
    oldest_seconds: float | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    ca_password: str | None = field(default=None, repr=False)
    certificate_password: str | None = field(default=None, repr=False)
    authentication: Authentication | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.urls or not self.service:
            raise OptionError(
                "give the admin's address (policy.rest.url) and the service's name (service.name)"
            )
        for url in self.urls:
            fault = address_fault(url, has_secret=self.password is not None)
            if fault is not None:
                raise OptionError(f"an address of Ranger's admin (policy.rest.url) {fault}")

    @classmethod
    def from_options(cls, options: Mapping[str, str], kind: str = "paimon") -> AdminSettings:
        """Return the settings that options have; raises OptionError for missing and malformed ones."""
        prefix = f"ranger.plugin.{kind}."
        given = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
        tls = {**options, **read_xml([given["policy.rest.ssl.config.file"]])} if _has_tls(given) else options
        return cls(
            urls=tuple(
                url
                for each in given.get("policy.rest.url", "").split(",")
                if (url := each.strip().rstrip("/"))
            ),
            service=given.get("service.name", ""),
            cache_folder=Path(given.get("policy.cache.dir") or _missing(prefix + "policy.cache.dir")),
            cluster=given.get("access.cluster.name") or given.get("ambari.cluster.name") or "",
            authentication=_authentication(given.get("policy.rest.client.authentication", "")),
            user=given.get("policy.rest.client.username"),
            password=given.get("policy.rest.client.password"),
            poll_seconds=_milliseconds(given, "policy.pollIntervalMs", 30_000),
            timeout_seconds=_milliseconds(given, "policy.rest.client.connection.timeoutMs", 30_000),
            oldest_seconds=(
                _milliseconds(given, "policy.maxAgeMs", 0) if given.get("policy.maxAgeMs") else None
            ),
            ca=_store(tls, "truststore"),
            certificate=_store(tls, "keystore"),
            ca_password=_store_password(tls, "truststore", "sslTrustStore"),
            certificate_password=_store_password(tls, "keystore", "sslKeyStore"),
        )

    @classmethod
    def from_files(cls, *paths: str | Path, kind: str = "paimon") -> AdminSettings:
        """Return the settings of a Ranger plugin's XML files; raises OptionError."""
        return cls.from_options(read_xml(paths), kind)

    @property
    def is_secured(self) -> bool:
        """Whether this client proves its identity; the admin has other paths for those that do."""
        return self.user is not None or self.authentication is not None

    def client(self) -> HttpClient:
        """Return a client of the admins, which keeps the cookie of a session."""
        return one_try_client(
            self.urls, self.tls(), self.timeout_seconds, self.user, self.password, self.authentication
        )

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for TLS, None if no address has https; OptionError for unusable key stores."""
        if not any(url.startswith("https://") for url in self.urls):
            return None
        if self.ca is None:
            context = ssl.create_default_context()
        else:
            # Unlike create_default_context, it trusts no other authorities.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust(context, KeyStore(self.ca, self.ca_password))
        if self.certificate is not None:
            identify(context, KeyStore(self.certificate, self.certificate_password, self.key))
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def one_try_client(
    urls: Sequence[str],
    tls: ssl.SSLContext | None,
    timeout: float,
    user: str | None,
    password: str | None,
    authentication: Authentication | None,
) -> HttpClient:
    """Return a client that asks each address once; `timeout` is for connecting, and for each read."""
    return HttpClient(
        urls,
        tls,
        HttpLimits(_READS_IN_AN_ANSWER * timeout, timeout, _LARGEST_ANSWER, waits=()),
        headers=None if user is None else lambda host: basic_authorization(user, password),
        authentication=authentication,
        keeps_cookies=True,
    )


def read_xml(paths: Iterable[str | Path]) -> dict[str, str]:
    """Return the properties of Hadoop's XML files, later files over earlier ones; raises OptionError."""
    found: dict[str, str] = {}
    for path in paths:
        try:
            root = ET.parse(path).getroot()  # noqa: S314 - the administrator's own configuration
        except (OSError, ET.ParseError) as error:
            raise OptionError(f"{path} cannot be read as a configuration: {error}") from error
        for each in root.iter("property"):
            found[(each.findtext("name") or "").strip()] = (each.findtext("value") or "").strip()
    return found


def _has_tls(given: Mapping[str, str]) -> bool:
    urls = given.get("policy.rest.url", "")
    return bool(given.get("policy.rest.ssl.config.file")) and "https://" in urls


def _missing(name: str) -> str:
    raise OptionError(f"{name} is missing: name a folder that only this user can enter")


def _milliseconds(given: Mapping[str, str], name: str, default: int) -> float:
    text = given.get(name) or str(default)
    if not text.isdigit() or int(text) == 0:
        raise OptionError(f"{name} must be a number of milliseconds above 0")
    return int(text) / 1000


def _authentication(name: str) -> Authentication | None:
    if name.lower() in ("", "basic", "simple"):
        return None
    if name.lower() != "kerberos":
        raise OptionError("policy.rest.client.authentication must be kerberos or basic")
    from lockgate.framework.governance.ranger.protocol.kerberos import Negotiation

    return Negotiation


def _store(options: Mapping[str, str], name: str) -> Path | None:
    path = options.get(_TLS + name)
    kind = options.get(f"{_TLS}{name}.type", "").upper()
    if path and kind not in ("", *_KINDS):
        raise OptionError(f"{_TLS}{name}.type is {kind}: Lockgate reads {', '.join(_KINDS)}")
    return Path(path) if path else None


def _store_password(options: Mapping[str, str], name: str, alias: str) -> str | None:
    """Return the password of a key store, of which the credential file says more than the option."""
    file = options.get(f"{_TLS}{name}.credential.file")
    if file and options.get(_TLS + name):
        return credential(file, alias)
    return options.get(f"{_TLS}{name}.password") or None
