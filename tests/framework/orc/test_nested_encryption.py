"""Encryption of nested columns: named parts are hidden, others are not, and all values round-trip."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.errors import ColumnNotFoundError, KeyMissingError, MaskedDataWarning, OptionError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, OrcWriter, audit_file, decrypt_file, rekey, write_table
from lockgate.framework.orc.format.column_paths import ColumnTree, find_column
from lockgate.framework.orc.format.layout import StreamKind
from lockgate.framework.orc.format.stripe import read_stripe
from lockgate.pushdown import col

ROWS = 4000


@pytest.fixture(scope="module")
def keys() -> MemoryKeyProvider:
    return MemoryKeyProvider({"pii@0": os.urandom(16), "fin@3": os.urandom(32)})


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rows = range(ROWS)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "address": [
                {"zip": f"{i:05d}", "street": f"street {i}", "geo": {"lat": i / 7, "lon": -i / 3}}
                if i % 5
                else None
                for i in rows
            ],
            "lst": [[{"q": i + j, "r": f"r{i}"} for j in range(i % 3)] if i % 7 else None for i in rows],
            "mp": pa.array(
                [[(f"k{i}", i), (f"j{i}", None)] if i % 4 else None for i in rows],
                pa.map_(pa.string(), pa.int64()),
            ),
            "deep": [[[{"x": [i]}] * (i % 2)] for i in rows],
            "name": [f"name {i}" for i in rows],
        }
    )


ENCRYPT = "pii:address.zip,lst._elem.q,mp._key,name;fin:address.geo,mp._value,deep._elem._elem.x"
MASK = "redact:mp._key;sha256:address.zip;redact,Xx1:address.geo;redact:deep._elem._elem.x"


def write(table: pa.Table, keys: MemoryKeyProvider, **options: Any) -> bytes:
    sink = io.BytesIO()
    settings = {"encrypt": ENCRYPT, "mask": MASK, "stripe_size": 60_000, "row_index_stride": 500, **options}
    write_table(table, sink, keys=keys, **settings)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["zstd", "snappy", "zlib", "lz4", "none"])
def test_encrypted_parts_round_trip(codec: str, table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys, compression=codec)
    with EncryptedOrcFile(data, keys, strict=True, integrity="require") as file:
        assert file.num_stripes > 2
        assert file.read().equals(table)
        assert file.schema.equals(table.schema)
        paths = [column.path for column in file.variants]
    assert paths == [
        "address.zip",
        "address.geo",
        "lst._elem.q",
        "mp._key",
        "mp._value",
        "deep._elem._elem.x",
        "name",
    ]


def test_without_keys_only_named_parts_are_hidden(table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys)
    with EncryptedOrcFile(data) as file, pytest.warns(MaskedDataWarning):
        masked = file.read()
    alone = pyarrow.orc.ORCFile(io.BytesIO(data)).read()
    for found in (masked, alone):
        assert found["id"].to_pylist() == table["id"].to_pylist()
        for before, after in zip(table["address"].to_pylist(), found["address"].to_pylist(), strict=True):
            assert (before is None) == (after is None)
            if before is not None:
                assert after["street"] == before["street"]
                assert len(after["zip"]) == 64
                assert set(f"{after['geo']['lat']:.5g}") <= set("1.e-0")
        for before, after in zip(table["lst"].to_pylist(), found["lst"].to_pylist(), strict=True):
            assert after == (before and [{"q": None, "r": each["r"]} for each in before])
        for before, after in zip(table["mp"].to_pylist(), found["mp"].to_pylist(), strict=True):
            assert after == (before and [("x" + "9" * (len(key) - 1), None) for key, _ in before])
        assert [each[0] and each[0][0]["x"] for each in found["deep"].to_pylist()][:4] == [[], [9], [], [9]]
        assert found["name"].null_count == ROWS


def test_one_of_two_keys_reads_its_part(table: pa.Table, keys: MemoryKeyProvider) -> None:
    held = keys._keys._keys
    some = MemoryKeyProvider({"fin@3": held["fin", 3]})
    data = write(table, keys)
    with EncryptedOrcFile(data, some) as file, pytest.warns(MaskedDataWarning):
        found = file.read()
    assert found["deep"].equals(table["deep"])
    street = table["address"].to_pylist()[11]
    masked = found["address"].to_pylist()[11]
    assert masked["geo"] == street["geo"]
    assert len(masked["zip"]) == 64
    with pytest.raises(KeyMissingError):
        EncryptedOrcFile(data, some, strict=True)


def test_parts_are_found_by_predicates_and_projections(table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys)
    with EncryptedOrcFile(data, keys, strict=True) as file:
        found = file.read(predicate=col("name") == "name 77")
        assert found.equals(table.slice(77, 1))
        leaves = file.read(["address.zip"]).to_pylist()
    expected = [{"address": row and {"zip": row["zip"]}} for row in table["address"].to_pylist()]
    assert leaves == expected


def test_copies_with_other_keys_or_without_encryption(table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys)
    again, plain = io.BytesIO(), io.BytesIO()
    rekey(data, again, keys)
    decrypt_file(again.getvalue(), plain, keys)
    for copy in (again, plain):
        with EncryptedOrcFile(copy.getvalue(), keys, strict=True) as file:
            assert file.read().equals(table)
    assert pyarrow.orc.ORCFile(plain).read().equals(table)


def test_files_state_keys_and_masks_as_apache_does(table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys, mask=f"{MASK};nullify:name;redact,Xx9,`_ 7`:lst._elem.q")
    with EncryptedOrcFile(data) as file:
        types, encryption = file._tail.types, file._tail.footer.encryption
        stated = {
            path: {each.key: each.value for each in types.types[find_column(types, path) or 0].attributes}
            for path in ("address.zip", "address.geo", "lst._elem.q", "mp._value", "address", "lst._elem")
        }
    assert stated == {
        "address.zip": {"encrypt": "pii", "mask": "sha256"},
        "address.geo": {"encrypt": "fin", "mask": "redact,Xx1"},
        "lst._elem.q": {"encrypt": "pii", "mask": "redact,Xx9,`_ 7`"},
        "mp._value": {"encrypt": "fin", "mask": "nullify"},
        "address": {},
        "lst._elem": {},
    }
    masks = [(mask.name, list(mask.mask_parameters), len(mask.columns)) for mask in encryption.mask]
    assert masks == [
        ("nullify", [], 2),
        ("redact", [], 2),
        ("redact", ["Xx1"], 1),
        ("redact", ["Xx9", "_ 7"], 1),
        ("sha256", [], 1),
    ]
    assert [(key.key_name, key.key_version, key.algorithm) for key in encryption.key] == [
        ("fin", 3, 2),
        ("pii", 0, 1),
    ]
    order = [(encryption.key[variant.key].key_name, variant.root) for variant in encryption.variants]
    assert order == sorted(order)


def test_audits_check_nested_columns(table: pa.Table, keys: MemoryKeyProvider) -> None:
    wanted = {
        "address.zip": "pii",
        "address.geo.lat": "fin",
        "address.street": "pii",
        "mp._value": "pii",
        "no.x": "p",
    }
    audit = audit_file(write(table, keys), wanted)
    assert (audit.plain, audit.outdated) == (("address.street",), ("mp._value",))


def test_bloom_filters_of_parts_are_encrypted(table: pa.Table, keys: MemoryKeyProvider) -> None:
    data = write(table, keys, bloom_filter_columns=["address.zip", "address.street", "mp._key"])
    with EncryptedOrcFile(data, keys) as file:
        types = file._tail.types
        zip_, street, key = (
            find_column(types, path) for path in ("address.zip", "address.street", "mp._key")
        )
        kinds = {StreamKind.BLOOM_FILTER, StreamKind.BLOOM_FILTER_UTF8}
        streams = [each for each in read_stripe(file._source, file._tail, 0).streams if each.kind in kinds]
        assert {each.column for each in streams if each.variant is not None} == {zip_, key}
        assert {each.column for each in streams if each.variant is None} == {street}
        assert file.read().equals(table)
    for wrong, message in (
        ("address", "column 'address' is nested .* name address.zip, address.street, address.geo.lat"),
        ("address.zap", "there is no column 'address.zap'; did you mean 'address.zip'"),
    ):
        with pytest.raises(OptionError, match=message):
            write(table, keys, bloom_filter_columns=[wrong])


@pytest.mark.parametrize(
    ("encrypt", "error", "message"),
    [
        ("pii:address,address.zip", OptionError, "'address.zip' is a part of 'address'"),
        ("pii:address.geo.lat;fin:address.geo", OptionError, "'address.geo.lat' is a part of 'address.geo'"),
        ("pii:address.zap", ColumnNotFoundError, "no column 'address.zap'"),
        ("pii:lst.q", ColumnNotFoundError, "no column 'lst.q'"),
        ("pii:0", OptionError, "number 0 is the row itself, which is never encrypted as a whole"),
        ("pii:mp._key", OptionError, "keys of a map are never null"),
    ],
)
def test_refused_encryption_options(
    encrypt: str,
    error: type[Exception],
    message: str,
    table: pa.Table,
    keys: MemoryKeyProvider,
    tmp_path: Any,
) -> None:
    with pytest.raises(error, match=message):
        OrcWriter(tmp_path / "x.orc", table.schema, encrypt=encrypt, keys=keys)
    assert not (tmp_path / "x.orc").exists()


def test_column_numbers_equal_those_of_files(table: pa.Table, keys: MemoryKeyProvider) -> None:
    tree = ColumnTree(table.schema)
    with EncryptedOrcFile(write(table, keys)) as file:
        types = file._tail.types
        columns = [column for top in tree.top for column in top.walk()]
        assert [find_column(types, column.name) for column in columns] == [
            column.number for column in columns
        ]
        assert tree.end == len(types)
        assert find_column(types, "address.zap") is None
        assert find_column(types, "id._elem") is None


@pytest.mark.parametrize("encrypt", [None, "pii:a.z"])
def test_slices_of_structs_with_nulls(encrypt: str | None, keys: MemoryKeyProvider) -> None:
    """Arrow's writer would write other rows of such a slice."""
    rows = [{"z": f"{i}", "l": [{"k": i} if i % 3 else None]} if i % 5 else None for i in range(3000)]
    table = pa.table({"a": pa.array(rows), "b": pa.array([[row] for row in rows])})
    for part in (
        table.slice(721, 1500),
        table.slice(2999),
        pa.concat_tables([table.slice(5, 9), table.slice(11)]),
    ):
        sink = io.BytesIO()
        write_table(part, sink, encrypt=encrypt, keys=keys)
        with EncryptedOrcFile(sink, keys, strict=True) as file:
            assert file.read().to_pylist() == part.to_pylist()


