"""Versions of index kinds: scans use only the parts of a segment with the current version of their kind.

`words@2` is the second version of `words`; the first has no number. An older Lockgate does not know the name
of a newer version, so it ignores such parts, too.
"""

from __future__ import annotations

from lockgate.framework.plugins import plugins
from lockgate.pushdown.index import PartName

_MARK = "@"


def versioned(kind: str) -> str:
    """Return the name of a kind's current version, for new parts."""
    version = _version(kind)
    return kind if version == 1 else f"{kind}{_MARK}{version}"


def kind_of(part: PartName) -> str | None:
    """Return the kind of a part if the part has the kind's current version, else None."""
    kind = part.kind.partition(_MARK)[0]
    return kind if kind in plugins().index_kinds() and versioned(kind) == part.kind else None


def outdated_kind(part: PartName) -> str | None:
    """Return the kind of a part if the part has an older version of the kind, else None."""
    kind, mark, number = part.kind.partition(_MARK)
    if kind not in plugins().index_kinds() or (mark and not number.isdecimal()):
        return None
    return kind if int(number or 1) < _version(kind) else None


def _version(kind: str) -> int:
    return int(getattr(plugins().index_kinds()[kind], "version", 1))
