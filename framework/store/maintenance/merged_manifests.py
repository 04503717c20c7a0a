"""All manifests of a table written again, into few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.framework.store.commit.commit import commit_messages
from lockgate.framework.store.commit.commit_request import InnerCommit
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot

if TYPE_CHECKING:
    from lockgate.framework.store.handle import TableHandle


def merge_manifests(table: TableHandle) -> Snapshot:
    """Write all manifests again in a COMPACT snapshot, without files that are gone; data files stay."""
    return commit_messages(table, InnerCommit(kind=CommitKind.COMPACT, merges_manifests=True))
