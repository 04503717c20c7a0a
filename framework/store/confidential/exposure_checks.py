"""Rows with values of encrypted columns that a table would store in the clear: warned of or refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lockgate.errors import InputError, PlaintextError, PlaintextWarning, warn_user
from lockgate.framework.options import ON_PLAINTEXT
from lockgate.framework.orc import exposure_message, shown_columns, suggested_entries
from lockgate.framework.store.confidential.column_visibility import encrypted_columns

if TYPE_CHECKING:
    from lockgate.framework.store.tables.table import Data, Table


def judged(table: Table, data: Data) -> Data:
    """Return rows to write, judged by what readers said of their columns; batches are judged as they come.

    Warns, or raises PlaintextError if `encryption.on-plaintext` of the table or its warehouse is `refuse`.
    """
    if isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        _judge(table, data.schema)
        return data
    return _judged_batches(table, data)


def _judged_batches(table: Table, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    reported: set[str] = set()
    for batch in batches:
        if not isinstance(batch, (pa.RecordBatch, pa.Table)):
            raise InputError(f"data to write holds {type(batch).__name__}, not only Arrow's record batches")
        reported |= _judge(table, batch.schema, reported)
        yield batch


def _judge(table: Table, schema: pa.Schema, reported: Iterable[str] = ()) -> set[str]:
    """Warn of columns not warned of yet, or refuse them; return their names."""
    shown = shown_columns(schema, encrypted_columns(table).keys() | set(reported))
    if not shown:
        return set()
    how = f"to encrypt them, add '{suggested_entries(shown)}' to 'orc.encrypt' of the table first"
    text = exposure_message(str(table.identifier), shown, how)
    if (table.options.get_option(ON_PLAINTEXT) or table.context.on_plaintext) == "refuse":
        raise PlaintextError(f"{text}; refused by {ON_PLAINTEXT.key!r}")
    warn_user(text, PlaintextWarning)
    return set(shown)
