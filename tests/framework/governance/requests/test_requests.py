"""Requests for access and the grants that answer them, with policies in files and in Ranger's admin."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ranger_admin import running
from ranger_world import allow, deny, engine, item, policy, service

from lockgate.errors import AccessDeniedError, InputError, PolicyError, ProcedureError, UnsafePathError
from lockgate.framework.access import Principal
from lockgate.framework.governance import PolicyFiles, RangerAuthorizer, RequestFolder
from lockgate.framework.governance.ranger.policies.grant_changes import GrantChange, granted, revoked
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
from lockgate.framework.governance.requests.folder import MOST_OF_USER
from lockgate.framework.plugins import acting_as, plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.procedures import ProcedureContext
from lockgate.procedures.procedure_registry import call

ANN, BOB, EVE = Principal("ann"), Principal("bob"), Principal("eve")
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"], "salary": [1.0, 2.0]})
Call = Callable[..., list[tuple[Any, ...]]]


def lets_grant(path: str, user: str) -> dict[str, Any]:
    return policy(path, policyItems=[item("select", users=[user], delegateAdmin=True)])


class World:
    """A warehouse of which ann sees nothing, and bob grants one table."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "policies.json"
        self.catalog = Catalog(str(folder / "warehouse"))
        self.catalog.create_namespace("db")
        for name in ("people", "secrets"):
            self.catalog.create_table(f"db.{name}", Schema.from_arrow(ROWS.schema)).append(ROWS)
        secrets = allow("lake.db.secrets.*", users=["root"])
        self.path.write_text(json.dumps(service(lets_grant("lake.db.people.*", "bob"), secrets)))
        self.requests = RequestFolder(folder / "requests")
        self.authorizer = RangerAuthorizer(
            PolicyFiles(self.path, seconds=0),
            catalog="lake",
            warehouse=self.catalog.warehouse,
            apply_at="the data office",
            requests=self.requests,
        )

    def call(self, who: Principal, procedure: str, **arguments: Any) -> list[tuple[Any, ...]]:
        with acting_as(who):
            return list(call(ProcedureContext(self.catalog), procedure, **arguments))

    def read(self, who: Principal, table: str = "db.people", columns: list[str] | None = None) -> int:
        with acting_as(who):
            return self.catalog.load_table(table).read(columns=columns).num_rows

    def listed(self, who: Principal) -> list[dict[str, Any]]:
        with acting_as(who):
            return self.catalog.system("access_requests").to_pylist()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    plugins().register(found.authorizer, "office-of-a-test")
    yield found
    plugins().unregister("office-of-a-test")


def test_a_request_is_seen_granted_and_taken_back(world: World) -> None:
    with pytest.raises(AccessDeniedError, match=r"ask by CALL sys\.request_access\(table => 'db.people'\)"):
        world.read(ANN)
    ((number, state),) = world.call(
        ANN, "request_access", table="db.people", columns="id,name", reason="the yearly\nreport\x1b[31m"
    )
    assert state == "open"
    (listed,) = world.listed(BOB)
    assert (listed["id"], listed["user"], listed["columns"]) == (number, "ann", "id,name")
    assert listed["reason"] == "the yearly report [31m"
    assert world.listed(EVE) == []
    ((version, decided),) = world.call(BOB, "grant", table="db.people", columns="id,name", users="ann")
    assert (version, decided) == (2, 1)
    assert world.read(ANN, columns=["id", "name"]) == 2
    with pytest.raises(AccessDeniedError, match=r"db\.people\.salary"):
        world.read(ANN)
    assert [each["state"] for each in world.listed(ANN)] == ["granted"]
    world.call(BOB, "revoke", table="db.people", columns="name,id", users="ann")
    with pytest.raises(AccessDeniedError, match="denied to user 'ann'"):
        world.read(ANN, columns=["id"])


@pytest.mark.parametrize("procedure", ["grant", "revoke"])
def test_they_alone_grant_who_are_delegated(world: World, procedure: str) -> None:
    before = world.path.read_bytes()
    for who, table in ((ANN, "db.people"), (EVE, "db.people"), (BOB, "db.secrets"), (BOB, "db.absent")):
        with pytest.raises(AccessDeniedError, match=r"delegateAdmin"):
            world.call(who, procedure, table=table, users=who.user)
    with pytest.raises(InputError, match="give users, groups or roles"):
        world.call(BOB, procedure, table="db.people")
    with pytest.raises(InputError, match="no action 'READ'"):
        world.call(BOB, procedure, table="db.people", actions="READ", users="ann")
    assert world.path.read_bytes() == before


def test_a_request_tells_nothing_of_tables(world: World) -> None:
    for table in ("db.people", "db.secrets", "db.absent"):
        assert world.call(ANN, "request_access", table=table)[0][1] == "open"
    assert [each["table"] for each in world.listed(BOB)] == ["db.people"]


