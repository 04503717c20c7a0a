"""Streams of Paimon's own tables: each gives the rows that Paimon's streaming read gives, or is refused."""

from __future__ import annotations

import pytest
from exact_rows import Rows, in_order
from stream_rows import batches, rows_of, start
from zoo import expected, unpack

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog
from lockgate.framework.store.streams.stream import TableStream

# What is refused, and by which words: without a changelog, these tables' files hold rows that no table had.
REFUSED = {
    **dict.fromkeys(
        ("aggregation", "first_row", "ignore_retract", "partial", "retract"), "'merge-engine' = "
    ),
    "data_evolution": "data-evolution.enabled",
    "fallback_branch": "scan.fallback-branch",
    "postpone": "bucket = -2",
}
REFUSED_HERE = {
    name: words
    for name, each in expected().items()
    for start_of_name, words in REFUSED.items()
    if "changes" in each and name.startswith(start_of_name)
}
FOLLOWED = sorted(
    name for name, each in expected().items() if each.get("changes") and name not in REFUSED_HERE
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return Catalog(unpack(tmp_path_factory.mktemp("zoo")))


def as_state(rows: Rows) -> Rows:
    """Paimon gives a row of a state the kind that it was written with."""
    return [["+I" if row[0] == "+U" else row[0], *row[1:]] for row in rows]


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_stream_gives_what_paimons_gives(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(f"zoo.{name}")
    left_out = {"streaming__read__overwrite": "false"}
    changes = expected()[name]["changes"]
    first = str(changes[0]["next_snapshot_before"])
    begin = start(table, scan_mode="from-snapshot", scan_snapshot__id=first, **left_out)
    found: Rows = [row for _, rows in batches(table, begin, **left_out) for row in rows]
    assert in_order(found) == in_order([row for each in changes for row in each["rows"]])


def test_changes_that_outlived_their_snapshots_are_read(catalog: Catalog) -> None:
    table = catalog.load_table("zoo.changelog_decoupled")
    assert table.snapshot_files.ids()[0] > 1
    found = [row for _, rows in batches(table, start(table, scan_snapshot__id="1")) for row in rows]
    model: dict[int, str] = {}
    for kind, key, value in found:
        if kind in ("+I", "+U"):
            model[key] = value
        else:
            assert model.pop(key) == value
    assert (
        sorted([key, value] for key, value in model.items())
        == expected()["changelog_lookup"]["snapshots"][max(expected()["changelog_lookup"]["snapshots"])][
            "rows"
        ]
    )


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_stream_begins_with_the_state_that_paimons_begins_with(catalog: Catalog, name: str) -> None:
    table = catalog.load_table(f"zoo.{name}")
    stream = TableStream(table, {}, kinds=True)
    begin = stream.start()
    rows = rows_of(table, stream.batch(begin, stream.end_of_batch(begin)), kinds=True)
    wanted = [row for each in expected()[name]["follow_from_full"] for row in each["rows"]]
    assert in_order(as_state(rows)) == in_order(as_state(wanted))


@pytest.mark.parametrize("name", sorted(REFUSED_HERE))
def test_a_table_is_refused_by_name(catalog: Catalog, name: str) -> None:
    with pytest.raises(LockgateError, match=REFUSED_HERE[name]):
        TableStream(catalog.load_table(f"zoo.{name}"), {}, kinds=True)
