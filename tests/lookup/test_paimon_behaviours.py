"""What Paimon's tests of lookup tables ask for, asked of these, on real tables and without Spark.

By Paimon's `LookupTableTest` (L), `FileStoreLookupFunctionTest` (F), `LookupJoinITCase` (J), and the tests of
its partition loaders (P); next to each test stands which of them it answers. Those answered elsewhere:

* L RefreshRethrowsAFailureFromAnEarlierAsyncRefresh, RefreshExecutorRebuildAfterReopen,
  PKLookupTable[Not]RefreshAsync: `test_service` (failures show, are retried; owners are replaced)
* L/F/J partial, remote and blob cases: there is no partial cache, no query service and no blob type
* F ParseWrongTimePeriodsBlacklist, CheckRefreshInBlacklist: `test_refresh_options`
* F DebugLogRows...: rows are never logged, since they may be secret
* F CompatibilityForOldVersion: splits hold no number of buckets here
* F LookupScanLeak: `test_files_are_closed_after_a_refresh` below
* J RetryLookup, AsyncRetryLookup[SecKeyWithSequenceField]: `integration/test_lookup_choices` (retries)
* J AsyncPartitionRefresh*: `integration/test_lookup_choices` (a new partition is loaded aside)
* J LookupIgnoreScanOptions: `scan.snapshot-id` is no option of a lookup, and is refused by name (below)
* J LookupPartialUpdate*: merge engines but deduplicate are refused by name (below)
* LookupJoinBucketShuffleITCase, BucketShuffle*Test: `integration/test_lookup_choices` (shuffled)
"""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, OptionError, UnsupportedError
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.driver.lookup_tables import (
    LookupTable,
    NoPrimaryKeyLookupTable,
    PrimaryKeyLookupTable,
    SecondaryIndexLookupTable,
    make_spec,
    open_lookup,
)
from lockgate.lookup.spec.lookup_spec import layout_of
from lockgate.lookup.spec.row_selection import RowSelector
from lockgate.pushdown import col

