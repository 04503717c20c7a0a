"""The table that tests of `compact` fill and read: ids, names and days."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lockgate.framework.store import Catalog, ManifestEntry, Schema, Table

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.string())])


def make(catalog: Catalog, **options: Any) -> Table:
    """Make `db.t`; `options` are keyword arguments of the schema, or options with `_` for `-`."""
    known = {name: options.pop(name) for name in ("primary_keys", "partition_keys") if name in options}
    texts = {name.replace("__", ".").replace("_", "-"): str(value) for name, value in options.items()}
    return catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=texts, **known))


def rows(first: int, last: int, *, name: str = "n", day: str = "mon") -> pa.Table:
    """Return one row for each id from `first` up to, but without, `last`."""
    ids = list(range(first, last))
    return pa.table(
        {"id": ids, "name": [f"{name}{each}" for each in ids], "day": [day] * len(ids)}, schema=SCHEMA
    )


def content(table: Table) -> list[dict[str, Any]]:
    """Return all rows in one order."""
    return sorted(table.read(strict=True).to_pylist(), key=lambda row: (row["id"], row["name"], row["day"]))


def live(table: Table) -> list[ManifestEntry]:
    """Return the data files of the newest snapshot."""
    return table.manifests.live_files(table.latest_snapshot())
