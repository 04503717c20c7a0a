"""The files of tags: names for snapshots, which keep what they need when the snapshots expire.

Source: Paimon's `Tag` and `TagManager`. `tag/tag-<name>` is a copy of the snapshot's file; a tag that is to
be kept for a limited time says also when it was created, in local time without a zone, and for how long.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockgate.errors import CorruptFileError, InputError, TagNotFoundError, nearest
from lockgate.framework.store.metadata.references import tagged_snapshots
from lockgate.framework.store.metadata.snapshot import Snapshot
from lockgate.framework.store.schema.schema import load_json

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle

_PREFIX = "tag-"
_CREATED = "tagCreateTime"
_RETAINED = "tagTimeRetained"


@dataclass(frozen=True)
class Tag:
    """A named snapshot; only tags that expire have `created` (in local time) and `retained`."""

    name: str
    snapshot: Snapshot
    created: datetime.datetime | None = None
    retained: datetime.timedelta | None = None

    def to_bytes(self) -> bytes:
        """Return the tag's file."""
        content = self.snapshot.to_json()
        if self.created is not None:
            when = self.created
            parts = [when.year, when.month, when.day, when.hour, when.minute, when.second]
            content[_CREATED] = [*parts, when.microsecond * 1000]
        if self.retained is not None:
            content[_RETAINED] = self.retained.total_seconds()
        return json.dumps(content, indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, name: str, data: bytes, path: str) -> Tag:
        """Parse a tag's file; raises as `Snapshot.from_bytes`."""
        content = load_json(data, path)
        try:
            created, retained = _local_time(content.get(_CREATED)), _duration(content.get(_RETAINED))
        except (TypeError, ValueError, OverflowError) as error:
            raise CorruptFileError(f"{path}: {error}") from None
        return cls(name, Snapshot.from_bytes(data, path), created, retained)


def _local_time(value: Any) -> datetime.datetime | None:
    if value is None:
        return None
    year, month, day, hour, minute, *rest = value
    second, nanos = [*rest, 0, 0][:2]
    return datetime.datetime(year, month, day, hour, minute, second, nanos // 1000)


def _duration(value: Any) -> datetime.timedelta | None:
    return None if value is None else datetime.timedelta(seconds=value)


def tag_path(table: TableHandle, name: str) -> str:
    """Return the path of a tag's file; InputError if the name cannot be that of a file."""
    if not name.strip() or "/" in name or "\0" in name:
        raise InputError(f"{name!r} cannot be the name of a tag")
    return f"{table.branch_location}/tag/{_PREFIX}{name}"


def load_tag(table: TableHandle, name: str) -> Tag:
    """Return a tag; TagNotFoundError offers the nearest names, CorruptFileError tells of a damaged file."""
    path = tag_path(table, name)
    try:
        return Tag.from_bytes(name, table.file_system.read_bytes(path), path)
    except FileNotFoundError:
        hint = nearest(name, tagged_snapshots(table)) or "; the table has none"
        raise TagNotFoundError(f"{table.identifier} has no tag {name!r}{hint}") from None


def load_tags(table: TableHandle) -> list[Tag]:
    """Return all tags, in the order of their snapshots and then of their names."""
    tags = []
    for name in tagged_snapshots(table):
        path = f"{table.branch_location}/tag/{_PREFIX}{name}"
        try:
            tags.append(Tag.from_bytes(name, table.file_system.read_bytes(path), path))
        except FileNotFoundError:
            continue  # it was deleted just now
    return sorted(tags, key=lambda tag: (tag.snapshot.id, tag.name))
