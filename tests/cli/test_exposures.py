"""`lockgate orc inspect` and `verify` of a table's folder: which files show values of encrypted columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.cli.main import main
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption

Capture = pytest.CaptureFixture[str]
COLUMNS = pa.schema([("id", pa.int64()), ("ssn", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = Catalog(tmp_path / "w", keys=MemoryKeyProvider({"pii@0": bytes(16)}))
    catalog.create_namespace("hr")
    made = catalog.create_table("hr.people", Schema.from_arrow(COLUMNS))
    made.append(pa.table({"id": [1], "ssn": ["123-45"]}, schema=COLUMNS))
    made.create_tag("first")
    return catalog.alter_table("hr.people", [SetOption("orc.encrypt", "pii:ssn")])


def printed(capsys: Capture, code: int, *arguments: str) -> str:
    capsys.readouterr()
    assert main(["orc", *arguments]) == code
    return capsys.readouterr().out


def test_what_is_readable_is_listed(table: Table, capsys: Capture) -> None:
    text = printed(capsys, 0, "inspect", table.location)
    assert "2 files of hr.people show values of encrypted columns" in text
    assert "ssn (data file; needed by snapshot 1, tag first)" in text
    assert "* tag 'first' needs 1 data file and 1 manifest (ssn)" in text
    assert "123-45" not in text
    assert printed(capsys, 1, "verify", table.location) == text


def test_as_json(table: Table, capsys: Capture) -> None:
    found: dict[str, Any] = json.loads(printed(capsys, 1, "verify", table.location, "--json"))
    assert not found["ok"]
    assert [each["where"] for each in found["readable"]] == ["data file", "manifest"]
    assert found["readable"][0]["needed_by"] == ["snapshot 1", "tag first"]


def test_a_table_without_any_is_well(table: Table, capsys: Capture) -> None:
    table.delete_tag("first")
    table.overwrite(pa.table({"id": [1], "ssn": ["123-45"]}, schema=COLUMNS))
    from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots

    expire_snapshots(table, retain_max=1)
    assert "nothing of hr.people shows a value" in printed(capsys, 0, "verify", table.location)


def test_a_folder_that_is_in_no_warehouse(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "schema").mkdir()
    assert main(["orc", "inspect", str(tmp_path)]) == 1
    assert "is not in a folder DATABASE.db of a warehouse" in capsys.readouterr().err
