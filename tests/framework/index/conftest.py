"""Warehouses for tests of file indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.framework.store import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog
