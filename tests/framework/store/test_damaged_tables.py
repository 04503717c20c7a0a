"""Damaged files of tables, other than ORC: a use ends with rows or an error of ours, soon, in bounded memory.

A case follows from its kind and number alone. Other files of the table stay as they are, and with the sound
file back, all rows are there.
"""

from __future__ import annotations

import random
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from zoo import unpack

from lockgate.errors import LockgateError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.manifests import manifest_files
from lockgate.framework.store.manifests.parsed_cache import ParsedCache
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col

pytestmark = pytest.mark.usefixtures("without_lineage")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("size", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
CASES = [40, pytest.param(400, marks=pytest.mark.long)]
STUCK_SECONDS = 30
ROOM = 1 << 30
SLOW_SECONDS = 5


def rows(first: int, last: int) -> pa.Table:
    made = [
        {
            "id": each,
            "name": f"name {each % 13}" if each % 5 else None,
            "size": each,
            "tags": ["a"] * (each % 4),
        }
        for each in range(first, last)
    ]
    return pa.Table.from_pylist(made, SCHEMA)


@dataclass(frozen=True)
class Kind:
    """A table's options, or its name in the zoo; the files of it to damage, and what is done with it then."""

    options: dict[str, str]
    files: str
    uses: tuple[Callable[[Table], Any], ...]
    keyed: bool = False
    zoo: str = ""


# Formats without checksums cannot tell a changed value, nor one beyond its type: only shapes are checked.
def everything(table: Table) -> Any:
    return table.read().validate()


def some(table: Table) -> Any:
    return table.read(columns=["size", "tags"], predicate=col("id") > 30).validate()


def counted(table: Table) -> Any:
    return table.read(columns=[]).num_rows


def changed(table: Table) -> Any:
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    return table.read(ReadRequest(between=Between(0, snapshot.id, of_changelogs=True))).validate()


def logged(table: Table) -> Any:
    return table.system("audit_log").validate()


def expired(table: Table) -> Any:
    return expire_snapshots(table, retain_max=1, retain_min=1, dry_run=True)


def added(table: Table) -> Any:
    return table.append(rows(70, 75))


def compacted(table: Table) -> Any:
    return call(ProcedureContext(table_catalog(table)), "compact", str(table.identifier))


def listed(table: Table) -> Any:
    return table.system("files").num_rows, table.system("file_indexes").num_rows


def found(table: Table) -> Any:
    return table.read(predicate=(col("name") == "n3") & (col("id") < 50)).validate()


def table_catalog(table: Table) -> Catalog:
    return Catalog(Path(table.location).parent.parent)


VECTORS = {"deletion-vectors.enabled": "true"}
WIDE = {**VECTORS, "deletion-vectors.bitmap64": "true"}
PARQUET = {"file.format": "parquet"}
INPUT = {"bucket": "1", "changelog-producer": "input"}
INDEXES = {
    "file-index.bloom-filter.columns": "name",
    "file-index.bitmap.columns": "name",
    "file-index.range-bitmap.columns": "id",
    "file-index.in-manifest-threshold": "1 B",
}
KINDS = {
    "vectors": Kind(VECTORS, "index/index-*", (everything, some, counted, found, compacted)),
    "wide vectors": Kind(
        {**VECTORS, "deletion-vectors.bitmap64": "true"},
        "index/index-*",
        (everything, some, counted, compacted),
    ),
    "hash index": Kind({"bucket": "-1"}, "index/index-*", (added, everything, compacted), keyed=True),
    "file indexes": Kind(INDEXES, "bucket-0/*.index", (found, some, listed, compacted)),
    "changelog manifests": Kind(
        {"bucket": "1", "changelog-producer": "input"},
        "manifest/*",
        (changed, changed, logged, expired),
        keyed=True,
    ),
    "changelogs": Kind(INPUT, "bucket-0/changelog-*", (changed,), keyed=True),
    "parquet": Kind(PARQUET, "bucket-0/*.parquet", (everything, some, counted, compacted)),
    "keyed parquet": Kind(
        {"file.format": "parquet", "bucket": "1"},
        "bucket-0/*.parquet",
        (everything, found, compacted),
        keyed=True,
    ),
    "avro": Kind({}, "bucket-0/*.avro", (everything, counted, compacted), zoo="append_avro"),
    "avro changelogs": Kind({}, "bucket-0/changelog-*.avro", (changed,), zoo="changelog_formats"),
    "orc and avro": Kind({}, "bucket-0/data-*", (everything, counted), zoo="mixed_formats"),
}


def make(catalog: Catalog, kind: Kind, folder: Path) -> Table:
    if kind.zoo:
        source = unpack(folder) / "zoo.db" / kind.zoo
        shutil.copytree(source, catalog.location("db.t"))
        return catalog.load_table("db.t")
    keys = ["id"] if kind.keyed else []
    catalog.create_table("db.t", Schema.from_arrow(SCHEMA, primary_keys=keys, options=kind.options))
    table = catalog.load_table("db.t")
    table.append(rows(0, 40))
    table.append(rows(40, 60))
    if kind.keyed or "deletion-vectors.enabled" in kind.options:
        table.delete((col("id") == 2) | (col("id") == 45))
    return table


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no manifest come from the memory of this process."""
    for name in ("_lists", "_manifests", "_snapshots"):
        monkeypatch.setattr(manifest_files, name, ParsedCache(1000))


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """A copy with bits turned, bytes replaced, a piece cut out or doubled, or its end cut off."""
    data = bytearray(whole)
    at = rng.randrange(len(data))
    match rng.randrange(6):
        case 0:
            del data[at:]
        case 1:
            del data[at : at + rng.randrange(1, 9)]
        case 2:
            data[at:at] = data[at : at + rng.randrange(1, 33)]
        case 3:
            data[at : at + 8] = rng.choice((b"\xff", b"\x00", b"\x7f")) * 8
        case 4:
            # Lengths and offsets stand at the end of many files.
            near = max(0, len(data) - rng.randrange(1, 65))
            data[near] ^= 1 << rng.randrange(8)
        case _:
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def state(table: Table) -> dict[str, bytes]:
    folder = Path(table.location)
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@contextmanager
def limited() -> Iterator[None]:
    """Let this process allocate `ROOM` bytes more than it has, and notice if it hangs."""
    with open("/proc/self/status") as status:
        held = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    before = signal.signal(signal.SIGALRM, _stuck)
    resource.setrlimit(resource.RLIMIT_DATA, (held + ROOM, hard))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _stuck(number: int, frame: Any) -> None:
    raise AssertionError(f"this use takes more than {STUCK_SECONDS} s")


def content(table: Table) -> list[str]:
    return sorted(map(repr, table.read().to_pylist()))


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("name", KINDS)
def test_damage_is_an_error_of_ours_or_rows(
    catalog: Catalog, name: str, cases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = KINDS[name]
    table = make(catalog, kind, tmp_path / "zoo")
    sound, expected = state(table), content(table)
    kept = {each: data for each, data in sound.items() if not each.endswith("/LATEST")}
    files = sorted(each for each in sound if Path(each).match(kind.files))
    assert files
    outcomes = set()
    with limited():
        for number in range(cases):
            rng = random.Random(f"lockgate damage {name} {number}")
            file, use = rng.choice(files), rng.choice(kind.uses)
            (Path(table.location) / file).write_bytes(damaged(rng, sound[file]))
            forget(monkeypatch)
            outcomes.add(outcome(catalog, use, f"case {number}, {use.__name__} of {file}"))
            (Path(table.location) / file).write_bytes(sound[file])
            # Nothing is lost: uses that write add files.
            now = state(table)
            assert {each: now.get(each) for each in kept} == kept, f"case {number}"
            for each in now.keys() - sound.keys():
                (Path(table.location) / each).unlink()
            for each in sound.keys() - kept.keys():
                (Path(table.location) / each).write_bytes(sound[each])
    assert outcomes - {"rows"}, "some damage is found"
    forget(monkeypatch)
    assert content(catalog.load_table("db.t")) == expected


def outcome(catalog: Catalog, use: Callable[[Table], Any], case: str) -> str:
    signal.alarm(STUCK_SECONDS)
    started = time.process_time()
    try:
        use(catalog.load_table("db.t"))
        return "rows"
    except LockgateError as error:
        return type(error).__name__
    except Exception as error:
        raise AssertionError(f"{case}: {error!r}") from error
    finally:
        signal.alarm(0)
        assert time.process_time() - started < SLOW_SECONDS, f"{case} takes long"
