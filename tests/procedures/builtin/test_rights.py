"""The rights that procedures need: each asks about its table, its database, or its warehouse."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.errors import AccessDeniedError, ProcedureError
from lockgate.framework.access import AccessRequest, Action, Decision
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog
from lockgate.framework.store.schema.schema import Schema
from lockgate.procedures import (
    Procedure,
    ProcedureContext,
    ProcedureResult,
    TypedProcedure,
    procedure_registry,
)
from lockgate.pushdown import col

# Values for arguments that have to be given.
VALUES = {
    "columns": "id BIGINT, new STRING",
    "table": "db.t",
    "name": "db.t",
    "branch": "b",
    "from_branch": "b",
    "to_branch": "c",
    "tag": "x",
    "target_tag": "y",
    "consumer_id": "k",
    "target_table": "db.t2",
    "partitions": "p=1",
    "timestamp": "2020-01-01 00:00:00",
    "watermark": 1,
    "source_type": "spark",
    "source_table": "default.t",
}
MORE: dict[str, dict[str, Any]] = {
    "rollback": {"snapshot": 1},
    "rollback_to_as_latest": {"snapshot": 1},
    "create_tag_from_timestamp": {"timestamp": 1},
    "reset_consumer": {"next_snapshot_id": 1},
    "migrate_file": {"target_table": "db.t"},
}
# What they tell of is asked about table by table, and tables that may not be read are left out.
LEAVE_OUT = {"lineage", "impact", "plaintext", "compact_lineage", "compact_database", "show_grants"}
# These ask Spark, and for what their statement or source needs: see below.
ELSEWHERE = {"migrate_table", "migrate_database", "merge_into", "check_access"}
# These ask the policies, whether their caller may grant.
OF_GRANTS = {"request_access", "grant", "revoke", "check_keys"}


# These show nothing hidden to users from whom policies hide rows or values; all others are refused to them.
SHOW_NOTHING_HIDDEN = LEAVE_OUT | ELSEWHERE | OF_GRANTS
SHOW_NOTHING_HIDDEN |= {"migrate_file", "index_advice", "query_service", "stop_query_service", "merge_schema"}
SHOW_NOTHING_HIDDEN |= {"rename_branch", "rename_tag", "reset_consumer", "clear_consumers"}
SHOW_NOTHING_HIDDEN |= {"remove_orphan_files"}  # of all tables of a database: see below


@pytest.fixture
def only_calls() -> Iterator[None]:
    """Lets everybody call procedures, and do nothing else."""

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        return None if request.action is Action.CALL else Decision.denied(f"{request.action}, really")

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "only-calls")
    yield
    plugins().unregister("only-calls")


@pytest.fixture
def table(catalog: Catalog) -> str:
    fields = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.int32()), ("v", pa.string())])
    made = catalog.create_table(
        "db.t",
        Schema.from_arrow(fields, partition_keys=["p"], options={"file-index.bloom-filter.columns": "v"}),
    )
    for number in range(3):
        made.append(pa.table({"id": [number], "p": [1], "v": ["a"]}, schema=made.schema.arrow_schema))
    made.create_tag("x", 1)
    made.create_branch("b")
    return "db.t"


@pytest.mark.parametrize("name", sorted(set(procedure_registry.names()) - LEAVE_OUT - ELSEWHERE - OF_GRANTS))
def test_the_right_to_call_is_no_right_to_a_table(
    catalog: Catalog,
    table: str,
    name: str,
    only_calls: None,
    run: Callable[..., ProcedureResult],
    digest: Callable[..., str],
) -> None:
    procedure = procedure_registry.find(name)
    named = {each.name: VALUES[each.name] for each in procedure.parameters if each.required}
    named.update(MORE.get(name, {}))
    before = digest(catalog.warehouse)
    tries = [named]
    if any(each.name == "dry_run" for each in procedure.parameters):
        tries.append({**named, "dry_run": True})
    for arguments in tries:
        with pytest.raises(AccessDeniedError, match="really"):
            run(name, **arguments)
    assert digest(catalog.warehouse) == before


def test_compact_database_leaves_tables_without_a_right(
    catalog: Catalog,
    table: str,
    only_calls: None,
    run: Callable[..., ProcedureResult],
    digest: Callable[..., str],
) -> None:
    before = digest(catalog.warehouse)
    found = run("compact_database")
    assert (found["tables"], found["failed_tables"], found["files_rewritten"]) == (1, 1, 0)
    assert "ALTER, really" in found["failures"]
    assert digest(catalog.warehouse) == before


def test_files_of_a_folder_become_no_table_of_anyone_who_may_not_read_them(
    catalog: Catalog, table: str, tmp_path: Path, only_calls: None, run: Callable[..., ProcedureResult]
) -> None:
    location = f"{catalog.warehouse}/db.db/t"
    for folder in (location, f"{location}/p=1/bucket-0", catalog.warehouse):
        with pytest.raises(AccessDeniedError, match="files of the warehouse become no other table"):
            run("migrate_table", source_type="orc", table=folder, target_table="db.copy", dry_run=True)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "part.parquet")
    with pytest.raises(AccessDeniedError, match="SELECT, really"):
        run("migrate_table", source_type="parquet", table=str(folder), target_table="db.copy")
    assert (folder / "part.parquet").exists()


def test_keys_of_a_source_need_a_right_to_their_location(
    catalog: Catalog, table: str, tmp_path: Path, run: Callable[..., ProcedureResult]
) -> None:
    folder, asked = tmp_path / "elsewhere", list[str]()
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "part.parquet")
    (tmp_path / "link").symlink_to("/etc/shadow")

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        if request.target.kind == "path" and request.target.name != str(folder):
            asked.append(request.target.name)
            return Decision.denied("keys, really")
        return None

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "no-keys")
    try:
        for keys in ("/a/x?/../keys.json", "file:/a/%2e%2e/keys.json", f"{tmp_path}/link", "kms://host/keys"):
            with pytest.raises(AccessDeniedError, match="keys, really"):
                run("migrate_table", "parquet", str(folder), target_table="db.copy", source_keys=keys)
    finally:
        plugins().unregister("no-keys")
    # Each as the provider opens it: no part is taken for that of an address.
    assert asked == ["/a/keys.json", "/a/%2e%2e/keys.json", "/etc/shadow", "kms://host/keys"]


def test_advice_about_indexes_needs_the_right_to_read_and_no_other(
    catalog: Catalog, table: str, run: Callable[..., ProcedureResult]
) -> None:
    limits: dict[str, Any] = {}

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        if request.action is Action.CALL:
            return None
        if request.action is not Action.SELECT or "v" in (request.columns or ()):
            return Decision.denied("more, really")
        return Decision(**limits)

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "only-reads")
    try:
        found = run("index_advice", table=table, columns=["id"]).to_dicts()
        assert {row["column"] for row in found} == {"id"}
        with pytest.raises(AccessDeniedError, match="more, really"):
            run("index_advice", table=table)
        limits["row_filter"] = col("id") > 1
        with pytest.raises(AccessDeniedError, match="without row filter and masks"):
            run("index_advice", table=table, columns=["id"])
    finally:
        plugins().unregister("only-reads")


@dataclass(frozen=True)
class Tables:
    table: Annotated[str | None, "the table (default: all)"] = None


@dataclass(frozen=True)
class RowCount:
    rows: int


class CountRows(TypedProcedure[Tables, RowCount]):
    """A plugin's procedure that declares nothing about who may see its result."""

    name = "count_rows"

    def run(self, context: ProcedureContext, arguments: Tables) -> list[RowCount]:
        return [RowCount(3)]


