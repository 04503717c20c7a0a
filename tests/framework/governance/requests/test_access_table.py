"""The table `t$access` and `check_keys`: rights on a table, as far as the one who asks may know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ranger_world import allow, deny, item, mask, policy, row_filter, service

from lockgate.errors import AccessDeniedError, ProcedureError
from lockgate.framework.access import Principal
from lockgate.framework.governance import PolicyFiles, RangerAuthorizer, Record
from lockgate.framework.governance.requests.access_table import AccessTable
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.plugins import acting_as, plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.procedures import ProcedureContext
from lockgate.procedures.procedure_registry import call

ANN, BOB, CAL = Principal("ann", frozenset({"staff"})), Principal("bob"), Principal("cal")
EVE = Principal("eve")
COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ssn", pa.string()), ("pay", pa.float64())])
TABLE = "lake.db.people"
Row = tuple[Any, ...]


class World:
    """A warehouse with one table, of which bob may grant all and cal one column."""

    def __init__(self, folder: Path) -> None:
        self._path, self.records = folder / "policies.json", list[Record]()
        keys = MemoryKeyProvider({"one@0": bytes(range(16)), "two@0": bytes(range(1, 17))})
        self.catalog = Catalog(str(folder / "warehouse"), keys=keys)
        self.catalog.create_namespace("db")
        options = {"orc.encrypt": "one:name,ssn;two:pay"}
        self.catalog.create_table("db.people", Schema.from_arrow(COLUMNS, options=options))
        self.put()
        policies = PolicyFiles(self._path, seconds=0)
        self.authorizer = RangerAuthorizer(
            policies, catalog="lake", warehouse=self.catalog.warehouse, audit=self.records.append
        )

    def put(self, *policies: dict[str, Any], **more: Any) -> None:
        grants = [
            policy(f"{TABLE}.*", policyItems=[item("alter", users=["bob"], delegateAdmin=True)]),
            policy(f"{TABLE}.name", policyItems=[item("alter", users=["cal"], delegateAdmin=True)]),
        ]
        self._path.write_text(json.dumps(service(*grants, *policies, **more)))

    def access(self, who: Principal) -> list[Row]:
        with acting_as(who):
            rows = AccessTable().rows(None, self.catalog.load_table("db.people"), {}, {})
        return [tuple(row.values()) for row in rows.to_pylist()]

    def check_keys(self, who: Principal = BOB) -> list[Row]:
        with acting_as(who):
            return list(call(ProcedureContext(self.catalog), "check_keys", table="db.people").rows)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    plugins().register(found.authorizer, "access-of-a-test")
    yield found
    plugins().unregister("access-of-a-test")


def limits() -> tuple[dict[str, Any], ...]:
    return (
        allow(f"{TABLE}.id|name|ssn", groups=["staff"]),
        deny(f"{TABLE}.ssn", users=["ann"]),
        mask(f"{TABLE}.name", "MASK_NULL", users=["ann"]),
        row_filter(TABLE, "pay > 4711", groups=["staff"]),
        allow(f"{TABLE}.*", roles=["office"]),
    )


OF_ANN = [
    ("user", "ann", "id", "SELECT", "shown", "some"),
    ("user", "ann", "name", "SELECT", "masked", "some"),
]


def test_everybody_sees_the_own_rights_alone(world: World) -> None:
    world.put(*limits())
    assert world.access(ANN) == OF_ANN
    # Not even anyone's name, or that there are other columns.
    assert not {"bob", "cal", "office", "ssn", "pay"} & {value for row in world.access(ANN) for value in row}
    with pytest.raises(AccessDeniedError, match=r"'eve' has no right on table db\.people; apply for: select"):
        world.access(EVE)
    assert world.records == []


def test_the_rights_of_others_are_seen_as_far_as_one_may_grant(world: World) -> None:
    world.put(*limits(), userGroupMapping={})
    everything = world.access(BOB)
    assert everything[0] == ("user", "bob", None, "ALTER", None, None)
    office = [("role", "office", column, "SELECT", "shown", "all") for column in COLUMNS.names]
    staff = [("group", "staff", column, "SELECT", "shown", "some") for column in ("id", "name", "ssn")]
    assert everything[1:] == [*staff, *office]
    # No more than on the one column, and of nobody what is done to the whole table.
    assert world.access(CAL) == [row for row in (*staff, *office) if row[2] == "name"]
    assert "4711" not in str(everything)


def test_a_user_that_policies_name_has_the_rights_of_its_groups(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    world.put(*limits())
    (folder / "policies.json").write_text((tmp_path / "policies.json").read_text())
    (folder / "users.json").write_text(json.dumps({"userGroupMapping": {"ann": ["staff"]}}))
    world.authorizer.policies = PolicyFiles(folder, seconds=0)
    assert [row for row in world.access(BOB) if row[1] == "ann"] == OF_ANN


def test_changes_are_no_right_where_rows_or_values_are_hidden(world: World) -> None:
    every = allow(f"{TABLE}.*", "select", "insert", "alter", users=["ann"])
    world.put(every)
    assert world.access(ANN)[0] == ("user", "ann", None, "INSERT,UPDATE,DELETE,ALTER", None, None)
    world.put(every, row_filter(TABLE, "id > 1", users=["ann"]))
    assert world.access(ANN)[0] == ("user", "ann", None, "INSERT,ALTER", None, None)


def test_without_policies_there_are_no_rights_to_show(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "other"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.people", Schema.from_arrow(COLUMNS))
    with pytest.raises(ProcedureError, match="no policies decide about this warehouse"):
        AccessTable().rows(None, table, {}, {})


def test_keys_carry_a_denial_of_a_key_of_its_own_and_nothing_else(world: World) -> None:
    world.put(allow(f"{TABLE}.id|name|ssn", users=["ann"]))
    assert world.check_keys() == []
    world.put(allow(f"{TABLE}.name|pay", users=["ann"]), allow(f"{TABLE}.name", groups=["staff"]))
    assert world.check_keys() == [
        ("id", None, "no key", ["group staff", "user ann"]),
        ("ssn", "one", "same key as name", ["group staff", "user ann"]),
    ]


def test_keys_carry_masks_that_files_store_but_no_others_and_no_row_filters(world: World) -> None:
    world.put(*limits())
    assert world.check_keys() == [
        (None, None, "row filter", ["group staff"]),
        ("pay", "two", "used by a row filter or mask", ["group staff"]),
    ]
    hashed = mask(f"{TABLE}.name", "MASK_HASH", priority=1, users=["ann"])
    world.put(*limits(), hashed, allow(f"{TABLE}.id|name|ssn", users=["ann"]))
    found = world.check_keys()
    assert ("name", "one", "mask", ["user ann"]) in found
    assert ("ssn", "one", "same key as name", ["user ann"]) in found


@pytest.mark.parametrize("who", [ANN, CAL, EVE])
def test_only_users_who_may_grant_all_check_keys(world: World, who: Principal) -> None:
    world.put(*limits())
    with pytest.raises(AccessDeniedError, match="the right to grant"):
        world.check_keys(who)


def test_an_upsert_counts_as_a_change_of_hidden_rows(world: World) -> None:
    schema = Schema.from_arrow(COLUMNS, primary_keys=["id"], options={"bucket": "1"})
    world.put(allow("lake.db.*", "create", users=["bob"]))
    with acting_as(BOB):
        world.catalog.create_table("db.keyed", schema)
    for name, actions in (("people", "INSERT"), ("keyed", None)):
        table = f"lake.db.{name}"
        hidden = row_filter(table, "pay > 4711", users=["ann"])
        world.put(allow(f"{table}.*", "select", "insert", users=["ann"]), hidden)
        with acting_as(ANN):
            rows = AccessTable().rows(None, world.catalog.load_table(f"db.{name}"), {}, {}).to_pylist()
        assert [row["actions"] for row in rows if row["column"] is None] == ([actions] if actions else [])
