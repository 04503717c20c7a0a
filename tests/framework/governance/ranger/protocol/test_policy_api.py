"""The admin's interface for policies: find, create or extend, update, delete, grant, revoke."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, allowed, service

from lockgate.errors import NotFoundError, PolicyError
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
from lockgate.governance import AdminSettings, GrantChange, PolicyApi

NAME = "lake/db/t, all"
RESOURCE = {"catalog": ("lake",), "database": ("db",), "table": ("t",), "column": ("*",)}


@pytest.fixture
def admin() -> Iterator[StandIn]:
    with ranger_admin.running() as found:
        found.has["plugins"] = service(policyVersion=1)
        yield found


@pytest.fixture
def settings(admin: StandIn, tmp_path: Path) -> AdminSettings:
    return AdminSettings(urls=(admin.url,), service="lake", cache_folder=tmp_path / "cache")


@pytest.fixture
def api(settings: AdminSettings) -> PolicyApi:
    return PolicyApi(settings)


def change(*accesses: str, **who: tuple[str, ...]) -> GrantChange:
    return GrantChange("ann", RESOURCE, accesses, **who)


def test_a_policy_is_made_found_extended_and_deleted(api: PolicyApi, settings: AdminSettings) -> None:
    assert api.find(NAME) is None
    made = api.create_or_extend(NAME, change("select", users=("bob",)))
    assert made["service"] == "lake"
    assert api.find(NAME) == made
    policies = AdminPolicies(settings, poll=False)
    policies.refresh()
    assert allowed(policies.engine(), "lake.db.t.c", user="bob")
    api.create_or_extend(NAME, change("select", users=("eve",)))
    policies.refresh()
    assert allowed(policies.engine(), "lake.db.t.c", user="eve")
    api.delete(NAME)
    assert api.find(NAME) is None
    with pytest.raises(NotFoundError, match="no policy 'lake/db/t, all'"):
        api.delete(NAME)
    policies.refresh()
    assert not allowed(policies.engine(), "lake.db.t.c", user="bob")


def test_items_are_added_for_those_who_lack_the_access(api: PolicyApi) -> None:
    """A group that has none of the accesses gets them too, which a search among its own would miss."""
    api.create_or_extend(NAME, change("select", groups=("staff",)))
    api.create_or_extend(NAME, change("select", "insert", groups=("staff", "clerks"), users=("bob",)))
    items = (api.find(NAME) or {})["policyItems"]
    given = {(kind, name, each["type"]) for item in items for kind in ("users", "groups", "roles")
             for name in item.get(kind) or () for each in item["accesses"]}  # fmt: skip
    wanted = {("groups", name, access) for name in ("staff", "clerks") for access in ("select", "insert")}
    assert given == wanted | {("users", "bob", "select"), ("users", "bob", "insert")}
    assert sum("staff" in item.get("groups", ()) for item in items) == 2


def test_what_is_given_changes_nothing(api: PolicyApi, admin: StandIn) -> None:
    api.create_or_extend(NAME, change("select", users=("bob",), roles=("reader",)))
    version = admin.has["plugins"]["policyVersion"]
    api.create_or_extend(NAME, change("select", users=("bob",)))
    assert admin.has["plugins"]["policyVersion"] == version


def test_accesses_under_a_condition_are_not_given(api: PolicyApi, admin: StandIn) -> None:
    item = {
        "users": ["bob"],
        "accesses": [{"type": "select"}],
        "conditions": [{"type": "ip", "values": ["x"]}],
    }
    api.create(
        {
            "name": NAME,
            "resources": {k: {"values": list(v)} for k, v in RESOURCE.items()},
            "policyItems": [item],
        }
    )
    api.create_or_extend(NAME, change("select", users=("bob",)))
    assert len(admin.rooms.policies[-1]["policyItems"]) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"isEnabled": False},
        {"policyType": 1},
        {"isDenyAllElse": True},
        {"zoneName": "z"},
        {"validitySchedules": [{"endTime": "2020/01/01 00:00:00"}]},
        {"resources": {"catalog": {"values": ["*"]}}},
    ],
)
def test_policies_of_another_sort_are_left_alone(
    api: PolicyApi, admin: StandIn, other: dict[str, Any]
) -> None:
    levels = {level: {"values": list(values)} for level, values in RESOURCE.items()}
    admin.rooms.policies.append({"id": 7, "name": NAME, "service": "lake", "resources": levels, **other})
    with pytest.raises(PolicyError, match="choose another name"):
        api.create_or_extend(NAME, change("select", users=("bob",)))
    assert "policyItems" not in admin.rooms.policies[-1]


def test_a_change_by_somebody_else_is_not_lost(api: PolicyApi, admin: StandIn) -> None:
    api.create_or_extend(NAME, change("select", users=("bob",)))
    before = (api.find(NAME) or {})["policyItems"]

    def undo() -> None:
        admin.rooms.policies[-1]["policyItems"] = list(before)

    admin.rooms.before_update.append(undo)
    api.create_or_extend(NAME, change("select", users=("eve",)))
    assert len(admin.rooms.policies[-1]["policyItems"]) == 2
    admin.rooms.before_update += [undo] * 9
    with pytest.raises(PolicyError, match="others change it at the same time"):
        api.create_or_extend(NAME, change("select", users=("zoe",)))


def test_another_may_make_the_policy_first(
    api: PolicyApi, admin: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = api.find
    looks = iter([True])

    def late(name: str) -> Any:
        first = next(looks, False)
        answer = found(name)
        if first:
            PolicyApi.create(api, {"name": name, "resources": {
                level: {"values": list(values)} for level, values in RESOURCE.items()}})  # fmt: skip
        return answer

    monkeypatch.setattr(api, "find", late)
    api.create_or_extend(NAME, change("select", users=("bob",)))
    assert [each["name"] for each in admin.rooms.policies].count(NAME) == 1
    assert admin.rooms.policies[-1]["policyItems"][0]["users"] == ["bob"]


def test_all_policies_come_by_pages(api: PolicyApi, admin: StandIn) -> None:
    for number in range(450):
        admin.rooms.policies.append({**allow(f"lake.db.t{number}.*"), "id": number + 1, "name": f"p{number}"})
    assert [each["name"] for each in api.all()] == [f"p{number}" for number in range(450)]


def test_an_update_replaces_a_policy(api: PolicyApi) -> None:
    made = api.create_or_extend(NAME, change("select", users=("bob",)))
    api.update({**made, "isEnabled": False})
    assert (api.find(NAME) or {})["isEnabled"] is False
    with pytest.raises(NotFoundError, match="no such policy: update policy"):
        api.update({**made, "id": 99})


def test_grants_and_revokes_are_rangers_requests(api: PolicyApi, admin: StandIn) -> None:
    api.grant(change("select", users=("bob",)))
    api.revoke(change("select", users=("bob",)))
    paths = [path for path, _ in admin.changes]
    assert paths == ["/service/plugins/services/grant/lake", "/service/plugins/services/revoke/lake"]
    sent = admin.changes[0][1]
    assert (sent["grantor"], sent["resource"]["table"], sent["accessTypes"]) == ("ann", "t", ["select"])


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "does not know this client"), (403, "does not let"), (500, "status 500"), (302, "302")],
)
def test_refusals_say_why(api: PolicyApi, admin: StandIn, status: int, words: str) -> None:
    made = api.create_or_extend(NAME, change("select", users=("bob",)))
    admin.broken = status
    with pytest.raises(AdminError, match=f"status {status}"):
        api.find(NAME)
    with pytest.raises(AdminError, match=words):
        api.update(made)
    with pytest.raises(AdminError, match=words):
        api.create({"name": "other"})


def test_the_admins_own_words(api: PolicyApi) -> None:
    made = api.create_or_extend(NAME, change("select", users=("bob",)))
    with pytest.raises(AdminError, match="Another policy already exists for this name"):
        api.create({"name": made["name"]})


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[1]", b'[{"name":'])
def test_answers_that_are_no_policies(api: PolicyApi, admin: StandIn, body: bytes) -> None:
    admin.body = body
    with pytest.raises(AdminError):
        api.find(NAME)


def test_names_with_slashes_and_parts_of_other_names(api: PolicyApi) -> None:
    api.create_or_extend(NAME + " of ann", change("select", users=("ann",)))
    assert api.find(NAME) is None
    odd = "a/b?c&d=é '\"%2F"
    api.create_or_extend(odd, change("insert", users=("ann",)))
    assert (api.find(odd) or {})["name"] == odd
