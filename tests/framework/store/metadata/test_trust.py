"""Metadata that names files elsewhere: every road refuses it, and maintenance deletes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lockgate.errors import CorruptFileError, OptionError, UnsafePathError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.codec.avro import read_container, write_container
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests.manifest_records import ENTRY_SCHEMA
from lockgate.framework.store.metadata.trust import ExternalRoots, check_file_name
from lockgate.framework.store.schema.schema import now_millis
from lockgate.procedures import ProcedureContext, call

MakeTable = Callable[..., Table]
ROWS = pa.table({"id": [1], "v": ["a"]})

BAD_NAMES = ["../../../{victim}", "/{victim}", "a/b.orc", "..", ".", "", "a\\b.orc", "a\0b.orc", "a\nb.orc"]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "precious.orc"
    path.parent.mkdir()
    path.write_bytes(b"precious")
    return path


def named(name: str, victim: Path) -> str:
    return name.replace("{victim}", str(victim))


# --- what a name may be --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BAD_NAMES, "/", "a/", "\x1f", "\x7f", None, 7, b"a.orc"])
def test_bad_names(name: Any) -> None:
    with pytest.raises(UnsafePathError, match="not a plain name"):
        check_file_name(name)


@pytest.mark.parametrize("name", ["data-1.orc", "part 0=1.snappy.orc", "000000_0", "..a", "ä.orc", "a%2Fb"])
def test_good_names(name: str) -> None:
    assert check_file_name(name) == name


@pytest.mark.parametrize(
    ("roots", "address", "path"),
    [
        ("/cold", "/cold/t/data.orc", "/cold/t/data.orc"),
        ("/cold/", "file:/cold/data.orc", "/cold/data.orc"),
        ("file:///cold", "file:///cold/data.orc", "/cold/data.orc"),
        ("/a, /cold", "/cold/data.orc", "/cold/data.orc"),
        ("/", "/cold/data.orc", "/cold/data.orc"),
        ("", "/w/db.db/t/x/data.orc", "/w/db.db/t/x/data.orc"),
        ("/cold", "/cold", None),
        ("/cold", "/colder/data.orc", None),
        ("/cold", "/cold/../etc/data.orc", None),
        ("/cold", "/cold//data.orc", None),
        ("/cold", "/cold/./data.orc", None),
        ("/cold", "cold/data.orc", None),
        ("/cold", "/cold/da\0ta.orc", None),
        ("/cold", "s3://cold/data.orc", None),
        ("", "/w/db.db/other/data.orc", None),
        ("", "/w/db.db/t2/data.orc", None),
        ("", "", None),
    ],
)
def test_external_paths(roots: str, address: str, path: str | None) -> None:
    external = ExternalRoots.parse(roots)
    if path is None:
        with pytest.raises(UnsafePathError, match="external-roots"):
            external.path(address, "/w/db.db/t")
    else:
        assert external.path(address, "/w/db.db/t") == path


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_external_paths_in_a_bucket(scheme: str) -> None:
    external = ExternalRoots.parse(f"{scheme}://cold/a/")
    assert external.path("s3a://cold/a/b/data.orc", "hot/db.db/t") == "cold/a/b/data.orc"
    assert external.path("s3://hot/db.db/t/x.orc", "hot/db.db/t") == "hot/db.db/t/x.orc"
    for address in (
        "s3://cold/ab/data.orc",
        "s3://hot/db.db/u/x.orc",
        "s3://cold/a/../b.orc",
        "/cold/a/b.orc",
    ):
        with pytest.raises(UnsafePathError):
            external.path(address, "hot/db.db/t")


def test_roots_are_absolute() -> None:
    with pytest.raises(OptionError, match="absolute"):
        ExternalRoots.parse("cold")


# --- hostile tables ------------------------------------------------------------------------------


def rewrite_manifest(table: Table, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the records of a manifest, which keeps its name and whose list is told its size."""
    path = Path(table.paths.manifest(name))
    records = read_container(path.read_bytes(), str(path))
    for record in records:
        change(record)
    path.write_bytes(write_container(ENTRY_SCHEMA, records))


