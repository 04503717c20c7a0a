"""The confs of a catalog that `connect` and `configure` set."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.errors import InputError
from lockgate.framework.spark.session.session import catalog_confs


def test_local_paths_stay_the_same_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    first = catalog_confs("lake", "lake", "keys.json")
    monkeypatch.chdir(tmp_path / "other")
    assert first == {
        "spark.sql.catalog.lake": "io.lockgate.spark.LockgateCatalog",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
        "spark.sql.catalog.lake.keys": str(tmp_path / "keys.json"),
    }
    assert catalog_confs("lake", "lake", None) != first
    assert catalog_confs("../lake", "lake", "file:../keys.json") == first


@pytest.mark.parametrize("address", ["s3a://bucket/lake", "hdfs://host/lake", "file:///data/lake"])
def test_addresses_stay_as_they_are(address: str) -> None:
    assert catalog_confs(address, "lake", None)["spark.sql.catalog.lake.warehouse"] == address


@pytest.mark.parametrize("warehouse", ["", " ", "a\0b"])
def test_what_is_no_address_is_refused(warehouse: str) -> None:
    with pytest.raises(InputError, match="a path or an address"):
        catalog_confs(warehouse, "lake", None)
