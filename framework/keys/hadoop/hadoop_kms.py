"""Master keys in a Hadoop KMS, which unwraps local keys and never hands out a master key.

Source: the REST interface of Hadoop's KMS ("Hadoop Key Management Server, KMS HTTP REST API"), as used by
org.apache.orc.impl.HadoopShimsPre2_7 and related classes.
"""

from __future__ import annotations

import base64
import getpass
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    AlreadyExistsError,
    EncryptionKeyError,
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    UnprotectedKeysWarning,
    WrongKeyError,
    warn_user,
)
from lockgate.framework.keys.expiring_cache import ExpiringCache
from lockgate.framework.keys.hadoop.hadoop_kms_spec import KmsSettings, parse_kms, tls_context
from lockgate.framework.keys.local_key_cipher import IV_LENGTH
from lockgate.framework.keys.metadata import (
    KeyAlgorithm,
    KeyMetadata,
    algorithm_of_bits,
    check_key_name,
    parse_key_version,
)
from lockgate.framework.keys.provider import KeyProvider
from lockgate.framework.net import (
    HttpAnswer,
    HttpClient,
    HttpLimits,
    NoAnswerError,
    UnusableAnswerError,
    is_loopback,
)

Headers = Callable[[str], Mapping[str, str]]

_CIPHER = "AES/CTR/NoPadding"
_MAX_NAMES = 1000
# Java exceptions with status 500 that a retry cannot cure.
_PERMANENT_FAILURES = frozenset(
    {"NullPointerException", "IllegalArgumentException", "NotFoundException", "JsonParseException"}
)


class _UnsupportedKeyError(KeyServiceError):
    """Raised for a key with a length that ORC does not support."""


