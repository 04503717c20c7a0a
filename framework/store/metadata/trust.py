"""Trust in metadata: the places in which a table's metadata may locate files.

Anyone who can write to a table's folder writes its manifests, and a table may come from elsewhere. Yet
maintenance deletes, and queries read, with the rights of the user who runs them. So metadata names files
within the table's folders only, by plain names; a file elsewhere (Paimon's `_EXTERNAL_PATH`) must be below a
root that the *catalog* allows (`external-roots`): the table's own option for such paths was written by the
table's writer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lockgate.errors import CorruptFileError, OptionError, UnsafePathError
from lockgate.framework.io import FileSystem, FollowsLinks

EXTERNAL_ROOTS = "external-roots"
"""The catalog's option: folders, divided by commas, below which tables may have files outside their own."""

_LOCAL_SCHEME = re.compile(r"^(?:file|local):(?://)?(?=/)")
_S3_SCHEME = re.compile(r"^s3[an]?://")
_NOT_IN_A_NAME = re.compile(r"[\x00-\x1f\x7f/\\]")
_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f\\]")
_NOT_PLAIN = frozenset(("", ".", ".."))
_SHOWN = 200


def check_file_name(name: object, what: str = "a file") -> str:
    """Return `name`; UnsafePathError if it is more than one part of a path, such as `..` or `a/b`."""
    if type(name) is str and name not in _NOT_PLAIN and not _NOT_IN_A_NAME.search(name):
        return name
    raise UnsafePathError(
        f"{what} is named {_shown(name)}, which is not a plain name of a file: nothing was read or deleted "
        "there; restore the table's metadata, or ask the table's writer"
    )


def check_file_names(names: Sequence[str], what: str = "a file") -> None:
    """Check many names at once; raises as `check_file_name`."""
    strange = not {*map(type, names)} <= {str} or not _NOT_PLAIN.isdisjoint(names)
    if strange or _NOT_IN_A_NAME.search("".join(names)):
        for name in names:
            check_file_name(name, what)


def check_number(value: object, what: str) -> int:
    """Return `value`; CorruptFileError unless it is a whole number: a file may declare any type for it."""
    if type(value) is int:
        return value
    raise CorruptFileError(f"{what} is {_shown(value)}, where a number is expected")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True)
class ExternalRoots:
    """The folders below which a table may have files outside its own; spelled as paths there are."""

    roots: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str | None) -> ExternalRoots:
        """Read the catalog's option `external-roots`; OptionError for a root that is not absolute."""
        given = [part.strip() for part in (text or "").split(",")]
        return cls(tuple(_root(part) for part in given if part))

    def path(self, address: object, location: str) -> str:
        """Return the path, in the file system of the table at `location`, of a file outside its folders.

        Raises UnsafePathError unless it is below a root, or below the table's own folder.
        """
        if isinstance(address, str) and not _NOT_IN_A_PATH.search(address):
            path = _plain(address)
            own = location if location.startswith("/") or "://" in location else f"s3://{location}"
            parts = path.partition("://")[2].split("/") if "://" in path else path.split("/")[1:]
            if all(part not in ("", ".", "..") for part in parts):
                for root in (*self.roots, own):
                    if path.startswith(f"{root.rstrip('/')}/"):
                        return path if location.startswith("/") else path.removeprefix("s3://")
        raise UnsafePathError(
            f"the table at {location} names the file {_shown(address)}, which is outside of its folder and "
            f"below no root that the catalog allows ({', '.join(self.roots) or 'there are none'}): if the "
            f"table may have files there, add the folder above them to the catalog's option {EXTERNAL_ROOTS}"
        )


NO_ROOTS = ExternalRoots()


def _plain(address: str) -> str:
    return _S3_SCHEME.sub("s3://", _LOCAL_SCHEME.sub("", address))


def _root(text: str) -> str:
    plain = _plain(os.path.expanduser(text))  # noqa: PTH111 - a string is returned
    if not plain.startswith("/") and "://" not in plain:
        raise OptionError(f"{EXTERNAL_ROOTS} has {text!r}: give an absolute path or an address")
    return os.path.normpath(plain) if plain.startswith("/") else plain.rstrip("/")


def check_deletable(
    file_system: FileSystem, paths: Iterable[str], location: str, external: ExternalRoots
) -> None:
    """Make sure that no link leads files that are to be deleted out of where the table may have files.

    Raises UnsafePathError for one that does. A folder of a table may be a link that somebody else put there.
    """
    if not isinstance(file_system, FollowsLinks):
        return
    allowed = [file_system.real_path(root) for root in (location, *external.roots) if root.startswith("/")]
    for folder in {path.rpartition("/")[0] for path in paths}:
        real = file_system.real_path(folder)
        if not any(real == root or real.startswith(f"{root.rstrip('/')}/") for root in allowed):
            raise UnsafePathError(
                f"{folder} leads by a link to {real}, out of the table at {location}: nothing was deleted; "
                f"remove the link, or add that folder to the catalog's option {EXTERNAL_ROOTS}"
            )
