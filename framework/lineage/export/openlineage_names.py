"""Names of files as OpenLineage gives them: a namespace for the store, and a name in it.

Source: naming of datasets in the specification (`spec/Naming.md`): `file` and a path, `s3://bucket` and a
key, `hdfs://host:port` and a path.
"""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/,]*)/?([^,]*)")
_LOCAL = re.compile(r"(?:file:(?://)?)?(/[^,]*)")
# Stores whose objects have keys, not paths.
_OF_KEYS = frozenset({"s3", "gs"})
_OF_PATHS = frozenset({"hdfs", "abfss", "abfs", "wasbs", "wasb", "viewfs", "webhdfs"})
_SAME = {"s3a": "s3", "s3n": "s3"}


def file_name(path: str) -> tuple[str, str]:
    """Return the namespace and the name of a path; of several paths in one text, `file` and the text."""
    local = _LOCAL.fullmatch(path)
    if local:
        return "file", local[1]
    address = _ADDRESS.fullmatch(path)
    if address is None:
        return "file", path
    scheme = _SAME.get(address[1].lower(), address[1].lower())
    name = address[3] if scheme in _OF_KEYS else f"/{address[3]}"
    return f"{scheme}://{address[2]}", name


def path_of(namespace: str, name: str) -> str | None:
    """Return the path that a namespace and a name mean; None for what is no file."""
    if namespace == "file":
        return f"file:{name}" if name.startswith("/") else name
    scheme = namespace.partition("://")[0]
    if scheme in _OF_KEYS:
        return f"{namespace}/{name}"
    return f"{namespace}/{name.lstrip('/')}" if scheme in _OF_PATHS else None