# --- any nested rows, any choice of parts ---

LEAF: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(max_size=6),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
}


@st.composite
def nested(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["leaf", "struct", "list", "map"] if depth else ["leaf"]))
    if kind == "leaf":
        type_ = draw(st.sampled_from(sorted(LEAF, key=str)))
        return type_, st.none() | LEAF[type_]
    if kind == "struct":
        parts = draw(st.lists(nested(depth - 1), min_size=1, max_size=3))
        names = [f"f{index}" for index in range(len(parts))]
        values = st.fixed_dictionaries(dict(zip(names, [part[1] for part in parts], strict=True)))
        return pa.struct(list(zip(names, [part[0] for part in parts], strict=True))), st.none() | values
    type_, values = draw(nested(depth - 1))
    if kind == "list":
        return pa.list_(type_), st.none() | st.lists(values, max_size=3)
    pairs = st.lists(st.tuples(st.text(max_size=4), values), max_size=3)
    return pa.map_(pa.string(), type_), st.none() | pairs


def test_a_null_inside_a_struct_without_nulls_moves_no_value() -> None:
    """Arrow's writer would store the 0 behind the null, and readers would take it for the next row."""
    inner = pa.struct([("flag", pa.bool_()), ("number", pa.int64())])
    for type_, wrap in (
        (pa.struct([("inner", inner)]), lambda value: {"inner": value}),
        (pa.list_(pa.struct([("inner", inner)])), lambda value: [{"inner": value}]),
        (pa.map_(pa.string(), pa.struct([("inner", inner)])), lambda value: [("k", {"inner": value})]),
    ):
        rows = [wrap(None), wrap({"flag": None, "number": 1}), wrap({"flag": True, "number": 2})]
        table = pa.table({"c": pa.array(rows, type_)})
        sink = io.BytesIO()
        write_table(table, sink)
        assert pa.orc.read_table(sink).to_pylist() == table.to_pylist()


