"""A lookup under the schema of its plan: rights and keys are those of the columns as they are named now."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from lookup_world import World

from lockgate.errors import LookupCacheError
from lockgate.framework.access import AccessRequest, Action, Decision, Mask
from lockgate.framework.plugins import hookimpl, plugins
from lockgate.framework.store.ddl.schema_changes import AddColumn, ChangeType, DropColumn, RenameColumn
from lockgate.framework.types import STRING, parse_type
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.spec.lookup_rights import CacheRights
from lockgate.lookup.spec.lookup_spec import cache_id
from lockgate.lookup.spec.planned_schema import governed_as_planned, planned_table
from lockgate.pushdown import col

Decide = Callable[[Decision], None]
asked: list[frozenset[str] | None] = []


@pytest.fixture
def decide() -> Iterator[Decide]:
    """Has policies decide so about every SELECT, and notes the columns in `asked`."""
    found = [Decision()]
    asked.clear()

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> Decision:
        asked.append(request.columns)
        return found[0] if request.action is Action.SELECT else Decision()

    def set_decision(decision: Decision) -> None:
        found[0] = decision

    plugins().register(types.SimpleNamespace(lockgate_authorize=lockgate_authorize), "deciding")
    yield set_decision
    plugins().unregister("deciding")


def test_policies_of_a_renamed_column_apply_to_what_was_planned(world: World, decide: Decide) -> None:
    planned = world.create()
    spec = make_spec(planned, "id", where=col("n") > 1)
    changes = [RenameColumn(("name",), "title"), AddColumn(("name",), STRING), AddColumn(("level",), STRING)]
    newest = world.catalog.alter_table("db.dim", changes)
    assert planned_table(newest, planned.table_id, 0, spec).schema == planned.schema
    assert governed_as_planned(newest, planned, spec) == spec

    masks = {"title": Mask("nullify"), "level": Mask("nullify")}
    decide(Decision(row_filter=(col("title") != "x") & (col("n") < 9), masks=masks))
    found = governed_as_planned(newest, planned, spec)
    assert asked[-1] == {"id", "title", "n"}
    rights = CacheRights((col("name") != "x") & (col("n") < 9), {"name": Mask("nullify")})
    assert found == replace(spec, rights=rights)
    assert cache_id(planned, found) != cache_id(planned, spec)

    decide(Decision(row_filter=col("level") != "secret"))
    with pytest.raises(LookupCacheError, match=r"policies of db\.dim look at column 'level', which was"):
        governed_as_planned(newest, planned, spec)
    decide(Decision())
    newest = world.catalog.alter_table("db.dim", [ChangeType(("n",), parse_type("DECIMAL(20, 0)"))])
    decide(Decision(row_filter=col("n") > 0))
    with pytest.raises(LookupCacheError, match="column 'n', which was added or changed"):
        governed_as_planned(newest, planned, spec)


def test_what_a_plan_cannot_go_on_with(world: World) -> None:
    planned = world.create()
    spec = make_spec(planned, "id", where=col("n") > 1)
    newest = world.catalog.alter_table("db.dim", [DropColumn(("n",))])
    newest = world.catalog.alter_table("db.dim", [AddColumn(("n",), STRING)])
    with pytest.raises(LookupCacheError, match=r"column 'n' of db\.dim, which a lookup reads, was dropped"):
        planned_table(newest, planned.table_id, 0, spec)
    with pytest.raises(LookupCacheError, match="planned with another table"):
        planned_table(newest, "other", 9, spec)
    spec = make_spec(planned, "id", ["name"])
    assert planned_table(newest, planned.table_id, 0, spec).schema == planned.schema
    newest = world.catalog.alter_table("db.dim", [RenameColumn(("name",), "title")])
    newest = newest.sibling(newest.identifier, newest.schema.with_options({"orc.encrypt": "pii:title"}))
    with pytest.raises(LookupCacheError, match=r"the encryption of columns of db\.dim has changed"):
        planned_table(newest, planned.table_id, 0, spec)
