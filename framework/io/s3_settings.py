"""Address and credentials of an S3-compatible store, from the confs that Hadoop's `s3a` understands.

Source: Hadoop's "Connecting to an AWS S3 endpoint" and "Authenticating with S3"; the same confs serve Spark's
executors and Python.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from lockgate.errors import OptionError

SCHEMES = ("s3", "s3a", "s3n")
PREFIX = "fs.s3a."
_SPARK_PREFIX = "spark.hadoop."
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
# What Hadoop's client does with these is not done here: other objects would be written, or by others.
_REFUSED = (
    *("accesspoint.arn", "acl.default", "assumed.role.arn", "create.storage.class", "custom.signers"),
    *("delegation.token.binding", "object.content.encoding", "proxy.domain", "proxy.workstation"),
    *("security.credential.provider.path", "signing-algorithm"),
)
# Of the classes of Hadoop and both of AWS's libraries: they look where the confs or boto3 look.
_PROVIDERS = frozenset(
    (
        *("SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider", _ANONYMOUS),
        *("EnvironmentVariableCredentialsProvider", "SystemPropertiesCredentialsProvider"),
        *("InstanceProfileCredentialsProvider", "IAMInstanceCredentialsProvider"),
        *("ContainerCredentialsProvider", "EC2ContainerCredentialsProviderWrapper"),
        *("WebIdentityTokenCredentialsProvider", "WebIdentityTokenFileCredentialsProvider"),
        *("DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider", "ProfileCredentialsProvider"),
    )
)
_OF_KMS = {"SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
_CUSTOMER_KEY_BYTES = 32
_HOST, _LAST_PORT = re.compile(r"[\w.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]"), 65_535


@dataclass(frozen=True)
class S3Encryption:
    """What requests that write say of encryption by the store, and, with a customer's key, all requests."""

    of_writes: Mapping[str, str | bytes] = field(default_factory=dict, repr=False)
    of_all: Mapping[str, str | bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class S3Settings:
    """The settings of one bucket; boto3 finds those that are None (environment, profile, role).

    Secrets are left out of the `repr`.
    """

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    anonymous: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    encryption: S3Encryption = field(default_factory=S3Encryption)
    requester_pays: bool = False
    proxy: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str], bucket: str) -> S3Settings:
        """Read the confs `fs.s3a.*`, with or without `spark.hadoop.` in front.

        Confs of the bucket, `fs.s3a.bucket.<name>.*`, come first, then plain ones, then Spark's. Confs that
        only Hadoop's own client needs are ignored. Raises OptionError for a malformed one, and for one that
        changes what is written or by whom, and is not supported.
        """
        found = _Confs(options, bucket)
        for name in _REFUSED:
            if found.get(name) is not None:
                raise OptionError(
                    f"{PREFIX}{name} is not supported: objects would be read and written without it; unset it"
                )
        access_key, secret_key = found.get("access.key"), found.get("secret.key")
        if (access_key is None) != (secret_key is None):
            given, missing = ("access", "secret") if secret_key is None else ("secret", "access")
            raise OptionError(f"{PREFIX}{given}.key is set, {PREFIX}{missing}.key is not: set both or none")
        token = found.get("session.token")
        if token is not None and access_key is None:
            raise OptionError(f"{PREFIX}session.token needs {PREFIX}access.key and {PREFIX}secret.key")
        endpoint = _endpoint(found)
        return cls(
            endpoint=endpoint,
            region=found.get("endpoint.region") or _region_of(endpoint),
            path_style=found.truth("path.style.access", default=False),
            anonymous=_ANONYMOUS in _providers(found),
            access_key=access_key,
            secret_key=secret_key,
            session_token=token,
            encryption=_encryption(found),
            requester_pays=found.truth("requester.pays.enabled", default=False),
            proxy=_proxy(found),
        )


