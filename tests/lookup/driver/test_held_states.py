"""The record of the states that a driver's batches hold, in the folder of the cache."""

from __future__ import annotations

import json
from pathlib import Path

from lookup_world import World, rows


def test_a_removed_record_is_written_by_the_next_batch(world: World) -> None:
    """A record that is there and says the same is not: a batch writes no file that it can do without."""
    table = world.create()
    table.append(rows(range(10), 1))
    lookup = world.lookup()
    assert lookup.pin("q", 0) == 1
    (record,) = (Path(lookup.directory.path) / "readers").glob("[!.]*")
    assert json.loads(record.read_text()) == [1]
    record.unlink()
    assert lookup.pin("q", 1) == 1
    assert json.loads(record.read_text()) == [1]
