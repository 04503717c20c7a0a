"""Metadata that somebody else wrote: absurd numbers, wrong kinds of values, circles, depths without end.

Every way to look at such a table answers the right rows or a named error, soon, and touches nothing outside.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.codec.avro import read_container, write_container
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests.manifest_records import ENTRY_SCHEMA, MANIFEST_META_SCHEMA
from lockgate.procedures import ProcedureContext, call

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "v": ["a", "b"]})
Record = dict[str, Any]
Edit = Callable[[Record], None]


def make(folder: Path, *keys: str) -> Table:
    catalog = Catalog(str(folder))
    catalog.create_namespace("db")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
    table = catalog.create_table("db.t", Schema.from_arrow(schema, primary_keys=keys))
    table.append(ROWS.cast(schema))
    return table


def forge(table: Table, entry: Edit | None = None, snapshot: Edit | None = None) -> None:
    """Replace the newest snapshot by one whose manifest, list and own file were edited."""
    folder = Path(table.location)
    newest = table.latest_snapshot()
    assert newest is not None
    (old,) = table.manifests.manifests(newest)
    entries = read_container((folder / "manifest" / old.file_name).read_bytes(), "manifest")
    for record in entries:
        (entry or _nothing)(record)
    manifest = _write(folder, "manifest", write_container(ENTRY_SCHEMA, entries))
    (listed,) = _records_of_lists(table, folder)
    listed |= {"_FILE_NAME": manifest.name, "_FILE_SIZE": manifest.stat().st_size}
    full = _write(folder, "manifest-list", write_container(MANIFEST_META_SCHEMA, [listed]))
    none = _write(folder, "manifest-list", write_container(MANIFEST_META_SCHEMA, []))
    path = folder / "snapshot" / f"snapshot-{newest.id}"
    content = json.loads(path.read_text()) | {
        "baseManifestList": full.name,
        "baseManifestListSize": full.stat().st_size,
        "deltaManifestList": none.name,
        "deltaManifestListSize": none.stat().st_size,
    }
    (snapshot or _nothing)(content)
    path.write_text(json.dumps(content))


def _nothing(record: Record) -> None:
    pass


def _records_of_lists(table: Table, folder: Path) -> list[Record]:
    newest = table.latest_snapshot()
    assert newest is not None
    names = (newest.base_manifest_list, newest.delta_manifest_list)
    files = (folder / "manifest" / name for name in names)
    return [record for file in files for record in read_container(file.read_bytes(), str(file))]


def _write(folder: Path, kind: str, data: bytes) -> Path:
    path = folder / "manifest" / f"{kind}-{uuid.uuid4()}-0"
    path.write_bytes(data)
    return path


def looked_at(folder: Path) -> None:
    """Look at the table in every way; AssertionError unless each says the right thing or why it cannot."""

    def table() -> Table:
        return Catalog(str(folder)).load_table("db.t")

    def procedure(name: str, **arguments: Any) -> Any:
        return call(ProcedureContext(Catalog(str(folder))), name, table="db.t", **arguments)

    ways: dict[str, Callable[[], Any]] = {
        "read": lambda: sorted(table().read(columns=["id"]).column("id").to_pylist()),
        "plan": lambda: len(table().scan().splits) < 3,
        "snapshots": lambda: len(table().snapshots()),
        "compact": lambda: procedure("compact"),
        "tag": lambda: table().create_tag(f"t{uuid.uuid4().hex}"),
        "expire": lambda: expire_snapshots(table(), retain_max=1, retain_min=1),
        "orphans": lambda: procedure("remove_orphan_files", dry_run=True),
        "drop": lambda: Catalog(str(folder)).drop_table("db.t"),
    }
    for name, way in ways.items():
        try:
            answer = way()
        except (LockgateError, FileNotFoundError):
            # A data file that is not there is named by its path.
            continue
        except Exception as error:
            raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
        if name == "read":
            assert answer in ([1, 2], []), answer


FILE = {
    "rows": ("_ROW_COUNT", [-1, -(2**63), 2**63 - 1]),
    "bytes": ("_FILE_SIZE", [-5, 0, 2**62]),
    "schema": ("_SCHEMA_ID", [-1, 1, 2**62]),
    "level": ("_LEVEL", [-1, 2**31 - 1]),
    "first sequence number": ("_MIN_SEQUENCE_NUMBER", [-(2**63), 2**63 - 1]),
    "last sequence number": ("_MAX_SEQUENCE_NUMBER", [-(2**63), 2**63 - 1]),
    "deleted rows": ("_DELETE_ROW_COUNT", [-1, 2**63 - 1]),
    "least key": ("_MIN_KEY", [b"", b"\xff" * 40]),
    "greatest key": ("_MAX_KEY", [b"", b"\xff" * 40]),
    "time": ("_CREATION_TIME", [-(2**60), 2**60]),
    "columns of statistics": ("_VALUE_STATS_COLS", [["nowhere"], ["id"] * 1000]),
    "written columns": ("_WRITE_COLS", [["nowhere"], []]),
    "source": ("_FILE_SOURCE", [-1, 77]),
    "index": ("_EMBEDDED_FILE_INDEX", [b"\xff" * 40]),
    "first row": ("_FIRST_ROW_ID", [-(2**63)]),
}
FILE_CASES = [(field, value) for field, values in FILE.values() for value in values]


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "key"])
def test_absurd_values_of_a_file(tmp_path: Path, keys: tuple[str, ...]) -> None:
    for index, (field, value) in enumerate(FILE_CASES):
        folder = tmp_path / str(index)
        changed = {field: value}
        forge(make(folder, *keys), lambda entry, changed=changed: entry["_FILE"].update(changed))
        try:
            looked_at(folder)
        except AssertionError as error:
            raise AssertionError(f"{field} = {value!r}: {error}") from error


ENTRIES = [
    ("_KIND", 7),
    ("_KIND", -1),
    ("_BUCKET", -7),
    ("_BUCKET", 2**31 - 1),
    ("_TOTAL_BUCKETS", 0),
    ("_TOTAL_BUCKETS", -(2**31)),
    ("_PARTITION", b""),
    ("_PARTITION", b"\xff" * 100),
    ("_VERSION", 99),
]


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "key"])
def test_absurd_entries(tmp_path: Path, keys: tuple[str, ...]) -> None:
    for index, (field, value) in enumerate(ENTRIES):
        folder = tmp_path / str(index)
        forge(make(folder, *keys), lambda entry, field=field, value=value: entry.update({field: value}))
        try:
            looked_at(folder)
        except AssertionError as error:
            raise AssertionError(f"{field} = {value!r}: {error}") from error


STATISTICS = [
    {"_MIN_VALUES": b"", "_MAX_VALUES": b"", "_NULL_COUNTS": []},
    {"_MIN_VALUES": b"\xff" * 60, "_MAX_VALUES": b"\x00" * 60, "_NULL_COUNTS": [-5, 2**63 - 1]},
    {"_MIN_VALUES": b"\x00" * 8, "_MAX_VALUES": b"\x00" * 8, "_NULL_COUNTS": [None] * 50},
]


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("field", ["_KEY_STATS", "_VALUE_STATS"])
def test_absurd_statistics(tmp_path: Path, statistics: Record, field: str) -> None:
    forge(make(tmp_path, "id"), lambda entry: entry["_FILE"].update({field: statistics}))
    looked_at(tmp_path)


def test_a_list_that_names_itself(tmp_path: Path) -> None:
    table = make(tmp_path)
    forge(table)
    newest = Catalog(str(tmp_path)).load_table("db.t").latest_snapshot()
    assert newest is not None
    path = Path(table.location) / "manifest" / newest.base_manifest_list
    (record,) = read_container(path.read_bytes(), "list")
    path.write_bytes(write_container(MANIFEST_META_SCHEMA, [record | {"_FILE_NAME": path.name}]))
    looked_at(tmp_path)


SNAPSHOTS = [
    {"schemaId": 2**70},
    {"schemaId": -1},
    {"schemaId": "0"},
    {"version": 99},
    {"id": -5},
    {"id": 2**70},
    {"timeMillis": 2**80},
    {"totalRecordCount": -(2**70)},
    {"commitKind": "DESTROY"},
    {"properties": {"a": {"b": []}}},
    {"baseManifestListSize": -1},
    {"baseManifestList": "../../../../../../etc/passwd"},
    {"baseManifestList": "/etc/passwd"},
    {"baseManifestList": 5},
    {"indexManifest": "../../../../../../etc/passwd"},
    {"statistics": "../../../../../../etc/passwd"},
]


@pytest.mark.parametrize("changed", SNAPSHOTS, ids=repr)
def test_absurd_snapshots(tmp_path: Path, changed: Record) -> None:
    forge(make(tmp_path), snapshot=lambda content: content.update(changed))
    looked_at(tmp_path)


DEEP = 20_000
SCHEMAS: dict[str, Edit] = {
    "a type of many levels": lambda s: s["fields"][1].update(type="ARRAY<" * DEEP + "INT" + ">" * DEEP),
    "two columns of one id": lambda s: s["fields"][1].update(id=s["fields"][0]["id"]),
    "two columns of one name": lambda s: s["fields"][1].update(name=s["fields"][0]["name"]),
    "a negative id": lambda s: s["fields"][1].update(id=-(2**70)),
    "an id as text": lambda s: s["fields"][1].update(id="1"),
    "no columns": lambda s: s.update(fields=[]),
    "columns as text": lambda s: s.update(fields="id"),
    "an unknown key": lambda s: s.update(primaryKeys=["nowhere"]),
    "an unknown partition": lambda s: s.update(partitionKeys=["nowhere"]),
    "a path as a name": lambda s: s["fields"][1].update(name="../../x"),
    "absurd buckets": lambda s: s.update(options={"bucket": "99999999999999999999"}),
    "negative buckets": lambda s: s.update(options={"bucket": "-5"}),
    "options that are no texts": lambda s: s.update(options={"bucket": {"a": []}}),
    "a huge decimal": lambda s: s["fields"][1].update(type="DECIMAL(99999999999, 5)"),
    "an unknown type": lambda s: s["fields"][1].update(type="; DROP TABLE t"),
}


@pytest.mark.parametrize("edit", SCHEMAS.values(), ids=SCHEMAS)
def test_absurd_schemas(tmp_path: Path, edit: Edit) -> None:
    path = Path(make(tmp_path).location) / "schema" / "schema-0"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    looked_at(tmp_path)


@pytest.mark.parametrize("name", ["schema/schema-0", "snapshot/snapshot-1"])
def test_json_of_many_levels(tmp_path: Path, name: str) -> None:
    (Path(make(tmp_path).location) / name).write_text("[" * 200_000 + "]" * 200_000)
    looked_at(tmp_path)


PATHS = ["../../../../victim.orc", "{}", "file://{}", "../bucket-0/../../../../victim.orc"]


@pytest.mark.parametrize("field", ["_FILE_NAME", "_EXTERNAL_PATH", "_EXTRA_FILES"])
@pytest.mark.parametrize("path", PATHS)
def test_no_path_of_a_manifest_leads_out(tmp_path: Path, field: str, path: str) -> None:
    """Neither a reader nor anyone who expires, compacts or drops touches what it names."""
    source = make(tmp_path / "other")
    (data,) = (Path(source.location) / "bucket-0").glob("data-*")
    victim = data.rename(tmp_path / "victim.orc")
    before = victim.read_bytes()
    folder = tmp_path / "lake"
    named = path.format(victim)
    table = make(folder)
    if field == "_FILE_NAME":
        # The table's own rows would hide that others were read.
        for own in (Path(table.location) / "bucket-0").glob("data-*"):
            own.unlink()
    forge(table, lambda entry: entry["_FILE"].update({field: [named] if field == "_EXTRA_FILES" else named}))
    try:
        rows = Catalog(str(folder)).load_table("db.t").read().num_rows
    except (LockgateError, FileNotFoundError):
        rows = 0
    assert rows == 0 or field == "_EXTRA_FILES"
    looked_at(folder)
    assert victim.read_bytes() == before
