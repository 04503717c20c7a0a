"""Master keys in a JSON file that only its owner may read."""

from __future__ import annotations

import base64
import binascii
import fcntl
import json
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lockgate.checked_arguments import checked_arguments
from lockgate.errors import (
    AlreadyExistsError,
    FileMissingError,
    InputError,
    KeyDeniedError,
    KeyServiceError,
    nearest,
)
from lockgate.framework.io import named_errors
from lockgate.framework.keys.key_document import FORMAT_VERSION, key_entries
from lockgate.framework.keys.metadata import KeyAlgorithm, KeyMetadata, algorithm_of_bits, check_key_name
from lockgate.framework.keys.provider import KeyProvider, MasterKeys

_OTHERS_ACCESS = stat.S_IRWXG | stat.S_IRWXO

_FileVersion = tuple[int, int, int, int]


@checked_arguments
class KeyFileProvider(KeyProvider):
    """Holds the keys of a key file, which must be readable by its owner only (mode 0600).

    A changed file is read again, so a new key version takes effect in a running process. Raises
    `KeyServiceError` if the file is absent or malformed and `KeyDeniedError` if others may read it or this
    user may not.
    """

    @named_errors
    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = str(Path(path).absolute())
        self._lock = threading.Lock()
        self._version, self._keys = _load(self._path)

    def key_names(self) -> list[str]:
        return self._current().names()

    def current_key(self, name: str) -> KeyMetadata:
        return self._current().current(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        return self._current().unwrap(key, encrypted)

    def key_versions(self) -> list[KeyMetadata]:
        return self._current().metadata()

    def create_key(self, name: str, bits: int = 128) -> KeyMetadata:
        algorithm = algorithm_of_bits(bits)

        def new_key_algorithm(versions: Mapping[int, bytes]) -> KeyAlgorithm:
            if versions:
                raise AlreadyExistsError(f"the key file {self._path} has a key {name!r} already: roll it")
            return algorithm

        return _add_version(self._path, name, new_key_algorithm)

    def roll_key(self, name: str, bits: int | None = None) -> KeyMetadata:
        def next_algorithm(versions: Mapping[int, bytes]) -> KeyAlgorithm:
            if not versions:
                self.current_key(name)  # raises an error that names the existing keys
            return algorithm_of_bits(bits or len(versions[max(versions)]) * 8)

        return _add_version(self._path, name, next_algorithm)

    @property
    def path(self) -> str:
        """The path of the key file."""
        return self._path

    @property
    def spec(self) -> str:
        return f"file:{self._path}"

    def __repr__(self) -> str:
        return f"KeyFileProvider({self._path!r}: {', '.join(self._keys.versions())})"

    def __reduce__(self) -> tuple[type[KeyFileProvider], tuple[str]]:
        # Only the path is pickled; the other process must be able to read the file.
        return KeyFileProvider, (self._path,)

    def _current(self) -> MasterKeys:
        with self._lock:
            if _file_version(self._path) != self._version:
                self._version, self._keys = _load(self._path)
            return self._keys


@checked_arguments
@named_errors
def create_key_file(path: str | os.PathLike[str], names: Sequence[str], bits: int = 128) -> KeyFileProvider:
    """Create a key file with a fresh random key, version 0, for each of `names`.

    `bits` is 128 or 256. The file gets mode 0600. Raises `AlreadyExistsError` if `path` exists: overwriting
    a key file would make its data unreadable.
    """
    algorithm = algorithm_of_bits(bits)
    if not names:
        raise InputError("a key file needs the name of at least one key")
    for name in names:
        check_key_name(name)
    keys = {(name, 0): secrets.token_bytes(algorithm.key_length) for name in names}
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise AlreadyExistsError(
            f"{os.fspath(path)} exists; a key file is never overwritten, since that would lose its keys"
        ) from None
    except FileNotFoundError:
        raise FileMissingError(f"the folder of the key file {os.fspath(path)!r} does not exist") from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(_dump(keys))
        file.flush()
        os.fsync(file.fileno())
    with _locked_for_change(Path(path).absolute().parent):
        pass  # makes the new name durable
    return KeyFileProvider(path)


@checked_arguments
@named_errors
def add_key_version(path: str | os.PathLike[str], name: str, bits: int | None = None) -> KeyMetadata:
    """Add a fresh version of the key `name` (or a new key) to a key file; files written from now on use it.

    Older versions stay, since older files need them. `bits` is 128, 256 or, if None, as the version before
    (128 for a new key). The file is replaced in one step.
    """
    fixed_algorithm = None if bits is None else algorithm_of_bits(bits)

    def algorithm(versions: Mapping[int, bytes]) -> KeyAlgorithm:
        return fixed_algorithm or KeyAlgorithm.of_length(len(versions[max(versions)]) if versions else 16)

    return _add_version(path, name, algorithm)


def _add_version(
    path: str | os.PathLike[str], name: str, algorithm: Callable[[Mapping[int, bytes]], KeyAlgorithm]
) -> KeyMetadata:
    """Add a fresh version; `algorithm` returns its algorithm from the versions in the locked file."""
    file_path = Path(path).absolute()
    check_key_name(name)
    _read(str(file_path))  # fail before the folder is locked
    with _locked_for_change(file_path.parent):
        keys = _read(str(file_path))
        versions = {version: material for (key, version), material in keys.items() if key == name}
        new_key = KeyMetadata(name, max(versions, default=-1) + 1, algorithm(versions))
        keys[name, new_key.version] = secrets.token_bytes(new_key.algorithm.key_length)
        descriptor, temporary = tempfile.mkstemp(dir=file_path.parent, prefix=".keys-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_dump(keys))
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(file_path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    return new_key


@contextmanager
def _locked_for_change(folder: Path) -> Iterator[None]:
    """Let one process at a time change the key files of a folder, and make the change durable.

    Without the lock, one of two processes that add a version at once would lose its key and the data
    encrypted with it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _dump(keys: dict[tuple[str, int], bytes]) -> bytes:
    entries = [
        {
            "name": name,
            "version": version,
            "algorithm": KeyAlgorithm.of_length(len(material)).name,
            "material": base64.b64encode(material).decode("ascii"),
        }
        for (name, version), material in sorted(keys.items())
    ]
    return (json.dumps({"format": FORMAT_VERSION, "keys": entries}, indent=2) + "\n").encode()


def _file_version(path: str) -> _FileVersion:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KeyServiceError(f"the key file {path} cannot be found: {error.strerror}") from error
    # The change time also covers changes of the mode.
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _load(path: str) -> tuple[_FileVersion, MasterKeys]:
    version = _file_version(path)
    return version, MasterKeys(_read(path), f"the key file {path}")


def _read(path: str) -> dict[tuple[str, int], bytes]:
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _OTHERS_ACCESS:
                raise KeyDeniedError(
                    f"the key file {path} may be read by others (mode {mode:04o}) and is refused; "
                    f"run: chmod 600 {path}"
                )
            content = file.read()
    except FileNotFoundError as error:
        raise KeyServiceError(f"there is no key file {path}; make one with create_key_file") from error
    except KeyDeniedError:
        raise
    except PermissionError as error:
        raise KeyDeniedError(f"this user may not read the key file {path}") from error
    except OSError as error:
        raise KeyServiceError(f"the key file {path} cannot be read: {error.strerror}") from error
    return _parse(path, content)


def _parse(path: str, content: bytes) -> dict[tuple[str, int], bytes]:
    entries = key_entries(content, f"the key file {path}", KeyServiceError)
    return dict(_entry(path, index, entry) for index, entry in enumerate(entries))


def _entry(path: str, index: int, entry: object) -> tuple[tuple[str, int], bytes]:
    where = f"key number {index} of the key file {path}"
    if not isinstance(entry, dict):
        raise KeyServiceError(f"{where} is not an object")
    name, version, algorithm, material = (
        entry.get(part) for part in ("name", "version", "algorithm", "material")
    )
    if not isinstance(name, str) or not name or not isinstance(version, int) or version < 0:
        raise KeyServiceError(f"{where} has no valid name and version")
    if not isinstance(algorithm, str) or algorithm not in KeyAlgorithm.__members__:
        raise KeyServiceError(
            f"{where} has no known algorithm{nearest(str(algorithm), KeyAlgorithm.__members__)}"
        )
    try:
        key = base64.b64decode(material if isinstance(material, str) else "?", validate=True)
    except binascii.Error:
        raise KeyServiceError(f"{where} has no valid base64 material") from None
    if len(key) != KeyAlgorithm[algorithm].key_length:
        raise KeyServiceError(
            f"{where} has {len(key)} bytes, but {algorithm} needs {KeyAlgorithm[algorithm].key_length}"
        )
    return (name, version), key
