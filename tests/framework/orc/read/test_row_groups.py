"""Skipping files, stripes and row groups gives the same result as a full scan with a filter."""

from __future__ import annotations

import io
import random
import warnings
from decimal import Decimal
from typing import Any

import orc_random_rows as random_rows
import pyarrow as pa
import pyarrow.orc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orc_random_rows import FLAT, plain

from lockgate.errors import CorruptFileError, MaskedDataWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format.layout import BLOOM_FILTERS
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.orc.read import row_groups
from lockgate.framework.orc.read.read_report import ReadReport
from lockgate.pushdown import Predicate, col, filter_table

CODECS = ["none", "zlib", "snappy", "zstd", "lz4"]
KEYS = MemoryKeyProvider({"k@0": bytes(range(16))})


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    write_table(table, sink, keys=KEYS, **options)
    return sink.getvalue()


def read(
    data: bytes, predicate: Predicate | None, columns: list[str] | None = None, **options: Any
) -> tuple[pa.Table, ReadReport]:
    with EncryptedOrcFile(data, **{"keys": KEYS, "timestamp_unit": "us", **options}) as file:
        table = file.read(columns, predicate)
        return table, file.last_read


@pytest.fixture(autouse=True)
def no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable reading of gaps, since the row groups of these tests are small."""
    monkeypatch.setattr(row_groups, "GAP_ROWS", 0)


def check_skipping(data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 2**32), label="seed"))
    names = data.draw(st.lists(st.sampled_from(sorted(FLAT)), min_size=1, max_size=5, unique=True))
    table = random_rows.table(rng, data.draw(st.sampled_from([0, 1, 99, 400, 1500])), names)
    encrypted = data.draw(st.sets(st.sampled_from(table.schema.names)), label="encrypted")
    hashed = [name for name in table.schema.names if name not in ("flag", "tiny")]
    content = written(
        table,
        encrypt=f"k:{','.join(sorted(encrypted))}" if encrypted else None,
        compression=data.draw(st.sampled_from(CODECS), label="codec"),
        row_index_stride=data.draw(st.sampled_from([1, 8, 100, 101, 256, 10_000]), label="stride"),
        stripe_size=data.draw(st.sampled_from([4_000, 20_000, 64 << 20]), label="stripe"),
        dictionary_key_size_threshold=data.draw(st.sampled_from([0.0, 0.5, 1.0]), label="dictionaries"),
        bloom_filter_columns=sorted(data.draw(st.sets(st.sampled_from(hashed)), label="Bloom")),
    )
    masked = data.draw(st.booleans(), label="masked") and bool(encrypted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if masked else "error", MaskedDataWarning)
        with EncryptedOrcFile(content, None if masked else KEYS, timestamp_unit="us", threads=1) as file:
            everything = file.read()
            if not masked:
                assert plain(everything) == plain(table)
            for _ in range(8):
                predicate = random_rows.predicate(rng, table)
                columns = rng.sample(table.schema.names, rng.randrange(1, len(table.schema.names) + 1))
                found = file.read(columns, predicate)
                expected = filter_table(everything, predicate).select(columns)
                assert plain(found) == plain(expected), predicate
                report = file.last_read
                assert report.row_groups_read <= report.row_groups_total
                assert report.stripes_read <= report.stripes_total


UNHURRIED = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}


@settings(max_examples=20, **UNHURRIED)
@given(data=st.data())
def test_skipping_equals_a_full_scan(data: st.DataObject) -> None:
    check_skipping(data)


@pytest.mark.slow
@settings(max_examples=3000, **UNHURRIED)
@given(data=st.data())
def test_skipping_equals_a_full_scan_very_often(data: st.DataObject) -> None:
    check_skipping(data)


@pytest.mark.parametrize("stride", [100, 999])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("encrypt", [None, "k:id,{}"])
def test_every_flat_type_is_sliced(codec: str, stride: int, encrypt: str | None) -> None:
    """Each type is read alone with `id`, so that none can make another fall back to whole stripes."""
    rng = random.Random(codec)
    rows = 10 * stride
    for name in FLAT:
        table = pa.table({"id": range(rows), name: random_rows.column(rng, name, rows)})
        data = written(
            table,
            encrypt=encrypt and encrypt.format(name),
            compression=codec,
            row_index_stride=stride,
            dictionary_key_size_threshold=rng.choice([0.0, 1.0]),
        )
        first, last = 3 * stride + 5, 5 * stride - 1
        found, report = read(data, (col("id") >= first) & (col("id") <= last))
        assert plain(found) == plain(table.slice(first, last - first + 1)), name
        assert (report.row_groups_total, report.row_groups_read) == (10, 2), name
        found, report = read(data, (col("id") < 2) | (col("id") == rows - 1))
        assert plain(found) == plain(pa.concat_tables([table.slice(0, 2), table.slice(rows - 1)])), name
        assert (report.stripes_read, report.row_groups_read) == (1, 2), name


def test_a_point_lookup_reads_one_row_group() -> None:
    rows = 200_000
    numbers = [number * 7919 % rows for number in range(rows)]
    table = pa.table({"id": range(rows), "ssn": sorted(f"{number:09d}" for number in numbers)})
    data = written(table, encrypt="k:ssn", row_index_stride=1000)
    found, report = read(data, col("ssn") == "000123456")
    assert found.to_pydict() == {"id": [123456], "ssn": ["000123456"]}
    assert report.row_groups_read / report.row_groups_total <= 0.01
    assert report.bytes_read < len(data) / 8
    none, report = read(data, col("ssn") == "000123456x")
    assert (none.num_rows, report.row_groups_read) == (0, 1)


def test_statistics_of_file_and_stripes_are_checked_first() -> None:
    table = pa.table({"id": range(1000), "secret": range(5000, 6000)})
    data = written(table, encrypt="k:secret", stripe_size=2000, row_index_stride=100)
    _, report = read(data, None)
    assert report.stripes_total == report.stripes_read > 1
    assert report.row_groups_read == report.row_groups_total
    _, report = read(data, col("secret") == 6000)
    assert (report.stripes_read, report.row_groups_read, report.bytes_read) == (0, 0, 0)
    found, report = read(data, col("secret") == 5000)
    assert (found.num_rows, report.stripes_read, report.row_groups_read) == (1, 1, 1)


def test_bloom_filters_skip_where_statistics_cannot() -> None:
    rows = 4000
    numbers = [number * 7919 % 30_011 for number in range(rows)]
    table = pa.table(
        {
            "id": range(rows),
            "number": [number * 2 for number in numbers],
            "text": [f"{number:06d}" for number in numbers],
            "double": [number / 7 for number in numbers],
            "raw": [number.to_bytes(4, "big") for number in numbers],
            "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
            "amount": [Decimal(number).scaleb(-2) for number in numbers],
            "moment": pa.array([number * 10**9 + 12_345 for number in numbers], pa.timestamp("us")),
            "old": pa.array([-number * 10**9 for number in numbers], pa.timestamp("us")),
        }
    )
    for encrypt in (None, f"k:{','.join(table.schema.names[1:])}"):
        data = written(
            table, encrypt=encrypt, row_index_stride=200, bloom_filter_columns=table.schema.names[1:]
        )
        for name in table.schema.names[1:]:
            for row in (17, 1234, 2001):
                value = table[name][row]
                found, report = read(data, col(name) == value)
                assert found["id"].to_pylist() == [row], name
                # One in twenty filters errs.
                assert report.bloom_skips + report.row_groups_read >= 10, name
                assert report.row_groups_read <= 5, name
            found, report = read(data, col(name).isin([table[name][17], table[name][2001]]))
            assert found["id"].to_pylist() == [17, 2001], name
            assert report.row_groups_read < 12, name
            assert report.bloom_skips > 5, name


def test_bloom_filters_of_tinyint_are_ignored() -> None:
    """ORC's C++ writer hashes these values after overwriting them."""
    rng = random.Random(3)
    numbers = [rng.choice([1, *range(-128, 128, 5)]) for _ in range(1500)]
    table = pa.table({"id": range(1500), "tiny": pa.array(numbers, pa.int8())})
    sink = io.BytesIO()
    pyarrow.orc.write_table(table, sink, row_index_stride=100, bloom_filter_columns=[2])
    for number in sorted(set(numbers)):
        found, report = read(sink.getvalue(), col("tiny") == number)
        assert found["tiny"].to_pylist() == [number] * numbers.count(number)
        assert report.bloom_skips == 0


