"""`migrate_table` of folders, without Spark: files are adopted or rewritten, and nothing is risked."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    ColumnNotFoundError,
    InputError,
    KeyMissingError,
    LockgateError,
    NotFoundError,
    ProcedureError,
    UnsupportedError,
)
from lockgate.framework.io.copies import link_or_copy
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import EncryptedOrcFile, write_table
from lockgate.framework.store import Catalog, Table
from lockgate.procedures import ProcedureResult
from lockgate.procedures.builtin.migrate import migration as migrate_module
from lockgate.pushdown import Comparison, Op

Run = Callable[..., ProcedureResult]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("born", pa.date32()),
        ("size", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)


def rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table(
        {
            "id": list(ids),
            "name": [f"a long name that is cut {each:03}" for each in ids],
            "price": [Decimal(each) / 4 for each in ids],
            "born": [datetime.date(2000, 1, 1) + datetime.timedelta(each) for each in ids],
            "size": [each / 8 for each in ids],
            "tags": [["x"] * (each % 3) for each in ids],
        },
        schema=SCHEMA,
    )


def write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.orc.write_table(table, str(path), compression="zstd")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two ORC files and what Spark leaves next to them."""
    made = tmp_path / "origin"
    write(made / "part-0.orc", rows(0, 50))
    write(made / "part-1.orc", rows(50, 80))
    (made / "_SUCCESS").touch()
    (made / ".part-0.orc.crc").write_bytes(b"crc")
    (made / "part-2.orc").touch()
    return made


def sorted_rows(table: Table) -> pa.Table:
    return table.read(strict=True).sort_by("id")


def data_files(table: Table) -> list[Path]:
    return sorted(Path(table.location).rglob("data-*.orc"))


def test_files_are_adopted_without_rewriting(catalog: Catalog, run: Run, folder: Path) -> None:
    result = run("migrate_table", "orc", str(folder), target_table="db.t").to_dicts()[0]
    table = catalog.load_table("db.t")
    assert sorted_rows(table).equals(rows(0, 80).cast(table.schema.arrow_schema))
    assert result == {
        "files_adopted": 2,
        "files_rewritten": 0,
        "files_written": 0,
        "partitions": 1,
        "rows": 80,
        "bytes": sum(path.stat().st_size for path in folder.glob("part-*")),
        "snapshot_id": 1,
    }
    origins = {path.stat().st_ino for path in folder.glob("part-*")}
    assert {path.stat().st_ino for path in data_files(table)} <= origins
    assert (folder / "part-0.orc").exists()


def test_statistics_come_from_the_footers(catalog: Catalog, run: Run, folder: Path) -> None:
    run("migrate_table", "orc", str(folder), target_table="db.t")
    table = catalog.load_table("db.t")
    first, second = sorted(
        (entry.file for entry in table.manifests.live_files(table.latest_snapshot())),
        key=lambda file: file.row_count,
        reverse=True,
    )
    assert first.value_stats_cols == ("id", "name", "price", "born")
    assert first.value_stats.min == (0, "a long name that", Decimal("0.00"), datetime.date(2000, 1, 1))
    assert first.value_stats.max[:2] == (49, "a long name thau")
    assert second.value_stats.null_counts == (0, 0, 0, 0)
    plan = table.scan(Comparison(Op.GE, ("id",), (pa.scalar(60),)))
    assert [file.file_name for split in plan.splits for file in split.files] == [second.file_name]


def test_the_new_table_can_be_written_and_compacted(catalog: Catalog, run: Run, folder: Path) -> None:
    run("migrate_table", "orc", str(folder), target_table="db.t")
    table = catalog.load_table("db.t")
    table.append(rows(80, 90))
    assert run("compact", table="db.t")["files_after"] == 1
    run("expire_snapshots", table="db.t", retain_max=1)
    assert sorted_rows(table).num_rows == 90
    # What expiry deleted was the table's name of the file, not the origin's.
    assert pyarrow.orc.read_table(str(folder / "part-0.orc")).num_rows == 50


