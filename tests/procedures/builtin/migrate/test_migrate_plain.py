"""`migrate_table` of Parquet and Avro folders: files are adopted or rewritten, and nothing is risked."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.errors import (
    CorruptFileError,
    LockgateError,
    NotFoundError,
    OptionError,
    UnsupportedError,
    UnsupportedTypeError,
)
from lockgate.framework.store import Catalog
from lockgate.framework.types import Kind
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import Comparison, Op

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
FLAT = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("born", pa.date32()),
        ("size", pa.float64()),
        ("good", pa.bool_()),
    ]
)
POINT = datetime.datetime(2024, 3, 1, 12, 30, 0, 123456)


def flat(first: int, last: int) -> pa.Table:
    made = [
        {
            "id": each,
            "tiny": each % 100,
            "name": f"name {each}",
            "raw": bytes([each % 256]),
            "born": datetime.date(2000, 1, 1) + datetime.timedelta(each),
            "size": each / 8,
            "good": each % 2 == 0 if each % 5 else None,
        }
        for each in range(first, last)
    ]
    return pa.Table.from_pylist(made, FLAT)


def parquet(folder: Path, name: str, table: pa.Table, **options: Any) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name, **options)


def content(catalog: Catalog, name: str = "db.t") -> list[dict[str, Any]]:
    rows = catalog.load_table(name).read().to_pylist()
    return sorted(rows, key=lambda row: repr(list(row.values())))


def migrate(run: Run, folder: Path, kind: str = "parquet", **arguments: Any) -> dict[str, Any]:
    arguments = {"target_table": "db.t", **arguments}
    return run("migrate_table", source_type=kind, table=str(folder), **arguments).to_dicts()[0]


def test_parquet_files_are_adopted(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    parquet(tmp_path / "o", "p=1/a.parquet", flat(0, 100))
    parquet(tmp_path / "o", "p=2/b.snappy.parquet", flat(100, 150), row_group_size=10)
    parquet(tmp_path / "o", "p=2/empty.parquet", flat(0, 0))
    (tmp_path / "o" / "_SUCCESS").touch()
    dry = migrate(run, tmp_path / "o", dry_run=True)
    assert not catalog.table_exists("db.t")
    done = migrate(run, tmp_path / "o")
    assert done == {**dry, "files_written": 0, "snapshot_id": 1}
    assert (done["files_adopted"], done["files_rewritten"]) == (2, 0)
    assert (done["rows"], done["partitions"]) == (150, 2)
    table = catalog.load_table("db.t")
    expected = [{**row, "p": 1 if row["id"] < 100 else 2} for row in flat(0, 150).to_pylist()]
    assert content(catalog) == sorted(expected, key=lambda row: repr(list(row.values())))
    # Statistics of the footers leave files out.
    later = Comparison(Op.GT, ("id",), (pa.scalar(120),))
    assert len(table.scan(later).splits) == 1
    assert table.read(predicate=later).num_rows == 29
    (tmp_path / "o" / "p=1" / "a.parquet").unlink()
    assert table.read().num_rows == 150
    table.append(flat(900, 910).append_column("p", pa.array([3] * 10, pa.int32())))
    run("compact", "db.t")
    assert catalog.load_table("db.t").read().num_rows == 160


def test_a_key_or_buckets_have_files_rewritten(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    parquet(tmp_path / "o", "a.parquet", flat(0, 30))
    parquet(tmp_path / "o", "b.parquet", flat(20, 50))
    done = migrate(run, tmp_path / "o", options="primary-key=id,bucket=2,file.format=parquet")
    assert (done["files_adopted"], done["files_rewritten"]) == (0, 2)
    assert [row["id"] for row in sorted(content(catalog), key=lambda row: row["id"])] == list(range(50))
    names = {path.suffix for path in Path(catalog.location("db.t")).rglob("data-*")}
    assert names == {".parquet"}


def test_secrets_do_not_stay_in_the_clear(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    parquet(tmp_path / "o", "a.parquet", flat(0, 30), compression="none")
    done = migrate(run, tmp_path / "o", options="orc.encrypt=pii:name")
    assert (done["files_adopted"], done["files_rewritten"]) == (0, 1)
    files = b"".join(path.read_bytes() for path in Path(catalog.location("db.t")).rglob("data-*"))
    assert b"name 7" not in files
    assert content(catalog)[0]["name"] == "name 0"
    with pytest.raises(OptionError):
        migrate(run, tmp_path / "o", target_table="db.u", options="orc.encrypt=pii:name,file.format=parquet")
    assert not catalog.table_exists("db.u")


@pytest.mark.parametrize("int96", [True, False])
def test_parquet_types_of_other_writers(catalog: Catalog, run: Run, tmp_path: Path, int96: bool) -> None:
    columns = {
        "at": pa.array([POINT, None], pa.timestamp("us", "Europe/Berlin")),
        "local": pa.array([POINT, None], pa.timestamp("ns")),
        "small": pa.array([Decimal("1.25"), None], pa.decimal128(8, 2)),
        "large": pa.array([Decimal("1.25"), None], pa.decimal128(30, 2)),
        "text": pa.array(["a", None], pa.dictionary(pa.int8(), pa.string())),
        "long": pa.array(["a", None], pa.large_string()),
        "list": pa.array([[1, None], None], pa.large_list(pa.int32())),
        "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "row": pa.array([{"x": 1, "y": "z"}, None], pa.struct([("x", pa.int32()), ("y", pa.string())])),
    }
    parquet(tmp_path / "o", "a.parquet", pa.table(columns), use_deprecated_int96_timestamps=int96)
    assert migrate(run, tmp_path / "o")["files_rewritten"] == 1
    first, second = (content(catalog)[place] for place in (1, 0))
    if first["long"] is None:
        first, second = second, first
    assert set(second.values()) == {None}
    kinds = {field.name: field.type.kind for field in catalog.load_table("db.t").schema.fields}
    assert kinds["at"] is Kind.TIMESTAMP_LTZ
    assert kinds["local"] is (Kind.TIMESTAMP_LTZ if int96 else Kind.TIMESTAMP)
    assert first["at"].replace(tzinfo=None) == first["local"].replace(tzinfo=None) == POINT
    assert (first["small"], first["large"]) == (Decimal("1.25"), Decimal("1.25"))
    assert (first["text"], first["long"], first["list"]) == ("a", "a", [1, None])
    assert (dict(first["map"]), first["row"]) == ({"k": 1}, {"x": 1, "y": "z"})


def test_columns_that_came_later_are_null(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    parquet(tmp_path / "o", "a.parquet", flat(0, 3))
    parquet(tmp_path / "o", "b.parquet", flat(3, 5).drop_columns(["name"]))
    assert migrate(run, tmp_path / "o")["files_adopted"] == 2
    assert sorted(str(row["name"]) for row in content(catalog)) == [
        "None",
        "None",
        "name 0",
        "name 1",
        "name 2",
    ]
    parquet(tmp_path / "o", "c.parquet", flat(3, 5).append_column("more", pa.array([1, 2])))
    migrate(run, tmp_path / "o", target_table="db.u")
    assert [row["more"] for row in content(catalog, "db.u")].count(None) == 5


def test_days_of_the_julian_calendar_are_refused(
    catalog: Catalog, run: Run, tmp_path: Path, monkeypatch: Any
) -> None:
    from lockgate.procedures.builtin.migrate import foreign_files

    old = pa.table({"d": pa.array([datetime.date(1500, 1, 1)], pa.date32())})
    parquet(tmp_path / "o", "a.parquet", old)
    migrate(run, tmp_path / "o", target_table="db.own")
    assert content(catalog, "db.own") == old.to_pylist()
    spark = old.replace_schema_metadata({"org.apache.spark.version": "3.5.0"})
    parquet(tmp_path / "new", "a.parquet", spark)
    parquet(
        tmp_path / "legacy",
        "a.parquet",
        spark.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}),
    )

    class Wrapped:
        def __init__(self, metadata: Any) -> None:
            self.wrapped = metadata

        def __getattr__(self, name: str) -> Any:
            return "parquet-mr version 1.12" if name == "created_by" else getattr(self.wrapped, name)

    opened = foreign_files.ParquetSource.check_calendar

    def check(self: Any) -> None:
        self._metadata = Wrapped(self._metadata)
        opened(self)

    monkeypatch.setattr(foreign_files.ParquetSource, "check_calendar", check)
    migrate(run, tmp_path / "new", target_table="db.new")
    for folder in ("o", "legacy"):
        with pytest.raises(UnsupportedError, match="Julian"):
            migrate(run, tmp_path / folder, target_table="db.u")
    assert not catalog.table_exists("db.u")


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
        {"name": "again", "type": ["null", "k"]},
        {"name": "born", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": ["null", {"type": "long", "logicalType": "local-timestamp-millis"}]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "counts", "type": {"type": "map", "values": "int"}},
        {
            "name": "place",
            "type": ["null", {"type": "record", "name": "p", "fields": [{"name": "x", "type": "double"}]}],
        },
        {"name": "raw", "type": {"type": "fixed", "name": "f", "size": 2}},
    ],
}


def record(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": None if number % 3 else f"name {number}",
        "kind": "AB"[number % 2],
        "again": None if number % 2 else "B",
        "born": datetime.date(2000, 1, 1 + number),
        "at": POINT.replace(tzinfo=datetime.UTC),
        "local": POINT.replace(microsecond=123000),
        "price": Decimal(number) / 4,
        "uid": "12345678-1234-5678-1234-567812345678",
        "tags": ["x", None][: number % 3],
        "counts": {"a": number},
        "place": None if number % 2 else {"x": number / 2},
        "raw": b"ab",
    }


def avro(path: Path, records: Any, schema: Any = AVRO, codec: str = "deflate") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema(schema), records, codec=codec)


def test_avro_files_are_rewritten(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    avro(tmp_path / "o" / "day=2024-01-01" / "a.avro", [record(number) for number in range(7)])
    avro(tmp_path / "o" / "day=2024-01-02" / "b.avro", [record(7)], codec="null")
    done = migrate(run, tmp_path / "o", "avro")
    assert (done["files_adopted"], done["files_rewritten"], done["rows"]) == (0, 2, 8)
    rows = sorted(content(catalog), key=lambda row: row["id"])
    for number, row in enumerate(rows):
        day = datetime.date(2024, 1, 2 if number == 7 else 1)
        assert {**row, "counts": dict(row["counts"])} == {**record(number), "day": day}


def test_avro_types_without_a_type_here_are_named(run: Run, tmp_path: Path) -> None:
    union = {"type": "record", "name": "r", "fields": [{"name": "u", "type": ["int", "string"]}]}
    avro(tmp_path / "o" / "a.avro", [{"u": 1}], union)
    with pytest.raises(UnsupportedTypeError, match="union of 2 types"):
        migrate(run, tmp_path / "o", "avro")


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_damaged_files_are_named_and_nothing_is_made(
    catalog: Catalog, run: Run, tmp_path: Path, kind: str
) -> None:
    """Cut and flipped anywhere, a file is an error of ours or read: never another exception, never half."""
    folder = tmp_path / "o"
    if kind == "parquet":
        parquet(folder, "a.parquet", flat(0, 200), use_dictionary=False)
    else:
        avro(folder / "a.avro", [record(number) for number in range(20)])
    path = next(folder.iterdir())
    whole, chance = path.read_bytes(), random.Random(7)
    damaged = [whole[: chance.randrange(len(whole))] for _ in range(12)]
    for _ in range(40):
        place = chance.randrange(len(whole))
        damaged.append(
            whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :]
        )
    refused = 0
    for number, data in enumerate(damaged):
        path.write_bytes(data or b"x")
        try:
            migrate(run, folder, kind, options="bucket=1,bucket-key=id", target_table=f"db.t{number}")
        except LockgateError:
            refused += 1
            assert not catalog.table_exists(f"db.t{number}")
    assert refused >= 12
    path.write_bytes(whole[:40])
    with pytest.raises(CorruptFileError, match="a\\."):
        migrate(run, folder, kind)


def test_an_empty_folder_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    for kind in ("Parquet", "Avro"):
        with pytest.raises(NotFoundError, match=f"holds no {kind} files"):
            migrate(run, tmp_path / "o", kind)
