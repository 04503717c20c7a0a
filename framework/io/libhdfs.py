"""A rename that never replaces a file, by Hadoop's C library: pyarrow does not expose this call.

pyarrow's own `move` deletes an existing target. The name node renames under a lock, and refuses
if the target is an existing file, so exactly one of several renames to a name succeeds. Source: `libhdfs`
(`hdfs.h`),
Hadoop's "Specification of FileSystem", `rename`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

from lockgate.errors import InputError

_NAME = "libhdfs.dylib" if sys.platform == "darwin" else "libhdfs.so"
_REQUIREMENTS = (
    "HDFS is reached through Hadoop's C library: set JAVA_HOME, ARROW_LIBHDFS_DIR (the folder of "
    f"{_NAME}, if it is not in $HADOOP_HOME/lib/native) and CLASSPATH (what `hadoop classpath --glob` prints)"
)
# Argument and result types of each function.
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS = {
    "hdfsNewBuilder": ([], _POINTER),
    "hdfsBuilderSetNameNode": ([_POINTER, _TEXT], None),
    "hdfsBuilderSetNameNodePort": ([_POINTER, ctypes.c_uint16], None),
    "hdfsBuilderConfSetStr": ([_POINTER, _TEXT, _TEXT], ctypes.c_int),
    "hdfsBuilderConnect": ([_POINTER], _POINTER),
    "hdfsRename": ([_POINTER, _TEXT, _TEXT], ctypes.c_int),
}


def check_environment() -> None:
    """Raise InputError if Hadoop's library or its classes are missing, which would crash the process."""
    if not os.environ.get("CLASSPATH"):
        raise InputError(f"the variable CLASSPATH is not set. {_REQUIREMENTS}")
    paths = _library_paths()
    if paths and not any(os.path.isfile(path) for path in paths):  # noqa: PTH113 - as the loader sees it
        raise InputError(f"there is no {' nor '.join(paths)}. {_REQUIREMENTS}")


def _library_paths() -> list[str]:
    """Return the paths where pyarrow looks for the library; without any, the system's loader finds it."""
    folders = [os.environ.get("ARROW_LIBHDFS_DIR")]
    if home := os.environ.get("HADOOP_HOME"):
        folders.append(f"{home}/lib/native")
    return [f"{folder}/{_NAME}" for folder in folders if folder]


class Renames:
    """Renames in one file system, over a separate connection; pyarrow must have connected before."""

    def __init__(self, host: str, port: int, confs: Mapping[str, str]) -> None:
        self._library = _load()
        # The builder keeps pointers to these bytes until it has connected, so they must stay alive.
        texts = [text.encode() for pair in confs.items() for text in pair]
        name = host.encode()
        builder = self._library.hdfsNewBuilder()
        self._library.hdfsBuilderSetNameNode(builder, name)
        self._library.hdfsBuilderSetNameNodePort(builder, port)
        for key, value in zip(texts[::2], texts[1::2], strict=True):
            self._library.hdfsBuilderConfSetStr(builder, key, value)
        self._connection = self._library.hdfsBuilderConnect(builder)
        if not self._connection:
            raise OSError(f"hdfs://{host}:{port} cannot be reached by libhdfs")

    def rename(self, path: str, target: str) -> bool:
        """Rename a file; False if that fails for any reason."""
        return bool(self._library.hdfsRename(self._connection, path.encode(), target.encode()) == 0)


def _load() -> ctypes.CDLL:
    paths = [path for path in _library_paths() if os.path.isfile(path)]  # noqa: PTH113 - as the loader sees it
    try:
        library = ctypes.CDLL(paths[0] if paths else _NAME)
    except OSError as error:
        raise InputError(f"{_NAME} cannot be loaded: {error}. {_REQUIREMENTS}") from error
    for name, (arguments, result) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