@checked_arguments
class HadoopKmsKeyProvider(KeyProvider):
    """Uses the keys of a Hadoop KMS: `HadoopKmsKeyProvider("kms://https@kms1;kms2:9600/kms")`.

    Requests name the user, as in Hadoop's `simple` authentication. For any other kind (Kerberos, delegation
    tokens) pass `headers`: it is called with the host's name before each request, and returns the
    authentication, such as {"Authorization": "Negotiate ..."}, in place of the user. Unwrapped local keys
    stay in memory for `cache` seconds, and usable that long after a denial. Metadata of a key stays at
    most 30 s, after which a rolled key takes effect.

    Raises `OptionError` for a malformed specification, `KeyServiceError` if the authorities in the file `ca`
    cannot be read.
    """

    def __init__(
        self, spec: str, *, headers: Headers | None = None, limits: HttpLimits | None = None
    ) -> None:
        self._settings = parse_kms(spec)
        self._headers = headers
        self._user = None if headers else self._settings.user or _process_user()
        if self._settings.tls:
            tls = tls_context(self._settings.ca)
        else:
            tls = None
            _warn_if_without_tls(self._settings)
        limits = limits or HttpLimits(total=self._settings.timeout)
        self._client = HttpClient(self._settings.urls, tls, limits, headers=headers)
        lifetime, refresh = self._settings.cache, min(30.0, self._settings.cache)
        self._local_keys: ExpiringCache[tuple[KeyMetadata, bytes], bytes] = ExpiringCache(
            self._settings.cache_entries, lifetime
        )
        self._key_metadata: ExpiringCache[str, tuple[KeyAlgorithm, int]] = ExpiringCache(_MAX_NAMES, refresh)
        self._key_errors: ExpiringCache[KeyMetadata, EncryptionKeyError] = ExpiringCache(_MAX_NAMES, refresh)
        self._usable: ExpiringCache[str, bool] = ExpiringCache(_MAX_NAMES, refresh)

    # --- methods of a key provider ---

    def key_names(self) -> list[str]:
        answer = self._get("/v1/keys/names")
        names = self._json(answer, "key names")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise self._malformed(answer, "key names")
        return sorted(names)

    def current_key(self, name: str) -> KeyMetadata:
        algorithm, versions = self._metadata(name)
        return KeyMetadata(name, versions - 1, algorithm)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        if len(encrypted) != key.algorithm.key_length:
            raise WrongKeyError(
                f"a local key of {key} has {key.algorithm.key_length} bytes, not {len(encrypted)}"
            )
        local_key = self._local_keys.get((key, encrypted))
        if local_key is not None:
            return local_key
        key_error = self._key_errors.get(key)
        if key_error is not None:
            raise type(key_error)(str(key_error))
        try:
            self._check(key)
            plain = self._unwrap(key, encrypted)
        except (KeyMissingError, KeyDeniedError) as error:
            # Every file needs the key, so the refusal is cached instead of requested for each.
            self._key_errors.put(key, type(error)(str(error)))
            raise
        self._local_keys.put((key, encrypted), plain)
        return plain

    def usable(self, name: str) -> bool:
        return self._usable.get_or_make(name, super().usable)

    def key_versions(self) -> list[KeyMetadata]:
        keys = []
        for name in self.key_names():
            try:
                algorithm, versions = self._metadata(name)
            except (KeyDeniedError, KeyMissingError, _UnsupportedKeyError):
                continue  # keys of other users, and keys that ORC does not support
            keys += [KeyMetadata(name, version, algorithm) for version in range(versions)]
        return keys

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        algorithm = algorithm_of_bits(bits)
        check_key_name(name)
        self._forget(name)
        try:
            self._metadata(name)
        except KeyMissingError:
            pass
        else:
            raise AlreadyExistsError(f"{self._holder} has a key {name!r} already: roll it instead")
        request = {"name": name, "cipher": _CIPHER, "length": bits, "description": "made by Lockgate"}
        return self._new_version(self._post("/v1/keys", request), name, algorithm)

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        self._forget(name)
        algorithm, _ = self._metadata(name)
        if bits is not None and algorithm_of_bits(bits) is not algorithm:
            raise InputError(
                f"all versions of a key in a Hadoop KMS have one length, {algorithm.key_length * 8} bits "
                f"for {name!r}: create a key with another name for {bits} bits"
            )
        return self._new_version(self._post(f"/v1/key/{quote(name, safe='')}", {}), name, algorithm)

    @property
    def spec(self) -> str | None:
        return None if self._headers else self._settings.spec

    def __repr__(self) -> str:
        return f"HadoopKmsKeyProvider({self._settings.spec!r})"

    def __reduce__(self) -> tuple[type[HadoopKmsKeyProvider], tuple[str]]:
        if self._headers is not None:
            raise TypeError(
                "a provider with its own authentication cannot be pickled: create one in each process"
            )
        return HadoopKmsKeyProvider, (self._settings.spec,)

    def close(self) -> None:
        """Forget all keys and close connections; the provider can be used again."""
        for cache in (self._local_keys, self._key_metadata, self._key_errors, self._usable):
            cache.clear()
        self._client.close()

    # --- requests ---

    @property
    def _holder(self) -> str:
        return f"the Hadoop KMS at {self._settings.address}"

    def _forget(self, name: str) -> None:
        self._key_metadata.remove(name)
        self._usable.remove(name)
        self._key_errors.clear()

    def _metadata(self, name: str) -> tuple[KeyAlgorithm, int]:
        """Return the algorithm of a key and its number of versions; a KMS never removes one."""
        metadata = self._key_metadata.get(name)
        if metadata is not None:
            return metadata
        answer = self._get(f"/v1/key/{quote(name, safe='')}/_metadata")
        content = None if _is_missing(answer) else self._json(answer, f"metadata of key {name!r}")
        if not content:  # an unknown key has no metadata: null or {}
            raise KeyMissingError(f"{self._holder} has no key {name!r}")
        try:
            bits, versions, cipher = content["length"], content["versions"], content["cipher"]
            if type(bits) is not int or type(versions) is not int or versions < 1:
                raise ValueError
            if not cipher.startswith("AES/"):
                raise ValueError
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self._malformed(answer, f"metadata of key {name!r}") from None
        if bits not in (128, 256):
            raise _UnsupportedKeyError(
                f"key {name!r} of {self._holder} has {bits} bits; ORC encrypts with 128 or 256"
            )
        metadata = algorithm_of_bits(bits), versions
        self._key_metadata.put(name, metadata)
        return metadata

    def _check(self, key: KeyMetadata) -> None:
        """Raise if the metadata show that the service lacks the key: its own error would be unspecific."""
        try:
            algorithm, versions = self._metadata(key.name)
            if key.version >= versions:
                self._key_metadata.remove(key.name)
                algorithm, versions = self._metadata(key.name)
        except KeyDeniedError:
            return  # a caller that may use a key may be denied its metadata
        if key.version >= versions:
            raise KeyMissingError(f"{self._holder} has no key {key}: the newest is {key.name}@{versions - 1}")
        if algorithm is not key.algorithm:
            raise WrongKeyError(
                f"the file was written with a key {key} of {key.algorithm.key_length * 8} bits, but "
                f"{self._holder} has one of {algorithm.key_length * 8} bits under that name"
            )

    def _unwrap(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        # The service inverts the IV's bits before it decrypts (EncryptedKeyVersion.deriveIV).
        iv = bytes(255 - byte for byte in encrypted[:IV_LENGTH])
        request = {"name": key.name, "iv": _encode(iv), "material": _encode(encrypted)}
        path = f"/v1/keyversion/{quote(str(key), safe='')}/_eek"
        answer = self._send("POST", path, {"eek_op": "decrypt"}, request)
        if _is_missing(answer) or _reports_missing_version(answer):
            raise KeyMissingError(f"{self._holder} has no key {key}")
        content = self._json(answer, f"a local key of {key}")
        try:
            plain = _decode(content["material"])
        except (TypeError, KeyError, ValueError):
            plain = b""
        if len(plain) != len(encrypted):
            raise self._malformed(answer, f"a local key of {key}")
        return plain

    def _new_version(self, answer: HttpAnswer, name: str, algorithm: KeyAlgorithm) -> KeyMetadata:
        content = self._json(answer, f"a new version of key {name!r}")
        self._forget(name)
        try:
            created_name, version = parse_key_version(content["versionName"])
            if created_name != name:
                raise ValueError
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self._malformed(answer, f"a new version of key {name!r}") from None
        return KeyMetadata(name, version, algorithm)

    def _get(self, path: str) -> HttpAnswer:
        return self._send("GET", path, {}, None)

    def _post(self, path: str, content: Mapping[str, Any]) -> HttpAnswer:
        return self._send("POST", path, {}, content, repeatable=False)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        content: Mapping[str, Any] | None,
        *,
        repeatable: bool = True,
    ) -> HttpAnswer:
        parameters = dict(query) if self._user is None else {**query, "user.name": self._user}
        try:
            return self._client.ask(
                method,
                self._settings.path + path,
                _usable,
                parameters=parameters,
                document=content,
                repeatable=repeatable,
            )
        except NoAnswerError as error:
            raise KeyServiceError(f"the key service did not answer properly: {error}") from None

    def _json(self, answer: HttpAnswer, what: str) -> Any:
        """Return the content of an answer; raises an error for its status, which never quotes the answer."""
        who = "the caller" if self._user is None else f"user {self._user!r}"
        if answer.status == 403:
            raise KeyDeniedError(f"{self._holder} does not let {who} have {what}")
        if answer.status == 401:
            raise KeyServiceError(
                f"{self._holder} does not accept {who}: it requires more than the name of a user; pass "
                "headers=... to HadoopKmsKeyProvider for Kerberos or tokens"
            )
        if answer.status not in (200, 201):
            exception = _exception(answer)
            reason = f" ({exception})" if exception else ""
            raise KeyServiceError(
                f"{self._holder} answered with status {answer.status}{reason} when asked for {what}"
            )
        try:
            return answer.document()
        except ValueError:
            raise self._malformed(answer, what) from None

    def _malformed(self, answer: HttpAnswer, what: str) -> KeyServiceError:
        endpoint = urlsplit(answer.url).netloc + self._settings.path
        return KeyServiceError(f"{self._holder} gave an answer that is not {what}; is {endpoint} a KMS?")


