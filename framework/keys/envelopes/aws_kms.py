"""Wrapping master keys by AWS KMS (`Encrypt` and `Decrypt` with a symmetric key)."""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import parse_qsl, quote

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import KeyDeniedError, KeyMissingError, KeyServiceError, OptionError, WrongKeyError
from lockgate.framework.keys.envelopes.key_wrapper import KeyWrapper, WrappedKey
from lockgate.framework.keys.metadata import KeyMetadata

_SPEC = re.compile(r"aws-kms:([^?\s]+)(?:\?(.*))?", re.DOTALL)
_OPTIONS = ("region", "profile", "endpoint")
_DENIED = frozenset({"AccessDeniedException", "DisabledException", "KMSInvalidStateException"})
_WRONG = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})


@checked_arguments
class AwsKmsWrapper(KeyWrapper):
    """Wraps under a key of AWS KMS: `AwsKmsWrapper("alias/lake", region="eu-central-1")`.

    `key_ids` are ids, ARNs or aliases. The first one wraps, and only these keys unwrap: otherwise anyone
    who can write a table's option could name a key of their own account. Name and version of the wrapped key
    are its encryption context, so that policies can refer to them and CloudTrail shows them. boto3 finds the
    credentials; they are never in a setting.

    Needs the extra `lockgate[aws]`. Raises `KeyServiceError` if boto3 is not installed or not configured.
    """

    def __init__(
        self,
        *key_ids: str,
        region: str | None = None,
        profile: str | None = None,
        endpoint: str | None = None,
    ) -> None:
        if not key_ids:
            raise OptionError("name a key of AWS KMS by its id, ARN or alias")
        self._key_ids = key_ids
        self._options = {"region": region, "profile": profile, "endpoint": endpoint}
        self._lock = threading.Lock()
        self._cached_client: Any = None
        self._client()

    @classmethod
    def from_spec(cls, text: str) -> AwsKmsWrapper:
        """Make a wrapper from `aws-kms:KEY[,KEY...]?region=...&profile=...&endpoint=...`."""
        match = _SPEC.fullmatch(text)
        ids = match[1].split(",") if match else []
        if match is None or not all(ids):
            raise OptionError("write aws-kms:KEY?region=REGION, with an id, ARN or alias of a key of AWS KMS")
        options: dict[str, str] = {}
        for name, value in parse_qsl(match[2] or "", keep_blank_values=True):
            if name not in _OPTIONS or not value or name in options:
                # The text may hold a secret by mistake, so the message does not show it.
                raise OptionError(
                    "aws-kms: takes the options region, profile and endpoint, once each; credentials are "
                    "never part of a setting: boto3 finds them in its own places"
                )
            options[name] = value
        return cls(*ids, **options)

    def wrap(self, key: KeyMetadata, material: bytes) -> WrappedKey:
        response = self._call(
            "encrypt", key, KeyId=self._key_ids[0], Plaintext=material, EncryptionContext=_context(key)
        )
        return WrappedKey(key, str(response["KeyId"]), bytes(response["CiphertextBlob"]))

    def unwrap(self, wrapped: WrappedKey) -> bytes:
        failure: KeyDeniedError | WrongKeyError | None = None
        for key_id in self._key_ids:
            try:
                material = self._decrypt(key_id, wrapped)
                break
            except (KeyDeniedError, WrongKeyError) as error:
                # One of the keys wraps it. If that key is denied, this error matters more than wrong keys.
                failure = error if failure is None or isinstance(error, KeyDeniedError) else failure
        else:
            assert failure is not None
            raise failure
        if len(material) != wrapped.key.algorithm.key_length:
            raise WrongKeyError(f"AWS KMS returned a key of the wrong length for {wrapped.key}")
        return material

    def _decrypt(self, key_id: str, wrapped: WrappedKey) -> bytes:
        response = self._call(
            "decrypt",
            wrapped.key,
            KeyId=key_id,
            CiphertextBlob=wrapped.content,
            EncryptionContext=_context(wrapped.key),
        )
        return bytes(response["Plaintext"])

    @property
    def spec(self) -> str:
        options = "&".join(
            f"{name}={quote(value, safe='/:')}" for name, value in self._options.items() if value is not None
        )
        return f"aws-kms:{','.join(self._key_ids)}{'?' + options if options else ''}"

    def __repr__(self) -> str:
        return f"AwsKmsWrapper({self.spec!r})"

    def _client(self) -> Any:
        with self._lock:
            if self._cached_client is None:
                self._cached_client = self._new_client()
            return self._cached_client

    def _new_client(self) -> Any:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError:
            raise KeyServiceError(
                "AWS KMS needs boto3, which is not installed; run: pip install 'lockgate[aws]'"
            ) from None
        limits = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "max_attempts": 4})
        try:
            session = boto3.Session(
                profile_name=self._options["profile"], region_name=self._options["region"]
            )
            return session.client("kms", endpoint_url=self._options["endpoint"], config=limits)
        except (BotoCoreError, ValueError) as error:
            raise KeyServiceError(
                f"AWS KMS cannot be reached ({type(error).__name__}): check region, profile and endpoint"
            ) from None

    def _call(self, operation: str, key: KeyMetadata, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client(), operation)(**arguments)
        except ClientError as error:
            raise self._error(str(error.response.get("Error", {}).get("Code", "")), key) from None
        except BotoCoreError as error:
            raise KeyServiceError(
                f"AWS KMS cannot be reached for {key} ({type(error).__name__}): check credentials, region "
                "and network"
            ) from None

    def _error(self, code: str, key: KeyMetadata) -> Exception:
        """Return the error for a code of AWS, without its message, which repeats the request."""
        ids = ", ".join(self._key_ids)
        if code in _DENIED:
            return KeyDeniedError(f"AWS KMS does not let this caller use {ids} for {key} ({code})")
        if code in _WRONG:
            return WrongKeyError(f"the wrapped key {key} does not open with {ids} of AWS KMS ({code})")
        if code == "NotFoundException":
            return KeyMissingError(f"AWS KMS has no key {ids} in this region and account")
        label = code if code.isidentifier() and len(code) < 80 else "no known code"
        return KeyServiceError(f"AWS KMS did not answer properly about {key} ({label})")


def _context(key: KeyMetadata) -> dict[str, str]:
    return {
        "lockgate:purpose": "lockgate.envelope.v1",
        "lockgate:key": str(key),
        "lockgate:algorithm": key.algorithm.name,
    }
