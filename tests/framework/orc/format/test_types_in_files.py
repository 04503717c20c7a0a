"""Types and field ids in ORC files: the vectors of `tests/fixtures/orc_types.json`.

The connector runs them too.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.orc.format.field_ids import FIELD_ID
from lockgate.framework.orc.format.layout import TypeKind
from lockgate.framework.store.rows.row_conversion import file_field_ids, file_schema
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.types import DataField, parse_type

CASES = json.loads((Path(__file__).parents[3] / "fixtures" / "orc_types.json").read_text())


def spelled(column: Any) -> str:
    kind = TypeKind(column.kind)
    ids = [each.value for each in column.attributes if each.key == FIELD_ID.decode()]
    parameters = f"({column.precision}, {column.scale})" if kind is TypeKind.DECIMAL else ""
    if kind is TypeKind.STRUCT:
        parameters = f"[{', '.join(column.field_names)}]"
    return " ".join([f"{kind.name}{parameters}", *ids])


def types_of(case: dict[str, Any]) -> list[str]:
    """Return the types of a file with one column, those inside it too, in the order of their numbers."""
    fields = (DataField(case["id"], "c", parse_type(case["type"])),)
    schema = TableSchema(0, fields, highest_field_id=10_000_000)
    sink = io.BytesIO()
    write_table(pa.Table.from_pylist([], file_schema(schema)), sink, field_ids=file_field_ids(schema))
    with EncryptedOrcFile(sink) as file:
        return [spelled(each) for each in file._tail.footer.types][1:]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_types_and_field_ids(case: dict[str, Any]) -> None:
    assert types_of(case) == case["columns"]


def test_ids_of_nested_columns_equal_paimons() -> None:
    """Paimon's `SpecialFields`: a base, 1024 for each id of a column, and the depth; keys count downwards."""
    (case,) = (case for case in CASES if case["name"] == "map of arrays")
    base = (2**31 - 1) // 4
    assert case["id"] == 7
    assert case["columns"] == [
        "MAP 7",
        f"STRING {base - 7 * 1024 - 1}",
        f"LIST {base + 7 * 1024 + 1}",
        f"INT {base + 7 * 1024 + 2}",
    ]
