"""What protects against whom: an attack past each protection, and the next one that holds or does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from ranger_world import allow, deny, mask, service
from stranger import as_stranger, needs_root, open_to_all

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import Principal
from lockgate.framework.governance import PolicyFiles, RangerAuthorizer
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog, Schema

ROWS = pa.table({"id": [1, 2], "name": ["Ann", "Bob"], "ssn": ["111-1", "222-2"], "pay": [100, 200]})
KEYS = MemoryKeyProvider({"pii@0": b"p" * 16})
ANN = Principal("ann")
PLUGIN = "policies of protection"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[str]:
    """A warehouse in which policies deny ann `pay` and `ssn`, of which `ssn` alone is encrypted."""
    folder = str(tmp_path / "warehouse")
    catalog = Catalog(folder, keys=KEYS)
    catalog.create_namespace("db")
    options = {"orc.encrypt": "pii:ssn", "orc.mask": "redact:ssn"}
    catalog.create_table("db.people", Schema.from_arrow(ROWS.schema, options=options)).append(ROWS)
    policies = tmp_path / "policies.json"
    name = "lake.db.people"
    said = service(
        allow(f"{name}.*", users=["ann"]),
        deny(f"{name}.pay|ssn", users=["ann"]),
        mask(f"{name}.name", "MASK_NULL", users=["ann"]),
    )
    policies.write_text(json.dumps(said))
    plugins().register(RangerAuthorizer(PolicyFiles(policies), catalog="lake", warehouse=folder), PLUGIN)
    yield folder
    if PLUGIN in plugins().names():
        plugins().unregister(PLUGIN)


def read(warehouse: str, *columns: str, keys: MemoryKeyProvider | None = KEYS) -> dict[str, list[object]]:
    table = Catalog(warehouse, keys=keys, principal=ANN).load_table("db.people")
    found: dict[str, list[object]] = table.read(columns=list(columns)).to_pydict()
    return found


def data_file(warehouse: str) -> Path:
    (path,) = Path(warehouse).rglob("data-*.orc")
    return path


def test_policies_hold_for_readers_who_come_through_lockgate(warehouse: str) -> None:
    assert read(warehouse, "id", "name") == {"id": [1, 2], "name": [None, None]}
    for column in ("pay", "ssn"):
        with pytest.raises(AccessDeniedError, match=rf"db\.people\.{column}"):
            read(warehouse, "id", column)


def test_policies_do_not_hold_against_the_owner_of_the_process(warehouse: str) -> None:
    """As in a notebook: the attacker removes the plugin, and has what the process may read and open."""
    plugins().unregister(PLUGIN)
    assert read(warehouse, "name", "ssn", "pay") == ROWS.select(["name", "ssn", "pay"]).to_pydict()


@pytest.mark.filterwarnings("ignore::lockgate.errors.MaskedDataWarning")
def test_keys_hold_where_policies_are_gone_and_open_columns_do_not(warehouse: str) -> None:
    plugins().unregister(PLUGIN)
    found = read(warehouse, "ssn", "pay", keys=None)
    assert found == {"ssn": ["999.9", "999.9"], "pay": [100, 200]}, "a mask, and what no key protects"


def test_files_read_past_lockgate_show_all_but_encrypted_values(warehouse: str) -> None:
    found = orc.read_table(data_file(warehouse)).to_pydict()
    assert found["pay"] == [100, 200], "policies do not bind a reader of files"
    assert found["ssn"] == ["999.9", "999.9"]
    assert b"111-1" not in data_file(warehouse).read_bytes()


OPENING = """
import json, sys
try:
    print(json.dumps(len(open(sys.argv[1], "rb").read())))
except PermissionError:
    print(json.dumps("refused"))
"""


@needs_root
def test_rights_of_storage_hold_against_other_accounts(warehouse: str, tmp_path: Path) -> None:
    path = data_file(warehouse)
    open_to_all(tmp_path)
    for folder in path.parents:
        if folder.is_relative_to(warehouse):
            folder.chmod(0o755)
    path.chmod(0o644)
    assert as_stranger(OPENING, str(path)) == path.stat().st_size, "who may read the file has its columns"
    path.chmod(0o600)
    assert as_stranger(OPENING, str(path)) == "refused"
