"""A system table of metadata is its rows, its columns and one entry, as docs/how-to-change.md says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lockgate.errors import NotFoundError
from lockgate.framework.store import Table
from lockgate.framework.store.handle import TableHandle
from lockgate.framework.store.system import columns, system_tables
from lockgate.framework.types import INT, STRING, DataField


def test_a_new_table_of_metadata(make_table: Callable[..., Table], monkeypatch: pytest.MonkeyPatch) -> None:
    def column_lengths(table: TableHandle) -> Iterator[tuple[Any, ...]]:
        return ((name, len(name)) for name in table.schema.field_names)

    table = make_table()
    with pytest.raises(NotFoundError, match=r"no system table \$column_lengths"):
        table.system("column_lengths")
    fields = (DataField(0, "name", STRING), DataField(1, "length", INT))
    monkeypatch.setitem(columns.TABLE_COLUMNS, "column_lengths", fields)
    monkeypatch.setitem(system_tables._OF_NOW, "column_lengths", column_lengths)
    assert table.system("column_lengths").to_pylist() == [
        {"name": "id", "length": 2},
        {"name": "v", "length": 1},
    ]
    assert table.system("column_lengths", columns=["length"]).to_pylist() == [{"length": 2}, {"length": 1}]
