"""The folder of a cache on a host, by vectors that the connector runs too."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from cache_folders import cache_folder_cases

from lockgate.errors import LookupCacheError
from lockgate.lookup.spec.cache_paths import ROOT_VARIABLE, local_path, parse_folder

VARIABLES = (ROOT_VARIABLE, "HOME", "TMPDIR", "TEMP", "TMP")


def answer(place: str) -> dict[str, str]:
    try:
        return {"folder": str(local_path(place))}
    except LookupCacheError as error:
        return {"error": f"LookupCacheError: {error}".partition(": write")[0]}


def test_folders_of_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for case in cache_folder_cases(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", None)  # tempfile looks for its folder once
            for name in VARIABLES:
                patch.delenv(name, raising=False)
            for name, value in case["environment"].items():
                patch.setenv(name, value)
            asked = {"name", "environment", "location"}
            assert answer(case["location"]) == {key: case[key] for key in case.keys() - asked}, case["name"]


@pytest.mark.parametrize("folder", ["~ada", "~ada/caches"])
def test_the_option_refuses_homes_of_others(folder: str) -> None:
    with pytest.raises(ValueError, match="expected a whole path"):
        parse_folder(folder)
    assert parse_folder("~") == "~"


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(LookupCacheError, match="has no home for the folder of lookup caches: set HOME"):
        local_path("~/caches/db.t-1")
