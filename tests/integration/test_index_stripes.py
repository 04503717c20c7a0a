"""Stripes that the index database leaves of a file: tasks and the driver read no others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from point_reads import SIZE, collected, on_driver, rows

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store.scan.matching_rows import stripe_ranges
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.store.write import bucket_writer
from lockgate.pushdown import col

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake
    from lockgate.framework.store import Table

Named = Callable[[str], str]
ROWS = 40_000


@pytest.fixture(scope="module")
def striped(spark: SparkSession, lake: Lake, shared_table: Named) -> str:
    """One file of many stripes; each value of `rare` is in one row."""
    name = shared_table("striped")
    spark.sql(
        f"CREATE TABLE {name} (id INT, rare STRING, text STRING) TBLPROPERTIES "
        "('index.values.columns' = 'rare', 'index.block-rows' = '1000')"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_writer, "_STRIPE_SIZE", 2**16)
        _store(lake, name).append(_rows())
    return name


def _rows() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int32()),
            "rare": [f"r{(each * 7919) % 1000}-{each // 1000}" for each in numbers],
            "text": [hashlib.sha256(b"%d" % each).hexdigest() for each in numbers],
        }
    )


def _store(lake: Lake, name: str) -> Table:
    return lake.catalog.load_table(name.split(".", 1)[1])


def _ranges(table: Table, value: str) -> tuple[int, int, int]:
    """Return the bytes and rows of the stripes to read, and the bytes of the file."""
    plan = plan_scan(table, ReadRequest(predicate=col("rare") == value))
    (found,) = stripe_ranges(table, plan).values()
    return sum(each.length for each in found), sum(each.rows for each in found), plan.total_bytes


def test_one_stripe_of_a_value_is_left(lake: Lake, striped: str) -> None:
    table = _store(lake, striped)
    (path,) = Path(table.location).rglob("data-*.orc")
    with EncryptedOrcFile(path) as file:
        assert file.num_stripes >= 5
        size, count, total = _ranges(table, "r500-20")
        assert count in file.stripe_rows
        assert size < total / 3


@pytest.mark.parametrize(("value", "count"), [("r500-20", 1), ("r0-0", 1), ("r999-39", 1), ("r1000-1", 0)])
def test_the_driver_reads_a_stripe_of_a_large_file(
    spark: SparkSession, lake: Lake, striped: str, value: str, count: int
) -> None:
    table = _store(lake, striped)
    most = table.scan().total_bytes // 2
    query = "SELECT *, _ROW_INDEX FROM {0} WITH (`{1}` = '{2} b') WHERE rare = '{3}'"
    frame = spark.sql(query.format(striped, SIZE, most, value))
    assert on_driver(frame)
    found, jobs = collected(spark, frame)
    assert (len(found), jobs) == (count, 0)
    tasks = spark.sql(query.format(striped, SIZE, 0, value))
    assert not on_driver(tasks)
    assert found == rows(tasks)
    assert all(row.id == row._ROW_INDEX for row in frame.collect())
    assert len(spark.sql(f"SELECT * FROM {striped} WHERE concat(rare, '') = '{value}'").collect()) == count


def test_small_pieces_of_kept_stripes_are_read_once(spark: SparkSession, striped: str) -> None:
    """However small tasks are, each stripe is read by one of them."""
    for size in ("20000 b", "150000 b", "1 gb"):
        frame = spark.sql(
            f"SELECT id FROM {striped} WITH (`{SIZE}` = '0', `source.split.target-size` = '{size}') "
            "WHERE rare IN ('r0-0', 'r500-20', 'r999-39')"
        )
        assert len(frame.collect()) == 3, size


# A statement, the rows that it changes, and what becomes of them (None: they are deleted). Each finds its
# rows by one kind, in one file of its own, of which the index leaves few stripes.
CHANGES = {
    "values": ("UPDATE {0} SET text = 'new' WHERE rare = '0r500-3'", {"0r500-3"}, "new"),
    "ngrams": ("DELETE FROM {0} WHERE text LIKE '%1-517-%'", {"1r517-0"}, None),
    "words": ("UPDATE {0} SET text = 'new' WHERE lake.sys.match(mark, 'seen2x40')", {"2r40-0"}, "new"),
    "bloom": ("DELETE FROM {0} WHERE few = 'few3' AND id < 0 OR rare = '3r8-4'", {"3r8-4"}, None),
    "merge": (
        "MERGE INTO {0} t USING (SELECT '4r9-2' AS rare) s ON t.rare = s.rare "
        "WHEN MATCHED THEN UPDATE SET text = 'new'",
        {"4r9-2"},
        "new",
    ),
    "merge deletes": (
        "MERGE INTO {0} t USING (SELECT '5r9-2' AS rare) s ON t.rare = s.rare WHEN MATCHED THEN DELETE",
        {"5r9-2"},
        None,
    ),
}
CHANGED_ROWS = 6_000


def _changed_file(number: int) -> pa.Table:
    ids = range(number * CHANGED_ROWS, (number + 1) * CHANGED_ROWS)
    places = [(each % CHANGED_ROWS * 7919 % 1000, each % CHANGED_ROWS // 1000) for each in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "rare": [f"{number}r{value}-{block}" for value, block in places],
            "few": [f"few{number + block % 2}" for _, block in places],
            "mark": [f"seen{number}x{value if not block else 'y'} {block}" for value, block in places],
            "text": [
                f"{number}-{value if not block else 'y'}-{hashlib.sha256(b'%d' % each).hexdigest()}"
                for each, (value, block) in zip(ids, places, strict=True)
            ],
        }
    )


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rewritten_files_keep_all_rows(spark: SparkSession, lake: Lake, table: Named, vectors: str) -> None:
    """UPDATE, DELETE and MERGE write files again with all their rows, whatever stripes a filter leaves."""
    name = table("striped_changes")
    spark.sql(
        f"CREATE TABLE {name} (id INT, rare STRING, few STRING, mark STRING, text STRING) TBLPROPERTIES ("
        f"'deletion-vectors.enabled' = '{vectors}', 'index.values.columns' = 'rare', "
        "'index.ngrams.columns' = 'text', 'index.words.columns' = 'mark', 'index.bloom.columns' = 'few', "
        "'index.block-rows' = '1000')"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_writer, "_STRIPE_SIZE", 2**16)
        for number in range(len(CHANGES)):
            _store(lake, name).append(_changed_file(number))
    for path in Path(_store(lake, name).location).rglob("data-*.orc"):
        with EncryptedOrcFile(path) as file:
            assert file.num_stripes >= 3
    expected = {row["id"]: row for number in range(len(CHANGES)) for row in _changed_file(number).to_pylist()}
    for kind, (statement, rares, text) in CHANGES.items():
        spark.sql(statement.format(name))
        changed = [row for row in expected.values() if row["rare"] in rares]
        assert len(changed) == 1, kind
        for row in changed:
            expected.pop(row["id"])
            if text is not None:
                expected[row["id"]] = {**row, "text": text}
        found = spark.table(name).toArrow().sort_by("id")
        assert found.to_pylist() == [expected[each] for each in sorted(expected)], kind


def test_compaction_and_overwrites_keep_all_rows(spark: SparkSession, lake: Lake, table: Named) -> None:
    name = table("striped_compaction")
    spark.sql(
        f"CREATE TABLE {name} (id INT, rare STRING, few STRING, mark STRING, text STRING) TBLPROPERTIES ("
        "'index.values.columns' = 'rare', 'index.block-rows' = '1000')"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_writer, "_STRIPE_SIZE", 2**16)
        for number in range(2):
            _store(lake, name).append(_changed_file(number))
    spark.sql(
        f"CALL lake.sys.compact(table => '{name.removeprefix('lake.')}', order_strategy => 'order', "
        "order_by => 'rare')"
    )
    assert spark.table(name).count() == 2 * CHANGED_ROWS
    spark.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE rare = '1r500-3' OR rare = '0r500-3'")
    assert sorted(row.rare for row in spark.table(name).collect()) == ["0r500-3", "1r500-3"]