def test_early_times_have_no_bloom_filters() -> None:
    """Arrow would hash the whole seconds that it writes. Stripes without early times keep their filters."""
    moments = pa.array([-7 * 10**6 - 1, *range(10**9, 3999 * 10**9, 10**9)], pa.timestamp("us"))
    table = pa.table({"id": range(len(moments)), "moment": moments})
    for encrypt in (None, "k:moment"):
        options = {"row_index_stride": 100, "bloom_filter_columns": ["moment"], "encrypt": encrypt}
        for rows, filters in ((table, 0), (table.slice(1), 1)):
            with EncryptedOrcFile(written(rows, **options), KEYS) as file:
                streams = read_stripe(file._source, file._tail, 0).streams
                assert sum(stream.kind in BLOOM_FILTERS for stream in streams) == filters
                assert file.read(predicate=col("moment") == moments[1]).num_rows == 1


def test_a_stripe_whose_dictionary_holds_no_match_is_skipped() -> None:
    table = pa.table(
        {
            "word": ["apple pie", "plum", "quince", "walnut"] * 500,
            "payload": [random.Random(row).randbytes(40) for row in range(2000)],
        }
    )
    for encrypt in (None, "k:word"):
        data = written(table, encrypt=encrypt, dictionary_key_size_threshold=1.0, row_index_stride=100)
        payload = 2000 * 40
        misses = [
            col("word") == "pear",
            col("word").isin(["pear", "nut"]),
            col("word").contains("ab"),
            col("word").starts_with("pl") & col("word").ends_with("e pie"),
            col("word").ends_with("x"),
            ~(col("word").contains("l") | col("word").contains("q")),
            col("word").eq_null_safe("pear"),
        ]
        for predicate in misses:
            found, report = read(data, predicate)
            assert found.num_rows == 0, predicate
            assert (report.stripes_read, report.dictionary_skips) == (0, 1), predicate
            assert report.bytes_read < payload / 10, predicate
        found, report = read(data, col("word").contains("nut"))
        assert (found.num_rows, report.dictionary_skips, report.stripes_read) == (500, 0, 1)
        found, report = read(data, (col("word") == "pear") | col("payload").is_not_null())
        assert (found.num_rows, report.dictionary_skips) == (2000, 0)


