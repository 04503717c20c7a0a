"""Address and credentials of an S3-compatible store, from the confs of Hadoop's `s3a`.

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
# Unsupported confs that change the written objects or their owner, so they are refused.
_REFUSED = (
    *("accesspoint.arn", "acl.default", "assumed.role.arn", "create.storage.class", "custom.signers"),
    *("delegation.token.binding", "object.content.encoding", "proxy.domain", "proxy.workstation"),
    *("security.credential.provider.path", "signing-algorithm"),
)
# Credential providers of Hadoop and both AWS libraries whose sources the confs or boto3 cover.
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
_KMS_ALGORITHMS = {"SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
_CUSTOMER_KEY_BYTES = 32
_HOST, _LAST_PORT = re.compile(r"[\w.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]"), 65_535


@dataclass(frozen=True)
class S3Encryption:
    """Request parameters of encryption by the store: of writes, and, for a customer's key, of
    all requests.
    """

    of_writes: Mapping[str, str | bytes] = field(default_factory=dict, repr=False)
    of_all: Mapping[str, str | bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class S3Settings:
    """The settings of one bucket; boto3 finds those that are None (environment, profile, role).

    The `repr` shows no secrets.
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

        Confs of the bucket, `fs.s3a.bucket.<name>.*`, take precedence over `fs.s3a.*`, and these over
        Spark's. Confs that only Hadoop's own client needs are ignored. Raises OptionError for a malformed
        conf, and for an unsupported one that changes the written objects or their owner.
        """
        confs = _Confs(options, bucket)
        for name in _REFUSED:
            if confs.get(name) is not None:
                raise OptionError(
                    f"{PREFIX}{name} is not supported: objects would be read and written without it; unset it"
                )
        access_key, secret_key = confs.get("access.key"), confs.get("secret.key")
        if (access_key is None) != (secret_key is None):
            present_key, missing = ("access", "secret") if secret_key is None else ("secret", "access")
            raise OptionError(
                f"{PREFIX}{present_key}.key is set, {PREFIX}{missing}.key is not: set both or none"
            )
        token = confs.get("session.token")
        if token is not None and access_key is None:
            raise OptionError(f"{PREFIX}session.token needs {PREFIX}access.key and {PREFIX}secret.key")
        endpoint = _endpoint(confs)
        return cls(
            endpoint=endpoint,
            region=confs.get("endpoint.region") or _region_of(endpoint),
            path_style=confs.truth("path.style.access", default=False),
            anonymous=_ANONYMOUS in _providers(confs),
            access_key=access_key,
            secret_key=secret_key,
            session_token=token,
            encryption=_encryption(confs),
            requester_pays=confs.truth("requester.pays.enabled", default=False),
            proxy=_proxy(confs),
        )


class _Confs:
    def __init__(self, options: Mapping[str, str], bucket: str) -> None:
        self._options = options
        self._prefixes = [
            f"{spark}{PREFIX}{part}" for part in (f"bucket.{bucket}.", "") for spark in ("", _SPARK_PREFIX)
        ]

    def get(self, name: str) -> str | None:
        """Return a conf; an empty one counts as missing, as in Hadoop."""
        values = (str(self._options.get(prefix + name) or "").strip() for prefix in self._prefixes)
        return next((value for value in values if value), None)

    def truth(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            # Messages quote no value of a conf, which may be a misplaced secret.
            raise OptionError(f"{PREFIX}{name} must be true or false")
        return value.lower() == "true"


def _providers(confs: _Confs) -> list[str]:
    """Return the names of the credential providers; OptionError for an unknown one."""
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
    """Return the address of the proxy with its user and password."""
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
    """Return the encryption of `encryption.algorithm` and `.key`, or of their names before Hadoop 3.3.2."""
    algorithm = confs.get("encryption.algorithm") or confs.get("server-side-encryption-algorithm")
    key = confs.get("encryption.key") or confs.get("server-side-encryption.key")
    context = confs.get("encryption.context")
    if algorithm is None:
        if key is not None or context is not None:
            raise OptionError(f"{PREFIX}encryption.key and .context need {PREFIX}encryption.algorithm")
        return S3Encryption()
    name = algorithm.upper()
    if context is not None and name not in _KMS_ALGORITHMS:
        raise OptionError(f"{PREFIX}encryption.context is for SSE-KMS and DSSE-KMS alone")
    if name == "AES256":
        if key is not None:
            raise OptionError(f"{PREFIX}encryption.algorithm AES256 takes no {PREFIX}encryption.key")
        return S3Encryption({"ServerSideEncryption": "AES256"})
    if name in _KMS_ALGORITHMS:
        parameters: dict[str, str | bytes] = {"ServerSideEncryption": _KMS_ALGORITHMS[name]}
        if key is not None:
            parameters["SSEKMSKeyId"] = key
        if context is not None:
            parameters["SSEKMSEncryptionContext"] = _kms_context(context)
        return S3Encryption(parameters)
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
        key_bytes = base64.b64decode(key or "", validate=True)
    except ValueError:
        key_bytes = b""
    if len(key_bytes) != _CUSTOMER_KEY_BYTES:
        # The message must not quote the key.
        raise OptionError(f"{PREFIX}encryption.key of SSE-C is the base64 of {_CUSTOMER_KEY_BYTES} bytes")
    return key_bytes


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
        # The message must not quote a user and password in the endpoint.
        raise OptionError(f"{PREFIX}endpoint is http(s)://host[:port] or host[:port], without a user")
    return endpoint


def _region_of(endpoint: str | None) -> str | None:
    """Return the region in an address of AWS; other stores accept any region."""
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
    """Return whether an address has a scheme of S3."""
    return location.partition("://")[0] in SCHEMES and "://" in location
