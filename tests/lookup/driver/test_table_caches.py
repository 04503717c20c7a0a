"""Caches of lookup tables on disk: old states, damage, formats, the disk budget, and removal."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    LookupCacheError,
    VersionMismatchError,
)
from lockgate.lookup.cache import builder
from lockgate.lookup.cache.directory import CacheDirectory, sweep_caches
from lockgate.lookup.driver.lookup_tables import (
    open_lookup,
)

MakeTable = Callable[..., Any]


SCHEMA = pa.schema(
    [("id", pa.int64()), ("tag", pa.string()), ("n", pa.int32()), ("price", pa.decimal128(9, 2))]
)


def small(make_table: MakeTable) -> Any:
    table = make_table(SCHEMA, ("id",))
    table.commit([("+I", {"id": n, "tag": f"t{n % 3}", "n": n, "price": None}) for n in range(10)])
    return table


def test_old_states_go_and_needed_ones_stay(make_table: MakeTable) -> None:
    table = small(make_table)
    with open_lookup(table, "id") as lookup:
        directory = CacheDirectory(Path(lookup.status().directory))
        directory.hold("driver", [2])
        for _ in range(6):
            table.commit([("-D", table.state(1)[0])])
            lookup.refresh()
        assert directory.versions() == [2, 6, 7]
        directory.release("driver")
        directory.sweep()
        assert directory.versions() == [6, 7]
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700


def test_a_state_of_another_time_can_be_built_next_to_it(make_table: MakeTable) -> None:
    table = small(make_table)
    table.commit([("-D", table.state(1)[3])])
    with open_lookup(table, "id") as lookup:
        directory = CacheDirectory(Path(lookup.status().directory))
        lock = directory.try_lock()
        assert lock is not None
        with lock:
            side = builder.CacheBuilder(table, lookup.spec, directory)
            info = side.build(1, serve=False)
            side.close()
        assert (info.rows, info.full_load) == (10, True)
        assert directory.current() == 2
        assert directory.versions() == [1, 2]


def test_another_format_is_built_again_and_refused_by_readers(make_table: MakeTable) -> None:
    table = small(make_table)
    with open_lookup(table, "id") as lookup:
        path = Path(lookup.status().directory)
        layout = path / "LAYOUT.json"
        layout.write_text(layout.read_text().replace('"row_codec": 1', '"row_codec": 99'))
        with pytest.raises(VersionMismatchError, match="row codec 99"):
            CacheDirectory(path).layout()
    with open_lookup(table, "id"):
        assert table.reads == [1, 1]


def test_a_damaged_database_is_built_again(make_table: MakeTable, storage: str) -> None:
    table = small(make_table)
    with open_lookup(table, "id") as lookup:
        primary = CacheDirectory(Path(lookup.status().directory)).primary()
        assert primary is not None
        (primary / ("CURRENT" if storage == "full" else "LAYERS.json")).write_text("nonsense")
        table.commit([("-D", table.state(1)[0])])
        info = lookup.refresh()
        assert info is not None
        assert (info.full_load, info.rows) == (True, 9)


def test_the_disk_budget_is_kept(make_table: MakeTable) -> None:
    table = make_table(SCHEMA, ("id",), **{"lookup.cache-max-disk-size": "10 kb"})
    rows = [{"id": n, "tag": "x" * 100, "n": 1, "price": None} for n in range(200)]
    table.commit([("+I", line) for line in rows])
    with pytest.raises(LookupCacheError, match=r"lookup\.cache-max-disk-size allows"):
        open_lookup(table, "id")


def test_caches_that_nobody_uses_are_removed(make_table: MakeTable) -> None:
    table = small(make_table)
    paths = []
    for columns in (["n"], ["tag"]):
        with open_lookup(table, "id", columns=columns) as lookup:
            paths.append(Path(lookup.status().directory))
    root = paths[0].parent
    (root / "something else").mkdir()
    assert sweep_caches(root, 3600) == []
    long_ago = time.time() - 7200
    for part in (paths[0], paths[0] / "readers", paths[0] / "generations"):
        os.utime(part, (long_ago, long_ago))
    lock = CacheDirectory(paths[0]).try_lock()
    assert lock is not None
    with lock:
        assert sweep_caches(root, 3600) == []
    os.utime(paths[0], (long_ago, long_ago))
    assert sweep_caches(root, 3600) == [paths[0]]
    assert sorted(root.glob("[!.]*")) == sorted([paths[1], root / "something else"])


def test_a_cache_leaves_the_folder_above_as_it_is(make_table: MakeTable, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    table = small(make_table)
    with open_lookup(table, "id", options={"lookup.cache-dir": str(shared)}) as lookup:
        directory = Path(lookup.status().directory)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
