"""`compact` leaves no value of an encrypted column in manifests, whatever wrote it in the clear before."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from plain_search import found_in

from lockgate.framework.store import Catalog, CommitKind, CommitMessage, Schema, Table
from lockgate.framework.store.ddl.schema_changes import DropColumn, RemoveOption, RenameColumn, SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.manifests.manifest import FileKind
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("ssn", pa.string()), ("v", pa.int32())])
SECRET = "666-55-"
ENCRYPT = SetOption("orc.encrypt", "pii:ssn")


def make(catalog: Catalog, keys: Sequence[str] = (), **options: str) -> Table:
    bucket = {"bucket": "2"} if keys else {}
    texts = {"metadata.stats-mode": "full", **bucket, **options}
    return catalog.create_table("db.t", Schema.from_arrow(COLUMNS, primary_keys=keys, options=texts))


def people(*ids: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "ssn": [f"{SECRET}{each:04}" for each in ids], "v": list(ids)}, schema=COLUMNS
    )


def newest_manifests_show(table: Table) -> bool:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    metas = table.manifests.manifests(snapshot)
    paths = [Path(table.paths.manifest(meta.file_name)) for meta in metas]
    return any(path.name in found_in(path.parent, SECRET) for path in paths)


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "key"])
def test_nothing_is_left_after_expiry(catalog: Catalog, run: Run, keys: Sequence[str]) -> None:
    table = make(catalog, keys)
    for number in range(4):
        table.append(people(number))
    table = catalog.alter_table("db.t", [ENCRYPT])
    before = sorted(table.read().to_pylist(), key=lambda row: row["id"])
    run("compact", table="db.t")
    assert not newest_manifests_show(table)
    run("expire_snapshots", table="db.t", retain_max=1)
    assert found_in(table.location, SECRET) == {}
    assert sorted(table.read(strict=True).to_pylist(), key=lambda row: row["id"]) == before


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "key"])
def test_whatever_takes_a_plain_file_away_hides_them(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys)
    table.append(people(1))
    table.append(people(2))
    table = catalog.alter_table("db.t", [ENCRYPT])
    table.append(people(3))
    assert newest_manifests_show(table)
    table.overwrite(people(4))
    assert not newest_manifests_show(table)
    assert [row["id"] for row in table.read().to_pylist()] == [4]


def test_statistics_of_other_columns_stay(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(people(1, 2))
    table.append(people(3, 4))
    table = catalog.alter_table("db.t", [ENCRYPT])
    # As a scan that runs concurrently, or a partition left out, would keep them: live files, in the clear.
    table.commit([], kind=CommitKind.COMPACT)
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.id == 3
    assert not newest_manifests_show(table)
    files = [entry.file for entry in table.manifests.live_files(snapshot)]
    assert [file.value_stats_cols for file in files] == [("id", "v")] * 2
    assert [(file.value_stats.min, file.value_stats.max) for file in files] == [
        ((1, 1), (2, 2)),
        ((3, 3), (4, 4)),
    ]
    assert table.read(strict=True).num_rows == 4
    # Once is enough.
    assert table.commit([], kind=CommitKind.COMPACT) == snapshot


def test_compact_hides_what_an_earlier_one_left(catalog: Catalog, run: Run) -> None:
    """The files are encrypted already, the manifests from before are still referred to."""
    table = make(catalog, **{"orc.encrypt": "pii:ssn"})
    (message,) = table.write(people(1))
    shown = unencrypted(table).write(people(1))[0].added[0]
    leaky = tuple(
        replace(file, value_stats=shown.value_stats, value_stats_cols=shown.value_stats_cols)
        for file in message.added
    )
    unencrypted(table).commit([replace(message, added=leaky)])
    # The schema on disk says what is hidden, so that another writer is played by its manifest alone.
    play_foreign_manifest(table, leaky)
    assert newest_manifests_show(table)
    result = run("compact", table="db.t").to_dicts()[0]
    assert (result["files_rewritten"], result["files_before"]) == (0, 1)
    assert result["snapshot_id"] == 2
    assert not newest_manifests_show(table)
    assert run("compact", table="db.t")["snapshot_id"] is None


def unencrypted(table: Table) -> Table:
    """The table for a writer that ignores `orc.encrypt`."""
    options = {key: value for key, value in table.schema.options.items() if key != "orc.encrypt"}
    return Table(
        table.identifier,
        table.location,
        replace(table.schema, options=options),
        TableContext(table.file_system),
    )


def play_foreign_manifest(table: Table, files: Sequence[Any]) -> None:
    """Put entries into the newest manifest as a writer would that hides nothing."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    (meta,) = table.manifests.delta_manifests(snapshot)
    (entry,) = table.manifests.read_manifest(meta)
    assert entry.kind is FileKind.ADD
    shown = table.manifests.write_manifest([replace(entry, file=files[0])])
    name, size = table.manifests.write_list([shown])
    path = Path(table.location, "snapshot", f"snapshot-{snapshot.id}")
    path.write_bytes(replace(snapshot, delta_manifest_list=name, delta_manifest_list_size=size).to_bytes())


