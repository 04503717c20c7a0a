"""The facts about one cached state, and the files of a cache that hold facts for other processes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from lockgate.errors import LookupCacheError
from lockgate.framework.spark import ErrorJson, Shape, fault_in, shape_of


class CacheVersionJson(TypedDict):
    """A `CacheVersionInfo` in JSON."""

    snapshot_id: int
    fingerprint: str
    rows: int
    bytes: int
    changes: int
    full_load: bool
    build_seconds: float
    built_millis: int
    storage: str


@dataclass(frozen=True)
class CacheVersionInfo:
    """The facts about one cached state.

    `changes` counts the rows written to reach it, `full_load` says that the table was read whole; `bytes` are
    those of its files, shared with the one before where unchanged. `storage` is a `backends.Storage`.
    """

    snapshot_id: int
    fingerprint: str
    rows: int
    bytes: int
    changes: int
    full_load: bool
    build_seconds: float
    built_millis: int
    storage: str = "full"

    @property
    def mark(self) -> int:
        """The mark in plans and pins that distinguishes the snapshot from another of its number."""
        return mark_of(self.fingerprint)

    def to_json(self) -> CacheVersionJson:
        """Return the form that goes through pipes and into files."""
        return {
            "snapshot_id": self.snapshot_id,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "bytes": self.bytes,
            "changes": self.changes,
            "full_load": self.full_load,
            "build_seconds": self.build_seconds,
            "built_millis": self.built_millis,
            "storage": self.storage,
        }

    @classmethod
    def of_file(cls, content: Mapping[str, Any], path: Path) -> CacheVersionInfo:
        """Read the facts in a file of a cache; LookupCacheError says what is wrong with them."""
        # A state that was built before there was a choice says nothing of its storage.
        whole = {"storage": "full", **content}
        _check(_FACTS, whole, path)
        return cls(**whole)


def refusal_of(content: Mapping[str, Any], path: Path) -> ErrorJson:
    """Read the error in a file of a cache; LookupCacheError says what is wrong with it."""
    _check(_ERROR, content, path)
    return {"type": content["type"], "message": content["message"]}


def _check(shape: Shape, content: object, path: Path) -> None:
    fault = fault_in(shape, content)
    if fault is not None:
        raise LookupCacheError(
            f"{path} is damaged or of another version: {fault}; lockgate lookup rebuild builds it again"
        )


_FACTS, _ERROR = shape_of(CacheVersionJson), shape_of(ErrorJson)


def mark_of(fingerprint: str) -> int:
    """Return a snapshot's fingerprint as a positive number of 63 bits: the first bytes of its SHA-256.

    The same in Java: `States.markOf`; both pass `tests/fixtures/snapshot_marks.json`.
    """
    return int.from_bytes(hashlib.sha256(fingerprint.encode()).digest()[:8], "big") >> 1 or 1
