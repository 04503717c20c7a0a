"""Caches of which a file was cut: they are built again, and never give a wrong row."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lookup_world import FIELDS, KEY, SCHEMA, World, rows

from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.cache.directory import CacheDirectory
from lockgate.lookup.driver.lookup_tables import LookupTable, open_lookup
from lockgate.lookup.driver.service import Lookup
from lockgate.lookup.join import lookup_worker
from lockgate.lookup.join.lookup_worker import AnswerForm, WantedState, answer

FACTS = ("LAYOUT.json", "generations/{}/GENERATION.json", "CURRENT", "PRIMARY")


def cut(path: Path, size: int) -> None:
    """Cut a file where readers may have it open; files of the primary are the same ones."""
    path.write_bytes(path.read_bytes()[:size])


def newest(path: Path) -> Path:
    """The file, or the one of its kind that the cache has by now."""
    return path if path.exists() else next(path.parent.glob(f"*{path.suffix}"))


def n_of(lookup: LookupTable, key: int) -> list[int]:
    keys = pa.record_batch({"id": pa.array([key], pa.int64())})
    return [row["n"] for row in lookup.get(keys).rows.to_pylist()]


@pytest.fixture
def states_close() -> Iterator[None]:
    yield
    lookup_worker.close_states()


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_a_cache_is_opened_again_after_each_file_was_cut(tmp_path: Path, sealed: bool) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"), keys=KEY)
    catalog.create_namespace("db")
    options = {"bucket": "1", **({"orc.encrypt": "pii:n"} if sealed else {})}
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, primary_keys=("id",), options=options))
    table.append(rows(range(100), 1))
    given = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.cache": "auto"}
    with open_lookup(table, "id", options=given) as lookup:
        folder = CacheDirectory(Path(lookup.status().directory)).version_path(1) / "db"
    state = [] if sealed else [f"generations/{{}}/db/{path.name}" for path in folder.iterdir()]
    assert sealed or {path.rpartition(".")[2] for path in state} >= {"json", "hashes", "keys", "values"}
    for file in [*FACTS, *(["KEYS.json"] if sealed else state)]:
        for size in (0, 8, 24):
            with open_lookup(table, "id", options=given) as lookup:
                info = lookup.status()
            cut(Path(info.directory, file.format(info.snapshot_id)), size)
            with open_lookup(table, "id", options=given) as lookup:
                assert [n_of(lookup, key) for key in (0, 99, 100)] == [[1], [1], []], (file, size)


def test_a_running_lookup_builds_again_what_was_cut(world: World, states_close: None) -> None:
    table = world.create()
    table.append(rows(range(100), 1))
    lookup = world.lookup(**{"lookup.cache": "memory"})

    def n(snapshot_id: int, key: int) -> int:
        wanted = WantedState(str(lookup.directory.path), snapshot_id, 0, wait_seconds=60)
        found = answer(wanted, [pa.array([key], pa.int64())], AnswerForm(FIELDS, many=False))
        return int(found[0].as_py()["n"])

    reports = [f"{folder}/{name}" for folder in ("reports", "readers") for name in ("other", "another")]
    for number, file in enumerate([*FACTS, *reports, "generations/{}/db/LAYERS.json"]):
        snapshot = lookup.pin("query", 2 * number)
        assert n(snapshot, 5) == number + 1, file
        path = lookup.directory.path / file.format(snapshot)
        path.write_text('{"keys"' if number % 2 else "5")
        lookup_worker.close_states()
        assert n(lookup.pin("query", 2 * number + 1), 5) == number + 1, file
        table.append(rows(range(10), number + 2))
        lookup.wait_for(number + 2, timeout=60)
    assert lookup.status().last_error is None


def test_a_cut_cache_is_no_wrong_folder(tmp_path: Path) -> None:
    """Of the database to follow, only the name is in a file: a cut one must not name the cache itself."""
    directory = CacheDirectory.create(tmp_path, "cache")
    for text in ("", ".", "..", "generations", "primary-../generations"):
        (directory.path / "PRIMARY").write_text(text)
        assert directory.primary() is None


def test_several_tasks_discard_a_cache_once(world: World, states_close: None) -> None:
    world.create().append(rows(range(100), 1))
    lookup: Lookup = world.lookup(**{"lookup.cache": "memory"})
    snapshot = lookup.pin("query", 0)
    cut(lookup.directory.version_path(snapshot) / "db" / "LAYERS.json", 3)
    wanted = WantedState(str(lookup.directory.path), snapshot, 0, wait_seconds=60)
    found: list[int] = []

    def ask() -> None:
        rows = answer(wanted, [pa.array([7], pa.int64())], AnswerForm(FIELDS, many=False))
        found.append(rows[0].as_py()["n"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [1] * 4