def change_list(table: Table, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    path = Path(table.paths.manifest(name))
    data = path.read_bytes()
    with open(path, "rb") as file:
        schema = fastavro.reader(file).writer_schema
    records = read_container(data, str(path))
    for record in records:
        change(record)
    path.write_bytes(write_container(fastavro.parse_schema(schema), records))


def hostile(table: Table, snapshot_id: int, **file: Any) -> str:
    """Let the files that a snapshot added be named otherwise; returns the name of its manifest."""
    snapshot = table.snapshot(snapshot_id)
    (meta,) = table.manifests.read_list(snapshot.delta_manifest_list)
    rewrite_manifest(table, meta.file_name, lambda record: record["_FILE"].update(file))
    size = Path(table.paths.manifest(meta.file_name)).stat().st_size
    lists = [snapshot.delta_manifest_list]
    for each in table.snapshots():
        lists += [each.base_manifest_list, each.delta_manifest_list]

    def tell_size(record: dict[str, Any]) -> None:
        if record["_FILE_NAME"] == meta.file_name:
            record["_FILE_SIZE"] = size

    for name in set(lists):
        change_list(table, name, tell_size)
    for path in (Path(table.location) / "snapshot").glob("snapshot-*"):
        content = json.loads(path.read_text())
        for key in ("baseManifestListSize", "deltaManifestListSize", "changelogManifestListSize"):
            content.pop(key, None)
        path.write_text(json.dumps(content))
    return meta.file_name


def fresh(table: Table, tmp_path: Path) -> Table:
    """The table in a folder of its own: what was parsed before counts for the old one."""
    moved = tmp_path / "received"
    Path(table.location).parents[1].rename(moved)
    return Catalog(moved).load_table("db.t")


def four_snapshots(table: Table) -> Table:
    """Two appends, a tag on the first, a branch, an overwrite, one more append."""
    table.append(ROWS)
    table.create_tag("first")
    table.create_branch("b", 1)
    table.append(ROWS)
    table.overwrite(ROWS)
    table.append(ROWS)
    return table


ROADS: dict[str, Callable[[Table], object]] = {
    "read": lambda table: table.read(),
    "scan": lambda table: table.scan(),
    "expire": lambda table: expire_snapshots(table, retain_max=1, retain_min=1),
    "rollback": lambda table: table.rollback(2),
    "orphans": lambda table: remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True),
    "delete_branch": lambda table: table.delete_branch("b"),
    "overwrite": lambda table: table.overwrite(ROWS),
    "drop partition": lambda table: table.overwrite(ROWS.slice(0, 0)),
    "compact": lambda table: call(
        ProcedureContext(Catalog(Path(table.location).parents[1])), "compact", table="db.t"
    ),
}
WRITES = {"overwrite", "drop partition"}
FIELDS: list[dict[str, Any]] = [
    {"_FILE_NAME": "../../../../{victim}"},
    {"_EXTRA_FILES": ["../../../../{victim}"]},
    {"_EXTERNAL_PATH": "file://{victim}"},
]


def check_left(before: dict[str, bytes], after: dict[str, bytes], road: str) -> None:
    # A write that fails may leave files that nothing refers to.
    assert {path: after.get(path) for path in before} == before
    assert road in WRITES or after == before


def filled(fields: dict[str, Any], victim: Path) -> dict[str, Any]:
    def fill(value: Any) -> Any:
        return named(value, victim) if isinstance(value, str) else [named(each, victim) for each in value]

    return {key: fill(value) for key, value in fields.items()}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("fields", FIELDS, ids=str)
