"""pypaimon reads what procedures leave: compacted buckets, adopted files, expired histories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.framework.store import Catalog, Schema
from lockgate.procedures import ProcedureContext, call

pytestmark = pytest.mark.interop

Same = Callable[[pa.Table, pa.Table], None]


def rows(first: int, last: int, name: str = "n") -> pa.Table:
    ids = pa.array(range(first, last), pa.int64())
    return pa.table({"id": ids, "name": [f"{name}{each}" for each in range(first, last)]})


@pytest.mark.parametrize("keys", [{}, {"primary_keys": ("id",), "options": {"bucket": "2"}}])
def test_compacted_and_expired(catalog: Catalog, referee: Any, same_rows: Same, keys: dict[str, Any]) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(rows(0, 1).schema, **keys))
    for start in range(0, 50, 10):
        table.append(rows(start, start + 15, f"{start}-"))
    context = ProcedureContext(catalog)
    call(context, "compact", "db.t")
    same_rows(table.read(), referee.read("db.t"))
    call(context, "expire_snapshots", "db.t", retain_max=1)
    same_rows(table.read(), referee.read("db.t"))
    referee.write("db.t", rows(60, 70))
    call(context, "compact", "db.t")
    same_rows(table.read(), referee.read("db.t"))


def test_adopted_files_of_a_partitioned_folder(
    catalog: Catalog, referee: Any, same_rows: Same, tmp_path: Path
) -> None:
    for day, start in (("mon", 0), ("tue", 10)):
        folder = tmp_path / "origin" / f"day={day}"
        folder.mkdir(parents=True)
        pyarrow.orc.write_table(rows(start, start + 10), str(folder / "part-0.orc"))
    result = call(
        ProcedureContext(catalog), "migrate_table", "orc", str(tmp_path / "origin"), target_table="db.t"
    )
    assert result["files_adopted"] == 2
    found = catalog.load_table("db.t").read()
    assert sorted(set(found["day"].to_pylist())) == ["mon", "tue"]
    same_rows(found, referee.read("db.t"))