def hadoop_kms_provider(text: str) -> HadoopKmsKeyProvider:
    """Make a provider from `kms://https@host:9600/kms`; see `parse_kms` for its options."""
    return HadoopKmsKeyProvider(text)


def _usable(answer: HttpAnswer) -> HttpAnswer:
    """Return an answer that is final; UnusableAnswerError if a retry may help."""
    if (answer.status >= 500 or answer.status == 429) and _exception(answer) not in _PERMANENT_FAILURES:
        raise UnusableAnswerError(f"answered with status {answer.status}")
    return answer


def _exception(answer: HttpAnswer) -> str | None:
    """Return the name of the Java exception that an answer reports, None if there is none."""
    try:
        name = answer.document()["RemoteException"]["exception"]
    except (ValueError, TypeError, KeyError):
        return None
    return name if isinstance(name, str) and name.isidentifier() and len(name) < 80 else None


def _is_missing(answer: HttpAnswer) -> bool:
    """Return whether a KMS reports a missing key by status 404; any other 404 means a wrong host or path."""
    return answer.status == 404 and _exception(answer) is not None


def _reports_missing_version(answer: HttpAnswer) -> bool:
    """Return whether the service reports that a key has no such version (KMS.decryptEncryptedKey)."""
    if answer.status < 400:
        return False
    if _exception(answer) not in ("IllegalArgumentException", "NullPointerException"):
        return False
    message = answer.document()["RemoteException"].get("message")
    return isinstance(message, str) and message.endswith(("not found", "does not exist"))


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _process_user() -> str:
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError):  # no name for this user id, as in some containers
        raise KeyServiceError(
            "this process runs as a user without a name: name the user for the KMS by ?user=NAME"
        ) from None


def _warn_if_without_tls(settings: KmsSettings) -> None:
    if not all(is_loopback(host.name) for host in settings.hosts):
        warn_user(
            f"the KMS at {settings.address} is asked without TLS, so the keys of files can be overheard: "
            "write kms://https@...",
            UnprotectedKeysWarning,
        )
