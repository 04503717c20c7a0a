"""`compact` on encrypted tables: plain files, missing tags, rolled keys, and missing keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compact_table import content, live, make, rows
from untagged import without_tags

from lockgate.errors import (
    IntegrityError,
    KeyMissingError,
)
from lockgate.framework.keys import add_key_version, create_key_file
from lockgate.framework.orc import EncryptedOrcFile, audit_file
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.procedures import ProcedureResult

pytestmark = pytest.mark.usefixtures("without_lineage")


Run = Callable[..., ProcedureResult]


@pytest.mark.parametrize("key", [{}, {"primary_keys": ["id"], "bucket": 2}])
def test_encrypted_files_stay_encrypted(catalog: Catalog, run: Run, key: dict[str, Any]) -> None:
    table = make(catalog, orc__encrypt="pii:name", orc__mask="sha256:name", **key)
    table.append(rows(0, 10))
    table.append(rows(5, 15, name="x"))
    before = content(table)
    run("compact", table="db.t")
    assert content(table) == before
    for path in Path(table.location).rglob("data-*.orc"):
        with EncryptedOrcFile(str(path)) as file:
            assert file.masked_columns == ["name"]


@pytest.mark.parametrize("strategy", ["full", "minor"])
@pytest.mark.parametrize("key", [{}, {"primary_keys": ["id"], "bucket": 1}])
def test_files_that_a_foreign_writer_left_in_the_clear_are_encrypted(
    catalog: Catalog, run: Run, key: dict[str, Any], strategy: str
) -> None:
    table = make(catalog, orc__encrypt="pii:name", **key)
    foreign = Table(
        table.identifier,
        table.location,
        replace(table.schema, options={**table.schema.options, "orc.encrypt": ""}),
        TableContext(table.file_system),
    )
    snapshot = foreign.append(rows(0, 10))
    assert b"n7" in next(Path(table.location).rglob("data-*")).read_bytes()
    assert run("compact", table="db.t", compact_strategy=strategy)["files_rewritten"] == 1
    run("expire_snapshots", table="db.t", retain_max=1)
    (path,) = Path(table.location).rglob("data-*.orc")
    assert not audit_file(str(path), {"name": "pii"})
    assert content(table) == sorted(rows(0, 10).to_pylist(), key=lambda row: row["id"])
    assert snapshot.id == 1
    assert run("compact", table="db.t", compact_strategy=strategy)["files_rewritten"] == 0


@pytest.mark.parametrize("strategy", ["full", "minor"])
@pytest.mark.parametrize("key", [{}, {"primary_keys": ["id"], "bucket": 1}])
def test_encrypted_files_without_tags_get_tags(
    catalog: Catalog, run: Run, key: dict[str, Any], strategy: str
) -> None:
    """As ORC's own Java writer leaves them, which encrypts, but knows no tags."""
    table = make(catalog, orc__encrypt="pii:name", orc__integrity="verify", **key)
    table.append(rows(0, 10))
    before = content(table)
    (path,) = Path(table.location).rglob("data-*.orc")
    without_tags(path)
    assert run("compact", table="db.t", compact_strategy=strategy)["files_rewritten"] == 1
    run("expire_snapshots", table="db.t", retain_max=1)
    (path,) = Path(table.location).rglob("data-*.orc")
    assert audit_file(str(path), {"name": "pii"}).tagged
    assert content(table) == before
    assert run("compact", table="db.t", compact_strategy=strategy)["files_rewritten"] == 0
    catalog.alter_table("db.t", [SetOption("orc.integrity", "require")])
    assert content(catalog.load_table("db.t")) == before


def test_tags_that_are_missing_where_they_are_required(
    catalog: Catalog, run: Run, digest: Callable[[str], str]
) -> None:
    table = make(catalog, orc__encrypt="pii:name")
    table.append(rows(0, 10))
    (path,) = Path(table.location).rglob("data-*.orc")
    without_tags(path)
    state = digest(table.location)
    with pytest.raises(IntegrityError, match="no tags"):
        run("compact", table="db.t")
    assert digest(table.location) == state
    catalog.alter_table("db.t", [SetOption("orc.integrity", "ignore")])
    assert run("compact", table="db.t")["files_rewritten"] == 0


def test_files_under_an_old_key_get_the_new_one(tmp_path: Path, run: Run) -> None:
    path = str(tmp_path / "keys.json")
    create_key_file(path, ["pii"])
    catalog = Catalog(tmp_path / "lake", keys=path)
    catalog.create_namespace("db")
    table = make(catalog, orc__encrypt="pii:name")
    table.append(rows(0, 10))
    add_key_version(path, "pii")
    assert run("compact", table="db.t", within=catalog)["files_rewritten"] == 1
    for entry in live(table):
        file = table.paths.data_file(entry.partition, entry.bucket, entry.file)
        with EncryptedOrcFile(file, keys=path) as orc:
            assert [variant.key.version for variant in orc.variants] == [1]
    assert table.read(strict=True).num_rows == 10


@pytest.mark.parametrize("key", [{}, {"primary_keys": ["id"], "bucket": 2}])
def test_without_the_key_nothing_is_touched(
    catalog: Catalog, keyless: Catalog, run: Run, digest: Callable[[str], str], key: dict[str, Any]
) -> None:
    table = make(catalog, orc__encrypt="pii:name", **key)
    table.append(rows(0, 10))
    table.append(rows(5, 15))
    state = digest(table.location)
    with pytest.raises(KeyMissingError, match="pii"):
        run("compact", table="db.t", within=keyless)
    assert digest(table.location) == state


def test_key_for_writing_is_checked_before_the_first_file(
    catalog: Catalog, run: Run, digest: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, orc__encrypt="pii:name")
    table.append(rows(0, 10))
    table.append(rows(5, 15))
    keys = catalog.keys
    assert keys is not None

    def refuse(name: str) -> Any:
        raise KeyMissingError(f"no key {name!r}")

    monkeypatch.setattr(keys, "current_key", refuse)
    state = digest(table.location)
    with pytest.raises(KeyMissingError):
        run("compact", table="db.t")
    assert digest(table.location) == state
