"""A warehouse with one dimension, whose lookups run in this process, for tests of the lookup service."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.framework.store.tables.table import Table
from lockgate.lookup.driver.cache_hosts import CacheHost
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("n", pa.int64())])
KEY = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})


def rows(ids: range, n: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"name-{i}" for i in ids], "n": [n] * len(ids)}, schema=SCHEMA)


class World:
    """A warehouse with one dimension, and the lookups started on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lookups: list[Lookup] = []
        self.catalog = Catalog(str(folder / "warehouse"))

    def create(self, primary_keys: tuple[str, ...] = ("id",), **options: str) -> Table:
        given = {"bucket": "1", **options} if primary_keys else options
        schema = Schema.from_arrow(SCHEMA, primary_keys=primary_keys, options=given)
        self.catalog.create_namespace("db", ignore_if_exists=True)
        return self.catalog.create_table("db.dim", schema)

    def lookup(self, cache_host: CacheHost | None = None, **options: str) -> Lookup:
        table = self.catalog.load_table("db.dim")
        given = {
            "lookup.cache-dir": str(self.folder / "cache"),
            "lookup.refresh.interval": "50 ms",
            **options,
        }
        started = Lookup(self.catalog, table, make_spec(table, "id", options=given), cache_host)
        self.lookups.append(started)
        return started


FIELDS = [pa.field("name", pa.string()), pa.field("n", pa.int64())]


def ask(lookup: Lookup, snapshot_id: int, ids: list[int | None]) -> list[Any]:
    return ask_folder(lookup.directory.path, snapshot_id, ids)


def ask_folder(path: Path, snapshot_id: int, ids: list[int | None]) -> list[Any]:
    wanted = WantedState(str(path), snapshot_id, 1 << 20)
    found = answer(wanted, [pa.array(ids, pa.int64())], AnswerForm(FIELDS, many=False))
    return [None if line is None else line["n"] for line in found.to_pylist()]


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