def test_renamed_and_parts_of_structs(catalog: Catalog, run: Run) -> None:
    person = pa.struct([("ssn", pa.string()), ("city", pa.string())])
    schema = pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("who", person), ("all", pa.list_(person))]
    )
    table = catalog.create_table(
        "db.t", Schema.from_arrow(schema, options={"metadata.stats-mode": "full", "file.compression": "none"})
    )
    who = {"ssn": f"{SECRET}1", "city": "Riga"}
    table.append(pa.Table.from_pylist([{"id": 1, "name": f"{SECRET}2", "who": who, "all": [who]}], schema))
    catalog.alter_table("db.t", [RenameColumn(("name",), "alias"), RenameColumn(("who", "ssn"), "number")])
    catalog.alter_table("db.t", [RenameColumn(("all", "element", "ssn"), "number")])
    table = catalog.alter_table(
        "db.t", [SetOption("orc.encrypt", "pii:alias,who.number;other:all._elem.number")]
    )
    assert run("compact", table="db.t")["files_rewritten"] == 1
    run("expire_snapshots", table="db.t", retain_max=1)
    assert found_in(table.location, SECRET) == {}
    assert found_in(table.location, "Riga")
    (row,) = table.read(strict=True).to_pylist()
    assert (row["alias"], row["who"]["number"]) == (f"{SECRET}2", f"{SECRET}1")


def test_a_dropped_column_stays_secret(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(people(1))
    table.append(people(2))
    catalog.alter_table("db.t", [ENCRYPT])
    table = catalog.alter_table("db.t", [DropColumn(("ssn",))])
    run("compact", table="db.t")
    assert not newest_manifests_show(table)


def test_a_column_that_is_encrypted_no_more_keeps_its_statistics(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(people(1))
    table.append(people(2))
    catalog.alter_table("db.t", [ENCRYPT])
    table = catalog.alter_table("db.t", [RemoveOption("orc.encrypt")])
    run("compact", table="db.t")
    assert newest_manifests_show(table)


def index_of(*columns: str) -> bytes:
    """A file index as Paimon lays it out, with one kind of index a column."""
    body = b""
    for name in columns:
        body += struct.pack(">H", len(name)) + name.encode() + struct.pack(">i", 1)
        body += struct.pack(">H", 6) + b"bitmap" + struct.pack(">ii", 0, 0)
    return struct.pack(">qiii", 1493475289347502, 1, len(body) + 20, len(columns)) + body


@pytest.mark.parametrize("columns", [("ssn",), ("v",)], ids=["secret", "other"])
def test_indexes_that_hold_values(catalog: Catalog, run: Run, columns: Sequence[str]) -> None:
    """An index of an encrypted column goes, with the file that lies next to the data; others stay."""
    table = make(catalog, **{"orc.encrypt": "pii:ssn"})
    indexed: list[CommitMessage] = []
    for number in range(2):
        (message,) = table.write(people(number))
        (file,) = message.added
        index = f"{file.file_name}.index"
        Path(table.paths.data_file((), 0, file)).with_name(index).write_bytes(index_of(*columns))
        change: dict[str, Any] = (
            {"extra_files": (index,)} if number else {"embedded_index": index_of(*columns)}
        )
        indexed.append(replace(message, added=(replace(file, **change),)))
    for message in indexed:
        table.commit([message])
    secret = columns == ("ssn",)
    result = run("compact", table="db.t", compact_strategy="minor").to_dicts()[0]
    assert result["files_rewritten"] == (2 if secret else 0)
    assert table.read(strict=True).num_rows == 2


def test_statistics_of_the_table_go(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    table.append(people(1))
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    folder = Path(table.location, "statistics")
    folder.mkdir()
    content = {"snapshotId": 1, "schemaId": 0, "colStats": {"ssn": {"colId": 1, "min": f"{SECRET}0001"}}}
    (folder / "stat-1").write_text(json.dumps(content))
    path = Path(table.location, "snapshot", "snapshot-1")
    path.write_bytes(replace(snapshot, statistics="stat-1").to_bytes())
    table = catalog.alter_table("db.t", [ENCRYPT])
    run("compact", table="db.t")
    newest = table.latest_snapshot()
    assert newest is not None
    assert newest.statistics is None
    run("expire_snapshots", table="db.t", retain_max=1)
    assert found_in(table.location, SECRET) == {}
