"""The procedures of tags: what they count, what they leave, what they refuse."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import (
    AlreadyExistsError,
    InputError,
    LockgateError,
    SnapshotNotFoundError,
    TagNotFoundError,
)
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """An encrypted table of three snapshots; each replaces the rows of the one before."""
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "pii:ssn"}))
    for version in (1, 2, 3):
        made.overwrite(pa.table({"id": list(range(version)), "ssn": ["x"] * version}, schema=SCHEMA))
    return made


def names(table: Table) -> list[str]:
    return [tag.name for tag in table.tags()]


def test_create_tag_names_a_snapshot(table: Table, run: Run, digest: Callable[[str], str]) -> None:
    state = digest(table.location)
    planned = run("create_tag", "db.t", "a", 2, dry_run=True)
    assert digest(table.location) == state
    done = run("create_tag", "db.t", "a", 2)
    assert done.rows == planned.rows
    assert (done["snapshot_id"], done["files"], done["rows"]) == (2, 1, 2)
    assert done["bytes"] > 0
    assert run("create_tag", table="db.t", tag="b", timeRetained="1 d")["snapshot_id"] == 3
    assert table.tag("b").retained == datetime.timedelta(days=1)


def test_a_tag_from_creation_to_deletion(table: Table, run: Run, keyless: Catalog) -> None:
    run("create_tag", "db.t", "a", snapshot=1)
    run("create_tag", "db.t", "b", snapshot=2)
    run("expire_snapshots", "db.t", retain_max=1)
    assert table.read(tag="a").num_rows == 1
    assert run("rename_tag", "db.t", "a", "c").rows == ((1, 1),)
    assert names(table) == ["c", "b"]
    planned = run("replace_tag", "db.t", "b", dry_run=True, within=keyless)
    assert table.tag("b").snapshot.id == 2
    replaced = run("replace_tag", "db.t", "b", within=keyless)
    assert replaced.rows == planned.rows
    assert (replaced["previous_snapshot_id"], replaced["snapshot_id"], replaced["rows"]) == (2, 3, 3)
    assert replaced["deleted_data_files_count"] == 1
    planned = run("delete_tag", "db.t", "b,c", dry_run=True, within=keyless)
    assert names(table) == ["c", "b"]
    deleted = run("delete_tag", "db.t", "b, c", within=keyless)
    assert deleted.rows == planned.rows
    assert (deleted["deleted_tags_count"], deleted["deleted_data_files_count"]) == (2, 1)
    assert deleted["deleted_manifests_count"] > 0
    assert deleted["deleted_bytes"] > 0
    assert names(table) == []
    assert table.read()["ssn"].to_pylist() == ["x"] * 3


def test_nothing_goes_if_one_tag_does_not_exist(table: Table, run: Run, digest: Callable[[str], str]) -> None:
    run("create_tag", "db.t", "first", 1)
    run("expire_snapshots", "db.t", retain_max=1)
    state = digest(table.location)
    with pytest.raises(TagNotFoundError, match="no tag 'fist'; did you mean 'first'"):
        run("delete_tag", "db.t", "first,fist")
    assert digest(table.location) == state


@pytest.mark.parametrize(
    ("name", "arguments", "error", "complaint"),
    [
        ("create_tag", {"tag": "taken"}, AlreadyExistsError, "'taken'"),
        ("create_tag", {"tag": "taken", "dry_run": True}, AlreadyExistsError, "'taken'"),
        ("create_tag", {"tag": "a/b"}, InputError, "cannot be the name of a tag"),
        ("create_tag", {"tag": "a", "snapshot": 9}, SnapshotNotFoundError, "existing: 1 to 3"),
        ("create_tag", {"tag": "a", "time_retained": "soon"}, InputError, "soon"),
        ("create_tag", {"tag": "a", "time_retained": f"{10**15} d"}, InputError, "time_retained"),
        ("replace_tag", {"tag": "takn"}, TagNotFoundError, "'taken'"),
        ("rename_tag", {"tag": "taken", "target_tag": "taken"}, AlreadyExistsError, "'taken'"),
        ("rename_tag", {"tag": "other", "target_tag": "a"}, TagNotFoundError, "known: taken"),
        ("delete_tag", {"tag": ","}, InputError, "needs the name"),
    ],
)
def test_what_is_refused(
    table: Table,
    run: Run,
    name: str,
    arguments: dict[str, Any],
    error: type[LockgateError],
    complaint: str,
) -> None:
    run("create_tag", "db.t", "taken")
    with pytest.raises(error, match=complaint):
        run(name, table="db.t", **arguments)
    assert names(table) == ["taken"]