def test_partitions_come_from_the_folders(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    write(origin / "day=2026-01-01" / "hour=1" / "a.orc", rows(0, 3))
    write(origin / "day=2026-01-01" / "hour=2" / "a.orc", rows(3, 5))
    write(origin / "day=__HIVE_DEFAULT_PARTITION__" / "hour=1" / "a.orc", rows(5, 6))
    result = run("migrate_table", "orc", str(origin), target_table="db.t")
    assert (result["files_adopted"], result["partitions"]) == (3, 3)
    table = catalog.load_table("db.t")
    assert table.schema.partition_keys == ("day", "hour")
    assert [str(kind) for kind in table.schema.types_of(("day", "hour"))] == ["DATE", "INT"]
    found = sorted_rows(table).select(["id", "day", "hour"]).to_pylist()
    assert found[0] == {"id": 0, "day": datetime.date(2026, 1, 1), "hour": 1}
    assert found[5] == {"id": 5, "day": None, "hour": 1}
    run("compact", table="db.t")
    assert sorted_rows(table).select(["id", "day", "hour"]).to_pylist() == found


def test_a_week_in_a_folders_name_is_text(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    write(tmp_path / "origin" / "week=2026-W05" / "a.orc", rows(0, 1))
    run("migrate_table", "orc", str(tmp_path / "origin"), target_table="db.t")
    assert sorted_rows(catalog.load_table("db.t"))["week"].to_pylist() == ["2026-W05"]


def test_a_primary_key_means_rewriting(catalog: Catalog, run: Run, folder: Path) -> None:
    result = run(
        "migrate_table", "orc", str(folder), options="primary-key=id,bucket=2", target_table="db.t"
    ).to_dicts()[0]
    assert (result["files_adopted"], result["files_rewritten"], result["files_written"]) == (0, 2, 2)
    table = catalog.load_table("db.t")
    assert table.schema.primary_keys == ("id",)
    assert (
        sorted_rows(table).select(["id", "tags"]).to_pylist()
        == rows(0, 80).select(["id", "tags"]).to_pylist()
    )


def test_a_file_of_another_schema_is_rewritten_next_to_the_others(
    catalog: Catalog, run: Run, folder: Path
) -> None:
    narrow = rows(80, 85).select(["id", "name"])
    write(folder / "part-9.orc", narrow.set_column(0, "id", narrow["id"].cast(pa.int32())))
    result = run("migrate_table", "orc", str(folder), target_table="db.t")
    assert (result["files_adopted"], result["files_rewritten"], result["rows"]) == (2, 1, 85)
    found = sorted_rows(catalog.load_table("db.t")).to_pylist()
    assert [row["id"] for row in found] == list(range(85))
    assert found[84]["born"] is None


# --- encrypted sources ---


@pytest.fixture
def encrypted(tmp_path: Path, catalog: Catalog) -> Path:
    """A folder of two files whose column `name` is encrypted by the key `pii`."""
    made = tmp_path / "secret"
    made.mkdir()
    for number in range(2):
        with open(made / f"part-{number}.orc", "wb") as sink:
            part = rows(number * 10, number * 10 + 10)
            write_table(part, sink, encrypt="pii:name", mask="sha256:name", keys=catalog.keys)
    return made


def test_encrypted_files_are_adopted_with_their_encryption(
    catalog: Catalog, keyless: Catalog, run: Run, encrypted: Path
) -> None:
    result = run("migrate_table", "orc", str(encrypted), target_table="db.t")
    assert result["files_adopted"] == 2
    table = catalog.load_table("db.t")
    assert (table.options["orc.encrypt"], table.options["orc.mask"]) == ("pii:name", "sha256:name")
    assert sorted_rows(table)["name"].to_pylist() == rows(0, 20)["name"].to_pylist()
    for entry in table.manifests.live_files(table.latest_snapshot()):
        assert "name" not in (entry.file.value_stats_cols or ())
    with pytest.raises(KeyMissingError):
        keyless.load_table("db.t").read(strict=True)


def test_another_key_means_rewriting(catalog: Catalog, run: Run, encrypted: Path) -> None:
    result = run(
        "migrate_table", "orc", str(encrypted), options="orc.encrypt=other:name,id", target_table="db.t"
    )
    assert (result["files_adopted"], result["files_rewritten"]) == (0, 2)
    table = catalog.load_table("db.t")
    assert sorted_rows(table)["name"].to_pylist() == rows(0, 20)["name"].to_pylist()
    for path in data_files(table):
        with EncryptedOrcFile(str(path), keys=catalog.keys) as file:
            assert {(each.column, each.key.name) for each in file.variants} == {
                ("id", "other"),
                ("name", "other"),
            }


@pytest.mark.parametrize("options", [None, "orc.encrypt=other:name"])
def test_without_the_key_nothing_happens(
    catalog: Catalog, run: Run, encrypted: Path, digest: Callable[[str | Path], str], options: str | None
) -> None:
    held = Catalog(catalog.warehouse, keys=MemoryKeyProvider({"other@0": bytes(16)}))
    state = digest(catalog.warehouse), digest(encrypted)
    with pytest.raises(KeyMissingError, match="pii"):
        run("migrate_table", "orc", str(encrypted), options=options, target_table="db.t", within=held)
    assert (digest(catalog.warehouse), digest(encrypted)) == state


def test_plain_files_become_encrypted(catalog: Catalog, run: Run, folder: Path) -> None:
    result = run("migrate_table", "orc", str(folder), options="orc.encrypt=pii:name", target_table="db.t")
    assert (result["files_adopted"], result["files_rewritten"]) == (0, 2)
    for path in data_files(catalog.load_table("db.t")):
        assert b"a long name" not in path.read_bytes()
        with EncryptedOrcFile(str(path)) as file:
            assert file.masked_columns == ["name"]


# --- what only Spark reads right ---


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime.datetime(2026, 1, 1, 12)], pa.timestamp("us")),
        pa.array([datetime.date(1500, 1, 1)], pa.date32()),
    ],
)
def test_values_that_spark_stores_otherwise_need_spark(
    catalog: Catalog, run: Run, tmp_path: Path, column: pa.Array
) -> None:
    write(tmp_path / "origin" / "a.orc", pa.table({"id": [1], "when": column}))
    with pytest.raises(UnsupportedError, match=r"without Spark.*by SQL \(CALL\)"):
        run("migrate_table", "orc", str(tmp_path / "origin"), target_table="db.t")
    assert catalog.list_tables("db") == []


