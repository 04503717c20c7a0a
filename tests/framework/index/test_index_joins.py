"""Files without a partner in a join: those that the hashes of both sides tell, and never one too many."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.index.database import joins
from lockgate.framework.index.database.index_segments import entries_of
from lockgate.framework.index.database.segment_pruner import ByIndex
from lockgate.framework.plugins import CandidateFile, JoinedColumn
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import ChangeType
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.store.pruning.candidates import candidate_of
from lockgate.framework.types import decimal
from lockgate.procedures.arguments import with_options
from lockgate.pushdown import Predicate, col

INDEXED = {"index.values.columns": "k"}


@pytest.fixture(autouse=True)
def few_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "FEW_FILES", 0)


def make(
    catalog: Catalog,
    name: str,
    files: Sequence[Sequence[object]],
    kind: pa.DataType | None = None,
    options: dict[str, str] | None = None,
) -> Table:
    """Make a table of one column, each list a file."""
    schema = pa.schema([("k", kind or pa.string())])
    given = INDEXED if options is None else options
    table = catalog.create_table(f"db.{name}", Schema.from_arrow(schema, options=given))
    for values in files:
        table.append(pa.table({"k": pa.array(values, kind or pa.string())}))
    return table


def candidates(table: Table, predicate: Predicate | None = None) -> list[CandidateFile]:
    planned = table.scan(predicate)
    snapshot = table.latest_snapshot()
    manifest = None if snapshot is None else snapshot.index_manifest
    found = [(split, file) for split in planned.splits for file in split.files]
    return [candidate_of(table, table.schema, (), split.bucket, file, manifest) for split, file in found]


def joined(own: Table, *others: Table, predicate: Predicate | None = None) -> list[bool]:
    """Ask which files of a table may find partners in others, in the order in which they were written."""
    columns = [JoinedColumn("k", other, "k", candidates(other, predicate)) for other in others]
    files = candidates(own)
    order = {
        entry.file.file_name: n for n, entry in enumerate(own.manifests.live_files(own.latest_snapshot()))
    }
    answers = dict(
        zip((f.path.rpartition("/")[2] for f in files), ByIndex(own).joins(files, columns), strict=True)
    )
    return [answers[name] for name in sorted(answers, key=order.__getitem__)]


def test_joins_keep_files_with_common_values(catalog: Catalog) -> None:
    own = make(catalog, "own", [["a", "b"], ["c"], ["d", None], [None]])
    other = make(catalog, "other", [["b", "x"], ["d"], [None]])
    assert joined(own, other) == [True, False, True, False]
    assert joined(other, own) == [True, True, False]
    # Only what the query reads of the other side counts.
    assert joined(own, other, predicate=col("k") == "d") == [False, False, True, False]
    third = make(catalog, "third", [["a"], ["c"]])
    assert joined(own, other, third) == [True, False, False, False]


def test_a_file_without_an_index_may_have_any_value(catalog: Catalog) -> None:
    own = make(catalog, "own", [["a"], ["b"]])
    other = make(catalog, "other", [["a"]])
    unindexed = make(catalog, "unindexed", [["z"]], options={})
    assert joined(own, other) == [True, False]
    assert joined(own, unindexed) == [True, True]
    assert joined(unindexed, other) == [True]
    _append_unindexed(own, "c")
    assert joined(own, other) == [True, False, True]
    _append_unindexed(other, "b")
    assert joined(own, other) == [True, True, True]


def _append_unindexed(table: Table, value: str) -> None:
    """Append as an engine does that knows no index."""
    plain = with_options(table, {"index.write.enabled": "false"}, ["index.write.enabled"])
    plain.append(pa.table({"k": [value]}))


class Unseen(list[CandidateFile]):
    """Files that nobody has a reason to plan."""

    def __iter__(self) -> Any:
        raise AssertionError("planned in vain")

    __len__ = __iter__


@pytest.mark.parametrize(
    ("own_options", "other_options"),
    [
        (INDEXED, {**INDEXED, "index.read.enabled": "false"}),
        (INDEXED, {}),
        ({**INDEXED, "index.write.enabled": "false"}, INDEXED),
    ],
)
def test_sides_without_an_index_are_not_planned(
    catalog: Catalog, own_options: dict[str, str], other_options: dict[str, str]
) -> None:
    own = make(catalog, "own", [["a"], ["b"]], options=own_options)
    other = make(catalog, "other", [["c"]], options=other_options)
    columns = [JoinedColumn("k", other, "k", Unseen())]
    assert ByIndex(own).joins(candidates(own), columns) == [True, True]


def test_damaged_segments_skip_no_joined_files(catalog: Catalog, caplog: pytest.LogCaptureFixture) -> None:
    own = make(catalog, "own", [["a"], ["b"]])
    other = make(catalog, "other", [["a"]])
    (entry,) = entries_of(other, other.latest_snapshot())
    path = Path(index_path(other, entry))
    data = path.read_bytes()
    path.write_bytes(data[:20] + bytes([data[20] ^ 1]) + data[21:])
    assert joined(own, other) == [True, True]
    assert "damaged segment" in caplog.text


@pytest.mark.parametrize(
    ("kinds", "compared"),
    [
        ((pa.int32(), pa.int32()), True),
        ((pa.int64(), pa.int32()), False),
        ((pa.float64(), pa.float64()), False),
        ((pa.timestamp("ms"), pa.timestamp("ms")), False),
        ((pa.date32(), pa.date32()), True),
    ],
)
def test_joins_compare_only_types_with_equal_hashes(
    catalog: Catalog, kinds: tuple[pa.DataType, pa.DataType], compared: bool
) -> None:
    own = make(catalog, "own", [[1], [2]], kinds[0])
    other = make(catalog, "other", [[1]], kinds[1])
    assert joined(own, other) == [True, not compared]


def test_decimals_of_an_older_scale_are_not_compared(catalog: Catalog) -> None:
    """1.00 and 1.0000 are equal, and their digits are not."""
    narrow, wide = pa.decimal128(10, 2), pa.decimal128(12, 4)
    make(catalog, "own", [[Decimal("1.00")], [Decimal("2.00")]], narrow)
    own = catalog.alter_table("db.own", [ChangeType(("k",), decimal(12, 4))])
    own.append(pa.table({"k": pa.array([Decimal("3.0000")], wide)}))
    other = make(catalog, "other", [[Decimal("1.0000")]], wide)
    assert joined(own, other) == [True, True, False]
    # A file that nobody can compare may hold a partner of each row.
    assert joined(other, own) == [True]


def test_too_many_keys_are_not_compared(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheapest join comes first; those that would take too long tell nothing."""
    own = make(catalog, "own", [["a"], ["b"], ["c"]])
    cheap, dear = make(catalog, "cheap", [["a"], ["b"]]), make(catalog, "dear", [["a", "e", "f", "g"]])
    assert joined(own, dear, cheap) == [True, False, False]
    monkeypatch.setattr(joins, "MAX_PAIRS", 5)
    assert joined(own, dear, cheap) == [True, True, False]


FILES = st.lists(st.lists(st.none() | st.sampled_from("abcdefgh"), max_size=4), min_size=1, max_size=4)


@settings(max_examples=examples(25), deadline=None)
@given(own=FILES, others=st.lists(FILES, min_size=1, max_size=2))
def test_joins_lose_no_matching_row(
    own: list[list[str | None]], others: list[list[list[str | None]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        written = [values for values in own if values]
        table = make(catalog, "own", written)
        tables = [make(catalog, f"other{n}", [v for v in each if v]) for n, each in enumerate(others)]
        found = joined(table, *tables)
        there = [{value for file in each for value in file} - {None} for each in others]
        expected = [all(keys.intersection(values) for keys in there) for values in written]
        assert found == expected
