"""Positions of streams: what a stream reads next, as Spark stores it in a checkpoint.

Source: Paimon's `PaimonSourceOffset`, whose names it uses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from lockgate.errors import InputError


@dataclass(frozen=True)
class StreamPlace:
    """A place in the history of a table: everything before unit `index` of a snapshot has been read.

    If the stream `scans_state`, units are those of the snapshot's whole state, else those of its changes.
    `table_id` tells the table from one that was created later under its name. `commit_id` is that of the
    newest snapshot of which something was read, "" if there is none: after a rollback another snapshot may
    have its number.
    """

    snapshot_id: int
    index: int = 0
    scans_state: bool = False
    table_id: str = ""
    commit_id: str = ""

    def to_json(self) -> str:
        """Return the text that a checkpoint holds."""
        return json.dumps(
            {
                "snapshotId": self.snapshot_id,
                "index": self.index,
                "scanSnapshot": self.scans_state,
                "tableId": self.table_id,
                "commitId": self.commit_id,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> StreamPlace:
        """Read what a checkpoint holds; InputError for a text that is no position."""
        try:
            found: Any = json.loads(text)
            values = (
                *(found["snapshotId"], found["index"], found["scanSnapshot"]),
                *(found["tableId"], found["commitId"]),
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InputError(_damaged(text)) from None
        types = (int, int, bool, str, str)
        fits = all(type(value) is kind for value, kind in zip(values, types, strict=True))
        if not fits or values[0] < 1 or values[1] < 0 or len(found) != len(types):
            raise InputError(_damaged(text))
        return cls(*values)

    @property
    def sort_key(self) -> tuple[int, bool, int]:
        """Return what orders the positions of one stream."""
        return (self.snapshot_id, not self.scans_state, self.index)


def _damaged(text: str) -> str:
    return (
        f"the checkpoint holds {text[:120]!r}, which is no position of a stream of Lockgate's: start the "
        "query with a checkpoint of its own"
    )
