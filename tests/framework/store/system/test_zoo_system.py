"""System tables of the zoo: the columns and rows that Paimon's own core shows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from exact_rows import exact_rows, in_order
from zoo import expected, unpack

from lockgate.errors import LockgateError, NotFoundError, UnsupportedError
from lockgate.framework.store import Catalog
from lockgate.framework.store.system.columns import WAREHOUSE_COLUMNS
from lockgate.framework.store.system.system_tables import METADATA_TABLES, ROW_TABLES, columns_of_system
from lockgate.framework.store.system.texts import sql_type
from lockgate.framework.store.system.warehouse_system_tables import read_warehouse
from lockgate.framework.types import DataField, row

# No rows of these can be read here; their metadata can.
UNREAD = {"variant", "data_evolution"}
SHOWN = {name: made["system"] for name, made in expected().items() if "system" in made}
TABLES = sorted(SHOWN)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")  # the zone in which Paimon showed its times
        time.tzset()
        yield Catalog(unpack(tmp_path_factory.mktemp("zoo")))
    time.tzset()


def test_every_system_table_is_here() -> None:
    made = {name for shown in SHOWN.values() for name in shown}
    assert made == METADATA_TABLES | ROW_TABLES


def spelled(columns: tuple[DataField, ...]) -> str:
    return sql_type(row(tuple(columns)))


def plain(name: str, rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows without what differs by the place of the warehouse and by the order in a Java map."""
    found = []
    for each in rows:
        row = list(each)
        if name in ("files", "file_key_ranges"):
            row[2] = row[2].partition("/zoo.db/")[2]
        if name == "schemas":
            row[1:5] = [json.loads(text) for text in row[1:5]]
        if name == "aggregation_fields":
            row[2:4] = [sorted(text[1:-1].split(", ")) for text in row[2:4]]
        if name == "branches":
            row[1] = row[1] // 10**9  # the archive keeps no more than seconds
        found.append(row)
    return sorted(found, key=json.dumps)


@pytest.mark.parametrize("name", sorted(METADATA_TABLES))
def test_metadata_is_shown_as_paimon_shows_it(catalog: Catalog, name: str) -> None:
    for table in TABLES:
        loaded = catalog.load_table(f"zoo.{table}")
        assert spelled(columns_of_system(loaded, name)) == SHOWN[table][name]["columns"]
        rows = exact_rows(loaded.system(name))
        assert plain(name, rows) == plain(name, SHOWN[table][name]["rows"]), table


@pytest.mark.parametrize("name", sorted(ROW_TABLES))
def test_rows_are_shown_as_paimon_shows_them(catalog: Catalog, name: str) -> None:
    for table in sorted(set(TABLES) - UNREAD):
        loaded = catalog.load_table(f"zoo.{table}")
        if name not in SHOWN[table]:
            with pytest.raises(UnsupportedError, match=r"row-tracking\.enabled"):
                loaded.system(name)
            continue
        assert spelled(columns_of_system(loaded, name)) == SHOWN[table][name]["columns"]
        assert in_order(exact_rows(loaded.system(name))) == in_order(SHOWN[table][name]["rows"]), table


def test_an_unknown_name_has_a_hint(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match=r"\$snapshot.*'snapshots'"):
        catalog.load_table("zoo.fixed_orc").system("snapshot")


def test_a_feature_that_is_not_read_is_refused_there_too(catalog: Catalog) -> None:
    with pytest.raises(LockgateError, match=r"data-evolution\.enabled"):
        catalog.load_table("zoo.data_evolution").system("audit_log")


def test_the_warehouse_says_what_it_holds(catalog: Catalog) -> None:
    tables = catalog.system("tables").to_pylist()
    by_name = {row["table_name"]: row for row in tables}
    assert set(by_name) == set(expected())
    fixed = SHOWN["fixed_orc"]["files"]["rows"]
    assert by_name["fixed_orc"]["file_count"] == len(fixed)
    assert by_name["fixed_orc"]["file_size_in_bytes"] == sum(row[7] for row in fixed)
    assert by_name["fixed_orc"]["last_file_creation_time"] == max(row[15] for row in fixed) // 10**6
    assert by_name["fixed_orc"]["primary_key"]
    assert not by_name["fixed_orc"]["partitioned"]
    names = catalog.system("tables").select(["table_name", "primary_key"])
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr("lockgate.framework.store.manifests.manifest_files.ManifestFiles.files")
        assert read_warehouse(catalog, "tables", ["table_name", "primary_key"]).equals(names)
    options = {
        (row["table_name"], row["key"]): row["value"]
        for row in catalog.system("all_table_options").to_pylist()
    }
    assert options["dv_key_32", "deletion-vectors.enabled"] == "true"
    parts = [
        row for row in catalog.system("partitions").to_pylist() if row["table_name"] == "dynamic_partitioned"
    ]
    assert {row["partition_name"]: row["record_count"] for row in parts} == {"p=0": 4, "p=1": 3}
    with pytest.raises(NotFoundError, match="'tables'"):
        catalog.system("table")
    assert set(WAREHOUSE_COLUMNS) == {"tables", "partitions", "all_table_options", "catalog_options"}


def test_secrets_of_the_catalog_are_not_shown(tmp_path: Any) -> None:
    catalog = Catalog(tmp_path, options={"fs.s3a.secret.key": "hush"})
    shown = {row["key"]: row["value"] for row in catalog.system("catalog_options").to_pylist()}
    assert "hush" not in str(shown)
    assert "fs.s3a.secret.key" in shown
    assert shown["warehouse"].endswith(tmp_path.name)