@pytest.fixture
def hidden_rows() -> Iterator[None]:
    """Hides rows of each table from everybody, who may do anything else; with a procedure of a plugin."""

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        return Decision(row_filter=col("v") == "b") if request.action is Action.SELECT else Decision()

    hooks = {"lockgate_authorize": lockgate_authorize}

    @hookimpl
    def lockgate_procedures() -> list[Procedure]:
        return [CountRows()]

    plugins().register(types.SimpleNamespace(**hooks, lockgate_procedures=lockgate_procedures), "hides-rows")
    yield
    plugins().unregister("hides-rows")


def test_a_call_counts_and_names_nothing_hidden(
    catalog: Catalog,
    table: str,
    hidden_rows: None,
    run: Callable[..., ProcedureResult],
    digest: Callable[..., str],
) -> None:
    """Counts of files and rows would tell letter by letter which partitions there are."""
    names = set(procedure_registry.names())
    declared = {name for name in names if not procedure_registry.find(name).needs_all_rows}
    assert declared == SHOW_NOTHING_HIDDEN
    before = digest(catalog.warehouse)
    for name in sorted((names - declared) | {"remove_orphan_files"}):
        procedure = procedure_registry.find(name)
        named = {each.name: VALUES[each.name] for each in procedure.parameters if each.required}
        named.update(MORE.get(name, {}))
        tries = [named]
        if any(each.name == "dry_run" for each in procedure.parameters):
            tries.append({**named, "dry_run": True})
        for arguments in tries:
            with pytest.raises(AccessDeniedError, match="hidden from user"):
                run(name, **arguments)
    with pytest.raises(AccessDeniedError, match="hidden from user"):
        run("count_rows", table=table)
    found = run("compact_database", dry_run=True)
    assert (found["failed_tables"], found["files_rewritten"]) == (1, 0)
    with pytest.raises(ProcedureError, match="1 of 1 tables are not cleaned"):
        run("remove_orphan_files", table="db.*", dry_run=True)
    assert digest(catalog.warehouse) == before
