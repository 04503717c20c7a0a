"""Files of old and unusual writers, from Apache ORC's examples: skipping does not change the result."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from orc_random_rows import plain

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.read import row_groups
from lockgate.framework.orc.read.predicate import distrusted_columns
from lockgate.pushdown import Comparison, Op, col, filter_table

FOLDER = Path(__file__, "../../../../fixtures/orc/apache").resolve()
FILES = {
    # ORC 0.11 without row index, whose statistics count nothing; then the same of a recent writer.
    "TestOrcFile.testMemoryManagementV11.orc": 0,
    "TestOrcFile.testSargSkipPickupGroupWithoutIndexJava.orc": 0,
    # Hive 0.13: statistics of stripes are good, its row indexes are left alone.
    "orc_index_int_string.orc": 1,
    "over1k_bloom.orc": 1,
    # C++ with wrong hashes in its Bloom filters (ORC-1024).
    "bad_bloom_filter_1.6.11.orc": 1,
}


@pytest.mark.parametrize("name", FILES)
def test_skipping_equals_a_full_scan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "GAP_ROWS", 0)
    rng = random.Random(name)
    skipped = 0
    with EncryptedOrcFile(FOLDER / name, timestamp_unit="us", threads=1) as file:
        everything = file.read()
        flat = [field.name for field in everything.schema if not pa.types.is_nested(field.type)]
        for _ in range(40):
            column = rng.choice(flat)
            value = everything[column][rng.randrange(everything.num_rows)]
            op = rng.choice([Op.EQ, Op.EQ, Op.IN, Op.LT, Op.GE, Op.IS_NULL])
            predicate = Comparison(op, (column,), () if op is Op.IS_NULL else (value,))
            found = file.read(predicate=predicate)
            assert plain(found) == plain(filter_table(everything, predicate)), predicate
            skipped += file.last_read.row_groups_read < file.last_read.row_groups_total
    assert (skipped > 0) is bool(FILES[name])


def test_wrong_hashes_in_bloom_filters_are_ignored() -> None:
    """Versions up to 1.7.0 of the C++ writer computed a wrong hash of 18000000000."""
    with EncryptedOrcFile(FOLDER / "bad_bloom_filter_1.6.11.orc") as file:
        (column,) = (field.name for field in file.schema if field.type == pa.int64())
        assert file.read(predicate=col(column) == 18_000_000_000).num_rows == 1


def test_wrong_statistics_are_ignored() -> None:
    with EncryptedOrcFile(FOLDER / "over1k_bloom.orc") as file:
        tail = file._tail
        decimals = {field.name for field in file.schema if pa.types.is_decimal(field.type)}
        assert distrusted_columns(tail) == frozenset()
        tail.postscript.writer_version = 6
        assert distrusted_columns(tail) == decimals != set()
        tail.postscript.writer_version = 0
        assert distrusted_columns(tail) == set(file.schema.names)
        tail.footer.writer, tail.postscript.writer_version = 1, 6
        assert distrusted_columns(tail) == frozenset()
