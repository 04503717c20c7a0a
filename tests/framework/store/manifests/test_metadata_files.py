"""Schemas, snapshots, manifests: what is written is read, and damage is named."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from lockgate.errors import CorruptFileError, SnapshotNotFoundError, UnsupportedFormatError
from lockgate.framework.store import (
    CommitKind,
    CommitMessage,
    DataFileMeta,
    FileKind,
    ManifestEntry,
    Snapshot,
    Table,
    TableSchema,
)
from lockgate.framework.store.codec.avro import read_container, write_container
from lockgate.framework.store.handle import TableContext
from lockgate.framework.store.manifests.manifest import live_entries, merge_entries
from lockgate.framework.store.manifests.manifest_files import partition_stats
from lockgate.framework.store.manifests.manifest_records import ENTRY_SCHEMA
from lockgate.framework.store.metadata.trust import ExternalRoots

MakeTable = Callable[..., Table]
MakeFile = Callable[..., DataFileMeta]
MakeMessage = Callable[..., CommitMessage]

SNAPSHOT = Snapshot(
    id=3,
    schema_id=1,
    base_manifest_list="manifest-list-a",
    delta_manifest_list="manifest-list-b",
    commit_user="me",
    commit_identifier=2**63 - 1,
    commit_kind=CommitKind.COMPACT,
    time_millis=5,
    total_record_count=7,
    delta_record_count=-1,
    watermark=-(2**63),
    properties={"a": "b"},
)


# --- schemas -------------------------------------------------------------------------------------


def test_schema_round_trip(make_table: MakeTable) -> None:
    table = make_table(columns={"id": pa.int64(), "d": pa.date32()}, primary_keys=("id",), bucket="3")
    assert TableSchema.from_bytes(table.schema.to_bytes(), "schema-0") == table.schema
    content = json.loads((Path(table.location) / "schema" / "schema-0").read_text())
    assert content["version"] == 3
    assert content["fields"][0] == {"id": 0, "name": "id", "type": "BIGINT NOT NULL"}
    assert content["options"] == {"bucket": "3", "file.format": "orc"}


def test_old_schema_versions_get_the_defaults_of_their_time() -> None:
    content = {
        "id": 0,
        "fields": [],
        "highestFieldId": -1,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
    }
    schema = TableSchema.from_bytes(json.dumps(content).encode(), "schema-0")
    assert schema.options == {"bucket": "1", "file.format": "orc"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"version": 3, "id": 0}', b'{"version": 3, "id": 0, "fields": 1}']
)
def test_a_damaged_schema_is_named(make_table: MakeTable, data: bytes) -> None:
    table = make_table()
    path = Path(table.location) / "schema" / "schema-1"
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="schema-1"):
        table.schema_of(1)


def test_a_missing_schema_is_named(make_table: MakeTable) -> None:
    with pytest.raises(CorruptFileError, match="schema-9 is missing"):
        make_table().schema_of(9)


def test_schemas_from_the_future_are_refused() -> None:
    with pytest.raises(UnsupportedFormatError, match="version 4"):
        TableSchema.from_bytes(b'{"version": 4}', "schema-0")


# --- snapshots -----------------------------------------------------------------------------------


def test_snapshot_round_trip() -> None:
    assert Snapshot.from_bytes(SNAPSHOT.to_bytes(), "snapshot-3") == SNAPSHOT
    content = json.loads(SNAPSHOT.to_bytes())
    assert content["commitIdentifier"] == 2**63 - 1
    assert content["commitKind"] == "COMPACT"
    assert "uuid" not in content


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"baseManifestList"', b'"other"'),
        lambda data: data.replace(b'"schemaId": 1', b'"schemaId": "x"'),
    ],
)
def test_a_damaged_snapshot_is_named(make_table: MakeTable, damage: Callable[[bytes], bytes]) -> None:
    table = make_table()
    folder = Path(table.location) / "snapshot"
    folder.mkdir()
    (folder / "snapshot-3").write_bytes(damage(SNAPSHOT.to_bytes()))
    with pytest.raises(CorruptFileError, match="snapshot-3"):
        table.snapshot(3)


def test_unknown_versions_and_kinds_are_refused() -> None:
    for old, new in ((b'"version": 3', b'"version": 4'), (b'"COMPACT"', b'"MAGIC"')):
        with pytest.raises(UnsupportedFormatError, match="snapshot-3"):
            Snapshot.from_bytes(SNAPSHOT.to_bytes().replace(old, new), "snapshot-3")


@pytest.mark.parametrize("hint", [b"1", b"2", b"3", b"7", b"x", b"", None])
def test_hints_may_be_wrong(
    make_table: MakeTable, message: MakeMessage, data_file: MakeFile, hint: bytes | None
) -> None:
    table = make_table()
    for number in range(3):
        table.commit([message(data_file(f"data-{number}.orc"))])
    for name in ("LATEST", "EARLIEST"):
        path = Path(table.location) / "snapshot" / name
        path.unlink()
        if hint is not None:
            path.write_bytes(hint)
    latest = table.latest_snapshot()
    assert latest is not None
    assert latest.id == 3
    assert table.snapshot_files.ids()[0] == 1
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2, 3]


def test_a_snapshot_that_does_not_exist_tells_which_do(
    make_table: MakeTable, message: MakeMessage, data_file: MakeFile
) -> None:
    table = make_table()
    with pytest.raises(SnapshotNotFoundError, match="none yet"):
        table.snapshot(1)
    table.commit([message(data_file("data-1.orc"))])
    with pytest.raises(SnapshotNotFoundError, match="no snapshot 9; existing: 1 to 1"):
        table.snapshot(9)


# --- manifests -----------------------------------------------------------------------------------


def test_manifest_entries_round_trip(make_table: MakeTable, key_file: MakeFile, message: MakeMessage) -> None:
    columns = {"id": pa.int64(), "v": pa.string(), "dt": pa.string()}
    made = make_table(columns=columns, primary_keys=("id", "dt"), partition_keys=("dt",), bucket="2")
    external = ExternalRoots(("/elsewhere",))
    table = Table(
        made.identifier, made.location, made.schema, TableContext(made.file_system, external=external)
    )
    file = key_file(
        "data-1.orc",
        min_sequence_number=3,
        max_sequence_number=12,
        level=0,
        extra_files=("data-1.orc.index",),
        delete_row_count=2,
        embedded_index=b"\x01",
        external_path="/elsewhere/data-1.orc",
        first_row_id=5,
        write_cols=("id",),
        write_cols_sequences=(4,),
    )
    other = replace(
        file,
        file_name="data-2.orc",
        value_stats_cols=None,
        value_stats=replace(
            file.value_stats, min=(0, None, "a"), max=(9, None, "b"), null_counts=(0, 10, None)
        ),
        write_cols=None,
    )
    table.commit([message(file, other, partition=("a",), bucket=1, total_buckets=2)])
    snapshot = table.latest_snapshot()
    fresh = Table(
        table.identifier, table.location, table.schema, TableContext(table.file_system, external=external)
    )
    entries = fresh.manifests.live_files(snapshot)
    assert entries == [ManifestEntry(FileKind.ADD, ("a",), 1, 2, each) for each in (file, other)]
    (meta,) = fresh.manifests.manifests(snapshot)  # type: ignore[arg-type]  # the commit made one
    assert (meta.num_added_files, meta.num_deleted_files, meta.min_bucket, meta.max_bucket) == (2, 0, 1, 1)
    assert (meta.partition_stats.min, meta.partition_stats.max) == (("a",), ("a",))


def test_avro_schemas_have_paimons_names(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    table.commit([message(data_file("data-1.orc"))])
    (manifest,) = (
        path
        for path in (Path(table.location) / "manifest").iterdir()
        if not path.name.startswith("manifest-list")
    )
    with manifest.open("rb") as file:
        schema = fastavro.reader(file).writer_schema
    assert schema["name"] == "org.apache.paimon.avro.generated.record"
    nested = schema["fields"][5]["type"]
    assert nested["name"] == "org.apache.paimon.avro.generated.record__FILE"
    assert nested["fields"][5]["type"]["name"] == "org.apache.paimon.avro.generated.record__FILE__KEY_STATS"
    assert [field["name"] for field in schema["fields"]][:3] == ["_VERSION", "_KIND", "_PARTITION"]


@pytest.mark.parametrize("which", ["manifest-list", "manifest"])
@pytest.mark.parametrize("damage", ["truncate", "truncate-start", "empty", "flip", "remove"])
def test_a_damaged_manifest_is_named(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage, which: str, damage: str
) -> None:
    table = make_table()
    snapshot = table.commit([message(data_file("data-1.orc"))])
    (meta,) = table.manifests.delta_manifests(snapshot)
    name = snapshot.delta_manifest_list if which == "manifest-list" else meta.file_name
    path = Path(table.location) / "manifest" / name
    data = path.read_bytes()
    cut = {
        "truncate": data[:-5],
        "truncate-start": data[5:],
        "empty": b"",
        "flip": data[:-1] + bytes([data[-1] ^ 1]),
    }
    path.unlink()
    if damage != "remove":
        path.write_bytes(cut[damage])
    # Parsed manifests are kept by path, so the damage is looked at under another one.
    moved = Path(table.location).with_name("moved")
    Path(table.location).rename(moved)
    broken = Table(table.identifier, str(moved), table.schema, TableContext(table.file_system))
    with pytest.raises(CorruptFileError, match=name):
        broken.manifests.live_files(snapshot)


@pytest.mark.parametrize("codec", ["null", "deflate", "xz"])
def test_containers_of_other_writers(codec: str, tmp_path: Path) -> None:
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]})
    with (tmp_path / "f").open("wb") as sink:
        fastavro.writer(
            sink, schema, [{"a": number} for number in range(1000)], codec=codec, sync_interval=100
        )
    data = (tmp_path / "f").read_bytes()
    assert [record["a"] for record in read_container(data, "f")] == list(range(1000))


def test_zstandard_containers_need_no_package() -> None:
    schema = fastavro.parse_schema({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]})
    sink = io.BytesIO()
    fastavro.writer(sink, schema, [{"a": 1}], codec="null", sync_marker=b"m" * 16)
    # One record of one byte: its block is a count of 1, a size of 1 and the byte; both numbers are zigzag.
    plain = sink.getvalue()
    header, block = plain.split(b"m" * 16)[:2]
    assert block == bytes([2, 2, 2])
    packed = pa.Codec("zstd").compress(block[2:], asbytes=True)
    header = header.replace(b"\x08null", b"\x12zstandard")
    data = b"".join([header, b"m" * 16, bytes([2, len(packed) * 2]), packed, b"m" * 16])
    assert read_container(data, "f") == [{"a": 1}]


def test_records_of_another_layout_are_refused(
    make_table: MakeTable, data_file: MakeFile, message: MakeMessage
) -> None:
    table = make_table()
    snapshot = table.commit([message(data_file("data-1.orc"))])
    (meta,) = table.manifests.delta_manifests(snapshot)
    path = Path(table.location) / "manifest" / meta.file_name
    (record,) = read_container(path.read_bytes(), "x")
    data = write_container(ENTRY_SCHEMA, [{**record, "_VERSION": 1}])
    other = Path(table.location) / "manifest" / "manifest-other"
    other.write_bytes(data)
    with pytest.raises(UnsupportedFormatError, match="manifest-other"):
        table.manifests.read_manifest(replace(meta, file_name="manifest-other", file_size=len(data)))


def test_additions_and_deletions_cancel(data_file: MakeFile) -> None:
    def entry(kind: FileKind, name: str, level: int = 0) -> ManifestEntry:
        return ManifestEntry(kind, (), 0, 1, data_file(name, level=level))

    add, delete = FileKind.ADD, FileKind.DELETE
    history = [entry(add, "a"), entry(add, "b"), entry(delete, "a"), entry(add, "a", 5), entry(delete, "c")]
    assert [(e.kind, e.file.file_name, e.file.level) for e in merge_entries(history)] == [
        (add, "b", 0),
        (add, "a", 5),
        (delete, "c", 0),
    ]
    assert [e.file.file_name for e in live_entries(history)] == ["b", "a"]
    assert live_entries([entry(add, "a"), entry(delete, "a"), entry(add, "a")])[0].file.file_name == "a"


def test_partition_statistics() -> None:
    stats = partition_stats([("b", 1.0), ("a", None), ("a", None)], 2)
    assert (stats.min, stats.max, stats.null_counts) == (("a", 1.0), ("b", 1.0), (0, 2))
    assert partition_stats([(float("nan"),), (1.0,)], 1).min == (None,)
