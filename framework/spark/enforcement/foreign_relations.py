"""Relations that are no Lockgate tables, as targets of access requests: files, Hive, other catalogs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from lockgate.framework.access import SqlDecision, Target

# Spark's catalog of a session: files without a name count as part of it.
SESSION_CATALOG = "spark_catalog"


def targets_of(relation: Mapping[str, Any]) -> list[Target]:
    """Return what a relation of another catalog, or of none, is called in requests: files, path by path."""
    if relation["kind"] == "table":
        return [Target("table", relation["name"], catalog=relation["catalog"])]
    names = map(plain_path, relation["paths"]) if relation["kind"] == "path" else [relation["name"]]
    return [Target("path", name, catalog=SESSION_CATALOG) for name in names]


def refusal_of_path(relation: Mapping[str, Any], warehouses: Iterable[str]) -> SqlDecision | None:
    """Return the refusal of files in a warehouse, which are read as the tables that they belong to."""
    folders = [plain_path(each) for each in warehouses]
    for path in map(plain_path, relation["paths"] if relation["kind"] == "path" else ()):
        for warehouse in folders:
            if is_within(path, warehouse) or is_within(warehouse, path):
                return SqlDecision(apply_for=(f"the table that {path} belongs to, read by its name",))
    return None


def is_within(inner: str, outer: str) -> bool:
    """Say whether a plain path is another one or below it."""
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")


def plain_path(address: str) -> str:
    """Return an address in one spelling; a local path without its scheme and without links."""
    parts = urlsplit(address)
    if parts.scheme in ("", "file"):
        return os.path.realpath(unquote(parts.path) if parts.scheme else address)
    scheme = "s3" if parts.scheme in ("s3a", "s3n") else parts.scheme
    return f"{scheme}://{parts.netloc}{os.path.normpath(parts.path)}"
