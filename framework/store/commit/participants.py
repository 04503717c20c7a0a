"""Participants of a commit: plugins that are called before it, and afterwards with its outcome."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lockgate.framework.plugins import IndexFileChanges, IndexParticipant, ManifestParticipant, plugins
from lockgate.framework.store.commit.commit_request import PreparedCommit
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.metadata.snapshot import Snapshot

_log = logging.getLogger("lockgate.store")


def with_participants(
    table: TableHandle,
    request: PreparedCommit,
    commit: Callable[[Sequence[IndexFileChanges], Sequence[ManifestParticipant]], Snapshot],
) -> Snapshot:
    """Run a commit with all who take part in it, and return its snapshot.

    `commit` gets their index files, and those who make some for the manifests of each attempt.

    What a participant raises in `prepare` ends the commit before it is tried. What it raises afterwards is
    logged: the commit is made, or has failed for another reason, which is what the caller must hear.
    """
    every = plugins().commit_participants(table)
    asked = []
    try:
        for each in every:
            asked.append(each)
            each.prepare(request)
        makers = [each for each in every if isinstance(each, IndexParticipant)]
        of_manifests = [each for each in every if isinstance(each, ManifestParticipant)]
        snapshot = commit([each.index_files() for each in makers], of_manifests)
    except BaseException:
        for each in reversed(asked):
            _tell(each.aborted)
        raise
    for each in every:
        _tell(lambda each=each: each.committed(snapshot))  # type: ignore[misc]  # the default binds it
    return snapshot


def _tell(notice: Callable[[], None]) -> None:
    try:
        notice()
    except Exception:  # a plugin may raise anything
        _log.warning("a participant failed after the commit", exc_info=True)