def test_hostile_entries_reach_no_file_outside(
    make_table: MakeTable, tmp_path: Path, victim: Path, road: str, fields: dict[str, Any]
) -> None:
    table = four_snapshots(make_table())
    # The newest for what reads that, an older one for what removes it.
    manifests = [hostile(table, number, **filled(fields, victim)) for number in (1, 2, 4)]
    table = fresh(table, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(UnsafePathError, match="|".join(manifests)):
        ROADS[road](table)
    check_left(before, contents(tmp_path), road)


def test_a_tag_of_an_expired_snapshot(make_table: MakeTable, tmp_path: Path, victim: Path) -> None:
    table = four_snapshots(make_table())
    table.delete_branch("b")
    expire_snapshots(table, retain_max=1)
    tag = table.tag("first").snapshot
    for name in (tag.delta_manifest_list, tag.base_manifest_list):
        change_list(table, name, lambda record: record.update(_FILE_NAME=f"../../../../{victim}"))
    path = Path(table.location) / "tag" / "tag-first"
    content = json.loads(path.read_text())
    content.pop("baseManifestListSize", None), content.pop("deltaManifestListSize", None)
    path.write_text(json.dumps(content))
    table = fresh(table, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(UnsafePathError, match=tag.delta_manifest_list):
        table.delete_tag("first")
    assert contents(tmp_path) == before


NAMED = ("deltaManifestList", "changelogManifestList", "indexManifest", "statistics")


@pytest.mark.parametrize(
    ("key", "road"),
    [*(("baseManifestList", road) for road in ROADS), *((key, "expire") for key in NAMED)],
)
def test_names_in_snapshots(make_table: MakeTable, tmp_path: Path, victim: Path, key: str, road: str) -> None:
    table = four_snapshots(make_table())
    for number in (1, 2, 4):
        path = Path(table.snapshot_files.path(number))
        path.write_text(json.dumps({**json.loads(path.read_text()), key: f"../../../../{victim}"}))
    table = fresh(table, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(UnsafePathError, match=rf"snapshot-\d: {key} is named"):
        ROADS[road](table)
    check_left(before, contents(tmp_path), road)


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", ""])
def test_index_files(make_table: MakeTable, tmp_path: Path, name: str) -> None:
    table = four_snapshots(make_table())
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "_INDEX_TYPE", "type": "string"},
            {"name": "_FILE_NAME", "type": "string"},
            {"name": "_FILE_SIZE", "type": "long"},
        ],
    }
    data = write_container(
        fastavro.parse_schema(schema), [{"_INDEX_TYPE": "HASH_INDEX", "_FILE_NAME": name, "_FILE_SIZE": 1}]
    )
    Path(table.paths.manifest("index-manifest-1")).write_bytes(data)
    path = Path(table.snapshot_files.path(1))
    path.write_text(json.dumps({**json.loads(path.read_text()), "indexManifest": "index-manifest-1"}))
    table = fresh(table, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(UnsafePathError, match="index-manifest-1: a file of an index"):
        expire_snapshots(table, retain_max=1)
    assert contents(tmp_path) == before


def test_a_bucket_that_is_no_number(make_table: MakeTable, tmp_path: Path) -> None:
    table = make_table()
    table.append(ROWS)
    (meta,) = table.manifests.read_list(table.snapshot(1).delta_manifest_list)
    path = Path(table.paths.manifest(meta.file_name))
    (record,) = read_container(path.read_bytes(), str(path))
    schema = json.loads(json.dumps(ENTRY_SCHEMA))
    for each in schema["fields"]:
        if each["name"] == "_BUCKET":
            each["type"] = "string"
    record["_BUCKET"] = "0/../../../../home"
    schema.pop("__fastavro_parsed__", None)
    schema.pop("__named_schemas", None)
    path.write_bytes(write_container(fastavro.parse_schema(schema), [record]))
    for name in (table.snapshot(1).base_manifest_list, table.snapshot(1).delta_manifest_list):
        change_list(table, name, lambda record: record.update(_FILE_SIZE=path.stat().st_size))
    snapshot = Path(table.snapshot_files.path(1))
    content = json.loads(snapshot.read_text())
    content.pop("baseManifestListSize"), content.pop("deltaManifestListSize")
    snapshot.write_text(json.dumps(content))
    with pytest.raises(CorruptFileError, match="the bucket of a data file is '0/"):
        fresh(table, tmp_path).read()


def test_what_an_executor_says_it_wrote(make_table: MakeTable, victim: Path) -> None:
    table = make_table()
    (message,) = table.write(ROWS)
    for lie in (
        {"external_path": str(victim)},
        {"file_name": f"../../../../{victim}"},
        {"extra_files": ("../x",)},
    ):
        lying = replace(message, added=(replace(message.added[0], **lie),))
        with pytest.raises(UnsafePathError):
            table.commit([lying])
        table.abort([lying])
    assert victim.exists()
    assert table.latest_snapshot() is None


# --- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("road", ["expire", "rollback", "orphans"])
def test_a_folder_that_is_a_link(make_table: MakeTable, tmp_path: Path, victim: Path, road: str) -> None:
    table = four_snapshots(make_table())
    table.delete_tag("first")
    table.delete_branch("b")
    bucket = Path(table.location) / "bucket-0"
    moved = tmp_path / "elsewhere"
    bucket.rename(moved)
    bucket.symlink_to(moved)
    (moved / "old.txt").write_text("not the table's")
    os.utime(moved / "old.txt", (0, 0))
    before = contents(tmp_path)
    with pytest.raises(UnsafePathError, match=r"bucket-0 leads by a link to .*elsewhere, out of the table"):
        ROADS[road](table)
    assert contents(tmp_path) == before
    allowed = Catalog(tmp_path / "warehouse", options={"external-roots": str(moved)}).load_table("db.t")
    ROADS[road](allowed)
    assert contents(tmp_path) != before


def test_a_warehouse_that_is_a_link(make_table: MakeTable, tmp_path: Path) -> None:
    four_snapshots(make_table())
    (tmp_path / "warehouse").rename(tmp_path / "disk")
    (tmp_path / "warehouse").symlink_to("disk")
    table = Catalog(tmp_path / "warehouse").load_table("db.t")
    assert expire_snapshots(table, retain_max=1).snapshots == 3


def test_files_below_a_root_go_with_their_snapshot(make_table: MakeTable, tmp_path: Path) -> None:
    make_table()
    table = Catalog(tmp_path / "warehouse", options={"external-roots": str(tmp_path / "cold")}).load_table(
        "db.t"
    )
    (message,) = table.write(ROWS)
    file = message.added[0]
    outside = tmp_path / "cold" / file.file_name
    outside.parent.mkdir()
    Path(table.paths.data_file((), 0, file)).rename(outside)
    table.commit([replace(message, added=(replace(file, external_path=f"file:{outside}"),))])
    table.overwrite(ROWS)
    for refusing in (lambda each: each.read(), lambda each: expire_snapshots(each, retain_max=1)):
        with pytest.raises(UnsafePathError):
            refusing(fresh_view(tmp_path))
    assert outside.exists()
    assert expire_snapshots(table, retain_max=1).data_files == 1
    assert not outside.exists()


def fresh_view(tmp_path: Path) -> Table:
    link = tmp_path / "again"
    if not link.exists():
        link.symlink_to("warehouse")
    return Catalog(link).load_table("db.t")
