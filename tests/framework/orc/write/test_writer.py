"""The writer: bounded memory, stripes and row groups, CHAR and VARCHAR, metadata, and refusals."""

from __future__ import annotations

import datetime
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import InputError, UnsupportedTypeError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, OrcWriter, encrypt_file, write_batches, write_table
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.orc.format.stripe import read_stripe

MIB = 1024 * 1024


class Nowhere:
    """A sink that counts bytes and discards them."""

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: Any) -> None:
        self.size += memoryview(data).nbytes


@pytest.mark.long
@pytest.mark.parametrize("encrypt", [None, "pii:text,number,part.shut"])
def test_memory_is_bounded_by_stripes_not_by_the_file(encrypt: str | None, keys: MemoryKeyProvider) -> None:
    rng = np.random.default_rng(3)
    alive: list[int] = []
    before = pa.total_allocated_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(120):
            alive.append(pa.total_allocated_bytes() - before)
            numbers = rng.integers(0, 2**62, 40_000)
            texts = pa.array(numbers).cast(pa.string())
            yield pa.RecordBatch.from_pydict(
                {
                    "text": texts,
                    "number": numbers,
                    "part": pa.StructArray.from_arrays([texts, pa.array(numbers)], ["shut", "open"]),
                }
            )

    schema = pa.schema(
        [
            ("text", pa.string()),
            ("number", pa.int64()),
            ("part", pa.struct([("shut", pa.string()), ("open", pa.int64())])),
        ]
    )
    sink = Nowhere()
    written = write_batches(batches(), sink, schema=schema, encrypt=encrypt, keys=keys, stripe_size=2 * MIB)
    rows_in_memory = 120 * 40_000 * 60
    assert written.row_count == 120 * 40_000
    assert sink.size == written.size > 100 * MIB
    # A batch or two, rows for a stripe or two, their masks and what Arrow's writer holds.
    assert max(alive) < 24 * MIB < rows_in_memory / 10


def test_stripes_and_row_groups_have_the_requested_size(keys: MemoryKeyProvider) -> None:
    numbers = np.random.default_rng(1).integers(0, 2**62, 200_000)
    table = pa.table({"a": numbers, "b": numbers[::-1]})
    sizes = {}
    for stripe_size in (200_000, 800_000):
        sink = io.BytesIO()
        write_table(
            table,
            sink,
            encrypt="pii:a",
            keys=keys,
            stripe_size=stripe_size,
            row_index_stride=2000,
            compression="none",
        )
        with EncryptedOrcFile(sink, keys, strict=True) as file:
            assert file.read().equals(table)
            assert file._tail.footer.row_index_stride == 2000
            stripes = file._tail.footer.stripes
            sizes[stripe_size] = max(stripe.index_length + stripe.data_length for stripe in stripes)
    # Arrow looks at its buffers between batches of rows, so that a stripe may be somewhat larger.
    assert all(size < 2.5 * stripe_size for stripe_size, size in sizes.items())
    assert sizes[800_000] > 2 * sizes[200_000]


def kinds(*texts: str | None) -> pa.Schema:
    return pa.schema(
        [
            pa.field(f"c{index}", pa.string(), metadata=text and {"lockgate.orc.type": text})
            for index, text in enumerate(texts)
        ]
    )


@pytest.mark.parametrize("encrypt", [None, "pii:c0,c1"])
def test_char_and_varchar(encrypt: str | None, keys: MemoryKeyProvider) -> None:
    schema = kinds("char(5)", "varchar(4)", None)
    table = pa.table(
        {"c0": ["ab", None, "äöüßé"], "c1": ["a", "abcd", None], "c2": ["x", "y", "z"]}, schema=schema
    )
    sink = io.BytesIO()
    write_table(table, sink, encrypt=encrypt, keys=keys)
    with EncryptedOrcFile(sink, keys, strict=True) as file:
        types = file._tail.types.types
        assert [(each.kind, each.maximum_length) for each in types[1:]] == [
            (TypeKind.CHAR, 5),
            (TypeKind.VARCHAR, 4),
            (TypeKind.STRING, 0),
        ]
        assert not any(each.key == "lockgate.orc.type" for type_ in types for each in type_.attributes)
        assert file.read().to_pydict() == {
            "c0": ["ab   ", None, "äöüßé"],
            "c1": ["a", "abcd", None],
            "c2": ["x", "y", "z"],
        }