def test_those_who_ask_fill_no_disk(world: World) -> None:
    first = world.call(ANN, "request_access", table="db.people")
    assert world.call(ANN, "request_access", table="db.people", reason="again") == first
    for number in range(MOST_OF_USER - 1):
        world.call(ANN, "request_access", table=f"db.t{number}")
    with pytest.raises(ProcedureError, match="open requests"):
        world.call(ANN, "request_access", table="db.more")
    with pytest.raises(InputError, match="at most 500 characters"):
        world.call(EVE, "request_access", table="db.people", reason="x" * 501)
    with pytest.raises(InputError, match="at most 200 columns"):
        world.call(EVE, "request_access", table="db.people", columns=",".join(f"c{n}" for n in range(201)))
    assert world.call(EVE, "request_access", table="db.people")[0][1] == "open"


def test_the_folder_of_requests_is_private(tmp_path: Path) -> None:
    folder = RequestFolder(tmp_path / "requests")
    folder.ask("ann", "db.t", (), ("select",), "")
    assert stat.S_IMODE((tmp_path / "requests").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "requests").iterdir()} == {0o600}
    (tmp_path / "requests" / "odd.json").write_text('{"id": 1}')
    assert len(folder.all()) == 1
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UnsafePathError):
        RequestFolder(tmp_path / "open")


def test_without_a_folder_nobody_is_asked(world: World) -> None:
    world.authorizer.requests = None
    with pytest.raises(ProcedureError, match="ask at the data office"):
        world.call(ANN, "request_access", table="db.people")
    assert world.listed(BOB) == []
    assert world.call(BOB, "grant", table="db.people", users="ann") == [(2, 0)]
    assert world.read(ANN) == 2


def test_a_change_that_cannot_be_used_is_not_written(world: World) -> None:
    text = world.path.read_text()
    world.path.write_text(text[:-20])
    with pytest.raises(PolicyError):
        world.call(BOB, "grant", table="db.people", users="ann")
    assert world.path.read_text() == text[:-20]


# --- what becomes of policies ---

CHANGE = GrantChange(
    "bob",
    {"catalog": ("lake",), "database": ("db",), "table": ("t",), "column": ("c",)},
    ("select",),
    ("ann",),
)


def test_a_policy_of_the_same_resource_is_extended() -> None:
    """Whether or not somebody in it has the access type already."""
    there = allow("lake.db.t.c", "insert", users=["zoe"])
    narrow = {**allow("lake.db.t.c", users=["zoe"]), "conditions": [{"type": "script", "values": ["true"]}]}
    made = granted(service(narrow, allow("lake.db.t.*", users=["zoe"]), there), CHANGE)
    assert made["policyVersion"] == 2
    assert [len(each["policyItems"]) for each in made["policies"]] == [1, 1, 2]
    other = granted(service(narrow), CHANGE)
    assert [each["name"].split(":")[0] for each in other["policies"][1:]] == [f"grant {narrow['id'] + 1}"]


def test_what_was_granted_to_others_stays() -> None:
    together = policy(
        "lake.db.t.c", policyItems=[item("select", "insert", users=["ann", "zoe"], groups=["staff"])]
    )
    made = revoked(service(together, allow("lake.db.*.*", users=["ann"])), CHANGE)
    first, second = made["policies"][0]["policyItems"]
    assert (first["users"], first["groups"]) == (["zoe"], ["staff"])
    assert [each["type"] for each in first["accesses"]] == ["select", "insert"]
    assert (second["users"], second["groups"]) == (["ann"], [])
    assert [each["type"] for each in second["accesses"]] == ["insert"]
    assert made["policies"][1]["policyItems"][0]["users"] == ["ann"]


def test_a_denial_is_stronger_than_a_grant() -> None:
    made = granted(service(deny("lake.db.t.c", users=["ann"])), CHANGE)
    assert [len(each.get("denyPolicyItems", ())) for each in made["policies"]] == [1]
    assert engine(*made["policies"]).service


# --- Ranger's admin ---


def test_the_admin_grants_in_the_name_of_the_grantor(tmp_path: Path) -> None:
    with running() as admin:
        admin.has["plugins"] = service(lets_grant("lake.db.people.*", "bob"))
        settings = AdminSettings(service="lake", urls=(admin.url,), cache_folder=tmp_path / "cache")
        policies = AdminPolicies(settings, poll=False)
        policies.refresh()
        for word in ("grant", "revoke"):
            getattr(policies, word)(CHANGE)
        assert [path for path, _ in admin.changes] == [
            "/service/plugins/services/grant/lake",
            "/service/plugins/services/revoke/lake",
        ]
        sent = admin.changes[0][1]
        assert (sent["grantor"], sent["users"], sent["accessTypes"]) == ("bob", ["ann"], ["select"])
        assert sent["resource"] == {"catalog": "lake", "database": "db", "table": "t", "column": "c"}
        assert policies.version == 3
        admin.broken = 403
        with pytest.raises(AdminError, match="refuses it: grant for 'bob'"):
            policies.grant(CHANGE)
