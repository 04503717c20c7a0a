"""DataFrames over folders of ORC files that Hive, Spark or Lockgate wrote outside of tables.

Spark's own ORC source reads them: it knows the partition folders, time zones, calendars and types of what
Spark and Hive wrote, and pushes down what it can. Lockgate proves the keys of every file first, and hands
executors the local keys of exactly these files, through the driver.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockgate.errors import (
    InputError,
    IntegrityError,
    MaskedDataWarning,
    NotFoundError,
    WrongKeyError,
    warn_user,
)
from lockgate.framework.access import MASKED
from lockgate.framework.io import named_errors, resolve
from lockgate.framework.keys import KeyMetadata, KeyProvider, NoKeys
from lockgate.framework.spark.bridge.dispatcher import dispatcher

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

    from lockgate.framework.orc import Mode

_THREADS = 8
_NAMELESS = re.compile(r"_col\d+")
_OURS = "orc.key.provider"
_NO_FILES = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
_NO_KEYS = NoKeys()


class ProvenKeys(KeyProvider):
    """Unwraps only local keys of files whose keys were proven in the driver.

    Executors read these files with Spark's own reader, which would take a wrong key for a right one, so a
    file that was put in another's place since is refused: WrongKeyError.
    """

    def __init__(self, provider: KeyProvider) -> None:
        self.provider = provider
        self._lock = threading.Lock()
        self._proven: set[bytes] = set()

    def add(self, encrypted: Sequence[bytes]) -> None:
        """Note that these local keys, as they are stored in a file, are rightly unwrapped."""
        with self._lock:
            self._proven.update(encrypted)

    def key_names(self) -> list[str]:
        return self.provider.key_names()

    def current_key(self, name: str) -> KeyMetadata:
        return self.provider.current_key(name)

    def usable(self, name: str) -> bool:
        return self.provider.usable(name)

    def decrypt_local_key(self, key: KeyMetadata, encrypted: bytes) -> bytes:
        plain = self.provider.decrypt_local_key(key, encrypted)
        with self._lock:
            if encrypted not in self._proven:
                raise WrongKeyError(
                    f"a file under the key {key} was added or replaced after read_orc had proven the keys of "
                    "its folder: call read_orc again"
                )
        return plain

    def __repr__(self) -> str:
        return f"ProvenKeys({self.provider!r})"


@dataclass(frozen=True)
class FileTail:
    """Findings in the tail of a file: its columns, those read as masks, its local keys, whether it has tags.

    `masked` has the names of keys by column, `encrypted` the local keys as they are stored.
    """

    path: str
    columns: tuple[str, ...]
    masked: Mapping[str, str]
    encrypted: tuple[bytes, ...]
    tagged: bool


_providers: dict[int, ProvenKeys] = {}


@named_errors
def read_orc(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    keys: KeyProvider | str | os.PathLike[str] | None,
    schema: StructType | str | None,
    integrity: Mode,
    file_system: Mapping[str, str],
    options: Mapping[str, str],
) -> DataFrame:
    """Return a DataFrame over the ORC files in `path` and the folders below it; see `Lake.read_orc`."""
    if _OURS in {name.lower() for name in options}:
        raise InputError(f"read_orc sets option {_OURS!r} itself: name the keys by keys=...")
    if not os.fspath(path).strip():
        raise InputError("read_orc takes the path of a folder, not an empty text")
    proven = _proven(_provider(keys))
    scope = dispatcher().scopes.register(proven)
    reader = spark.read.options(**options).option(_OURS, f"lockgate:{scope}")
    frame = _listed(reader, os.fspath(path), schema, proven.provider, file_system)
    files = _inspected(frame.inputFiles(), proven.provider, file_system)
    if not files:
        raise NotFoundError(f"folder {os.fspath(path)} holds no ORC files")
    columns = _check_names(files, frame, given=schema is not None)
    _verify(files, proven.provider, integrity, file_system)
    for found in files:
        proven.add(found.encrypted)
    masked = {columns.get(name, name): key for found in files for name, key in found.masked.items()}
    if not masked:
        return frame
    _warn(os.fspath(path), masked)
    return reader.schema(_marked(frame.schema, masked)).orc(os.fspath(path))


def _provider(keys: KeyProvider | str | os.PathLike[str] | None) -> KeyProvider:
    """Return the provider that is meant: for one text the same one every time."""
    if isinstance(keys, KeyProvider):
        return keys
    return _NO_KEYS if keys is None else dispatcher().scopes.of_spec(os.fspath(keys))


def _proven(keys: KeyProvider) -> ProvenKeys:
    """Return the one wrapper of a provider: ORC keeps what it makes of a scope for the life of the JVM."""
    # The wrapper holds the provider, so that no other provider can get its identity.
    return _providers.setdefault(id(keys), ProvenKeys(keys))


def _listed(
    reader: DataFrameReader,
    path: str,
    schema: StructType | str | None,
    keys: KeyProvider,
    file_system: Mapping[str, str],
) -> DataFrame:
    """Return Spark's DataFrame over the files; NotFoundError if there are none, and errors of `_inspect`."""
    from pyspark.errors import AnalysisException

    try:
        return (reader if schema is None else reader.schema(schema)).orc(path)
    except Exception as error:
        if isinstance(error, AnalysisException) and error.getCondition() in _NO_FILES:
            raise NotFoundError(f"folder {path} does not exist or holds no ORC files") from None
        # Spark looks for the schema in one of the files, and does not say what is wrong with it.
        _inspected(_paths(reader, path), keys, file_system)
        raise


