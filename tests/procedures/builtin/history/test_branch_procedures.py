"""The procedures of branches: what they count, what they leave, what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import AlreadyExistsError, CommitConflictError, InputError, TableNotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string())])


def append(table: Table, number: int) -> None:
    table.append(pa.table({"id": [number], "ssn": ["x"]}, schema=SCHEMA))


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """An encrypted table of two snapshots, the first tagged."""
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "pii:ssn"}))
    append(made, 1)
    append(made, 2)
    made.create_tag("one", 1)
    return made


def test_from_creation_to_deletion(
    table: Table, catalog: Catalog, run: Run, keyless: Catalog, digest: Callable[[str], str]
) -> None:
    state = digest(table.location)
    for options in ({"tag": "one"}, {"snapshot": 1}):
        assert run("create_branch", "db.t", "dev", dry_run=True, within=keyless, **options).rows == ((1, 1),)
    assert digest(table.location) == state
    assert run("create_branch", "db.t", "dev", "one", within=keyless).rows == ((1, 1),)
    assert run("create_branch", "db.t", "empty").rows == ((1, None),)
    assert run("create_branch", "db.t", "empty", ignoreIfExists=True).rows == ((0, None),)
    append(catalog.load_table("db.t$branch_dev"), 10)
    assert run("rename_branch", "db.t", "dev", toBranch="prod", within=keyless).rows == ((1,),)
    assert run("compact", "db.t$branch_prod")["rows_after"] == 2
    assert run("create_tag", "db.t$branch_prod", "t").rows[0][0] == 3
    assert table.branches() == ["empty", "prod"]
    state = digest(table.location)
    planned = run("delete_branch", "db.t", "prod,empty", dry_run=True, within=keyless)
    assert digest(table.location) == state
    done = run("delete_branch", "db.t", "prod,empty", within=keyless)
    assert done.rows == planned.rows
    assert done.rows[0][:2] == (2, 2)
    assert table.branches() == []
    assert sorted(table.read()["id"].to_pylist()) == [1, 2]
    found = run("remove_orphan_files", "db.t")
    assert found.rows == ((0, 0, 0, 0),)


def test_fast_forward(table: Table, catalog: Catalog, run: Run, digest: Callable[[str], str]) -> None:
    run("create_branch", "db.t", "dev", snapshot=2)
    append(catalog.load_table("db.t$branch_dev"), 3)
    state = digest(table.location)
    assert run("fast_forward", "db.t", "dev", dry_run=True).rows == ((1, 2),)
    assert digest(table.location) == state
    assert run("fast_forward", "db.t", "dev").rows == ((1, 3),)
    assert table.read().num_rows == 3
    append(table, 4)
    with pytest.raises(CommitConflictError, match="has changed since branch 'dev' began"):
        run("fast_forward", "db.t", "dev")


def test_wrong_arguments_change_nothing(table: Table, run: Run, digest: Callable[[str], str]) -> None:
    run("create_branch", "db.t", "dev")
    state = digest(table.location)
    with pytest.raises(AlreadyExistsError, match="branch 'dev' already"):
        run("create_branch", "db.t", "dev")
    with pytest.raises(TableNotFoundError, match="did you mean 'dev'"):
        run("delete_branch", "db.t", "dev,dve")
    with pytest.raises(InputError, match="needs the name"):
        run("delete_branch", "db.t", " , ")
    with pytest.raises(InputError, match="is a branch"):
        run("create_branch", "db.t$branch_dev", "x")
    assert digest(table.location) == state