THREE = pa.schema([("f0", pa.int32()), ("f1", pa.int32()), ("f2", pa.int32())])
PLACED = pa.schema([("pt", pa.int32()), ("k", pa.int32()), ("v", pa.int32())])
Make = Callable[..., Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make the table `db.t` with options; its caches lie in the test's folder."""
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")

    def made(
        schema: pa.Schema = THREE, keys: tuple[str, ...] = (), parts: tuple[str, ...] = (), **options: str
    ) -> Table:
        given = {"lookup.cache-dir": str(tmp_path / "cache")}
        given |= {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
        if keys:
            given.setdefault("bucket", "2")
        described = Schema.from_arrow(schema, primary_keys=keys, partition_keys=parts, options=given)
        return catalog.create_table("db.t", described)

    return made


def add(table: Table, *rows: tuple[Any, ...]) -> None:
    names = table.schema.field_names
    columns = [[row[n] for row in rows] for n in range(len(names))]
    table.append(pa.table(dict(zip(names, columns, strict=True)), schema=table.schema.arrow_schema))


def remove(table: Table, key: int) -> None:
    table.delete(pa.table({"f0": pa.array([key], pa.int32())}))


def get(lookup: LookupTable, *key: int | None) -> list[tuple[Any, ...]]:
    kinds = [lookup.layout.key_schema.field(name).type for name in lookup.spec.keys]
    columns = [pa.array([value], kind) for value, kind in zip(key, kinds, strict=True)]
    result = lookup.get(pa.RecordBatch.from_arrays(columns, names=list(lookup.spec.keys)))
    return sorted((tuple(row.values()) for row in result.rows.to_pylist()), key=repr)


ALL = ["f0", "f1", "f2"]


def test_a_key_table_follows_upserts_and_deletes(make: Make) -> None:
    """L PkTable: loaded from 10,000 rows, updated, a row deleted and another added."""
    table = make(keys=("f0",))
    add(table, *((n, n * 11, n * 111) for n in range(1, 10_001)))
    with open_lookup(table, "f0", columns=ALL) as lookup:
        assert type(lookup) is PrimaryKeyLookupTable
        assert get(lookup, 7) == [(7, 77, 777)]
        assert get(lookup, 10_000) == [(10_000, 110_000, 1_110_000)]
        assert get(lookup, 10_001) == []
        add(table, (1, 22, 222))
        assert get(lookup, 1) == [(1, 11, 111)], "before the refresh it is the old row"
        lookup.refresh()
        assert get(lookup, 1) == [(1, 22, 222)]
        remove(table, 1)
        add(table, (20_000, 33, 333))
        lookup.refresh()
        assert get(lookup, 1) == []
        assert get(lookup, 20_000) == [(20_000, 33, 333)]


@pytest.mark.parametrize("columns", [ALL, ["f2"]])
def test_a_sequence_field_decides_even_if_it_is_not_answered(make: Make, columns: list[str]) -> None:
    """L PkTableWithSequenceField, ...Projection; F FallbackUpdatesCacheModeToFull."""
    table = make(keys=("f0",), sequence__field="f1")
    add(table, (1, 22, 222))
    with open_lookup(table, "f0", columns=columns) as lookup:
        add(table, (1, 11, 111))
        lookup.refresh()
        assert get(lookup, 1)[0][-1] == 222, "older than what is there"
        add(table, (1, 33, 333))
        lookup.refresh()
        assert get(lookup, 1)[0][-1] == 333


def test_a_secondary_key_with_a_sequence_field(make: Make) -> None:
    """L SecKeyTableWithSequenceField: an older row neither moves nor changes what is indexed."""
    table = make(keys=("f0",), sequence__field="f2")
    add(table, (1, 11, 200))
    with open_lookup(table, "f1", columns=ALL) as lookup:
        assert type(lookup) is SecondaryIndexLookupTable
        add(table, (1, 22, 100), (2, 11, 100))
        lookup.refresh()
        assert get(lookup, 11) == [(1, 11, 200), (2, 11, 100)]
        assert get(lookup, 22) == []
        add(table, (1, 22, 300))
        lookup.refresh()
        assert (get(lookup, 11), get(lookup, 22)) == ([(2, 11, 100)], [(1, 22, 300)])


def test_a_secondary_key_follows_rows_that_move(make: Make) -> None:
    """L SecKeyTable; J NonPkLookup, LookupUpdateAfterCompoundPredicate."""
    rng = random.Random(7)
    table = make(keys=("f0",))
    rows = [(n, rng.randrange(n), n * 111) for n in range(1, 3001)]
    add(table, *rows)
    with open_lookup(table, "f1", columns=ALL) as lookup:
        for key in range(0, 3000, 97):
            assert get(lookup, key) == sorted((row for row in rows if row[1] == key), key=repr)
        add(table, (1, 5000, 1), (2, 5000, 2))
        lookup.refresh()
        assert get(lookup, 5000) == [(1, 5000, 1), (2, 5000, 2)]
        remove(table, 2)
        add(table, (1, 6000, 1))
        lookup.refresh()
        assert (get(lookup, 5000), get(lookup, 6000)) == ([], [(1, 6000, 1)])


@pytest.mark.parametrize("on", ["f0", "f1"])
@pytest.mark.parametrize("where", [col("f0") < 2, col("f2") < 222])
def test_a_condition_is_kept_up_by_refreshes(make: Make, on: str, where: Any) -> None:
    """L PkTablePkFilter, NonPkFilter, SecKeyTablePkFilter, ...WithCacheRowFilter for key tables."""
    table = make(keys=("f0",))
    add(table, (1, 11, 111), (2, 22, 222))
    with open_lookup(table, on, columns=ALL, where=where) as lookup:
        assert get(lookup, 1 if on == "f0" else 11) == [(1, 11, 111)]
        assert get(lookup, 2 if on == "f0" else 22) == []
        add(table, (0, 0, 0), (3, 33, 333))
        lookup.refresh()
        assert get(lookup, 0) == [(0, 0, 0)]
        assert get(lookup, 3 if on == "f0" else 33) == []
        # A row that ceases to meet the condition leaves, and comes back.
        add(table, (1, 11, 500))
        lookup.refresh()
        by_key = where.field == ("f0",)
        assert get(lookup, 1 if on == "f0" else 11) == ([(1, 11, 500)] if by_key else [])
        add(table, (1, 11, 111))
        lookup.refresh()
        assert get(lookup, 1 if on == "f0" else 11) == [(1, 11, 111)]


def test_a_table_without_a_key_keeps_equal_rows(make: Make) -> None:
    """L NoPrimaryKeyTable, NoPrimaryKeyTableFilter, NoPkTableWithCacheRowFilter."""
    rng = random.Random(8)
    table = make()
    rows = [(n, rng.randrange(n), n * 111) for n in range(1, 3001)]
    add(table, *rows)
    with open_lookup(table, "f1", columns=ALL, where=col("f2") < 300_000) as lookup:
        assert type(lookup) is NoPrimaryKeyLookupTable
        for key in range(0, 3000, 97):
            assert get(lookup, key) == sorted(
                (row for row in rows if row[1] == key and row[2] < 300_000), key=repr
            )
        add(table, (1, 9000, 111), (1, 9000, 111), (2, 9000, 333_333))
        lookup.refresh()
        add(table, (1, 9000, 111))
        lookup.refresh()
        assert get(lookup, 9000) == [(1, 9000, 111)] * 3


def test_keys_in_another_order_than_the_table_has_them(make: Make) -> None:
    """L PartialLookupTableJoinKeyOrder, ...WithProjection; J PartialCacheBucketKeyOrder."""
    table = make(keys=("f0", "f1"), bucket_key="f1")
    add(table, (1, -1, 11), (2, -2, 22))
    with open_lookup(table, ["f1", "f0"], columns=["f2", "f0"]) as lookup:
        assert type(lookup) is PrimaryKeyLookupTable
        assert get(lookup, -1, 1) == [(11, 1)]
        assert get(lookup, 1, -1) == []
        assert get(lookup, -2, None) == []


def test_an_empty_table_answers_once_it_has_rows(make: Make) -> None:
    """J LookupEmptyTable."""
    table = make(keys=("f0",))
    lookup = open_lookup(table, "f0", columns=["f1"])
    assert lookup.refresh() is None
    add(table, (1, 11, 111))
    lookup.refresh()
    assert get(lookup, 1) == [(11,)]
    assert get(lookup, 2) == []
    lookup.close()


def test_an_overwrite_is_followed(make: Make) -> None:
    """L LookupDataTableScanHandleOverwrite; J OverwriteNonPkDimTable."""
    table = make(PLACED, parts=("pt",))
    add(table, (1, 1, 11), (2, 2, 22))
    with open_lookup(table, "k", columns=["pt", "v"]) as lookup:
        assert get(lookup, 2) == [(2, 22)]
        table.overwrite(pa.table({"pt": [2], "k": [3], "v": [33]}, schema=PLACED), {"pt": 2})
        info = lookup.refresh()
        assert info is not None
        assert info.full_load
        assert [get(lookup, key) for key in (1, 2, 3)] == [[(1, 11)], [], [(2, 33)]]


def test_a_snapshot_that_expired_concurrently_costs_a_full_load(make: Make) -> None:
    """F LookupExpiredSnapshot."""
    table = make(keys=("f0",))
    add(table, (1, 11, 111))
    with open_lookup(table, "f0", columns=["f1"]) as lookup:
        for n in range(2, 6):
            add(table, (n, n * 11, n * 111))
        expire_snapshots(table, retain_max=1, retain_min=1)
        info = lookup.refresh()
        assert info is not None
        assert info.full_load
        assert [get(lookup, n) for n in range(1, 6)] == [[(n * 11,)] for n in range(1, 6)]


@pytest.mark.parametrize("on", ["f0", "f1"])
def test_many_pending_snapshots_cost_a_full_load(make: Make, on: str) -> None:
    """F LookupTableWithFullLoad."""
    table = make(keys=("f0",), lookup__refresh__full_load_threshold="3")
    add(table, (1, 1, 1))
    with open_lookup(table, on, columns=["f2"]) as lookup:
        add(table, (2, 2, 2))
        info = lookup.refresh()
        assert info is not None
        assert not info.full_load
        for n in range(3, 7):
            add(table, (n, n, n))
        info = lookup.refresh()
        assert info is not None
        assert info.full_load
        assert get(lookup, 6) == [(6,)]


def test_files_are_closed_after_a_refresh(make: Make, tmp_path: Path) -> None:
    """F LookupScanLeak, LookupDynamicPartition: no file of the table stays open."""
    table = make(PLACED, parts=("pt",), scan__partitions="max_pt()")
    warehouse = str(tmp_path / "warehouse")

    def opened() -> list[str]:
        links = []
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names alone; each may vanish
            path = f"/proc/self/fd/{name}"
            links += [os.readlink(path)] if os.path.lexists(path) else []  # noqa: PTH115 - as above
        return [link for link in links if link.startswith(warehouse)]

    with open_lookup(table, "k", columns=["v"]) as lookup:
        for part in range(1, 4):
            add(table, *((part, k, part * 100 + k) for k in range(10)))
            lookup.refresh()
            assert get(lookup, 5) == [(part * 100 + 5,)]
            assert opened() == []


# --- partitions ----------------------------------------------------------------------------------------

TWO = pa.schema([("pt1", pa.string()), ("pt2", pa.int32()), ("k", pa.int32()), ("v", pa.int32())])


def test_the_newest_partitions(make: Make) -> None:
    """P MaxTwoPartitions..., MaxPartition; J LookupMaxPtDynamicBucketTable, MaxPtAndOverwrite (quick)."""
    table = make(PLACED, parts=("pt",))
    add(table, (1, 1, 101), (2, 1, 201), (2, 2, 202))
    one = open_lookup(table, "k", columns=["v"], options={"scan.partitions": "max_pt()"})
    two = open_lookup(table, "k", columns=["v"], options={"scan.partitions": "MAX_TWO_PT()"})
    assert (get(one, 1), get(two, 1)) == ([(201,)], [(101,), (201,)])
    table.overwrite(pa.table({"pt": [2], "k": [1], "v": [211]}, schema=PLACED), {"pt": 2})
    table.overwrite(pa.table({"pt": [1], "k": [1], "v": [111]}, schema=PLACED), {"pt": 1})
    one.refresh()
    two.refresh()
    assert (get(one, 1), get(two, 1)) == ([(211,)], [(111,), (211,)])
    add(table, (3, 1, 301))
    one.refresh()
    two.refresh()
    assert (get(one, 1), get(two, 1)) == ([(301,)], [(211,), (301,)])
    one.close()
    two.close()


def test_an_interval_keeps_the_partitions_chosen_last(make: Make) -> None:
    """J MaxPtAndOverwrite (slow): within the interval the partitions are those chosen last."""
    table = make(PLACED, parts=("pt",))
    add(table, (1, 1, 101))
    for interval, newest in (("1 h", "pt = 1"), ("0 s", "pt = 2")):
        given = {"scan.partitions": "max_pt()", "lookup.dynamic-partition.refresh-interval": interval}
        choice = RowSelector(table, make_spec(table, "k", options=given))
        assert choice.at(table.snapshot(1)).mark == "pt = 1"
        if len(table.snapshots()) == 1:
            add(table, (2, 1, 201))
        assert choice.at(table.snapshot(2)).mark == newest


def test_partitions_by_level(make: Make) -> None:
    """P DynamicPartitionLevelLoader: GetMaxPartitions, NullPartition; J LookupMultiPartitionLevelMaxPt."""
    table = make(TWO, parts=("pt1", "pt2"))
    add(table, ("2024", 15, 1, 1), ("2024", 16, 1, 2), ("2023", 99, 1, 3), (None, 200, 1, 4))
    by_year = open_lookup(table, "k", columns=["v"], options={"scan.partitions": "pt1=max_pt()"})
    both = {"scan.partitions": "pt1=max_pt(),pt2=max_pt()"}
    by_both = open_lookup(table, "k", columns=["v"], options=both)
    assert (get(by_year, 1), get(by_both, 1)) == ([(1,), (2,)], [(2,)])
    by_year.close()
    by_both.close()


def test_named_partitions(make: Make) -> None:
    """J LookupSpecifiedPartition; and a null one by the name that its folder has."""
    table = make(TWO, parts=("pt1", "pt2"))
    add(table, ("a", 1, 1, 10), ("b", 1, 1, 11), ("c", 1, 1, 12), ("c", 2, 1, 13), (None, 1, 1, 14))
    for text, values in (
        ("pt1=b;pt1=c", [11, 12, 13]),
        ("pt1=c,pt2=1", [12]),
        ("pt1=__DEFAULT_PARTITION__", [14]),
        ("pt1=nowhere", []),
    ):
        with open_lookup(table, "k", columns=["v"], options={"scan.partitions": text}) as lookup:
            assert get(lookup, 1) == [(value,) for value in values]


def test_what_cannot_be_chosen_is_refused(make: Make) -> None:
    """P WrongConfig; J LookupIgnoreScanOptions."""
    table = make(TWO, parts=("pt1", "pt2"))
    with pytest.raises(InputError, match="not to an earlier column"):
        open_lookup(table, "k", options={"scan.partitions": "pt2=max_pt()"})
    with pytest.raises(OptionError, match=r"max_pt\(\) for each column named"):
        open_lookup(table, "k", options={"scan.partitions": "pt1=max_pt(),pt2=3"})
    with pytest.raises(OptionError, match=r"unknown lookup option 'scan\.snapshot-id'"):
        open_lookup(table, "k", options={"scan.snapshot-id": "2"})


def test_a_plain_table_has_no_partitions_to_choose(make: Make) -> None:
    """P ScanPartitionsOnNonPartitionedTable."""
    with pytest.raises(InputError, match=r"for partitioned tables, which db\.t is not"):
        open_lookup(make(), "f0", options={"scan.partitions": "max_pt()"})


def test_other_merge_engines_are_refused(make: Make) -> None:
    """J LookupPartialUpdateIllegal."""
    table = make(keys=("f0",))
    options = {**table.schema.options, "merge-engine": "partial-update"}
    schema = dataclasses.replace(table.schema, options=options)
    with pytest.raises(UnsupportedError, match="lookups follow deduplicate tables only"):
        layout_of(make_spec(table, "f0"), schema)
