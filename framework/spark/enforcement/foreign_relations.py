"""Relations that are no Lockgate tables, as targets of access requests: files, Hive, other catalogs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from lockgate.framework.access import SqlDecision, Target

# Spark's catalog of a session: files without a name count as part of it.
SESSION_CATALOG = "spark_catalog"
EVERYWHERE = "/"


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
        refused = _refusal_within(path, folders)
        if refused is not None:
            return refused
    return None


def _refusal_within(path: str, warehouses: Iterable[str]) -> SqlDecision | None:
    for warehouse in warehouses:
        if is_within(path, warehouse) or is_within(warehouse, path):
            return SqlDecision(apply_for=(f"the table that {path} belongs to, read by its name",))
    return None


def decide_links(
    relation: Mapping[str, Any], warehouses: Iterable[str], decide: Callable[[Target], SqlDecision]
) -> Iterator[SqlDecision]:
    """Yield a decision about each place that links below the local paths of a relation lead to.

    Ends with the first that refuses, before anything there is looked at.
    """
    folders = [plain_path(each) for each in warehouses]
    for path in leaving_links(relation["paths"] if relation["kind"] == "path" else ()):
        refused = None if path == EVERYWHERE else _refusal_within(path, folders)
        found = refused or decide(Target("path", path, catalog=SESSION_CATALOG))
        yield found
        if found.apply_for:
            return


def leaving_links(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real paths outside of local folders to which links below them lead, links there included.

    Readers follow links of all kinds. A file with several names (hard links) may belong to any folder, so it
    leads to `/`.
    """
    roots = [plain_path(each) for each in paths if urlsplit(each).scheme in ("", "file")]
    pending, seen = list(roots), {*roots}
    has_hard_link = any(map(_is_hard_link, roots))
    while pending and not has_hard_link:
        for entry in _entries(pending.pop()):
            path = entry.path
            if entry.is_symlink():
                path = os.path.realpath(entry.path)
                if not any(is_within(path, root) for root in roots):
                    yield path
                    roots.append(path)
                    has_hard_link = has_hard_link or _is_hard_link(path)
            elif entry.is_file(follow_symlinks=False):
                has_hard_link = has_hard_link or _is_hard_link(path)
                continue
            if path not in seen:
                seen.add(path)
                pending.append(path)
    if has_hard_link:
        yield EVERYWHERE


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # no folder, or none that the driver's user may list: its readers cannot either
        return []


def _is_hard_link(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1


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
