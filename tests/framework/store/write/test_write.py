"""What rows become in files: partitions, buckets, keys, statistics, encryption; and what is refused."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import (
    ColumnNotFoundError,
    InputError,
    KeyMissingError,
    LockgateError,
    UnsupportedError,
)
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.framework.store import Catalog, DataFileMeta, Schema, Table
from lockgate.framework.store.rows.bucket import bucket_of
from lockgate.framework.store.rows.row_conversion import file_field_ids, file_schema
from lockgate.framework.store.write.bucket_writer import BucketWriter
from lockgate.framework.store.write.write import delete_keys, write_files
from lockgate.pushdown import col

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("day", pa.date32()),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(6, 2)),
        pa.field("weight", pa.float64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("zip", pa.string()), ("at", pa.timestamp("us"))])),
    ]
)
DAY = dt.date(2024, 2, 29)
KEYS = MemoryKeyProvider({"pii@0": bytes(range(16))})
ENCRYPT = {"orc.encrypt": "pii:name", "orc.mask": "sha256:name"}


def make_catalog(folder: Path, keys: MemoryKeyProvider | None = None) -> Catalog:
    catalog = Catalog(str(folder), keys=keys)
    catalog.create_namespace("db", ignore_if_exists=True)
    return catalog


def create(folder: Path, keys: MemoryKeyProvider | None = None, **layout: Any) -> Table:
    return make_catalog(folder, keys).create_table("db.t", Schema.from_arrow(SCHEMA, **layout))


def make_rows(ids: list[int | None], **columns: Any) -> pa.Table:
    values = {"day": DAY, "name": "n", "price": Decimal("1.50"), "weight": 0.5, "tags": ["a"], "place": None}
    data = {"id": ids, **{name: [columns.get(name, value)] * len(ids) for name, value in values.items()}}
    return pa.table({name: pa.array(data[name], SCHEMA.field(name).type) for name in SCHEMA.names})


def orc_table(table: Table, file: DataFileMeta, partition: tuple[Any, ...] = (), bucket: int = 0) -> pa.Table:
    return pyarrow.orc.read_table(table.paths.data_file(partition, bucket, file))


def test_a_file_of_a_key_table_is_laid_out_as_paimon_does(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id", "day"], partition_keys=["day"], options={"bucket": "1"})
    (message,) = table.write(make_rows([3, 1, 2, 1]))
    assert (message.partition, message.bucket, message.total_buckets) == ((DAY,), 0, 1)
    (file,) = message.added
    stored = orc_table(table, file, (DAY,))
    assert stored.column_names == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", *SCHEMA.names]
    assert stored["_KEY_id"].to_pylist() == stored["id"].to_pylist() == [1, 2, 3]
    assert stored["_SEQUENCE_NUMBER"].to_pylist() == [2, 1, 0]
    assert stored.schema.field("_VALUE_KIND").type == pa.int8()
    assert (file.row_count, file.min_key, file.max_key, file.level) == (3, (1,), (3,), 0)
    assert (file.min_sequence_number, file.max_sequence_number, file.delete_row_count) == (0, 2, 0)
    assert file.file_size == Path(table.paths.data_file((DAY,), 0, file)).stat().st_size
    assert file.key_stats.min == (1,)
    assert file_field_ids(table.schema) == {
        "id": 0,
        "day": 1,
        "name": 2,
        "price": 3,
        "weight": 4,
        "tags": 5,
        "place": 6,
        "place.zip": 7,
        "place.at": 8,
        "_KEY_id": 2**30 - 1,
        "_SEQUENCE_NUMBER": 2**31 - 2,
        "_VALUE_KIND": 2**31 - 3,
    }


def test_sequence_numbers_go_on_from_what_is_there(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "2"})
    table.append(make_rows([1, 2, 3, 4, 5]))
    again = write_files(table, make_rows([1, 2, 3, 4, 5]))
    before = {message.bucket: message.added[0].max_sequence_number for message in again}
    for message in write_files(table, [make_rows([1, 2]), make_rows([3, 4, 5])]):
        assert message.added[0].max_sequence_number == before[message.bucket]
    assert table.read().num_rows == 5


def test_rows_go_to_their_partition_and_bucket(tmp_path: Path) -> None:
    table = create(
        tmp_path, partition_keys=["day", "name"], options={"bucket": "3", "bucket-key": "id,price"}
    )
    parts = [make_rows(list(range(20)), name=name) for name in ("a/b", None, "é")]
    messages = write_files(table, pa.concat_tables(parts))
    assert {message.partition for message in messages} == {(DAY, "a/b"), (DAY, None), (DAY, "é")}
    types = table.schema.types_of(["id", "price"])
    for message in messages:
        stored = orc_table(table, message.added[0], message.partition, message.bucket)
        for one in stored["id"].to_pylist():
            assert bucket_of((one, Decimal("1.50")), types, 3) == message.bucket
    table.commit(messages)
    assert table.read().num_rows == 60
    assert table.read(predicate=col("name").is_null()).num_rows == 20


def test_every_value_comes_back(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    place = {"zip": "é", "at": dt.datetime(2024, 1, 1, 0, 0, 0, 1)}
    rows = pa.concat_tables(
        [make_rows([1], weight=math.nan, tags=None, place=place), make_rows([2], name=None, tags=["", None])]
    )
    table.append(rows)
    found = table.read().sort_by("id")
    assert (
        found.schema.equals(
            pa.schema([field.with_nullable(field.name != "id") for field in SCHEMA]), check_metadata=False
        )
        or found.schema.names == SCHEMA.names
    )
    assert repr(found.to_pylist()) == repr(rows.to_pylist())


def test_a_data_file_has_statistics_of_its_values(tmp_path: Path) -> None:
    table = create(tmp_path)
    rows = pa.concat_tables(
        [make_rows([5], weight=-0.0, name="a" * 20), make_rows([7], weight=0.0, price=None, name="b" * 16)]
    )
    file = write_files(table, rows)[0].added[0]
    assert file.value_stats_cols == ("id", "day", "name", "price", "weight")
    stats = file.value_stats
    assert stats.min == (5, DAY, "a" * 16, Decimal("1.50"), -0.0)
    assert math.copysign(1, stats.min[4]) == -1
    assert math.copysign(1, stats.max[4]) == 1
    assert stats.max == (7, DAY, "b" * 16, Decimal("1.50"), 0.0)
    assert stats.null_counts == (0, 0, 0, 1, 0)
    rows = pa.concat_tables([make_rows([5], weight=math.nan, name="c" * 20), make_rows([None], weight=3.0)])
    stats = write_files(table, rows)[0].added[0].value_stats
    assert (stats.min[4], math.isnan(stats.max[4])) == (3.0, True)
    assert stats.max[2] == "n"
    assert stats.null_counts[0] == 1


@pytest.mark.parametrize(
    ("mode", "minimum", "maximum", "nulls"),
    [
        ("none", (), (), ()),
        ("counts", (None,), (None,), (0,)),
        ("full", ("n" * 20,), ("n" * 20,), (0,)),
        ("truncate(3)", ("nnn",), ("nno",), (0,)),
    ],
)
def test_modes_of_statistics(
    tmp_path: Path, mode: str, minimum: tuple[Any], maximum: tuple[Any], nulls: tuple[Any]
) -> None:
    options = {"metadata.stats-mode": "none", "fields.name.stats-mode": mode}
    table = create(tmp_path, options=options)
    file = write_files(table, make_rows([1], name="n" * 20))[0].added[0]
    assert file.value_stats_cols == (("name",) if nulls else ())
    stats = file.value_stats
    assert (stats.min, stats.max, stats.null_counts) == (minimum, maximum, nulls)


def test_encrypted_columns_leave_nothing_in_the_clear(tmp_path: Path) -> None:
    table = create(tmp_path, KEYS, primary_keys=["id"], options={"bucket": "1", **ENCRYPT})
    table.append(make_rows([1, 2], name="geheimnisvoll"))
    assert table.read()["name"].to_pylist() == ["geheimnisvoll"] * 2
    assert table.scan().encrypted
    (split,) = table.scan().splits
    assert "name" not in (split.files[0].value_stats_cols or ())
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"geheimnis" not in path.read_bytes()


@pytest.mark.parametrize("hide", [False, True])
def test_dictionaries_are_left_out_to_hide_how_many_values_there_are(tmp_path: Path, hide: bool) -> None:
    options = {**ENCRYPT, "orc.encrypt.hide-cardinality": str(hide).lower()}
    create(tmp_path, KEYS, options=options).append(make_rows(list(range(50)), name="one"))
    (path,) = tmp_path.rglob("*.orc")
    with EncryptedOrcFile(path) as file:
        footer = read_stripe(file._source, file._tail, 0).footer
    (variant,) = footer.encryption
    assert [each.dictionary_size for each in variant.encoding] == ([0] if hide else [1])


def test_an_encrypted_table_needs_its_key_to_be_written(tmp_path: Path) -> None:
    create(tmp_path, KEYS, options=ENCRYPT)
    table = make_catalog(tmp_path).load_table("db.t")
    with pytest.raises(KeyMissingError):
        table.append(make_rows([1]))
    assert list(tmp_path.rglob("*.orc")) == []


def test_files_roll_at_the_target_size(tmp_path: Path) -> None:
    table = create(tmp_path, options={"target-file-size": "1 mb", "file.compression": "none"})
    count = 300_000
    rows = pa.table({"id": pa.array(range(count), pa.int32()), "name": [f"{i:064}" for i in range(count)]})
    (message,) = write_files(table, rows.to_batches(max_chunksize=50_000))
    assert len(message.added) > 3
    assert sum(file.row_count for file in message.added) == count
    bounds = [(file.min_sequence_number, file.max_sequence_number) for file in message.added]
    assert all(low == before + 1 for (_, before), (low, _) in itertools.pairwise(bounds))
    table.commit([message])
    assert table.read(columns=["id"])["id"].to_pylist() == list(range(count))


def test_deleted_keys_are_written_with_nulls_in_other_columns(tmp_path: Path) -> None:
    schema = SCHEMA.set(2, pa.field("name", pa.string(), nullable=False))
    catalog = make_catalog(tmp_path)
    layout = {"primary_keys": ["id"], "options": {"bucket": "1"}}
    table = catalog.create_table("db.t", Schema.from_arrow(schema, **layout))
    table.append(make_rows([1, 2, 3, 4]))
    messages = delete_keys(table, pa.table({"id": pa.array([2, 9], pa.int32())}))
    assert messages[0].added[0].delete_row_count == 2
    table.commit(messages)
    table.delete(col("id") >= 4)
    assert sorted(table.read()["id"].to_pylist()) == [1, 3]
    table.commit(write_files(table, make_rows([1, 3, 3, 2]), kinds=[3, 0, 3, 2]))
    assert table.read()["id"].to_pylist() == [2]
    table.append(make_rows([3]))
    assert sorted(table.read()["id"].to_pylist()) == [2, 3]
    with pytest.raises(InputError, match="lack id"):
        delete_keys(table, pa.table({"x": [1]}))


def test_a_deletion_never_stores_masks(tmp_path: Path) -> None:
    create(tmp_path, KEYS, primary_keys=["id"], options={"bucket": "1", **ENCRYPT}).append(make_rows([1, 2]))
    table = make_catalog(tmp_path).load_table("db.t")
    files = sorted(tmp_path.rglob("*.orc"))
    with pytest.raises(KeyMissingError):
        table.delete(col("id") == 1)
    with pytest.warns(match="name"):
        masked = table.read()
    with pytest.raises(InputError, match="holds masks"):
        write_files(make_catalog(tmp_path, KEYS).load_table("db.t"), masked)
    assert sorted(tmp_path.rglob("*.orc")) == files


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (pa.table({"idd": [1]}), ColumnNotFoundError, "did you mean 'id'"),
        (pa.table({"id": ["x"]}), InputError, "column 'id' is .* and is stored as INT"),
        (pa.table({"id": [2**40]}), InputError, "column 'id' is .* and is stored as INT"),
        (pa.table({"name": ["x"]}), InputError, "'id' is part of the primary key, but 1 rows"),
        (pa.table([[1], [2]], names=["id", "id"]), InputError, "same name"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    tmp_path: Path, rows: pa.Table, error: type[LockgateError], message: str
) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    with pytest.raises(error, match=message):
        write_files(table, rows)
    assert list(tmp_path.rglob("*.orc")) == []


def test_a_null_in_a_not_null_column_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    table = make_catalog(tmp_path).create_table("db.t", Schema.from_arrow(schema))
    with pytest.raises(InputError, match="NOT NULL, but 2 rows"):
        write_files(table, pa.table({"b": [1, 2]}))
    with pytest.raises(InputError, match="NOT NULL, but 1 rows"):
        write_files(table, pa.table({"a": [1, None]}).to_batches())


@pytest.mark.parametrize(
    ("kinds", "message"),
    [([0], "1 rows need 1 kinds"), ([0, 4], "a row's kind is"), ([0, None], "2 rows need 2 kinds")],
)
def test_kinds_that_do_not_fit_are_refused(tmp_path: Path, kinds: list[int], message: str) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    with pytest.raises(InputError, match=message if len(kinds) > 1 else "2 rows need 2 kinds"):
        write_files(table, make_rows([1, 2]), kinds=kinds)
    with pytest.raises(InputError, match="a single table or batch"):
        write_files(table, [make_rows([1])], kinds=[0])


def test_append_tables_take_no_deletions(tmp_path: Path) -> None:
    table = create(tmp_path)
    with pytest.raises(UnsupportedError, match="insertions"):
        write_files(table, make_rows([1]), kinds=[3])
    with pytest.raises(UnsupportedError, match="no primary key"):
        table.delete(col("id") == 1)


def test_an_overwrite_refuses_rows_of_other_partitions(tmp_path: Path) -> None:
    table = create(tmp_path, partition_keys=["day"])
    table.append(make_rows([1, 2]))
    table.overwrite(make_rows([3]), {"day": DAY})
    assert table.read()["id"].to_pylist() == [3]
    with pytest.raises(InputError, match="other partitions than day"):
        table.overwrite(make_rows([4]), {"day": dt.date(2020, 1, 1)})


def test_what_fails_leaves_no_files(tmp_path: Path) -> None:
    table = create(tmp_path, options={"bucket": "2", "bucket-key": "id"})

    def broken() -> Any:
        yield make_rows(list(range(100)))
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="gone"):
        write_files(table, broken())
    writer = BucketWriter(table, (), 0)
    writer.write(make_rows([1]))
    writer.abort()
    writer.abort()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "bucket" in str(path)] == []


def test_written_files_can_be_discarded(tmp_path: Path) -> None:
    table = create(tmp_path)
    messages = write_files(table, make_rows([1]))
    (file,) = Path(table.location).glob("bucket-0/*")
    table.abort(messages)
    table.abort(messages)
    assert not file.exists()
    assert write_files(table, []) == []


def test_files_of_a_commit_that_landed_are_not_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit may succeed and yet seem to fail, as one that is interrupted right after it."""
    table = create(tmp_path)

    def interrupted(snapshot_id: int) -> None:
        raise RuntimeError("interrupted")

    monkeypatch.setattr(table.snapshot_files, "hint_latest", interrupted)
    with pytest.raises(RuntimeError, match="interrupted"):
        table.append(make_rows([1]))
    assert table.read().num_rows == 1


def test_nothing_is_discarded_where_the_table_cannot_be_read(tmp_path: Path) -> None:
    table = create(tmp_path)
    table.append(make_rows([1]))
    messages = write_files(table, make_rows([2]))
    for manifest in Path(table.location).glob("manifest/*"):
        manifest.write_bytes(b"")
    table.abort(messages)
    assert len(list(Path(table.location).glob("bucket-0/*"))) == 2


def test_a_bucket_writer_checks_its_rows(tmp_path: Path) -> None:
    table = create(tmp_path, primary_keys=["id"], options={"bucket": "1"})
    with BucketWriter(table, (), 0) as writer, pytest.raises(InputError, match="_KEY_id"):
        writer.write(make_rows([1]))
    assert writer.close() == ()
    assert file_schema(table.schema).names[:3] == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND"]


def test_days_beyond_python_are_refused(make_table: Callable[..., Table]) -> None:
    table = make_table(columns={"id": pa.int64(), "d": pa.date32()})
    far = pa.table({"id": [1], "d": pa.array([2**30], pa.int32()).cast(pa.date32())})
    with pytest.raises(InputError, match="'d' holds a day or a time outside"):
        table.append(far)
    assert table.latest_snapshot() is None