def _paths(reader: DataFrameReader, path: str) -> list[str]:
    """Return the files of a folder without a look into one."""
    return reader.schema("any STRING").orc(path).inputFiles()


def _inspected(paths: Sequence[str], keys: KeyProvider, file_system: Mapping[str, str]) -> list[FileTail]:
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda path: _inspect(path, keys, file_system), paths)
        return [each for each in found if each is not None]


def _inspect(uri: str, keys: KeyProvider, options: Mapping[str, str]) -> FileTail | None:
    """Read a file's tail and prove its keys; None for a file without a byte, as writers without rows leave.

    WrongKeyError if a key that is held does not open it.
    """
    from lockgate.framework.orc import Variants, find_header, open_source, read_tail

    files, path = resolve(uri, options)
    if not files.size(path):
        return None
    source = open_source((files, path), path)
    try:
        tail = read_tail(source)
        variants = Variants(tail, keys)
        stored = {bytes(each.encrypted_key) for each in tail.footer.encryption.variants}
        # Where files were merged, each part brought keys of its own.
        stored.update(bytes(key) for each in tail.footer.stripes for key in each.encrypted_local_keys)
        masked = {column.column: str(column.key) for column in variants.columns() if not column.open}
        tagged = find_header(tail) is not None
        return FileTail(path, tail.types.names, masked, tuple(stored), tagged)
    finally:
        source.close()


def _check_names(files: Sequence[FileTail], frame: DataFrame, *, given: bool) -> dict[str, str]:
    """Return the names that the schema gives to columns of files without names (Hive's `_col0`, ...)."""
    nameless = [found for found in files if all(_NAMELESS.fullmatch(name) for name in found.columns)]
    if not nameless:
        return {}
    first = nameless[0]
    if not given:
        raise InputError(
            f"{first.path} was written by Hive without the names of its {len(first.columns)} columns "
            f"({', '.join(first.columns[:3])}): give them, in order, by schema='id BIGINT, name STRING, ...'"
        )
    if len(nameless) < len(files):
        raise InputError(
            f"some files have column names, others, such as {first.path}, do not: read them separately"
        )
    names = frame.schema.names
    widest = max(len(found.columns) for found in files)
    if len(names) < widest:
        raise InputError(f"the schema names {len(names)} columns, but {first.path} has {widest}")
    return {f"_col{number}": name for number, name in enumerate(names)}


def _verify(
    files: Sequence[FileTail], keys: KeyProvider, integrity: Mode, file_system: Mapping[str, str]
) -> None:
    """Check whole files by their tags, since Spark's reader does not; IntegrityError if one does not fit."""
    from lockgate.framework.orc import verify_file

    def verify(found: FileTail) -> None:
        if integrity == "require" and found.encrypted and not found.tagged:
            raise IntegrityError(f"{found.path} has no tags, so nothing can check its integrity")
        report = verify_file((resolve(found.path, file_system)[0], found.path), keys, name=found.path)
        report.raise_for_damage()
        if integrity == "require" and report.status == "unverified":
            raise IntegrityError(f"{found.path} cannot be checked: you hold no key that opens its tags")

    if integrity != "ignore":
        chosen = [found for found in files if found.tagged or integrity == "require"]
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(verify, chosen))


def _warn(path: str, masked: Mapping[str, str]) -> None:
    names = ", ".join(f"{column} (key {key})" for column, key in sorted(masked.items()))
    warn_user(f"{path}: without its key a column is read as its mask: {names}", MaskedDataWarning)


def _marked(schema: StructType, masked: Mapping[str, str]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(
                field.name,
                field.dataType,
                field.nullable,
                {**field.metadata, MASKED: masked[field.name]} if field.name in masked else field.metadata,
            )
            for field in schema
        ]
    )