@given(data=st.data())
@settings(max_examples=examples(60))
def test_random_parts_of_random_columns(data: st.DataObject) -> None:
    columns = data.draw(st.lists(nested(), min_size=1, max_size=3))
    rows = data.draw(st.integers(0, 30))
    table = pa.table(
        {
            f"c{index}": pa.array(data.draw(st.lists(values, min_size=rows, max_size=rows)), type_)
            for index, (type_, values) in enumerate(columns)
        }
    )
    tree = ColumnTree(table.schema)
    every = [column for top in tree.top for column in top.walk() if not column.is_key]
    chosen = []
    for column in data.draw(st.lists(st.sampled_from(every), unique_by=lambda each: each.name, min_size=1)):
        if not any(column.number in other.numbers or other.number in column.numbers for other in chosen):
            chosen.append(column)
    masked = [column.name for column in chosen if data.draw(st.booleans())]
    keys = MemoryKeyProvider({"pii@0": bytes(16)})
    start = data.draw(st.integers(0, rows))
    part = table.slice(start)
    sink = io.BytesIO()
    write_table(
        part,
        sink,
        encrypt=f"pii:{','.join(column.name for column in chosen)}",
        mask=f"redact:{','.join(masked)}" if masked else None,
        keys=keys,
        stripe_size=data.draw(st.sampled_from([1, 64 << 20])),
        dictionary_key_size_threshold=data.draw(st.sampled_from([0.0, 1.0])),
    )
    with EncryptedOrcFile(sink, keys, strict=True) as file:
        assert file.read().to_pylist() == part.to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskedDataWarning)
        with EncryptedOrcFile(sink) as file:
            shown = file.read()
    plain = [top.name for top in tree.top if not any(column.number in top.numbers for column in chosen)]
    assert shown.select(plain).to_pylist() == part.select(plain).to_pylist()
    for top in tree.top:
        if top in chosen and top.name not in masked:
            assert shown[top.name].null_count == part.num_rows


def test_two_files_share_no_encrypted_stream(table: pa.Table, keys: MemoryKeyProvider) -> None:
    """Two files of the same rows have no encrypted stream in common."""
    data = [write(table, keys) for _ in range(2)]
    streams = []
    for each in data:
        with EncryptedOrcFile(each) as file:
            found = read_stripe(file._source, file._tail, 0).streams
            streams.append(
                {bytes(file._source.read_at(s.offset, s.length)) for s in found if s.variant is not None}
            )
    assert streams[0]
    assert not streams[0] & streams[1] - {b""}
