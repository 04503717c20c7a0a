"""Folders whose files differ: no value, member or column is lost, and nothing is deleted unproven."""

from __future__ import annotations

import base64
import datetime
import io
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.errors import CorruptFileError, InputError, LockgateError, ProcedureError, UnsupportedError
from lockgate.framework import types
from lockgate.framework.io import LocalFileSystem
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.types import DataField
from lockgate.procedures import ProcedureResult
from lockgate.procedures.builtin.migrate import migrate_file, migrate_table
from lockgate.procedures.builtin.migrate.copy_check import RowsDigest, hash_values
from lockgate.procedures.builtin.migrate.foreign_files import AvroSource, ParquetSource
from lockgate.procedures.builtin.migrate.parquet_footers import ColumnChunk, ParquetFooter, read_footer

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
DAY = datetime.date(2024, 3, 1)


def write(folder: Path, name: str, kind: str = "parquet", **columns: Any) -> None:
    folder.mkdir(exist_ok=True)
    table = pa.table(columns)
    if kind == "orc":
        pyarrow.orc.write_table(table, folder / name)
    else:
        pq.write_table(table, folder / name)


def migrate(run: Run, folder: Path, kind: str = "parquet", **more: Any) -> dict[str, Any]:
    return run("migrate_table", kind, str(folder), target_table="db.t", **more).to_dicts()[0]


def column_type(catalog: Catalog, name: str = "v") -> str:
    return catalog.load_table("db.t").schema.field(name).type.bare_name


def row(first: Any, **more: Any) -> pa.Array:
    return pa.array([{"a": first, **more}])


