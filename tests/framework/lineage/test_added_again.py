"""A name in lineage is the current column of the table, not a dropped one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.readable import Readable, find_readable
from lockgate.framework.lineage.warehouse_lineage import lineage_of
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, RenameColumn
from lockgate.framework.types import STRING

FILE = Dataset("file:/in", "file")


def test_a_column_added_again_by_python_starts_without_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No recorded statement shows the change."""
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    catalog = Catalog(str(tmp_path / "lake"))
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", Schema.from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string())]))
    )
    target = Dataset.table("db", "t", table_id=str(table.table_id))
    edges = tuple((name, 0, name, 1) for name in ("a", "b"))
    ids = tuple((-1, field.name, str(field.id)) for field in table.schema.fields)
    lineage = lineage_of(catalog)
    lineage.journal.add(
        Record(Shape("INSERT", target, (FILE,), edges, columns=("a", "b"), ids=ids), Run(1, 2))
    )
    lineage.journal.flush()

    def fields_found(name: str) -> int:
        with lineage.reading() as database:
            return len(find_readable(database, name, "lake", Readable(catalog)).fields)

    assert (fields_found("db.t"), fields_found("db.t.b")) == (2, 1)
    catalog.alter_table("db.t", [DropColumn(("b",))])
    assert (fields_found("db.t"), fields_found("db.t.b")) == (2, 1)
    catalog.alter_table("db.t", [AddColumn(("b",), STRING)])
    assert (fields_found("db.t"), fields_found("db.t.b")) == (1, 0)
    catalog.alter_table("db.t", [DropColumn(("b",)), RenameColumn(("a",), "b")])
    assert fields_found("db.t") == 1
