"""Address and credentials of an S3-compatible store, from the confs that Hadoop's `s3a` understands.

Source: Hadoop's "Connecting to an AWS S3 endpoint" and "Authenticating with S3"; the same confs serve Spark's
executors and Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lockgate.errors import OptionError

SCHEMES = ("s3", "s3a", "s3n")
PREFIX = "fs.s3a."
_SPARK_PREFIX = "spark.hadoop."
_ANONYMOUS = "AnonymousAWSCredentialsProvider"


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

    @classmethod
    def of(cls, options: Mapping[str, str], bucket: str) -> S3Settings:
        """Read the confs `fs.s3a.*`, with or without `spark.hadoop.` in front.

        Confs of the bucket, `fs.s3a.bucket.<name>.*`, come first, then plain ones, then Spark's. Confs that
        only Hadoop's own client needs are ignored. Raises OptionError for a malformed one.
        """
        found = _Confs(options, bucket)
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
            anonymous=_ANONYMOUS in (found.get("aws.credentials.provider") or ""),
            access_key=access_key,
            secret_key=secret_key,
            session_token=token,
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
            raise OptionError(f"{PREFIX}{name} must be true or false, not {value!r}")
        return value.lower() == "true"


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
    """Say whether an address is of an S3-compatible store."""
    return location.partition("://")[0] in SCHEMES and "://" in location
