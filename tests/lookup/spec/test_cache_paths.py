"""Where caches lie on a host, and the locks by which processes find who owns one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockgate.errors import LookupCacheError
from lockgate.lookup.spec import cache_paths
from lockgate.lookup.spec.cache_paths import (
    ROOT_VARIABLE,
    cache_folder,
    election_lock,
    folder_token,
    is_lock_of,
    is_locked,
    local_path,
    parse_folder,
    place_text,
    sweep_elections,
    try_lock,
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    monkeypatch.setattr(cache_paths.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)


def test_each_host_finds_its_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    default = tmp_path / "tmp" / f"lockgate-lookup-{os.getuid()}"
    assert local_path(place_text("", "db.t-1")) == default / "db.t-1"
    assert local_path(place_text("/disk", "db.t-1")) == Path("/disk/db.t-1")
    assert local_path(place_text("/", "db.t-1")) == Path("/db.t-1")
    assert local_path(place_text("here", "db.t-1")) == tmp_path / "here" / "db.t-1"
    monkeypatch.setenv(ROOT_VARIABLE, "own")
    for configured in ("", "/disk", "here"):
        assert local_path(place_text(configured, "db.t-1")) == tmp_path / "own" / "db.t-1"


def test_folders_as_people_write_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert local_path(place_text("~/caches", "db.t-1")) == tmp_path / "home" / "caches" / "db.t-1"
    for fine in ("", "/a b/\u00fc:/x", "C:/caches", "a:b"):
        assert parse_folder(fine) == fine
    for address in ("file:/tmp/x", "s3a://bucket/x", "hdfs://host:8020/x"):
        with pytest.raises(ValueError, match="not an address"):
            parse_folder(address)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LookupCacheError, match=r"cannot make .*file/x: .*lookup\.cache-dir"):
        cache_folder(tmp_path / "file" / "x" / "db.t-1")


def test_a_folder_keeps_its_name_until_it_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    first = folder_token(folder)
    assert folder_token(folder) == first
    assert [path.name for path in folder.iterdir()] == ["PLACE"]
    (folder / "PLACE").unlink()
    assert folder_token(folder) != first


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    path = election_lock(tmp_path, "name")
    assert not is_locked(path)
    first = try_lock(path)
    assert first is not None
    assert is_locked(path)
    assert try_lock(path) is None
    assert is_lock_of(path, first)
    path.unlink()
    assert not is_lock_of(path, first)
    second = try_lock(path)
    assert second is not None
    assert not is_lock_of(path, first)
    first.close()
    second.close()
    assert not is_locked(path)


def test_the_locks_of_old_elections_go(tmp_path: Path) -> None:
    names = ("held", "old", "new")
    locks = {name: try_lock(election_lock(tmp_path, name)) for name in names}
    for name in ("held", "old"):
        os.utime(tmp_path / "owners" / name, (0, 0))
    for name in ("old", "new"):
        held = locks[name]
        assert held is not None
        held.close()
    sweep_elections(tmp_path)
    assert sorted(path.name for path in (tmp_path / "owners").iterdir()) == ["held", "new"]
    last = locks["held"]
    assert last is not None
    last.close()
