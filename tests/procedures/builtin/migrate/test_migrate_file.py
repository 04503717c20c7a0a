"""`migrate_file`: rows of a folder become rows of a table that exists, or nothing changes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lockgate.errors import InputError, KeyMissingError, LockgateError, NotFoundError, TableNotFoundError
from lockgate.framework import types
from lockgate.framework.orc import EncryptedOrcFile
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance import foreign_file as files_module
from lockgate.framework.types import DataField
from lockgate.procedures import ProcedureResult

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
COLUMNS = (("id", types.BIGINT), ("name", types.STRING), ("size", types.INT), ("day", types.DATE))


def rows(first: int, last: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "name": pa.array([f"name {each}" for each in range(first, last)]),
            "size": pa.array([each % 7 for each in range(first, last)], pa.int32()),
        }
    )


def make(
    catalog: Catalog, keys: tuple[str, ...] = (), partitions: tuple[str, ...] = (), **options: str
) -> Table:
    chosen = [each for each in COLUMNS if each[0] != "day" or partitions]
    fields = tuple(
        DataField(number, name, kind.with_nullable(name not in keys))
        for number, (name, kind) in enumerate(chosen)
    )
    return catalog.create_table("db.t", Schema(fields, partitions, keys, options))


def write(folder: Path, kind: str, name: str, data: pa.Table) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if kind == "orc":
        pyarrow.orc.write_table(data, folder / name)
    else:
        pq.write_table(data, folder / name)


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("db.t").read(columns=["id"])["id"].to_pylist())


def add(run: Run, folder: Path, kind: str, **more: Any) -> dict[str, Any]:
    given = {"source_type": kind, "source_table": str(folder), "target_table": "db.t", **more}
    return run("migrate_file", **given).to_dicts()[0]


@pytest.mark.parametrize("kind", ["orc", "parquet"])
def test_files_are_adopted_by_a_table_with_rows(
    catalog: Catalog, run: Run, tmp_path: Path, kind: str, digest: Callable[[Path], str]
) -> None:
    make(catalog).append(rows(0, 10))
    write(tmp_path / "o", kind, "a", rows(10, 20))
    write(tmp_path / "o", kind, "b", rows(20, 25).drop(["size"]))
    before = digest(tmp_path)
    dry = add(run, tmp_path / "o", kind, dry_run=True)
    assert digest(tmp_path) == before
    done = add(run, tmp_path / "o", kind)
    assert done == {**dry, "files_written": 0, "snapshot_id": 2}
    assert (done["files_adopted"], done["rows"]) == (2, 15)
    assert ids(catalog) == list(range(25))
    sizes = catalog.load_table("db.t").read()["size"].to_pylist()
    assert sizes.count(None) == 5
    shutil.rmtree(tmp_path / "o")
    assert run("compact", "db.t")["rows_after"] == 25


@pytest.mark.parametrize(
    "options", [{"bucket": "2"}, {"bucket": "-1"}, {"bucket": "2", "file.format": "parquet"}]
)
def test_a_key_table_takes_the_rows_as_its_newest(
    catalog: Catalog, run: Run, tmp_path: Path, options: dict[str, str]
) -> None:
    make(catalog, ("id",), **options).append(rows(0, 10))
    new = rows(5, 15).set_column(1, "name", pa.array(["new"] * 10))
    write(tmp_path / "o", "parquet", "a", new)
    done = add(run, tmp_path / "o", "parquet", delete_origin=True)
    assert (done["files_adopted"], done["files_rewritten"], done["rows"]) == (0, 1, 10)
    assert list((tmp_path / "o").iterdir()) == []
    found = catalog.load_table("db.t").read().sort_by("id").to_pylist()
    assert [row["id"] for row in found] == list(range(15))
    assert [row["name"] == "new" for row in found] == [False] * 5 + [True] * 10


def test_partitions_have_the_types_of_the_table(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    make(catalog, partitions=("day",))
    write(tmp_path / "o", "parquet", "day=2026-01-01/a", rows(0, 3))
    write(tmp_path / "o", "parquet", "day=2026-01-02/b", rows(3, 4))
    assert add(run, tmp_path / "o", "parquet")["partitions"] == 2
    assert run("drop_partition", "db.t", "day=2026-01-01")["dropped_rows"] == 3
    assert ids(catalog) == [3]
    (tmp_path / "o" / "day=2026-01-02").rename(tmp_path / "o" / "day=soon")
    with pytest.raises(InputError, match="'soon' is not a value of type DATE"):
        add(run, tmp_path / "o", "parquet")


def test_encryption_of_the_table_holds_for_new_rows(
    catalog: Catalog, keyless: Catalog, run: Run, tmp_path: Path
) -> None:
    table = make(catalog, **{"orc.encrypt": "pii:name"})
    write(tmp_path / "o", "orc", "a", rows(0, 5))
    with pytest.raises(KeyMissingError):
        run("migrate_file", "orc", str(tmp_path / "o"), "db.t", within=keyless)
    assert table.latest_snapshot() is None
    done = add(run, tmp_path / "o", "orc")
    assert (done["files_adopted"], done["files_rewritten"]) == (0, 1)
    assert ids(catalog) == list(range(5))
    for path in Path(table.location).rglob("data-*"):
        assert b"name 3" not in path.read_bytes()
        with EncryptedOrcFile(str(path)) as file:
            assert [each.path for each in file.variants] == ["name"]


def test_encrypted_files_are_not_revealed(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    secret = make(catalog, **{"orc.encrypt": "pii:name"})
    secret.append(rows(0, 5))
    shutil.copytree(Path(secret.location) / "bucket-0", tmp_path / "o")
    catalog.drop_table("db.t")
    plain = make(catalog)
    with pytest.raises(InputError, match="stored in the clear"):
        add(run, tmp_path / "o", "orc")
    assert plain.latest_snapshot() is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: data.append_column("extra", pa.array(range(5))), "has no column 'extra'"),
        (
            lambda data: data.set_column(0, "id", data["id"].cast(pa.float64())),
            "'id' is DOUBLE in .* and BIGINT",
        ),
        (lambda data: data.drop(["id"]), "has no column 'id', which the table requires"),
    ],
)
def test_other_columns_are_refused(
    catalog: Catalog, run: Run, tmp_path: Path, change: Any, complaint: str
) -> None:
    table = make(catalog, ("id",), bucket="1")
    write(tmp_path / "o", "parquet", "a", change(rows(0, 5)))
    with pytest.raises(InputError, match=complaint):
        add(run, tmp_path / "o", "parquet")
    assert table.latest_snapshot() is None


def test_other_partitions_and_nulls_are_refused(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    table = make(catalog, ("id",), bucket="1")
    write(tmp_path / "o", "parquet", "day=1/a", rows(0, 5))
    with pytest.raises(InputError, match="partitioned by day, the table by nothing"):
        add(run, tmp_path / "o", "parquet")
    nulls = rows(0, 5).set_column(0, "id", pa.array([1, None, 2, 3, 4], pa.int64()))
    write(tmp_path / "n", "parquet", "a", nulls)
    with pytest.raises(InputError, match="id"):
        add(run, tmp_path / "n", "parquet")
    assert table.latest_snapshot() is None


def test_a_folder_of_the_table_itself_and_missing_names_are_refused(
    catalog: Catalog, run: Run, tmp_path: Path
) -> None:
    table = make(catalog)
    table.append(rows(0, 5))
    for folder in (Path(table.location) / "bucket-0", Path(table.location), tmp_path):
        with pytest.raises(InputError, match=r"files of the table db\.t itself"):
            add(run, folder, "orc")
    with pytest.raises(NotFoundError, match="no folder"):
        add(run, tmp_path / "nowhere", "orc")
    with pytest.raises(TableNotFoundError, match=r"db\.u"):
        add(run, tmp_path, "orc", target_table="db.u")
    assert ids(catalog) == list(range(5))


def test_a_failure_leaves_the_table_as_it_was(
    catalog: Catalog, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digest: Callable[[str], str]
) -> None:
    table = make(catalog)
    table.append(rows(0, 5))
    for number in range(4):
        write(tmp_path / "o", "parquet", f"{number}", rows(10 * number, 10 * number + 3))
    before, links = digest(table.location), []

    def link(*arguments: Any, **named: Any) -> None:
        links.append(arguments)
        if len(links) == 3:
            raise OSError(5, "the disk is gone")
        shutil.copyfile(arguments[0], arguments[1])

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(files_module, "link_or_copy", lambda _, source, __, target: link(source, target))
    with pytest.raises((LockgateError, OSError), match="the disk is gone"):
        add(run, tmp_path / "o", "parquet", parallelism=1)
    assert len(links) >= 3
    assert digest(table.location) == before
