"""Field ids in Parquet files: those of ORC files, by the vectors of `tests/fixtures/orc_types.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store.formats.parquet_output import with_field_ids
from lockgate.framework.store.rows.row_conversion import file_field_ids, file_schema
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, parse_type

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "orc_types.json").read_text())


def ids_in(field: pa.Field) -> Iterator[str]:
    """Return the ids of a field and of what is inside it, in the order of ORC's columns."""
    yield field.metadata[b"PARQUET:field_id"].decode()
    parts = [field.type.key_field, field.type.item_field] if pa.types.is_map(field.type) else None
    for inner in parts or [field.type.field(at) for at in range(field.type.num_fields)]:
        yield from ids_in(inner)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_field_ids(case: dict[str, Any]) -> None:
    schema = TableSchema(
        0, (DataField(case["id"], "c", parse_type(case["type"])),), highest_field_id=10_000_000
    )
    (field,) = with_field_ids(file_schema(schema), file_field_ids(schema))
    assert [*ids_in(field)] == [column.rpartition(" ")[2] for column in case["columns"]]
