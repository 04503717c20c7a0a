"""The bytes of cached rows and keys, by vectors that the connector runs too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.types import DataType, parse_type, to_arrow, value_from_json, value_to_json
from lockgate.framework.version import CACHE_FORMAT, ROW_CODEC
from lockgate.lookup.codec.key_codec import KeyCodec
from lockgate.lookup.codec.row_codec import RowCodec

FIXTURES = Path(__file__).parents[2] / "fixtures"


def vectors(folder: str) -> list[Any]:
    return [pytest.param(path, id=path.stem) for path in sorted((FIXTURES / folder).glob("*.json"))]


def load(path: Path) -> dict[str, Any]:
    """Read a vector of this version; a change of bytes comes with a new number, for old caches to be told."""
    vector: dict[str, Any] = json.loads(path.read_text())
    assert vector["version"] == ROW_CODEC
    return vector


def test_versions_of_caches() -> None:
    versions = json.loads((FIXTURES / "cache_versions.json").read_text())
    assert versions == {"cache_format": CACHE_FORMAT, "row_codec": ROW_CODEC}


def batch_of(vector: dict[str, Any]) -> tuple[list[DataType], pa.RecordBatch]:
    types = [parse_type(column["type"]) for column in vector["columns"]]
    schema = pa.schema(
        [(column["name"], to_arrow(kind)) for column, kind in zip(vector["columns"], types, strict=True)]
    )
    columns = [
        pa.array([value_from_json(kind, row[index]) for row in vector["rows"]], field.type)
        for index, (kind, field) in enumerate(zip(types, schema, strict=True))
    ]
    return types, pa.RecordBatch.from_arrays(columns, schema=schema)


@pytest.mark.parametrize("path", vectors("row_codec"))
def test_bytes_of_rows(path: Path) -> None:
    vector = load(path)
    types, batch = batch_of(vector)
    codec = RowCodec(batch.schema)
    rows = codec.encode(batch)
    assert [row.hex() for row in rows.to_bytes()] == vector["bytes"]
    decoded = [
        [value_to_json(kind, value) for kind, value in zip(types, row.values(), strict=True)]
        for row in codec.decode(rows).to_pylist()
    ]
    assert repr(decoded) == repr(vector["rows"])  # repr tells the two zeros apart


@pytest.mark.parametrize("path", vectors("key_codec"))
def test_bytes_of_keys(path: Path) -> None:
    vector = load(path)
    _, batch = batch_of(vector)
    keys = KeyCodec(batch.schema).encode(batch.columns)
    encoded = iter(key.hex() for key in keys.rows.to_bytes())
    assert [next(encoded) if valid else None for valid in keys.valid] == vector["keys"]
