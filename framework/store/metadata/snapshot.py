"""Snapshots: the file that makes a commit visible, and the folder they are in.

Source: Paimon's specification, page "Snapshot".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from typing import Any

from lockgate.errors import CorruptFileError, UnsupportedFormatError
from lockgate.framework.store.metadata.trust import check_file_name
from lockgate.framework.store.schema.schema import load_versioned

FIRST_SNAPSHOT_ID = 1
CURRENT_VERSION = 3

# Given as the identifier of commits that are not part of a stream (Paimon's BatchWriteBuilder).
BATCH_COMMIT_IDENTIFIER = 2**63 - 1


class CommitKind(StrEnum):
    """Kinds of commits; a reader that follows changes skips COMPACT."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


@dataclass(frozen=True)
class Snapshot:
    """One state of a table: the content of `snapshot/snapshot-<id>`, in Python's spelling.

    Record counts are unmerged rows of data files. A commit of a stream is identified by `commit_user` and
    `commit_identifier`.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    total_record_count: int
    delta_record_count: int
    version: int = CURRENT_VERSION
    uuid: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    changelog_record_count: int | None = None
    index_manifest: str | None = None
    writer_version: str | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = field(default=None, hash=False)
    next_row_id: int | None = None
    operation: str | None = None

    @property
    def commit_id(self) -> str:
        """Return an identity that differs from that of a later snapshot with the same number, after a
        rollback.
        """
        return self.uuid or f"{self.commit_user}:{self.commit_identifier}:{self.time_millis}"

    def to_json(self) -> dict[str, Any]:
        """Return the content of the snapshot file; what is None is left out, as Paimon does."""
        values = ((name, getattr(self, attribute)) for attribute, name in _JSON_NAMES.items())
        return {name: value for name, value in values if value is not None}

    def to_bytes(self) -> bytes:
        """Return the snapshot file."""
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> Snapshot:
        """Parse a snapshot file.

        Raises CorruptFileError if it is damaged, UnsafePathError if it names a file by more than a name and
        UnsupportedFormatError if its version is newer than ours, all naming `path`.
        """
        content, version = load_versioned(data, path, "snapshot", CURRENT_VERSION)
        values = {
            attribute: content[name]
            for attribute, name in _JSON_NAMES.items()
            if content.get(name) is not None
        }
        # Snapshots of version 1 and 2 may lack the counts.
        values = {"total_record_count": 0, "delta_record_count": 0, **values, "version": version}
        missing = [
            name
            for attribute, name in _JSON_NAMES.items()
            if attribute in _REQUIRED and attribute not in values
        ]
        if missing:
            raise CorruptFileError(f"{path}: the snapshot lacks {', '.join(missing)}")
        _check_types(values, path)
        for attribute in _NAMES_OF_FILES & values.keys():
            check_file_name(values[attribute], f"{path}: {_JSON_NAMES[attribute]}")
        return cls(**values)


def _json_name(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(word.capitalize() for word in others)


_JSON_NAMES = {member.name: _json_name(member.name) for member in fields(Snapshot)}
_REQUIRED = frozenset(member.name for member in fields(Snapshot) if member.default is MISSING)
_NAMES_OF_FILES = frozenset(
    (
        "base_manifest_list",
        "delta_manifest_list",
        "changelog_manifest_list",
        "index_manifest",
        "statistics",
    )
)
_NUMBERS = frozenset(member.name for member in fields(Snapshot) if str(member.type).startswith("int"))


def _check_types(values: dict[str, Any], path: str) -> None:
    for attribute, value in values.items():
        wanted: type = int if attribute in _NUMBERS else dict if attribute == "properties" else str
        if not isinstance(value, wanted) or isinstance(value, bool):
            raise CorruptFileError(f"{path}: {_JSON_NAMES[attribute]} cannot be {value!r}")
    try:
        values["commit_kind"] = CommitKind(values["commit_kind"])
    except ValueError:
        raise UnsupportedFormatError(f"{path}: unknown commit kind {values['commit_kind']!r}") from None
