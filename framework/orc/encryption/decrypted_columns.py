"""Detection of decrypted values that would be written in the clear, by marks on their Arrow fields.

Readers mark the field of each column that they decrypted. Arrow keeps the mark while columns are selected,
filtered and combined; computed columns, and columns that went through pandas, have none.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

# Metadata of a column with decrypted values: their table or file, and their encryption there.
MARK = "lockgate.encrypted"
ENCRYPTED = MARK.encode()

Mark: TypeAlias = "Mapping[str, Any]"
Marks: TypeAlias = "Sequence[Mark]"


def file_mark(name: str, column: str, parts: Iterable[tuple[Sequence[str], str]]) -> Mark:
    """Return the mark for a column of a file; `parts` are its encrypted paths with their keys."""
    entries = [{"path": list(path), "key": key, "mask": None} for path, key in parts]
    return {"table": name, "column": column, "entries": entries}


def with_mark(field: pa.Field, mark: Mark | None) -> pa.Field:
    """Return the field with the mark; unchanged if the mark is None."""
    if mark is None:
        return field
    return field.with_metadata({**(field.metadata or {}), ENCRYPTED: json.dumps(mark).encode()})


def shown_columns(schema: pa.Schema, encrypted: Collection[str]) -> dict[str, Marks]:
    """Return the marked columns that the target does not encrypt; names compare without case."""
    encrypted_names = {name.lower() for name in encrypted}
    return {
        field.name: [json.loads(field.metadata[ENCRYPTED])]
        for field in schema
        if ENCRYPTED in (field.metadata or {}) and field.name.lower() not in encrypted_names
    }


def exposure_message(target: str, shown: Mapping[str, Marks], how: str) -> str:
    """Return the message that `target` gets decrypted values in the clear; `how` is the advice."""
    flows = []
    for column, marks in shown.items():
        origins = sorted({f"{each['column']} of {each['table']}" for each in marks})
        flows.append(f"{column} (from {', '.join(origins)})")
    return f"{target} gets values of encrypted columns in the clear: {'; '.join(flows)}: {how}"


def suggested_entries(shown: Mapping[str, Marks]) -> str:
    """Return entries of `orc.encrypt` with the keys that the values have at their origin."""
    return ";".join(sorted(f"{_key(marks)}:{column}" for column, marks in shown.items()))


def _key(marks: Marks) -> str:
    return str(next(each["key"] for each in marks[0]["entries"] if each["key"] is not None))
