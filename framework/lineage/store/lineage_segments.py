"""Segments of a warehouse: files that are written whole and once, by any number of processes at a time.

`<warehouse>/.lockgate/lineage/<day>/<milliseconds>-<application>-<random>.jsonl.zst`. A segment made
by compaction says which ones it replaces; until those are deleted, they are not counted a second time.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from lockgate.framework.io import FileSystem, join
from lockgate.framework.lineage.store.segment_file import LineageSegment, decoded, encoded

_SUFFIX = ".jsonl.zst"
_COMPACTED = f"-compacted{_SUFFIX}"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Segments:
    """The segments below one warehouse; names are `<day>/<file>`."""

    def __init__(self, file_system: FileSystem, warehouse: str) -> None:
        self.file_system = file_system
        self.folder = join(warehouse, ".lockgate", "lineage")

    def write(
        self,
        lines: Iterable[Mapping[str, Any]],
        application: str = "python",
        *,
        day: str | None = None,
        replaces: Sequence[str] = (),
    ) -> str:
        """Write one segment and return its name; a writer that is killed leaves all or nothing."""
        now = time.time()
        day = day or datetime.fromtimestamp(now, UTC).date().isoformat()
        who = re.sub(r"[^A-Za-z0-9_]+", "_", application)[:80] or "python"
        suffix = _COMPACTED if replaces else _SUFFIX
        name = f"{day}/{int(now * 1000):013d}-{who}-{uuid.uuid4().hex}{suffix}"
        self.file_system.write_new(join(self.folder, name), encoded(lines, replaces))
        return name

    def read(self, name: str) -> LineageSegment:
        """Read a segment; CorruptFileError for a damaged one, FileNotFoundError for a compacted one."""
        return decoded(self.file_system.read_bytes(join(self.folder, name)), name)

    def days(self) -> list[str]:
        """Return the days that have segments, sorted."""
        return sorted(
            each.name
            for each in self.file_system.list(self.folder)
            if each.is_directory and _DAY.fullmatch(each.name)
        )

    def names(self, day: str) -> list[str]:
        """Return the names of all segments of a day, sorted: the replaced ones too."""
        return sorted(
            f"{day}/{each.name}"
            for each in self.file_system.list(join(self.folder, day))
            if not each.is_directory and each.name.endswith(_SUFFIX)
        )

    def all_names(self) -> list[str]:
        """Return the names of all segments, sorted."""
        return [name for day in self.days() for name in self.names(day)]

    def delete(self, name: str) -> bool:
        """Delete a segment that another one replaces; False if it is gone already."""
        return self.file_system.delete(join(self.folder, name))


def is_compacted(name: str) -> bool:
    """Return whether compaction made the segment of this name."""
    return name.endswith(_COMPACTED)