def test_lengths_of_char_and_varchar_are_kept(keys: MemoryKeyProvider) -> None:
    schema = kinds("varchar(3)")
    with pytest.raises(InputError, match=r"'c0' is a VARCHAR\(3\), but holds a text of 4 characters"):
        write_table(pa.table({"c0": ["abcd"]}, schema=schema), io.BytesIO())
    nested = pa.schema([("n", pa.list_(schema.field(0)))])
    with pytest.raises(InputError, match=r"'n._elem' is a VARCHAR\(3\)"):
        write_table(pa.table({"n": [["abc", "abcd"]]}, schema=nested), io.BytesIO())
    for text, type_ in (("varchar(0)", pa.string()), ("text", pa.string()), ("char(3)", pa.int64())):
        odd = pa.schema([pa.field("c0", type_, metadata={"lockgate.orc.type": text})])
        with pytest.raises(UnsupportedTypeError, match=r"is 'char\(n\)' or 'varchar\(n\)', on a string"):
            write_batches([], io.BytesIO(), schema=odd)


def test_encrypting_a_file_keeps_types_and_metadata(tmp_path: Path, keys: MemoryKeyProvider) -> None:
    inner = pa.struct([kinds("char(3)").field(0), pa.field("n", pa.int32())])
    schema = pa.schema([*kinds("varchar(9)", None), ("nested", inner), ("list", pa.list_(inner))])
    row = {"c0": "abc", "n": 1}
    table = pa.table({"c0": ["one"], "c1": ["two"], "nested": [row], "list": [[row, None]]}, schema=schema)
    plain, encrypted = tmp_path / "plain.orc", tmp_path / "encrypted.orc"
    write_table(table, plain, metadata={"made by": b"a test", "raw": bytes(range(256))})
    encrypt_file(plain, encrypted, encrypt="pii:c0,nested.c0", mask="sha256:c0,nested.c0", keys=keys)
    with EncryptedOrcFile(plain) as before, EncryptedOrcFile(encrypted, keys, strict=True) as after:
        pairs = zip(before._tail.types.types, after._tail.types.types, strict=True)
        assert all((a.kind, a.maximum_length) == (b.kind, b.maximum_length) for a, b in pairs)
        assert before._tail.types.types[1].kind == TypeKind.VARCHAR
        found = {item.name: item.value for item in after._tail.footer.metadata}
        assert {"made by": b"a test", "raw": bytes(range(256))}.items() <= found.items()
        assert after.read().to_pylist() == table.to_pylist()
        assert after.integrity == "verified"
    alone = pyarrow.orc.ORCFile(str(encrypted)).read().to_pylist()[0]
    assert (len(alone["c0"]), len(alone["nested"]["c0"])) == (9, 3)


