"""Tables whose rows Spark's tasks put in order, and what is in them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lockgate.framework.store import ManifestEntry, Schema, Table

if TYPE_CHECKING:
    from lockgate import Lake

SCHEMA = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("day", pa.string())])
COUNT = 3_000
Make = Callable[..., Table]


def rows(first: int = 0, count: int = COUNT, day: str | None = "mon") -> pa.Table:
    chance = random.Random(first)
    numbers = range(first, first + count)
    values = {
        "id": list(numbers),
        "a": [None if n % 50 == 7 else chance.randrange(1000) for n in numbers],
        "b": [f"C:\\Files\\{chance.randrange(200):03}" for _ in numbers],
        "day": [day] * count,
    }
    return pa.table(values, schema=SCHEMA)


def maker(lake: Lake, database: str) -> Make:
    """Return a function that makes a table with the rows of four appends, whose files hold few rows."""

    def make(name: str = "t", parts: Any = None, **more: Any) -> Table:
        options = {"target-file-size": "4 kb", "file.compression": "none", **more.pop("options", {})}
        schema = Schema.from_arrow(SCHEMA, options=options, **more)
        table = lake.catalog.create_table(f"{database}.{name}", schema)
        for part in [rows(n * COUNT // 4, COUNT // 4) for n in range(4)] if parts is None else parts:
            table.append(part)
        return table

    return make


def entries_of(table: Table) -> list[ManifestEntry]:
    return table.manifests.live_files(table.latest_snapshot())


def content(table: Table) -> pa.Table:
    return table.read(strict=True).sort_by("id")


def files_in(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("*") if path.is_file()}


def compact(lake: Lake, table: Table, strategy: str = "hilbert", by: str = "a,b", **more: Any) -> Any:
    """Order a table by Spark's tasks, and return the row of the call."""
    given = {"table": str(table.identifier), "order_strategy": strategy, "order_by": by}
    (row,) = lake.call("compact", **{"order_engine": "spark", **given, **more})
    return row
