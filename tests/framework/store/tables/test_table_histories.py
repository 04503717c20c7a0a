"""Tables of all engines, formats, kinds of buckets and changelogs against a model, written by Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from effort import examples
from table_histories import ENGINES, History

from lockgate.framework.store import Catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog


@pytest.mark.parametrize("engine", ENGINES)
def test_a_few_histories(catalog: Catalog, engine: str) -> None:
    for seed in range(examples(3)):
        History(catalog, f"db.t{seed}", engine, seed).run(10)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_many_histories(catalog: Catalog, engine: str) -> None:
    for seed in range(1000, 1000 + examples(25)):
        History(catalog, f"db.t{seed}", engine, seed).run(20)
