"""Ways around policies, each with the tests that try it; and those that need no Spark, tried at once."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import AccessDeniedError
from lockgate.framework.access import AccessRequest, Action, Decision
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureContext, procedure_registry
from lockgate.pushdown import col

TESTS = Path(__file__).parents[1]
GOVERNED, RANGER = "integration/test_governed", "framework/governance/ranger/test"
ATTACKS = {
    "links below permitted folders": (
        f"{GOVERNED}_attacks.py::test_no_link_leads_out_of_a_folder_that_may_be_read",
        f"{GOVERNED}_attacks.py::test_no_link_leads_into_a_warehouse_or_out_of_a_table",
        "framework/spark/enforcement/test_foreign_relations.py::test_nothing_is_looked_at_behind_a_refused_link",
    ),
    "writes that depend on hidden rows": (
        f"{GOVERNED}_changes.py::test_an_upsert_reaches_no_hidden_row",
        f"{GOVERNED}_changes.py::test_nothing_is_changed_by_a_user_from_whom_something_is_hidden",
        "framework/store/scan/test_access.py::test_an_upsert_does_not_compare_with_a_denied_column",
    ),
    "counts and figures of hidden rows": (
        "procedures/builtin/test_rights.py::test_a_call_counts_and_names_nothing_hidden",
        f"{GOVERNED}_plans.py::test_figures_of_a_plan_tell_nothing_of_hidden_rows",
    ),
    "the mask of another policy": (
        f"{RANGER}_engine.py::test_a_mask_takes_the_place_of_another_with_nothing_left_of_it",
    ),
    "names of masks and rights in tag policies": (
        f"{RANGER}_engine.py::test_masks_of_tags_are_read_as_the_admin_writes_them",
    ),
    "rows in threads without a session": (
        f"{GOVERNED}_queries.py::test_rows_are_governed_in_threads_without_a_session",
    ),
    "conditions that hold in Lockgate alone": (
        f"{RANGER}_scripts.py::test_conditions_hold_where_they_hold_in_ranger",
    ),
    "denials by tags against allows": (
        f"{RANGER}_engine.py::test_a_denial_by_tags_needs_an_allow_of_higher_priority_that_stands",
        f"{RANGER}_ranger_cases.py::test_random_policies_are_decided_as_by_rangers_jar",
    ),
    "reads that leave no record": (
        f"{RANGER}_engine.py::test_a_mode_goes_before_filters_of_tags_and_filters_of_resources_before_it",
    ),
    "namesakes of dropped columns": (
        "framework/lineage/test_added_again.py::test_a_column_added_again_by_python_starts_without_a_history",
    ),
    "tables replaced without their encryption": (
        "framework/store/confidential/test_replaced_encryption.py::test_no_value_lands_in_the_clear",
        "integration/test_encryption_follows.py::test_a_replaced_table_encrypts_its_columns_as_before",
    ),
}


@pytest.mark.parametrize("way", ATTACKS)
def test_each_way_is_tried(way: str) -> None:
    for attack in ATTACKS[way]:
        path, _, name = attack.partition("::")
        module = ast.parse((TESTS / path).read_text())
        assert name in {each.name for each in module.body if isinstance(each, ast.FunctionDef)}, attack


@pytest.fixture
def people(tmp_path: Path) -> Iterator[tuple[Catalog, Table]]:
    """A key table whose columns add up; rows of other departments than x are hidden from everybody."""
    catalog = Catalog(str(tmp_path / "w"))
    catalog.create_namespace("db")
    rows = pa.table({"id": [1, 2], "dept": ["x", "zebra"], "pay": [5, 777]})
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.pay.aggregate-function": "sum"}
    table = catalog.create_table("db.t", Schema.from_arrow(rows.schema, primary_keys=["id"], options=options))
    table.append(rows)

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision | None:
        return Decision(row_filter=col("dept") == "x") if request.action is Action.SELECT else Decision()

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "hides-rows")
    yield catalog, table
    plugins().unregister("hides-rows")


def test_no_hidden_value_is_added_to_a_visible_row(people: tuple[Catalog, Table]) -> None:
    _, table = people
    probe = pa.table({"id": [2], "dept": ["x"], "pay": [0]})
    writes: list[Callable[[], object]] = [
        lambda: table.append(probe),
        lambda: table.overwrite(probe),
        lambda: table.delete(col("pay") == 777),
        lambda: table.commit(table.write(probe)),
    ]
    for write in writes:
        with pytest.raises(AccessDeniedError, match="hidden from user"):
            write()
    assert table.read().to_pylist() == [{"id": 1, "dept": "x", "pay": 5}]


def test_no_hidden_value_is_guessed_letter_by_letter(people: tuple[Catalog, Table]) -> None:
    catalog, _ = people
    messages = set()
    for letter in "abz":
        for more in ({"dry_run": True}, {}):
            where = f"dept LIKE '{letter}%'"
            with pytest.raises(AccessDeniedError) as refused:
                procedure_registry.call(ProcedureContext(catalog), "compact", "db.t", where=where, **more)
            messages.add(str(refused.value))
    assert len(messages) == 1
    assert "zebra" not in messages.pop()
