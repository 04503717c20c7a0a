"""A stream's epoch is committed once, even if the snapshot that did it has expired."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from lockgate.errors import CorruptFileError
from lockgate.framework.store.commit.stream_progress import (
    MOST_STREAMS,
    PROPERTY,
    StreamProgress,
    noted_progress,
    progress_after,
    with_progress,
)
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot


def _expire_all_but_the_last(table) -> None:
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=0)


def test_an_epoch_is_not_repeated_after_its_snapshot_expired(make_table, data_file, message) -> None:
    table = make_table()
    table.commit([message(data_file("a"))], user="query", identifier=0)
    table.commit([message(data_file("b"))], user="query", identifier=1)
    for number in range(3):
        table.commit([message(data_file(f"batch-{number}"))])
    _expire_all_but_the_last(table)
    assert table.snapshot_files.ids() == [5]
    assert table.commit([message(data_file("b"))], user="query", identifier=1).id == 5
    assert table.commit([message(data_file("a"))], user="query", identifier=0).id == 5
    assert table.commit([message(data_file("c"))], user="query", identifier=2).id == 6
    assert table.latest_snapshot().id == 6


def test_commits_of_one_identifier_are_told_apart_by_their_kind_after_expiry(
    make_table, data_file, message
) -> None:
    table = make_table()
    table.commit([message(data_file("a"))], user="query", identifier=7)
    table.commit(
        [message(data_file("b"), deleted=(data_file("a"),))], user="query", identifier=7, kind="COMPACT"
    )
    table.commit([message(data_file("c"))])
    _expire_all_but_the_last(table)
    assert table.commit([message(data_file("a"))], user="query", identifier=7).id == 3
    assert (
        table.commit(
            [message(data_file("b"), deleted=(data_file("a"),))], user="query", identifier=7, kind="COMPACT"
        ).id
        == 3
    )


def test_the_note_passes_over_a_snapshot_of_another_writer(make_table, data_file, message) -> None:
    table = make_table()
    table.commit([message(data_file("a"))], user="query", identifier=4)
    _as_foreign(table, table.commit([message(data_file("b"))]))
    table.commit([message(data_file("c"))])
    _expire_all_but_the_last(table)
    assert table.commit([message(data_file("a"))], user="query", identifier=4).id == 3


def _as_foreign(table, snapshot: Snapshot) -> None:
    """Let a snapshot be one that another writer made, which knows nothing of notes."""
    other = dataclasses.replace(snapshot, properties=None, writer_version="other-1")
    Path(table.snapshot_files.path(snapshot.id)).write_bytes(other.to_bytes())


def test_tables_without_streams_carry_no_note(make_table, data_file, message) -> None:
    table = make_table()
    table.commit([message(data_file("a"))])
    assert table.commit([message(data_file("b"))]).properties is None


def test_no_more_snapshots_are_looked_at_than_needed(make_table, data_file, message) -> None:
    table = make_table()
    first = table.commit([message(data_file("a"))], user="query", identifier=0)

    def snapshots():
        yield first
        raise AssertionError("the note of the newest snapshot is enough")

    assert progress_after(snapshots()) == {"query": StreamProgress(0, frozenset({CommitKind.APPEND}), 1)}


def test_streams_of_long_ago_are_forgotten() -> None:
    progress = {
        f"query-{number}": StreamProgress(0, frozenset({CommitKind.APPEND}), number) for number in range(500)
    }
    properties = with_progress(
        {"other": "kept"}, progress, "new", StreamProgress(0, frozenset({CommitKind.APPEND}), 501)
    )
    assert properties is not None
    assert properties["other"] == "kept"
    kept = json.loads(properties[PROPERTY])
    assert len(kept) == MOST_STREAMS
    assert "new" in kept
    assert "query-0" not in kept


@pytest.mark.parametrize("note", ["{", "[]", '{"query": 1}', '{"query": [1, ["NONE"], 1]}'])
def test_a_damaged_note_is_an_error(make_table, data_file, message, note: str) -> None:
    table = make_table()
    snapshot = table.commit([message(data_file("a"))])
    with pytest.raises(CorruptFileError, match="note of streams"):
        noted_progress(dataclasses.replace(snapshot, properties={PROPERTY: note}))
