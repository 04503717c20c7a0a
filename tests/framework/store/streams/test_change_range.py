"""Changes of a range: what tells them, commit by commit, and which ranges cannot be told."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import InputError, SnapshotNotFoundError, UnsupportedError
from lockgate.framework.store import Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.streams.change_range import changed_files, range_of

MakeTable = Callable[..., Table]


def make_rows(*ids: int, v: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [v] * len(ids)})


def test_added_rows_need_no_states(make_table: MakeTable) -> None:
    table = make_table()
    for number in range(1, 4):
        table.append(make_rows(number))
    found = range_of(table, 1, None)
    assert (found.after, found.upto, found.has_states) == (1, 3, False)
    assert [(each.snapshot.id, each.kind) for each in changed_files(table, found)] == [(2, None), (3, None)]


def test_the_states_around_a_commit_tell_what_it_did_to_keys(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(make_rows(1))
    table.append(make_rows(1, v="b"))
    found = range_of(table, None, None)
    assert (found.after, found.upto, found.has_states) == (0, 2, True)
    files = changed_files(table, found)
    assert [(each.snapshot.id, each.kind, len(each.split.files)) for each in files] == [
        (1, 0, 1),
        (2, 3, 1),
        (2, 0, 2),
    ]


def test_ranges_that_cannot_be_told(make_table: MakeTable) -> None:
    table = make_table()
    for number in range(1, 4):
        table.overwrite(make_rows(number))
    with pytest.raises(UnsupportedError, match=r"snapshot 1 of table db\.t replaced rows"):
        range_of(table, 0, 2)
    assert range_of(table, 0, 2, keeps_rows_that_stayed=True).has_states
    with pytest.raises(InputError, match="ends before it begins"):
        range_of(table, 3, 2)
    with pytest.raises(InputError, match="its newest one is 3"):
        range_of(table, 0, 4)
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=2**62)
    with pytest.raises(SnapshotNotFoundError, match=r"snapshot 1 .* expired"):
        range_of(table, 0, 3, keeps_rows_that_stayed=True)