def test_without_the_key_the_mask_is_compared() -> None:
    table = pa.table({"id": range(1000), "ssn": [f"{row:09d}" for row in range(1000)]})
    data = written(table, encrypt="k:ssn", row_index_stride=100, bloom_filter_columns=["ssn"])
    with pytest.warns(MaskedDataWarning):
        found, report = read(data, col("ssn").is_null() & (col("id") < 100), keys=None)
    assert (found.num_rows, report.row_groups_read) == (100, 1)
    with pytest.warns(MaskedDataWarning):
        found, report = read(data, col("ssn") == "000000001", keys=None)
    assert (found.num_rows, report.row_groups_read) == (0, 0)


def test_nested_columns_are_read_in_whole_stripes() -> None:
    table = pa.table({"id": range(1000), "tags": [[str(row)] * (row % 3) for row in range(1000)]})
    data = written(table, row_index_stride=100)
    found, report = read(data, col("id") == 555)
    assert found.to_pylist() == [{"id": 555, "tags": []}]
    assert (report.row_groups_total, report.row_groups_read) == (10, 10)
    found, report = read(data, col("id") == 555, ["id"])
    assert (found.to_pylist(), report.row_groups_read) == ([{"id": 555}], 1)
    found, report = read(data, (col("id") == 5) & (col("id") == 555))
    assert (found.num_rows, report.row_groups_read, report.stripes_read) == (0, 0, 0)


