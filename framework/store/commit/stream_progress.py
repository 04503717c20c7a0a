"""Progress of each stream, copied from snapshot to snapshot, so that expiry loses no epoch.

A restarted stream checks whether its last epoch was committed. That snapshot may have expired since, so every
snapshot has the last commit of each stream in its property `lockgate.streams`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockgate.errors import CorruptFileError
from lockgate.framework.store.metadata.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot

PROPERTY = "lockgate.streams"
# Streams that committed longest ago are forgotten beyond so many: a note grows by about 100 bytes a stream.
MOST_STREAMS = 100


@dataclass(frozen=True)
class StreamProgress:
    """The last commit of a stream: its identifier, the kinds of commits under it, and its snapshot."""

    identifier: int
    kinds: frozenset[CommitKind]
    snapshot_id: int

    def covers(self, identifier: int, kind: CommitKind) -> bool:
        """Say whether a commit of the stream was done before."""
        return identifier < self.identifier or (identifier == self.identifier and kind in self.kinds)

    def followed_by(self, later: StreamProgress) -> StreamProgress:
        """Return the progress after a later commit."""
        if later.identifier != self.identifier:
            return later
        return StreamProgress(later.identifier, self.kinds | later.kinds, later.snapshot_id)


def own_progress(snapshot: Snapshot) -> StreamProgress | None:
    """Return what a snapshot itself did for its stream; None if it is not of a stream."""
    if snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER:
        return None
    return StreamProgress(snapshot.commit_identifier, frozenset({snapshot.commit_kind}), snapshot.id)


def noted_progress(snapshot: Snapshot) -> dict[str, StreamProgress] | None:
    """Return what a snapshot notes of each stream, itself included; None if it carries no note.

    Raises CorruptFileError if the note cannot be read.
    """
    text = (snapshot.properties or {}).get(PROPERTY)
    if text is None:
        return None
    try:
        return {
            user: StreamProgress(int(identifier), frozenset(map(CommitKind, kinds)), int(snapshot_id))
            for user, (identifier, kinds, snapshot_id) in json.loads(text).items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise CorruptFileError(f"snapshot {snapshot.id}: its note of streams is damaged: {error}") from error


def progress_after(snapshots: Iterable[Snapshot]) -> dict[str, StreamProgress]:
    """Return how far each stream is, from snapshots newest first; no more are looked at than needed.

    A writer that is not ours does not hand the note on, so what lies behind its snapshots is looked for.
    """
    found: dict[str, StreamProgress] = {}
    for snapshot in snapshots:
        noted = noted_progress(snapshot)
        if noted is not None:
            return _joined(noted, found)
        own = own_progress(snapshot)
        if own is not None:
            found = _joined({snapshot.commit_user: own}, found)
        elif (snapshot.writer_version or "").startswith("lockgate-") and not found:
            break  # One of ours without a note: there were no streams.
    return found


def _joined(
    earlier: Mapping[str, StreamProgress], later: Mapping[str, StreamProgress]
) -> dict[str, StreamProgress]:
    joined = dict(earlier)
    for user, progress in later.items():
        joined[user] = joined[user].followed_by(progress) if user in joined else progress
    return joined


def with_progress(
    properties: Mapping[str, str] | None,
    progress: Mapping[str, StreamProgress],
    user: str,
    own: StreamProgress | None,
) -> dict[str, str] | None:
    """Return the properties of a new snapshot: those given, with the note of all streams."""
    joined = _joined(progress, {user: own} if own else {})
    kept = dict(properties or {})
    kept.pop(PROPERTY, None)
    if joined:
        newest = sorted(joined, key=lambda name: joined[name].snapshot_id, reverse=True)[:MOST_STREAMS]
        note = {
            name: [joined[name].identifier, sorted(joined[name].kinds), joined[name].snapshot_id]
            for name in sorted(newest)
        }
        kept[PROPERTY] = json.dumps(note, separators=(",", ":"))
    return kept or None