def test_a_table_of_spark_s_catalog_needs_spark(run: Run) -> None:
    with pytest.raises(ProcedureError, match="needs Spark"):
        run("migrate_table", "spark", "default.t")


# --- care ---


def test_dry_run_changes_nothing(
    catalog: Catalog, run: Run, folder: Path, digest: Callable[[str | Path], str]
) -> None:
    state = digest(catalog.warehouse), digest(folder)
    result = run("migrate_table", "orc", str(folder), target_table="db.t", dry_run=True).to_dicts()[0]
    assert (result["files_adopted"], result["rows"], result["snapshot_id"]) == (2, 80, None)
    assert (digest(catalog.warehouse), digest(folder)) == state


def test_delete_origin_deletes_only_what_was_migrated(catalog: Catalog, run: Run, folder: Path) -> None:
    (folder / "_notes.txt").write_text("keep me")
    run("migrate_table", "orc", str(folder), delete_origin=True, target_table="db.t")
    assert not list(folder.glob("part-[01].orc"))
    assert (folder / "_notes.txt").exists()
    assert sorted_rows(catalog.load_table("db.t")).num_rows == 80


def test_a_failure_leaves_no_table(
    catalog: Catalog,
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    digest: Callable[[str | Path], str],
) -> None:
    def fail(*arguments: Any) -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(migrate_module, "adopt", fail)
    state = digest(folder)
    with pytest.raises(OSError, match="no space"):
        run("migrate_table", "orc", str(folder), delete_origin=True, target_table="db.t")
    assert catalog.list_tables("db") == []
    assert digest(folder) == state


def test_links_that_are_impossible_become_copies(
    catalog: Catalog, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(source: str, target: str) -> None:
        if str(folder) in source:
            raise OSError(18, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    run("migrate_table", "orc", str(folder), target_table="db.t")
    table = catalog.load_table("db.t")
    assert sorted_rows(table).num_rows == 80
    origins = {path.stat().st_ino for path in folder.glob("part-*")}
    assert not {path.stat().st_ino for path in data_files(table)} & origins


def test_a_link_never_replaces_a_file(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    with pytest.raises(FileExistsError):
        link_or_copy(catalog.file_system, str(tmp_path / "a"), catalog.file_system, str(tmp_path / "b"))
    assert (tmp_path / "b").read_text() == "b"


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"source_type": "delta"}, InputError, "source_type cannot be 'delta'"),
        ({"table": "/no/such/folder"}, NotFoundError, "there is no folder"),
        ({"target_table": None}, InputError, "give target_table"),
        ({"target_table": "db.old"}, AlreadyExistsError, "'db.old' exists"),
        ({"target_table": "dbb.t"}, LockgateError, "did you mean 'db'"),
        ({"options": "primary-key=idd,bucket=1"}, ColumnNotFoundError, "did you mean 'id'"),
        ({"options": "orc.encrypt=pii:id,primary-key=id,bucket=1"}, InputError, "cannot be encrypted"),
        ({"parallelism": 0}, InputError, "parallelism"),
    ],
)
def test_bad_arguments(
    catalog: Catalog,
    run: Run,
    folder: Path,
    arguments: dict[str, Any],
    error: type[Exception],
    complaint: str,
) -> None:
    run("migrate_table", "orc", str(folder), target_table="db.old")
    given = {"source_type": "orc", "table": str(folder), "target_table": "db.t", **arguments}
    with pytest.raises(error, match=complaint):
        run("migrate_table", **given)
    assert catalog.list_tables("db") == ["old"]


def test_folders_that_disagree(run: Run, folder: Path) -> None:
    write(folder / "day=1" / "a.orc", rows(0, 1))
    with pytest.raises(InputError, match="disagree about partition columns"):
        run("migrate_table", "orc", str(folder), target_table="db.t")


def test_an_empty_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no ORC files"):
        run("migrate_table", "orc", str(tmp_path / "empty"), target_table="db.t")
