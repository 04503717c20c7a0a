"""OpenLineage's names of files: a namespace for the store, and a name in it.

Source: naming of datasets in the specification (`spec/Naming.md`): `file` and a path, `s3://bucket` and a
key, `hdfs://host:port` and a path.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/,]*)/?([^,]*)")
_LOCAL = re.compile(r"(?:file:(?://)?)?(/[^,]*)")
# Stores with keys of objects instead of paths.
_KEY_SCHEMES = frozenset({"s3", "gs"})
_PATH_SCHEMES = frozenset({"hdfs", "abfss", "abfs", "wasbs", "wasb", "viewfs", "webhdfs"})
_SYNONYMS = {"s3a": "s3", "s3n": "s3"}


def file_name(path: str) -> tuple[str, str]:
    """Return the namespace and name of a path; for several paths in one text, `file` and the text."""
    local = _LOCAL.fullmatch(path)
    if local:
        return "file", local[1]
    address = _ADDRESS.fullmatch(path)
    if address is None:
        return "file", path
    scheme = _SYNONYMS.get(address[1].lower(), address[1].lower())
    name = address[3] if scheme in _KEY_SCHEMES else f"/{address[3]}"
    return f"{scheme}://{address[2]}", name


def path_of(namespace: str, name: str) -> str | None:
    """Return the path of a namespace and name; None if they name no file."""
    if namespace == "file":
        return f"file:{name}" if name.startswith("/") else name
    scheme = namespace.partition("://")[0]
    if scheme in _KEY_SCHEMES:
        return f"{namespace}/{name}"
    return f"{namespace}/{name.lstrip('/')}" if scheme in _PATH_SCHEMES else None
