"""Reading parts of nested columns by their paths."""

from __future__ import annotations

import io
import os
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.errors import ColumnNotFoundError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format.leaf_paths import needed_columns
from lockgate.framework.orc.format.tail import read_tail
from lockgate.framework.orc.sources.file_source import open_source
from lockgate.pushdown import col

ROWS = 400
STREET = pa.struct([("name", pa.string()), ("number", pa.int32())])
PRICE = pa.struct([("euro", pa.int64()), ("dollar", pa.int64())])


@pytest.fixture(scope="module")
def nested() -> pa.Table:
    """Structs in structs, lists and maps, with nulls at each level."""
    rows = range(ROWS)
    return pa.table(
        {
            "id": rows,
            "addr": pa.array(
                [
                    None
                    if i % 7 == 0
                    else {
                        "zip": None if i % 5 == 0 else f"{i:05d}",
                        "street": None if i % 3 == 0 else {"name": f"street {i}", "number": i},
                    }
                    for i in rows
                ],
                pa.struct([("zip", pa.string()), ("street", STREET)]),
            ),
            "orders": pa.array(
                [
                    None
                    if i % 11 == 0
                    else [{"price": {"euro": i, "dollar": j}, "what": f"{j}"} for j in range(i % 3)]
                    for i in rows
                ],
                pa.list_(pa.struct([("price", PRICE), ("what", pa.string())])),
            ),
            "prices": pa.array(
                [[(f"k{j}", {"euro": i, "dollar": j}) for j in range(i % 3)] for i in rows],
                pa.map_(pa.string(), PRICE),
            ),
            "a.b": [f"x{i}" for i in rows],
            "a": [{"b": i, "b.c": -i} for i in rows],
        }
    )


@pytest.fixture(scope="module")
def stored(nested: pa.Table, keys: MemoryKeyProvider) -> bytes:
    sink = io.BytesIO()
    options = {"stripe_size": 4000, "row_index_stride": 50, "keys": keys}
    write_table(
        nested, sink, encrypt="pii:addr.street,orders._elem.price.euro;fin:addr.zip,prices", **options
    )
    with EncryptedOrcFile(sink) as file:
        assert file.num_stripes > 1
    return sink.getvalue()


def cut(value: Any, shape: Any) -> Any:
    """Return the parts of a value that `shape` names: a dict for a struct, a list for a list, None for a
    map.
    """
    if value is None or shape is True:
        return value
    if isinstance(shape, list):
        return [cut(item, shape[0]) for item in value]
    if None in shape:
        return [(key, cut(item, shape[None])) for key, item in value]
    return {name: cut(value[name], part) for name, part in shape.items()}


@pytest.mark.parametrize(
    ("columns", "shapes"),
    [
        (["addr.zip"], {"addr": {"zip": True}}),
        (["addr.street"], {"addr": {"street": True}}),
        (["addr.street.number", "id"], {"addr": {"street": {"number": True}}, "id": True}),
        (["addr.street.number", "addr.zip"], {"addr": {"zip": True, "street": {"number": True}}}),
        (["addr.zip", "addr"], {"addr": True}),
        (["orders.what"], {"orders": [{"what": True}]}),
        (["orders.price.euro", "addr.zip"], {"orders": [{"price": {"euro": True}}], "addr": {"zip": True}}),
        (["orders._elem.price.dollar"], {"orders": [{"price": {"dollar": True}}]}),
        (["orders._elem"], {"orders": True}),
        (["prices.euro"], {"prices": {None: {"euro": True}}}),
        (["prices._value.dollar"], {"prices": {None: {"dollar": True}}}),
        (["prices._key"], {"prices": True}),
        (["a.b"], {"a.b": True}),
        (["a.b.c"], {"a": {"b.c": True}}),
        (["a", "a.b"], {"a": True, "a.b": True}),
    ],
)
def test_parts_of_columns_are_read_by_path(
    stored: bytes, nested: pa.Table, keys: MemoryKeyProvider, columns: list[str], shapes: dict[str, Any]
) -> None:
    expected = {
        name: [cut(value, shape) for value in nested[name].to_pylist()] for name, shape in shapes.items()
    }
    for source in (stored, io.BytesIO(stored)):
        with EncryptedOrcFile(source, keys, strict=True) as file:
            table = file.read(columns)
            assert table.schema.names == list(expected)
            assert table.to_pydict() == expected
            assert pa.Table.from_batches(file.iter_batches(columns)).equals(table)
            some = file.read(columns, predicate=col("id") < 37)
            assert some.equals(table.slice(0, 37))
            table.validate(full=True)


def test_a_filter_may_compare_parts_that_are_not_read(
    stored: bytes, nested: pa.Table, keys: MemoryKeyProvider
) -> None:
    with EncryptedOrcFile(stored, keys) as file:
        whole = file.read(["addr.zip"])
        for predicate, mask in (
            (pc.field("addr", "street", "number") == 50, [i == 50 for i in range(ROWS)]),
            (
                col("addr", "street", "number") > 380,
                [i > 380 and i % 7 != 0 and i % 3 != 0 for i in range(ROWS)],
            ),
        ):
            found = file.read(["addr.zip"], predicate=predicate)
            assert found.equals(whole.filter(pa.array(mask)))
            assert found.schema.field("addr").type == pa.struct([("zip", pa.string())])


def test_plain_files_are_projected_too(nested: pa.Table) -> None:
    sink = io.BytesIO()
    write_table(nested, sink)
    for source in (sink, sink.getvalue()):
        with EncryptedOrcFile(source) as file:
            expected = [cut(value, {"zip": True}) for value in nested["addr"].to_pylist()]
            assert file.read(["addr.zip"])["addr"].to_pylist() == expected


def test_streams_next_to_a_leaf_are_not_read(keys: MemoryKeyProvider) -> None:
    rows = pa.table({"both": [{"small": i % 9, "large": os.urandom(20).hex()} for i in range(5000)]})
    sink = io.BytesIO()
    write_table(rows, sink, encrypt="pii:both", keys=keys)
    with EncryptedOrcFile(sink, keys, integrity="ignore") as file:
        assert file.read(["both.small"]).num_rows == 5000
        assert 100 < file.last_read.bytes_read < 10_000
        file.read(["both"])
        assert file.last_read.bytes_read > 100_000


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("addr.zap", "'addr.zip'"),
        ("addr.street.nam", "'addr.street.name'"),
        ("orders.pryce", "'orders._elem.price'"),
        ("id.x", "'id'"),
        ("addr.", ""),
        ("", ""),
        (".zip", ""),
        ("orders._key", ""),
        ("nothing.at.all", ""),
    ],
)
def test_unknown_paths_are_refused(stored: bytes, keys: MemoryKeyProvider, path: str, nearest: str) -> None:
    with EncryptedOrcFile(stored, keys) as file:
        with pytest.raises(ColumnNotFoundError, match=f"there is no column '{path}'.*{nearest}"):
            file.read([path])
        with pytest.raises(ColumnNotFoundError):
            next(file.iter_batches(["id", path]))


def test_every_column_is_found_by_its_path(stored: bytes) -> None:
    types = read_tail(open_source(stored)).types
    for column in range(1, len(types)):
        path = types.path(column)
        if path != "a.b":  # As a path this is the column of that name.
            assert column in needed_columns(types, path), path
    assert types.path(0) == ""