WIDER = {
    "BIGINT": (pa.array([1], pa.int32()), pa.array([2**40])),
    "DOUBLE": (pa.array([1], pa.int32()), pa.array([1.7])),
    "DECIMAL(13, 3)": (pa.array([7], pa.int32()), pa.array([Decimal("0.125")], pa.decimal128(4, 3))),
    "DECIMAL(6, 3)": (
        pa.array([Decimal("123.25")], pa.decimal128(5, 2)),
        pa.array([Decimal("1.125")], pa.decimal128(4, 3)),
    ),
    "ARRAY<BIGINT>": (pa.array([[1]], pa.list_(pa.int32())), pa.array([[2**40]])),
    "ROW<a BIGINT, b STRING>": (pa.array([{"a": 1}], pa.struct([("a", pa.int32())])), row(2**40, b="x")),
}


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("wide", WIDER)
@pytest.mark.parametrize("turned", [False, True])
def test_types_widen_whichever_file_comes_first(
    catalog: Catalog, run: Run, tmp_path: Path, wide: str, kind: str, turned: bool
) -> None:
    arrays = WIDER[wide][::-1] if turned else WIDER[wide]
    for name, values in zip("ab", arrays, strict=True):
        write(tmp_path / "o", name, kind, v=values)
    done = migrate(run, tmp_path / "o", kind, delete_origin=True)
    assert done["rows"] == 2
    assert not list((tmp_path / "o").iterdir())
    assert set(column_type(catalog)) == set(wide)
    found = catalog.load_table("db.t").read()["v"].to_pylist()
    expected = [
        {"b": None, **value} if isinstance(value, dict) else value
        for array in arrays
        for value in array.to_pylist()
    ]
    assert sorted(map(repr, map(_plain, found))) == sorted(map(repr, map(_plain, expected)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(value.items())
    return value if isinstance(value, list) else float(value)


REFUSED = {
    "text and number": (pa.array([1], pa.int32()), pa.array(["007"]), "INT", "STRING"),
    "large number": (pa.array([1.5]), pa.array([2**60]), "DOUBLE", "BIGINT"),
    "time of day": (
        pa.array([DAY]),
        pa.array([datetime.datetime(2024, 3, 1, 12)], pa.timestamp("us")),
        "DATE",
        "TIMESTAMP(6)",
    ),
    "too many digits": (
        pa.array([Decimal("1")], pa.decimal128(38, 0)),
        pa.array([Decimal("0.1")], pa.decimal128(2, 1)),
        "DECIMAL(38, 0)",
        "DECIMAL(2, 1)",
    ),
    "member": (row(1), row("x"), "ROW<a BIGINT>", "ROW<a STRING>"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_without_a_type_are_refused_before_anything_is_written(
    catalog: Catalog, run: Run, tmp_path: Path, digest: Callable[[str | Path], str], case: str
) -> None:
    one, other, *names = REFUSED[case]
    write(tmp_path / "o", "a.parquet", v=one)
    write(tmp_path / "o", "b.parquet", v=other)
    before = digest(tmp_path)
    with pytest.raises(InputError) as refused:
        migrate(run, tmp_path / "o", delete_origin=True)
    assert all(part in str(refused.value) for part in ("'v'", "a.parquet", "b.parquet", *names))
    assert digest(tmp_path) == before
    assert catalog.list_tables("db") == []


def test_a_folder_has_the_columns_of_all_files(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    write(tmp_path / "o", "a", id=[1], v=["x"])
    write(tmp_path / "o", "b", more=[1.5], id=[2])
    migrate(run, tmp_path / "o", delete_origin=True)
    assert catalog.load_table("db.t").read().sort_by("id").to_pylist() == [
        {"id": 1, "v": "x", "more": None},
        {"id": 2, "v": None, "more": 1.5},
    ]
    write(tmp_path / "c", "a", id=[1])
    write(tmp_path / "c", "b", ID=[1])
    with pytest.raises(InputError, match="differ in case only"):
        run("migrate_table", "parquet", str(tmp_path / "c"), target_table="db.u")


def test_files_are_judged_by_the_types_of_the_table(
    catalog: Catalog, run: Run, tmp_path: Path, digest: Callable[[str | Path], str]
) -> None:
    fields = (DataField(0, "v", types.INT), DataField(1, "s", types.sized(types.Kind.VARCHAR, 3)))
    table = catalog.create_table("db.t", Schema(fields))
    write(tmp_path / "o", "a", v=pa.array([1], pa.int16()), s=["abc"])
    assert run("migrate_file", "parquet", str(tmp_path / "o"), "db.t")["files_rewritten"] == 1
    write(tmp_path / "o", "b", v=pa.array([2**40]))
    before = digest(tmp_path)
    with pytest.raises(InputError, match=r"/b: column 'v' is BIGINT in the file and INT in "):
        run("migrate_file", "parquet", str(tmp_path / "o"), "db.t", delete_origin=True)
    write(tmp_path / "o", "b", s=["long"])
    with pytest.raises(InputError, match=r"'s' is a VARCHAR\(3\)"):
        run("migrate_file", "parquet", str(tmp_path / "o"), "db.t", delete_origin=True)
    write(tmp_path / "o", "b", v=pa.array([2**40]))
    assert digest(tmp_path) == before
    assert table.read().to_pylist() == [{"v": 1, "s": "abc"}]


# --- nanoseconds ---

NANOS = pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns"))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_nanoseconds_are_kept(catalog: Catalog, run: Run, tmp_path: Path, zone: str | None) -> None:
    write(
        tmp_path / "o",
        "a",
        v=NANOS.cast(pa.timestamp("ns", zone)),
        s=pa.StructArray.from_arrays([NANOS], ["t"]),
    )
    write(tmp_path / "o", "b", v=pa.array([1], pa.timestamp("us", zone)))
    migrate(run, tmp_path / "o", delete_origin=True)
    assert column_type(catalog).startswith("TIMESTAMP(9)")
    found = catalog.load_table("db.t").read()
    assert set(found["v"].cast(pa.int64()).to_pylist()) == {*NANOS.cast(pa.int64()).to_pylist(), 1000}
    inner = pa.concat_arrays(pa.chunked_array(found["s"].chunks).chunks).field(0)
    assert NANOS[0].value in inner.cast(pa.int64()).to_pylist()


def test_times_that_nanoseconds_do_not_hold_are_refused(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    write(tmp_path / "o", "a", v=NANOS)
    write(tmp_path / "o", "b.parquet", v=pa.array([2**60], pa.timestamp("us")))
    with pytest.raises(
        InputError, match=r"'v' is timestamp\[us\] in .*b\.parquet and is stored as TIMESTAMP\(9\)"
    ):
        migrate(run, tmp_path / "o", delete_origin=True)
    assert catalog.list_tables("db") == []
    assert len(list((tmp_path / "o").iterdir())) == 2


@pytest.mark.parametrize("nested", [False, True])
def test_digits_of_times_of_96_bits_are_not_cut(
    catalog: Catalog, run: Run, tmp_path: Path, nested: bool
) -> None:
    def column(values: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays([values], ["t"]) if nested else values

    def store(values: pa.Array) -> None:
        pq.write_table(pa.table({"v": column(values)}), path, use_deprecated_int96_timestamps=True)

    path = tmp_path / "o" / "a.parquet"
    path.parent.mkdir()
    store(NANOS)
    with pytest.raises(InputError, match=r"a\.parquet: column 'v' is INT96"):
        migrate(run, path.parent, delete_origin=True)
    assert catalog.list_tables("db") == []
    far = pa.array([253_402_300_799_999_999, -62_135_596_800_000_000, None], pa.timestamp("us"))
    store(far)
    migrate(run, path.parent, delete_origin=True)
    found = pa.concat_arrays(catalog.load_table("db.t").read()["v"].chunks)
    found = found.field(0) if nested else found
    assert found.cast(pa.int64()).to_pylist() == far.cast(pa.int64()).to_pylist()


def test_avro_keeps_nanoseconds_and_refuses_microseconds_of_a_day(
    catalog: Catalog, run: Run, tmp_path: Path
) -> None:
    def store(logical: str, value: Any) -> None:
        field = {"name": "v", "type": {"type": "long", "logicalType": logical}}
        schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [field]})
        with (tmp_path / "o" / "a").open("wb") as file:
            fastavro.writer(file, schema, [{"v": value}])

    (tmp_path / "o").mkdir()
    store("time-micros", datetime.time(12, 0, 0, 1))
    with pytest.raises(LockgateError, match=r"'v'.*time64"):
        migrate(run, tmp_path / "o", "avro")
    store("timestamp-nanos", NANOS[0].value)
    migrate(run, tmp_path / "o", "avro", delete_origin=True)
    assert catalog.load_table("db.t").read()["v"].cast(pa.int64()).to_pylist() == [NANOS[0].value]


# --- footers ---


class _Kms(pe.KmsClient):
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("plaintext", [True, False])
def test_files_of_parquets_own_encryption_are_refused_by_name(
    catalog: Catalog, run: Run, tmp_path: Path, plaintext: bool
) -> None:
    """Arrow ended the process at the metadata of a column whose key it does not have."""
    rows = pa.table({"id": [1], "secret": ["x"]})
    config = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["secret"]}, plaintext_footer=plaintext, double_wrapping=False
    )
    encryption = pe.CryptoFactory(lambda _: _Kms()).file_encryption_properties(
        pe.KmsConnectionConfig(), config
    )
    (tmp_path / "o").mkdir()
    path = tmp_path / "o" / "a.parquet"
    with pq.ParquetWriter(path, rows.schema, encryption_properties=encryption) as writer:
        writer.write_table(rows)
    with pytest.raises(UnsupportedError, match=r"a\.parquet is encrypted by Parquet's own encryption"):
        migrate(run, tmp_path / "o", delete_origin=True)
    assert path.exists()
    assert catalog.list_tables("db") == []


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_footers_are_read_or_named_as_damaged(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "footers"
    folder.mkdir(exist_ok=True)
    path = folder / "whole.parquet"
    if not path.exists():
        rows = {"v": [3, None, -5], "d": pa.array([DAY] * 3), "s": ["a", "b", None], "l": [[1], [], None]}
        pq.write_table(pa.table(rows), path, row_group_size=2)
    whole = bytearray(path.read_bytes())
    length = int.from_bytes(whole[-8:-4], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(len(whole) - 8 - length, len(whole) - 1))
        whole[place] ^= 1 << data.draw(st.integers(0, 7))
    damaged = folder / "damaged.parquet"
    damaged.write_bytes(whole)
    try:
        source = ParquetSource(LocalFileSystem(), str(damaged))
        source.statistics()
        source.why_rewritten()
        source.check_calendar()
        source.close()
    except (CorruptFileError, InputError, UnsupportedError) as error:
        named = str(error)
    else:
        return
    assert "damaged.parquet" in named


def _number(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def _footer(groups: list[bytes]) -> io.BytesIO:
    """Return a file whose footer has these row groups, in Thrift's compact protocol."""
    footer = b"\x49\xfc" + _number(len(groups)) + b"".join(groups) + b"\0"
    return io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def _group(path: bytes, bounds: bytes) -> bytes:
    """Return a row group of one column of 9 values; `bounds` are the fields of its statistics."""
    metadata = b"\x39\x18" + _number(len(path)) + path + b"\x26\x12" + b"\x7c" + bounds + b"\0" + b"\0"
    return b"\x19\x1c\x3c" + metadata + b"\0" + b"\0"


def test_a_footer_keeps_only_what_its_columns_have() -> None:
    """Row groups without columns, and large bounds of texts, took a hundred times the bytes of the footer."""
    large = b"\x58" + _number(70_000) + b"x" * 70_000  # field 5
    found = read_footer(_footer([b"\x19\x0c\0"] * 50_000 + [_group(b"v", large + b"\x18\x01\x07")]), "a")
    assert [dict(group) for group in found.groups] == [{"v": ColumnChunk(9, None, b"\x07", None)}]


@pytest.mark.parametrize(
    ("statistics", "null_count"),
    [(b"\x36\x08", 4), (b"\x36\x01", None), (b"\x36\x14", None), (b"", None)],
    ids=["counted", "minus", "more", "none"],
)
def test_nulls_are_counted_where_the_count_can_be_true(statistics: bytes, null_count: int | None) -> None:
    found = read_footer(_footer([_group(b"v", statistics)]), "a").chunks("v")
    assert [each.null_count for each in found] == [null_count]


@pytest.mark.parametrize(
    "bounds",
    [b"\x38\x01a", b"\x56\x02", b"\x52", b"\x3c\0", b"\x59\x0c", b"\x58\xff\xff\xff\xff\x0f"],
    ids=["count is a text", "bound is a number", "a truth", "a structure", "a list", "beyond the end"],
)
def test_statistics_of_other_types_are_damage(bounds: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"a\.parquet .* footer is damaged"):
        read_footer(_footer([_group(b"v", bounds)]), "a.parquet")


def test_a_footer_larger_than_metadata_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = _footer([_group(b"v", b"")] * 100)
    assert len(read_footer(file, "a.parquet").groups) == 100
    monkeypatch.setenv("LOCKGATE_METADATA_LIMIT", "1000")
    with pytest.raises(CorruptFileError, match=r"a\.parquet has a footer of more than 1000 bytes"):
        read_footer(file, "a.parquet")


def test_bounds_of_another_width_are_none(tmp_path: Path) -> None:
    """Bounds that are not of their type's width, and counts that do not add up, prune nothing."""
    write(tmp_path / "o", "a", v=[3, None, 5], d=[DAY] * 3)
    source = ParquetSource(LocalFileSystem(), str(tmp_path / "o" / "a"))
    chunks = source._footer.groups[0]
    wide = replace(chunks["v"], minimum=b"", maximum=b"\1\2")
    more = replace(chunks["d"], value_count=4)
    source._footer = ParquetFooter([{"v": wide, "d": more}])
    found = source.statistics()
    source.close()
    assert (found["v"].minimum, found["v"].maximum, found["v"].null_count) == (None, None, 1)
    assert (found["d"].minimum, found["d"].maximum, found["d"].null_count) == (None, None, None)


def test_a_writer_that_is_no_text_is_damage(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "o", "a.parquet", v=[1])
    whole = (tmp_path / "o" / "a.parquet").read_bytes()
    (tmp_path / "o" / "a.parquet").write_bytes(whole.replace(b"parquet-cpp-arrow", b"\xff" * 17))
    with pytest.raises(CorruptFileError, match=r"a\.parquet cannot be read"):
        migrate(run, tmp_path / "o")


def test_columns_of_one_name_are_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    rows = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["v", "v"])
    pq.write_table(rows, tmp_path / "o" / "a.parquet")
    with pytest.raises(LockgateError, match="'v'"):
        migrate(run, tmp_path / "o")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 90},
            "a.avro cannot be read as a avro file",
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": "x"}, "a.avro"),
    ],
)
def test_types_of_avro_that_are_none_are_named(tmp_path: Path, kind: dict[str, Any], message: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": kind}]}
    text = json.dumps(schema).encode()
    path = tmp_path / "a.avro"
    header = b"Obj\1" + b"\x02" + b"\x16avro.schema" + _number(len(text) * 2) + text + b"\0" + b"s" * 16
    path.write_bytes(header)
    with pytest.raises(LockgateError, match=message):
        AvroSource(LocalFileSystem(), str(path))


def test_bounds_of_footers_are_those_of_the_values(catalog: Catalog, tmp_path: Path) -> None:
    columns = {
        "v": [3, None, -5, 2**40],
        "d": [DAY, None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    }
    write(tmp_path / "o", "a", **columns, b=[True, False, None, True], n=pa.nulls(4, pa.int32()), s=["x"] * 4)
    source = ParquetSource(catalog.file_system, str(tmp_path / "o" / "a"))
    found = {
        name: (each.minimum, each.maximum, each.null_count) for name, each in source.statistics().items()
    }
    source.close()
    assert found == {
        "v": (-5, 2**40, 1),
        "d": (datetime.date(1, 1, 1), datetime.date(9999, 12, 31), 1),
        "b": (False, True, 1),
        "n": (None, None, 4),
        "s": (None, None, 0),
    }


# --- before the origin is deleted ---


def test_texts_hash_alike_wherever_they_lie_in_an_array() -> None:
    """Texts are hashed by words of eight bytes, a thousand texts at a time."""
    texts = [("ab\u00e9"[number % 3] * (number % 37)) for number in range(3_000)]
    together = hash_values(pa.array(texts))
    for start in (0, 1, 1_023, 1_024, 2_999):
        assert hash_values(pa.array(texts).slice(start))[0] == together[start]
        assert hash_values(pa.array([texts[start]]))[0] == together[start]
    assert len(set(together.tolist())) == len(set(texts))
    assert len(hash_values(pa.array([], pa.string()))) == 0


def test_digests_of_files_add_up_to_those_of_all() -> None:
    fields = (DataField(0, "v", types.STRING),)
    rows = pa.table({"v": ["a", None, "b", "a"]})
    whole, parts = RowsDigest(fields), [RowsDigest(fields), RowsDigest(fields)]
    whole.add(rows)
    for part, start in zip(parts, (0, 3), strict=True):
        part.add(rows.slice(start, 3 - start if start == 0 else 1))
    found = RowsDigest(fields)
    found.add_all(parts)
    assert found.difference(whole) == ""
    assert found.rows == 4


@pytest.mark.parametrize("change", ["row", "value", "null"])
@pytest.mark.parametrize("procedure", ["migrate_table", "migrate_file"])
def test_nothing_is_deleted_if_the_new_files_hold_other_rows(
    catalog: Catalog, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, procedure: str
) -> None:
    write(tmp_path / "o", "a", v=pa.array([1, 2, None], pa.int32()))
    write(tmp_path / "o", "b", v=pa.array([4]))
    if procedure == "migrate_file":
        catalog.create_table("db.t", Schema((DataField(0, "v", types.BIGINT),)))
    module = migrate_table if procedure == "migrate_table" else migrate_file
    name = "rewrite" if procedure == "migrate_table" else "rewrite_into"
    real = getattr(module, name)

    def wrong(context: Any, source: Any, table: Any, files: Any, keys: Any) -> Any:
        for message in real(context, source, table, files, keys):
            table.abort([message])
        values = {"row": [1, 2], "value": [1, 3, None], "null": [1, None, None]}[change]
        return table.write(pa.table({"v": pa.array(values, pa.int64())}))

    monkeypatch.setattr(module, name, wrong)
    said = {
        "row": "3 rows, not 4",
        "value": "other values in column 'v'",
        "null": "2 nulls in column 'v', not 1",
    }
    with pytest.raises(ProcedureError, match=f"not deleted.*{said[change]}"):
        run(procedure, "parquet", str(tmp_path / "o"), target_table="db.t", delete_origin=True)
    assert len(list((tmp_path / "o").iterdir())) == 2


def test_rows_that_a_key_merges_are_not_deleted(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    write(tmp_path / "o", "a", id=[1, 1], v=["old", "new"])
    with pytest.raises(ProcedureError, match=r"1 rows, not 2 \(rows with the same key"):
        migrate(run, tmp_path / "o", options="primary-key=id,bucket=1", delete_origin=True)
    assert (tmp_path / "o" / "a").exists()


_VALUES = {
    "int": (pa.int32(), st.integers(-5, 5)),
    "decimal": (pa.decimal128(20, 2), st.integers(-500, 500).map(lambda each: Decimal(each) / 100)),
    "float": (pa.float64(), st.floats()),
    "text": (pa.string(), st.text(max_size=40)),
    "list": (pa.list_(pa.int64()), st.lists(st.none() | st.integers(0, 3), max_size=3)),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text(max_size=2), st.integers(0, 3), max_size=3),
    ),
    "row": (
        pa.struct([("a", pa.int8()), ("b", pa.bool_())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 3), "b": st.none() | st.booleans()}),
    ),
}


@pytest.mark.parametrize("kind", _VALUES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_digests_are_equal_where_rows_are(data: st.DataObject, kind: str) -> None:
    arrow, strategy = _VALUES[kind]
    values = data.draw(st.lists(st.none() | strategy, max_size=12))
    order = data.draw(st.permutations(range(len(values))))
    rows = [list(each.items()) if isinstance(each, dict) and kind == "map" else each for each in values]
    one, other = pa.array(rows, arrow), pa.array([rows[place] for place in order], arrow)
    fields = types.fields_from_arrow(pa.schema([("v", arrow)]))
    digests = [RowsDigest(fields), RowsDigest(fields)]
    digests[0].add(pa.table({"v": one}))
    cut = data.draw(st.integers(0, len(other)))
    for part in (other.slice(cut), other.slice(0, cut)):
        digests[1].add(pa.table({"v": part}))
    assert digests[0].difference(digests[1]) == ""
    shown = [
        repr(each if each is None or kind not in ("map", "row") else sorted(dict(each).items()))
        for each in rows
    ]
    hashes = hash_values(one).tolist()
    # -0.0 and 0.0 are different values here, as they are stored.
    assert len(set(zip(shown, hashes, strict=True))) == len(set(shown)) == len(set(hashes))


@pytest.mark.parametrize(
    "wanted", [types.INT, types.DOUBLE, types.decimal(5, 2), types.STRING, types.timestamp(9)]
)
def test_every_file_is_taken_as_it_is_or_refused(
    catalog: Catalog, run: Run, tmp_path: Path, wanted: types.DataType
) -> None:
    """Files with each type of Parquet's, into a table with one type: equal values, or nothing at all."""
    arrays = [
        pa.array([2**31 - 1], pa.int32()),
        pa.array([7], pa.int8()),
        pa.array([2**53 + 1]),
        pa.array([1.5], pa.float32()),
        pa.array([0.1]),
        pa.array([Decimal("999.99")], pa.decimal128(5, 2)),
        pa.array(["007"]),
        pa.array([True]),
        pa.array([DAY]),
        NANOS.slice(0, 1),
        pa.array([2**62], pa.timestamp("us")),
    ]
    taken = 0
    for number, values in enumerate(arrays):
        table = catalog.create_table(f"db.t{number}", Schema((DataField(0, "v", wanted),)))
        write(tmp_path / f"o{number}", "a.parquet", v=values)
        refused = ""
        try:
            run("migrate_file", "parquet", str(tmp_path / f"o{number}"), f"db.t{number}", delete_origin=True)
        except InputError as error:
            refused = str(error)
        if refused:
            assert "a.parquet" in refused
            assert "'v'" in refused
            assert wanted.bare_name in refused
            assert table.latest_snapshot() is None
            assert (tmp_path / f"o{number}" / "a.parquet").exists()
        else:
            taken += 1
            stored = table.read()["v"].combine_chunks()
            if pa.types.is_timestamp(stored.type):
                stored, values = stored.cast(pa.int64()), values.cast(stored.type).cast(pa.int64())
            assert stored.to_pylist() == values.to_pylist()
    assert taken


def test_orc_files_with_nanoseconds_are_refused(
    catalog: Catalog, run: Run, tmp_path: Path, digest: Callable[[str | Path], str]
) -> None:
    """Spark reads them, and reads microseconds."""
    write(tmp_path / "o", "a.orc", "orc", v=NANOS)
    before = digest(tmp_path)
    with pytest.raises(
        InputError, match=r"a\.orc: column 'v' is a timestamp with digits beyond microseconds"
    ):
        migrate(run, tmp_path / "o", "orc", delete_origin=True)
    assert digest(tmp_path) == before
    write(tmp_path / "o", "a.orc", "orc", v=pa.array([1000], pa.timestamp("ns")))
    with pytest.raises(UnsupportedError, match="without Spark"):
        migrate(run, tmp_path / "o", "orc")