def test_encrypting_a_file_is_bounded_in_memory(tmp_path: Path, keys: MemoryKeyProvider) -> None:
    plain, encrypted = tmp_path / "plain.orc", tmp_path / "encrypted.orc"
    rng = np.random.default_rng(3)
    rows = 40_000
    parts = (
        pa.table({"a": rng.integers(0, 2**62, rows), "b": rng.integers(0, 2**62, rows)}) for _ in range(60)
    )
    write_batches(parts, plain, schema=pa.schema([("a", pa.int64()), ("b", pa.int64())]), stripe_size=MIB)
    alive = []

    class Watched(Nowhere):
        def write(self, data: Any) -> None:
            alive.append(pa.total_allocated_bytes())
            super().write(data)

    before = pa.total_allocated_bytes()
    encrypt_file(plain, Watched(), encrypt="pii:a", keys=keys, stripe_size=MIB)
    size = plain.stat().st_size
    assert size > 30 * MIB
    assert max(alive) - before < size / 2
    encrypt_file(plain, encrypted, encrypt="pii:a", keys=keys, stripe_size=MIB)
    assert encrypted.stat().st_size < 1.2 * size


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dictionary_key_size_threshold": 1.5}, "a share from 0 to 1, not 1.5"),
        ({"hide_cardinality": True, "dictionary_key_size_threshold": 0.3}, "writes without dictionaries"),
        (
            {"metadata": {"lockgate.integrity": b""}},
            "'lockgate.integrity': names that begin with 'lockgate.'",
        ),
        ({"metadata": {"owner": "text"}}, r"metadata takes Mapping\[str, bytes\] . None, not dict of str"),
        ({"stripe_size": 0}, "stripe_size is a number of bytes from 1 up, not 0"),
        ({"row_index_stride": "many"}, "row_index_stride takes int, not str"),
        ({"compression": None}, "compression takes str, not NoneType"),
        (
            {"dictionary_key_size_threshold": "x"},
            r"dictionary_key_size_threshold takes float . None, not str",
        ),
        ({"bloom_filter_columns": "a"}, r"bloom_filter_columns must be a list of names: \['a'\]"),
        ({"bloom_filter_columns": ["b"]}, "there is no column 'b'"),
        ({"bloom_filter_columns": ["tiny"]}, "column 'tiny' of type int8 cannot have a Bloom filter"),
        (
            {"bloom_filter_columns": ["parts.flag"]},
            "column 'parts.flag' of type bool cannot have a Bloom filter",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = pa.table({"a": ["x"], "tiny": pa.array([1], pa.int8()), "parts": [{"flag": True}]})
    with pytest.raises(InputError, match=message):
        write_table(table, tmp_path / "x.orc", **options)
    assert list(tmp_path.iterdir()) == []


def test_dictionaries_are_written_where_they_help(keys: MemoryKeyProvider) -> None:
    table = pa.table(
        {"few": [f"value {i % 7}" for i in range(5000)], "many": [f"value {i}" for i in range(5000)]}
    )
    found = {}
    for name, options in (("default", {}), ("hidden", {"hide_cardinality": True})):
        sink = io.BytesIO()
        write_table(table, sink, encrypt="pii:few,many", keys=keys, **options)
        with EncryptedOrcFile(sink, keys, strict=True) as file:
            footer = read_stripe(file._source, file._tail, 0).footer
            found[name] = [variant.encoding[0].dictionary_size for variant in footer.encryption]
            assert file.read().equals(table)
    assert found == {"default": [7, 0], "hidden": [0, 0]}


class FailingSink(io.BytesIO):
    """A sink that fails once, after a number of writes."""

    left = sys.maxsize

    def write(self, data: Any) -> int:
        self.left -= 1
        if not self.left:
            raise OSError("no room")
        return super().write(data)


@pytest.mark.parametrize(
    ("encrypt", "writes"), [(None, 1), (None, 3), ("pii:a", 1), ("pii:a", 3), ("pii:a", 6)]
)
def test_a_failed_file_cannot_be_continued(encrypt: str | None, writes: int, keys: MemoryKeyProvider) -> None:
    """Later data would be encrypted and tagged with used counters, and rows would be missing."""
    table = pa.table({"a": ["x", "y"]})
    sink = FailingSink()
    writer = OrcWriter(sink, table.schema, encrypt=encrypt, keys=keys)
    writer.write(table)
    sink.left = writes
    with pytest.raises(OSError, match="no room"):
        writer.close()
    size = len(sink.getvalue())
    with pytest.raises(InputError, match="was aborted, or writing it failed"):
        writer.close()
    with pytest.raises(InputError, match="was aborted, or writing it failed"):
        writer.write(table)
    assert len(sink.getvalue()) == size


def test_a_finished_file_takes_no_more_rows(keys: MemoryKeyProvider) -> None:
    table = pa.table({"a": ["x", "y"]})
    for encrypt in (None, "pii:a"):
        writer = OrcWriter(io.BytesIO(), table.schema, encrypt=encrypt, keys=keys)
        writer.write(table)
        written = writer.close()
        with pytest.raises(InputError, match="the file is finished; nothing can be added"):
            writer.write(table)
        writer.abort()
        assert writer.close() == written


def test_text_files_are_refused_as_sinks() -> None:
    with pytest.raises(InputError, match="to a binary file object, not to a StringIO"):
        write_table(pa.table({"a": ["x"]}), io.StringIO())


def test_rows_of_other_types_are_stored_exactly_or_refused() -> None:
    schema = pa.schema([("v", pa.float32()), ("s", pa.struct([("a", pa.int64())])), ("t", pa.time32("ms"))])
    rows = {"v": [1.5, 0.1], "s": [{"a": 1}] * 2, "t": pa.array([1, 2], pa.time32("ms"))}
    sink = io.BytesIO()
    with OrcWriter(sink, schema) as writer:
        writer.write(pa.table(rows).slice(0, 1))
    assert EncryptedOrcFile(io.BytesIO(sink.getvalue())).read().to_pylist() == [
        {"v": 1.5, "s": {"a": 1}, "t": 1}
    ]
    for name, values in (("v", [1.5, 0.1]), ("s", [{"a": 1, "b": 2}] * 2)):
        with (
            pytest.raises(InputError, match=f"column '{name}' is "),
            OrcWriter(io.BytesIO(), schema) as writer,
        ):
            writer.write(pa.table({**rows, "v": [1.5, 1.5], name: values}))


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda kind: kind, lambda item: item),
        (pa.list_, lambda item: [item]),
        (lambda kind: pa.struct([("a", kind)]), lambda item: {"a": item}),
        (lambda kind: pa.map_(pa.string(), kind), lambda item: [("k", item)]),
    ],
    ids=["alone", "list", "struct", "map"],
)
@pytest.mark.parametrize(
    ("given", "number", "kind", "stored"),
    [
        (pa.time32("s"), 5, pa.time32("ms"), 5_000),
        (pa.time32("ms"), 5_000, pa.time32("s"), 5),
        (pa.time32("ms"), 5_001, pa.time32("s"), None),
        (pa.time64("us"), 5_000_000, pa.time32("ms"), 5_000),
        (pa.time64("ns"), 5_000_001, pa.time32("ms"), None),
        (pa.timestamp("ms"), 5_000, pa.timestamp("s"), datetime.datetime(1970, 1, 1, 0, 0, 5)),
        (pa.timestamp("ms"), 5_001, pa.timestamp("s"), None),
        (pa.timestamp("us"), 5_000, pa.timestamp("ms"), datetime.datetime(1970, 1, 1, 0, 0, 0, 5_000)),
        (pa.timestamp("us"), 5_001, pa.timestamp("ms"), None),
        (pa.duration("s"), 5, pa.time32("ms"), None),
        (pa.time32("ms"), 5, pa.int32(), None),
        (pa.time32("ms"), 5, pa.int64(), None),
    ],
)
def test_times_of_another_unit_are_converted_or_refused(
    given: pa.DataType,
    number: int,
    kind: pa.DataType,
    stored: Any,
    make: Callable[[pa.DataType], pa.DataType],
    value: Callable[[Any], Any],
    tmp_path: Path,
) -> None:
    """Units must not be ignored: five seconds were once stored as five milliseconds."""
    rows = pa.table({"t": pa.array([value(number)], make(given))})
    schema = pa.schema([("t", make(kind))])
    path = tmp_path / "a.orc"
    if stored is None:
        with pytest.raises(InputError, match=r"column 't' is .* convert its values first"):
            write_rows(path, schema, rows)
        assert not path.exists()
    else:
        write_rows(path, schema, rows)
        assert pyarrow.orc.read_table(path)["t"].to_pylist() == [value(stored)]


def write_rows(path: Path, schema: pa.Schema, rows: pa.Table) -> None:
    with OrcWriter(path, schema) as writer:
        writer.write(rows)
