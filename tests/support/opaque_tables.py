"""Tables with a column of a type that this version does not know, with schema files as Paimon writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.framework.store import Catalog, Schema, Table

# As Paimon writes them, and the type that such values have in the files of a table of known types.
VARIANT = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])
TYPES: dict[str, tuple[Any, pa.DataType, str]] = {
    "variant": ("VARIANT", VARIANT, "VARIANT"),
    "multiset": (
        {"type": "MULTISET", "element": "STRING"},
        pa.map_(pa.string(), pa.int32()),
        "MULTISET<STRING>",
    ),
    "blob": ("BLOB", pa.binary(), "BLOB"),
    "vector": (
        {"type": "VECTOR", "element": "FLOAT", "length": 2},
        pa.list_(pa.float32()),
        "VECTOR<FLOAT, 2>",
    ),
    "later": ("INTERVAL_OF_LATER(3)", pa.int64(), "INTERVAL_OF_LATER(3)"),
    "inside": (
        {
            "type": "ROW",
            "fields": [{"id": 3, "name": "a", "type": "VARIANT"}, {"id": 4, "name": "b", "type": "INT"}],
        },
        pa.struct([pa.field("a", VARIANT), pa.field("b", pa.int32())]),
        "ROW<a VARIANT, b INT>",
    ),
    "of many": (
        {"type": "ARRAY", "element": {"type": "MULTISET NOT NULL", "element": "INT"}},
        pa.list_(pa.map_(pa.int32(), pa.int32())),
        "ARRAY<MULTISET<INT> NOT NULL>",
    ),
}
VALUES: dict[str, Any] = {
    "variant": {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"},
    "multiset": [("a", 2)],
    "blob": b"blob",
    "vector": [1.0, 2.0],
    "later": 7,
    "inside": {"a": {"value": b"\x0c\x01", "metadata": b"\x01"}, "b": 5},
    "of many": [[(1, 2)]],
}


def as_written(table: Table, kind: Any) -> None:
    """Give column `v` another type in the schema files, as if the table's writer had known that type."""
    for file in Path(table.location, "schema").iterdir():
        content = json.loads(file.read_text())
        for field in content["fields"]:
            if field["name"] == "v":
                field["type"] = kind
        file.write_text(json.dumps(content))


def opaque_table(catalog: Catalog, name: str, kind: str, *, file_format: str = "orc", **parts: Any) -> Table:
    """Make a table of two files with rows 1, 2 and 3, whose column `v` is of one of `TYPES`."""
    as_stored, stored, _ = TYPES[kind]
    columns = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("v", stored), pa.field("n", pa.string())]
    )
    options = {"file.format": file_format, **parts.pop("options", {})}
    table = catalog.create_table(name, Schema.from_arrow(columns, options=options, **parts))
    for ids in ([1, 2], [3]):
        rows = {"id": ids, "v": [VALUES[kind]] * len(ids), "n": [f"n{each}" for each in ids]}
        table.append(pa.table(rows, schema=columns))
    as_written(table, as_stored)
    return catalog.load_table(name)
