"""The folder of data files (`data-file.path-directory`): they are written, read and cleaned there alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import LockgateError, OptionError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis

MakeTable = Callable[..., Table]


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": [f"v{number}" for number in ids]})


def data_files(table: Table) -> set[str]:
    root = Path(table.location)
    return {str(path.relative_to(root).parent) for path in root.rglob("*.orc")}


@pytest.mark.parametrize("partitions", [(), ("v",)])
def test_files_lie_in_the_folder(catalog: Catalog, partitions: tuple[str, ...]) -> None:
    options = {"data-file.path-directory": "stored/here"}
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = catalog.create_table(
        "db.t", Schema.from_arrow(columns, partition_keys=partitions, options=options)
    )
    table.append(rows(1, 2))
    table.overwrite(rows(3, 4))
    assert all(folder.startswith("stored/here/") for folder in data_files(table))
    assert sorted(table.read()["id"].to_pylist()) == [3, 4]
    assert sorted(table.read(snapshot_id=1)["id"].to_pylist()) == [1, 2]
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert len(list(Path(table.location).rglob("*.orc"))) == (2 if partitions else 1)
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert sorted(catalog.load_table("db.t").read()["id"].to_pylist()) == [3, 4]


def test_orphans_are_found_there(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(**{"data-file.path-directory": "stored"})
    table.append(rows(1))
    (live,) = Path(table.location).rglob("*.orc")
    lost = live.with_name("data-lost-0.orc")
    lost.write_bytes(b"lost")
    os.utime(lost, (0, 0))
    result = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    assert (result.data_files, lost.exists(), live.exists()) == (1, False, True)


def test_the_folder_cannot_change_with_rows(catalog: Catalog, make_table: MakeTable) -> None:
    make_table().append(rows(1))
    with pytest.raises(LockgateError, match=r"data-file\.path-directory"):
        catalog.alter_table("db.t", [SetOption("data-file.path-directory", "elsewhere")])


@pytest.mark.parametrize("folder", ["../outside", "/etc", "a/../../b", "a//b", "a\\b", "a\nb", "."])
def test_a_folder_outside_is_refused(catalog: Catalog, make_table: MakeTable, folder: str) -> None:
    """A hostile schema leads no reader and no cleaning out of the table."""
    with pytest.raises(OptionError, match=r"data-file\.path-directory"):
        make_table(**{"data-file.path-directory": folder})
    table = make_table()
    table.append(rows(1))
    path = Path(table.location) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    schema["options"]["data-file.path-directory"] = folder
    path.write_text(json.dumps(schema))
    with pytest.raises(OptionError, match=r"data-file\.path-directory"):
        catalog.load_table("db.t").read()