def test_small_gaps_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": range(10_000)})
    data = written(table, row_index_stride=100)
    monkeypatch.setattr(row_groups, "GAP_ROWS", 300)
    found, report = read(data, col("id").isin([50, 450, 5000, 5500]))
    assert found["id"].to_pylist() == [50, 450, 5000, 5500]
    assert report.row_groups_read == 5 + 1 + 1


@pytest.mark.parametrize(
    "change", ["writer", "old writer", "old C++", "no stride", "no index", "few numbers", "behind"]
)
def test_unreliable_indexes_are_ignored(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": range(1000), "text": [str(row) for row in range(1000)]})
    data = written(table, row_index_stride=100)
    wanted = col("id").isin([5, 555])
    with EncryptedOrcFile(data) as file:
        footer, postscript = file._tail.footer, file._tail.postscript
        if change == "writer":
            footer.writer = 5
        elif change == "old writer":
            footer.writer, postscript.writer_version = 0, 3
        elif change == "old C++":
            footer.ClearField("software_version")
        elif change == "no stride":
            footer.row_index_stride = 0
        else:
            _spoil_indexes(change, monkeypatch)
        assert file.read(predicate=wanted).to_pydict() == {"id": [5, 555], "text": ["5", "555"]}
        report = file.last_read
        assert report.row_groups_read == report.row_groups_total > 0


def _spoil_indexes(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.framework.orc.read.row_index import ColumnStreams

    original = ColumnStreams.row_index

    def spoiled(self: ColumnStreams) -> Any:
        entries = original(self)
        if change == "no index" or entries is None:
            return None
        for entry in entries if self.column == 2 else ():
            if change == "few numbers":
                del entry.positions[-1:]
            else:
                entry.positions[0] = 10**9
        return entries

    monkeypatch.setattr(ColumnStreams, "row_index", spoiled)


def test_positions_that_do_not_fit_their_stream_are_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.framework.orc.read.row_index import ColumnStreams

    original = ColumnStreams.row_index

    def spoiled(self: ColumnStreams) -> Any:
        entries = original(self)
        for entry in entries or ():
            entry.positions[-1] = 5000  # more values to skip than there are
        return entries

    table = pa.table({"id": range(1000), "other": [row * row for row in range(1000)]})
    data = written(table, row_index_stride=100)
    monkeypatch.setattr(ColumnStreams, "row_index", spoiled)
    with pytest.raises(CorruptFileError, match=r"stream 1 of column 1 does not fit its row index: it ends"):
        read(data, col("id") == 555)


def test_files_that_pyarrow_wrote_itself() -> None:
    """With its own settings: Bloom filters, small compression blocks, and a stride that is no whole byte."""
    rng = random.Random(5)
    table = random_rows.table(rng, 3000, [name for name in FLAT if name != "early"])
    sink = io.BytesIO()
    pyarrow.orc.write_table(
        table, sink, compression="zlib", compression_block_size=64 * 1024, row_index_stride=333,
        bloom_filter_columns=list(range(1, 10)), dictionary_key_size_threshold=0.9,
    )  # fmt: skip
    for first in (0, 332, 333, 1500, 2999):
        found, report = read(sink.getvalue(), (col("id") >= first) & (col("id") < first + 200))
        assert plain(found) == plain(table.slice(first, 200))
        assert report.row_groups_read <= 2
    for _ in range(40):
        predicate = random_rows.predicate(rng, table)
        found, _ = read(sink.getvalue(), predicate)
        assert plain(found) == plain(filter_table(table, predicate)), predicate
