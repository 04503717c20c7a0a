"""Layers of mapped files: the vectors of `tests/fixtures/cache_layers`, which the connector reads too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lockgate.framework.types import parse_type, to_arrow, value_from_json, value_to_json
from lockgate.framework.version import ROW_CODEC
from lockgate.lookup.cache.backends import LAYERS_FILE
from lockgate.lookup.cache.layers import PARTS, LayerWriter
from lockgate.lookup.cache.mapped_files import MemoryReader
from lockgate.lookup.codec.byte_rows import Rows
from lockgate.lookup.codec.key_codec import KeyCodec
from lockgate.lookup.codec.lists import pack, unpack
from lockgate.lookup.codec.row_codec import RowCodec

VECTORS = sorted((Path(__file__).parents[2] / "fixtures" / "cache_layers").glob("*.json"))


def batch(columns: list[dict[str, Any]], rows: list[list[Any]]) -> pa.RecordBatch:
    types = [parse_type(column["type"]) for column in columns]
    schema = pa.schema([(each["name"], to_arrow(kind)) for each, kind in zip(columns, types, strict=True)])
    arrays = [
        pa.array([value_from_json(kind, row[place]) for row in rows], field.type)
        for place, (kind, field) in enumerate(zip(types, schema, strict=True))
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def keys_of(vector: dict[str, Any], keys: list[list[Any]]) -> tuple[Rows, list[int]]:
    """Return the bytes of keys, sorted, and the number of each among those given."""
    columns = batch(vector["keys"], keys)
    rows = KeyCodec(columns.schema).encode(columns.columns).rows
    as_bytes = rows.to_bytes()
    order = sorted(range(len(keys)), key=as_bytes.__getitem__)
    return rows.take(np.array(order, np.int64)), order


def lists_of(vector: dict[str, Any], lists: list[list[list[Any]] | None]) -> Rows:
    """Return the packed rows of each key; nothing where there are none, since the key was deleted."""
    codec = RowCodec(batch(vector["columns"], []).schema)
    values = []
    for rows in lists:
        if rows is None:
            values.append(b"")
            continue
        encoded = codec.encode(batch(vector["columns"], rows))
        values += pack(encoded, np.array([len(rows)], np.int64)).to_bytes()
    return Rows.from_values(values)


def write(vector: dict[str, Any], folder: Path) -> None:
    for layer in vector["layers"]:
        keys, order = keys_of(vector, [key for key, _ in layer["puts"]])
        values = lists_of(vector, [layer["puts"][number][1] for number in order])
        writer = LayerWriter(folder, layer["name"])
        half = np.arange(len(keys) // 2)
        for at in (half, np.arange(len(half), len(keys))):  # as a step forward writes its keys in pieces
            writer.put(keys.take(at), values.take(at))
        writer.finish()
    (folder / LAYERS_FILE).write_text(json.dumps({"layers": [layer["name"] for layer in vector["layers"]]}))


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_bytes_of_layers(path: Path, tmp_path: Path) -> None:
    vector = json.loads(path.read_text())
    assert vector["version"] == ROW_CODEC
    write(vector, tmp_path)
    for layer in vector["layers"]:
        found = {part: tmp_path / f"{layer['name']}.{part}" for part in PARTS}
        written = {part: file.read_bytes().hex() for part, file in found.items() if file.exists()}
        assert written == layer["files"]


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_rows_that_layers_hold(path: Path, tmp_path: Path) -> None:
    vector = json.loads(path.read_text())
    write(vector, tmp_path)
    keys, order = keys_of(vector, vector["asked"])
    columns = batch(vector["columns"], [])
    types = [parse_type(column["type"]) for column in vector["columns"]]
    held: list[Any] = [None] * len(order)
    reader = MemoryReader(tmp_path)
    for found in reader.find(keys):
        rows, counts = unpack(found.rows)
        decoded = iter(RowCodec(columns.schema).decode(rows.gather()).to_pylist())
        for number, count in zip(found.at, counts, strict=True):
            held[order[number]] = [
                [
                    value_to_json(kind, value)
                    for kind, value in zip(types, next(decoded).values(), strict=True)
                ]
                for _ in range(count)
            ]
    reader.close()
    assert held == vector["found"]