class _Confs:
    def __init__(self, options: Mapping[str, str], bucket: str) -> None:
        self._options = options
        self._prefixes = [
            f"{spark}{PREFIX}{part}" for part in (f"bucket.{bucket}.", "") for spark in ("", _SPARK_PREFIX)
        ]

    def get(self, name: str) -> str | None:
        """Return a conf; an empty one counts as none, as in Hadoop."""
        values = (str(self._options.get(prefix + name) or "").strip() for prefix in self._prefixes)
        return next((value for value in values if value), None)

    def truth(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            # Not quoted, as no value of a conf is: a secret may stand in the wrong one.
            raise OptionError(f"{PREFIX}{name} must be true or false")
        return value.lower() == "true"


def _providers(confs: _Confs) -> list[str]:
    """Return the names of the classes that look for credentials; OptionError for one that is not known."""
    classes = [each.strip() for each in (confs.get("aws.credentials.provider") or "").split(",")]
    names = [each.rpartition(".")[2] for each in classes if each]
    for name in names:
        if name not in _PROVIDERS:
            raise OptionError(
                f"{PREFIX}aws.credentials.provider {name!r} is not supported, so that others would be used: "
                f"set {PREFIX}access.key and .secret.key, or one of {', '.join(sorted(_PROVIDERS))}"
            )
    return names


def _proxy(confs: _Confs) -> str | None:
    """Return the address of the proxy, with the name and password that it takes."""
    host, port = confs.get("proxy.host"), confs.get("proxy.port")
    user, password = confs.get("proxy.username"), confs.get("proxy.password")
    if (user is None) != (password is None):
        raise OptionError(f"{PREFIX}proxy.username and {PREFIX}proxy.password go together: set both or none")
    if host is None:
        if port is not None or user is not None:
            raise OptionError(f"{PREFIX}proxy.port and .username need {PREFIX}proxy.host")
        return None
    secure = confs.truth("proxy.ssl.enabled", default=False)
    port = port or ("443" if confs.truth("connection.ssl.enabled", default=True) else "80")
    address = f"{host}:{port}"
    if not _HOST.fullmatch(host) or not port.isdecimal() or not 0 < int(port) <= _LAST_PORT:
        raise OptionError(f"{PREFIX}proxy.host and .port are a host and a number, not {address!r}")
    login = "" if user is None or password is None else f"{quote(user, safe='')}:{quote(password, safe='')}@"
    return f"{'https' if secure else 'http'}://{login}{address}"


def _encryption(confs: _Confs) -> S3Encryption:
    """Return what `encryption.algorithm` and `.key` say, or the names that these had before Hadoop 3.3.2."""
    algorithm = confs.get("encryption.algorithm") or confs.get("server-side-encryption-algorithm")
    key = confs.get("encryption.key") or confs.get("server-side-encryption.key")
    context = confs.get("encryption.context")
    if algorithm is None:
        if key is not None or context is not None:
            raise OptionError(f"{PREFIX}encryption.key and .context need {PREFIX}encryption.algorithm")
        return S3Encryption()
    name = algorithm.upper()
    if context is not None and name not in _OF_KMS:
        raise OptionError(f"{PREFIX}encryption.context is for SSE-KMS and DSSE-KMS alone")
    if name == "AES256":
        if key is not None:
            raise OptionError(f"{PREFIX}encryption.algorithm AES256 takes no {PREFIX}encryption.key")
        return S3Encryption({"ServerSideEncryption": "AES256"})
    if name in _OF_KMS:
        said: dict[str, str | bytes] = {"ServerSideEncryption": _OF_KMS[name]}
        if key is not None:
            said["SSEKMSKeyId"] = key
        if context is not None:
            said["SSEKMSEncryptionContext"] = _kms_context(context)
        return S3Encryption(said)
    if name == "SSE-C":
        customer: dict[str, str | bytes] = {
            "SSECustomerAlgorithm": "AES256",
            "SSECustomerKey": _customer_key(key),
        }
        return S3Encryption(customer, customer)
    raise OptionError(
        f"{PREFIX}encryption.algorithm is not supported: use AES256, SSE-KMS, DSSE-KMS or SSE-C, or encrypt "
        "columns by orc.encrypt"
    )


def _customer_key(key: str | None) -> bytes:
    try:
        found = base64.b64decode(key or "", validate=True)
    except ValueError:
        found = b""
    if len(found) != _CUSTOMER_KEY_BYTES:
        # Not quoted: it is a secret.
        raise OptionError(f"{PREFIX}encryption.key of SSE-C is the base64 of {_CUSTOMER_KEY_BYTES} bytes")
    return found


def _kms_context(text: str) -> str:
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(name.strip() and equals for name, equals, _ in pairs):
        raise OptionError(f"{PREFIX}encryption.context is written 'name=value,name=value'")
    content = {name.strip(): value.strip() for name, _, value in pairs}
    return base64.b64encode(json.dumps(content).encode()).decode()


def _endpoint(confs: _Confs) -> str | None:
    endpoint = confs.get("endpoint")
    if endpoint is None:
        return None
    if "://" not in endpoint:
        secure = confs.truth("connection.ssl.enabled", default=True)
        endpoint = f"{'https' if secure else 'http'}://{endpoint}"
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        # Not quoted: a name and a password do not belong there, but might stand there.
        raise OptionError(f"{PREFIX}endpoint is http(s)://host[:port] or host[:port], without a user")
    return endpoint


def _region_of(endpoint: str | None) -> str | None:
    """Return the region that AWS's own addresses name; other stores take any."""
    if endpoint is None:
        return None
    labels = (urlsplit(endpoint).hostname or "").split(".")
    if labels[-2:] == ["amazonaws", "com"]:
        return labels[1] if len(labels) == 4 and labels[0] == "s3" else None
    return "us-east-1"


def storage_confs(options: Mapping[str, str]) -> dict[str, str]:
    """Return the confs that configure access to stores, without Spark's prefix."""
    plain = {key.removeprefix(_SPARK_PREFIX): value for key, value in options.items()}
    return {key: value for key, value in plain.items() if key.startswith(("fs.", "dfs.", "hadoop."))}


def is_s3(location: str) -> bool:
    """Return whether an address is of an S3-compatible store."""
    return location.partition("://")[0] in SCHEMES and "://" in location
