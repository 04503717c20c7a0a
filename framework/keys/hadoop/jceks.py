"""Master keys in a Java JCEKS key store, the format of Hadoop's `hadoop key` command and its KMS."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    InputError,
    KeyDeniedError,
    KeyMissingError,
    KeyServiceError,
    OptionError,
    UnsupportedError,
    nearest,
)
from lockgate.framework.io import JavaKeyStore, KeyStoreError, named_errors, read_key_store
from lockgate.framework.keys.metadata import KeyMetadata
from lockgate.framework.keys.provider import KeyProvider, MasterKeys

PASSWORD_VARIABLE = "HADOOP_KEYSTORE_PASSWORD"  # noqa: S105 - Hadoop's public names and default, no secret
_PASSWORD_FILE = "password-file"  # noqa: S105 - Hadoop's public names and default, no secret
# Hadoop's default password (JavaKeyStoreProvider.KEYSTORE_PASSWORD_DEFAULT).
_DEFAULT_PASSWORD = "none"  # noqa: S105 - Hadoop's public names and default, no secret
_OTHERS_ACCESS = stat.S_IRWXG | stat.S_IRWXO

_FileVersion = tuple[int, int, int]


@checked_arguments
class JceksKeyProvider(KeyProvider):
    """Holds the AES keys of a JCEKS key store, whose entries Hadoop names `name@version`.

    The password is the first line of `password_file`, which only its owner may read, else the value of the
    environment variable HADOOP_KEYSTORE_PASSWORD, else Hadoop's default `none`. It is never part of a
    setting. A changed key store is read again, so a rolled key takes effect in a running process. Keys are
    decrypted on first use, which takes about a tenth of a second each.

    Needs the extra `lockgate[jceks]`. Raises `KeyServiceError` if the store is absent or damaged or pyjks is
    not installed, and `KeyDeniedError` for a wrong password or files that may not be read.
    """

    @named_errors
    def __init__(
        self, path: str | os.PathLike[str], *, password_file: str | os.PathLike[str] | None = None
    ) -> None:
        self._path = str(Path(path).absolute())
        self._password_file = None if password_file is None else str(Path(password_file).absolute())
        self._lock = threading.Lock()
        self._load()

    def key_names(self) -> list[str]:
        with self._lock:
            self._refresh()
            return sorted({name for name, _ in self._entries})

    def current_key(self, name: str) -> KeyMetadata:
        with self._lock:
            self._refresh()
            versions = [version for entry_name, version in self._entries if entry_name == name]
            if not versions:
                names = sorted({entry_name for entry_name, _ in self._entries})
                raise KeyMissingError(f"{self._holder} has no key {name!r}{nearest(name, names)}")
            newest = max(versions)
            return self._open(name, newest).current(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        with self._lock:
            self._refresh()
            if (key.name, key.version) not in self._entries:
                versions = [f"{name}@{version}" for name, version in sorted(self._entries)]
                raise KeyMissingError(f"{self._holder} has no key {key}{nearest(str(key), versions)}")
            master_keys = self._open(key.name, key.version)
        return master_keys.unwrap(key, encrypted)

    def key_versions(self) -> list[KeyMetadata]:
        with self._lock:
            self._refresh()
            return [self._open(name, version).current(name) for name, version in sorted(self._entries)]

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        raise UnsupportedError(
            f"{self._holder} is read-only: run hadoop key create {name} -size {bits} "
            f"-provider jceks://file{self._path}"
        )

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        raise UnsupportedError(
            f"{self._holder} is read-only: run hadoop key roll {name} -provider jceks://file{self._path}"
        )

    @property
    def path(self) -> str:
        """The path of the key store."""
        return self._path

    @property
    def spec(self) -> str:
        option = "" if self._password_file is None else f"?{_PASSWORD_FILE}={self._password_file}"
        return f"jceks:{self._path}{option}"

    def __repr__(self) -> str:
        versions = ", ".join(f"{name}@{version}" for name, version in sorted(self._entries))
        return f"JceksKeyProvider({self._path!r}: {versions})"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        # Only paths are pickled; the other process must be able to read the file and the password.
        return jceks_provider, (self.spec,)

    @property
    def _holder(self) -> str:
        return f"the key store {self._path}"

    def _refresh(self) -> None:
        if _file_version(self._path) != self._version:
            self._load()

    def _load(self) -> None:
        password = _password(self._password_file)
        self._version = _file_version(self._path)
        try:
            name = f"the password from {PASSWORD_VARIABLE} or from the file named by ?{_PASSWORD_FILE}="
            self._store = JavaKeyStore(self._path, read_key_store(self._path), password, name)
        except KeyStoreError as error:
            raise (KeyDeniedError if error.is_denied else KeyServiceError)(str(error)) from None
        self._entries: dict[tuple[str, int], str] = {}
        self._decrypted: dict[tuple[str, int], MasterKeys] = {}
        for alias in self._store.secret_key_aliases():
            name, separator, version = alias.rpartition("@")
            # The entry without a version is Hadoop's description of the key.
            if separator and name and version.isdecimal():
                self._entries[name, int(version)] = alias

    def _open(self, name: str, version: int) -> MasterKeys:
        master_keys = self._decrypted.get((name, version))
        if master_keys is None:
            password = _password(self._password_file)
            try:
                key = self._store.secret_key(self._entries[name, version], password)
                master_keys = MasterKeys({(name, version): key}, self._holder)
            except InputError as error:
                raise KeyServiceError(f"key {name}@{version} of {self._holder}: {error}") from None
            except KeyStoreError as error:
                raise KeyDeniedError(str(error)) from None
            self._decrypted[name, version] = master_keys
        return master_keys


def jceks_provider(text: str) -> JceksKeyProvider:
    """Make a provider from `jceks:/path/kms.keystore` or `jceks:/path/kms.keystore?password-file=/path`.

    Hadoop's spelling `jceks://file/path` names the same file. Raises `OptionError` for other options.
    """
    rest, _, query = text.partition(":")[2].partition("?")
    if rest.startswith("//file/"):
        rest = rest.removeprefix("//file")
    elif rest.startswith("///"):
        rest = rest.removeprefix("//")
    elif rest.startswith("//"):
        raise OptionError(
            "a JCEKS key store is read from a local file: write jceks:/path or jceks://file/path"
        )
    if not rest:
        raise OptionError("a JCEKS key store needs a path, as in jceks:/path/kms.keystore")
    password_file: str | None = None
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name != _PASSWORD_FILE or not value:
            # The text may hold a password by mistake, so the message does not show it.
            raise OptionError(
                f"a jceks: setting has one option, {_PASSWORD_FILE}=PATH; a password itself is never part of "
                f"a setting: use that file or the environment variable {PASSWORD_VARIABLE}"
            )
        password_file = value
    return JceksKeyProvider(rest, password_file=password_file)


def _password(file: str | None) -> str:
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE) or _DEFAULT_PASSWORD
    try:
        with open(file, encoding="utf-8") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & _OTHERS_ACCESS:
                raise KeyDeniedError(
                    f"the password file {file} may be read by others (mode {mode:04o}) and is refused; "
                    f"run: chmod 600 {file}"
                )
            return stream.readline().rstrip("\r\n")
    except KeyDeniedError:
        raise
    except PermissionError:
        raise KeyDeniedError(f"this user may not read the password file {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise KeyServiceError(f"the password file {file} cannot be read ({type(error).__name__})") from None


def _file_version(path: str) -> _FileVersion:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KeyServiceError(f"the key store {path} cannot be found: {error.strerror}") from None
    return status.st_ino, status.st_mtime_ns, status.st_size
