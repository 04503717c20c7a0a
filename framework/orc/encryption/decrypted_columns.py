"""Values of encrypted columns that would be stored in the clear, recognised by metadata of their Arrow
fields.

Readers put a mark on the field of each column that they decrypted. Arrow keeps it while columns are selected,
filtered and put together; what is computed from a column, or goes through pandas, has none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

# Metadata of a column with decrypted values: of which table or file they are, and how it encrypts them.
MARK = "lockgate.encrypted"
ENCRYPTED = MARK.encode()

Mark: TypeAlias = "Mapping[str, Any]"
Marks: TypeAlias = "Sequence[Mark]"


def file_mark(name: str, column: str, parts: Iterable[tuple[Sequence[str], str]]) -> Mark:
    """Return the mark of a column of a file; `parts` are the paths that are encrypted, and their keys."""
    entries = [{"path": list(path), "key": key, "mask": None} for path, key in parts]
    return {"table": name, "column": column, "entries": entries}


def with_mark(field: pa.Field, mark: Mark | None) -> pa.Field:
    """Return the field with a mark, if there is one."""
    if mark is None:
        return field
    return field.with_metadata({**(field.metadata or {}), ENCRYPTED: json.dumps(mark).encode()})


def shown_columns(schema: pa.Schema, encrypted: Collection[str]) -> dict[str, Marks]:
    """Return the columns with marks that are not among those the target encrypts, whatever their case."""
    hidden = {name.lower() for name in encrypted}
    return {
        field.name: [json.loads(field.metadata[ENCRYPTED])]
        for field in schema
        if ENCRYPTED in (field.metadata or {}) and field.name.lower() not in hidden
    }


def exposure_message(target: str, shown: Mapping[str, Marks], how: str) -> str:
    """Return which values `target` gets in the clear, and by `how` what to do."""
    flows = []
    for column, marks in shown.items():
        origins = sorted({f"{each['column']} of {each['table']}" for each in marks})
        flows.append(f"{column} (from {', '.join(origins)})")
    return f"{target} gets values of encrypted columns in the clear: {'; '.join(flows)}: {how}"


def suggested_entries(shown: Mapping[str, Marks]) -> str:
    """Return entries of `orc.encrypt` under the keys that the values had where they come from."""
    return ";".join(sorted(f"{_key(marks)}:{column}" for column, marks in shown.items()))


def _key(marks: Marks) -> str:
    return str(next(each["key"] for each in marks[0]["entries"] if each["key"] is not None))
