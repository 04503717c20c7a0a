"""Policies from Ranger's admin, with a stand-in for it: downloads, the cache, failures."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, allowed, service

from lockgate.errors import OptionError, PolicyError, UnsafePathError
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies

ANN = {"users": ["ann"]}


@pytest.fixture
def admin() -> Iterator[StandIn]:
    with ranger_admin.running() as found:
        found.has["plugins"] = service(allow("lake.db.t.*", **ANN), policyVersion=1)
        yield found


def settings(admin: StandIn, folder: Path, **more: Any) -> AdminSettings:
    return AdminSettings(
        **{"urls": (admin.url,), "service": "lake", "cache_folder": folder / "cache", **more}
    )


def policies(admin: StandIn, folder: Path, **more: Any) -> AdminPolicies:
    return AdminPolicies(settings(admin, folder, **more), poll=False)


def test_policies_roles_tags_and_users_are_downloaded(admin: StandIn, tmp_path: Path) -> None:
    role = {"name": "reader", "users": [{"name": "bob"}]}
    admin.has["plugins"] = service(allow("lake.db.t.*", roles=["reader"]), policyVersion=3)
    admin.has["roles"] = {"roleVersion": 2, "rangerRoles": [role]}
    admin.has["xusers"] = {"userStoreVersion": 5, "userGroupMapping": {"bob": ["staff"]}}
    found = policies(admin, tmp_path)
    found.refresh()
    assert allowed(found.engine(), "lake.db.t.c", user="bob")
    assert found.engine().groups_of("bob") == {"staff"}
    assert found.version == 3
    assert found.age_seconds < 60


@pytest.mark.parametrize("status", [304, 204])
def test_unchanged_policies_stay(admin: StandIn, tmp_path: Path, status: int) -> None:
    admin.unchanged = status
    found = policies(admin, tmp_path)
    found.refresh()
    first = found.engine()
    found.refresh()
    assert found.engine() is first
    path, asked = [each for each in admin.asked if "policies" in each[0]][-1]
    assert path == "/service/plugins/policies/download/lake"
    assert (asked["lastKnownVersion"], asked["supportsPolicyDeltas"]) == ("1", "true")


def test_deltas_are_put_upon_what_is_known(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    more = allow("lake.db.u.*", **ANN)
    admin.has["plugins"] = {**admin.has["plugins"], "policyVersion": 2}
    admin.deltas[1] = {"policyVersion": 2, "policyDeltas": [{"changeType": 0, "policy": more}]}
    found.refresh()
    assert [allowed(found.engine(), f"lake.db.{name}.c") for name in "tu"] == [True, True]
    assert found.version == 2
    again = policies(admin, tmp_path)
    assert again.version == 2
    assert allowed(again.engine(), "lake.db.u.c"), "the cache has the policies, not the deltas"


def test_a_service_that_is_gone_allows_nothing(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    gone = AdminPolicies(settings(admin, tmp_path, service="other"), poll=False)
    with pytest.raises(PolicyError, match="no service 'other'"):
        gone.refresh()
    with pytest.raises(PolicyError, match="no policies"):
        gone.engine()
    del admin.has["plugins"]  # a proxy's 404, which does not speak of a service
    with pytest.raises(AdminError):
        found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")


@pytest.mark.parametrize("broken", [500, 503, 401, 302])
def test_failures_keep_the_last_good_policies(admin: StandIn, tmp_path: Path, broken: int) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    admin.broken = broken
    with pytest.raises(AdminError, match=str(broken)):
        found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")
    assert str(broken) in (found.last_error or "")


@pytest.mark.parametrize("body", [b'{"policies": [', b"[]", b"<html>", json.dumps(service()).encode()[:-20]])
def test_answers_that_are_no_policies_are_not_taken(admin: StandIn, tmp_path: Path, body: bytes) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    admin.has["plugins"] = {**admin.has["plugins"], "policyVersion": 9}
    admin.body = body
    with pytest.raises(AdminError):
        found.refresh()
    assert found.version == 1


def test_policies_that_are_not_understood_are_not_taken(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    condition = {"type": "moon", "values": ["full"]}
    denial = {
        **allow("lake.db.t.*"),
        "denyPolicyItems": [{"accesses": [], "users": ["x"], "conditions": [condition]}],
    }
    admin.has["plugins"] = service(denial, policyVersion=2)
    with pytest.raises(PolicyError, match="cannot evaluate conditions"):
        found.refresh()
    assert found.version == 1


def test_a_start_while_the_admin_is_down(admin: StandIn, tmp_path: Path) -> None:
    policies(admin, tmp_path).refresh()
    down = AdminPolicies(settings(admin, tmp_path, urls=("http://127.0.0.1:9",)), poll=False)
    assert allowed(down.engine(), "lake.db.t.c")
    with pytest.raises(AdminError):
        down.refresh()


def test_half_a_cache_file_is_passed_over(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    admin.has["plugins"] = service(allow("lake.db.u.*", **ANN), policyVersion=2)
    found.refresh()
    newest = tmp_path / "cache" / "lockgate_lake_policies.json"
    newest.write_text(newest.read_text()[:100])
    assert policies(admin, tmp_path).version == 1
    newest.with_suffix(".json.before").write_text("{")
    with pytest.raises(PolicyError):
        policies(admin, tmp_path).engine()


def test_the_cache_is_this_users_alone(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path)
    found.refresh()
    folder = tmp_path / "cache"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    folder.chmod(0o777)
    with pytest.raises(UnsafePathError):
        policies(admin, tmp_path)


def test_policies_that_are_too_old_allow_nothing(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path, oldest_seconds=0.0)
    found.refresh()
    with pytest.raises(PolicyError, match="s old"):
        found.engine()


def test_passwords_go_to_the_secured_paths(admin: StandIn, tmp_path: Path) -> None:
    admin.user = "lock:gate"
    with pytest.raises(AdminError, match="401"):
        policies(admin, tmp_path).refresh()
    found = policies(admin, tmp_path, user="lock", password="gate")
    found.refresh()
    assert "gate" not in repr(settings(admin, tmp_path, user="lock", password="gate")).replace("lockgate", "")
    assert admin.asked[-1][0].count("/secure/") == 1
    with pytest.raises(OptionError, match="in the clear: write https://"):
        settings(admin, tmp_path, urls=("http://ranger.example:6080",), user="lock", password="gate")


def test_another_admin_answers_for_one_that_is_down(admin: StandIn, tmp_path: Path) -> None:
    found = policies(admin, tmp_path, urls=("http://127.0.0.1:9", admin.url))
    found.refresh()
    assert found.version == 1


def test_a_poll_brings_changes(admin: StandIn, tmp_path: Path) -> None:
    found = AdminPolicies(settings(admin, tmp_path, poll_seconds=0.02))
    try:
        assert found.engine().version == 1
        admin.has["plugins"] = service(policyVersion=2)
        for _ in range(500):
            if found.engine().version == 2:
                break
            found._stop.wait(0.01)
        assert found.engine().version == 2
    finally:
        found.close()


def test_rangers_xml_files_are_read(admin: StandIn, tmp_path: Path) -> None:
    security, tls = tmp_path / "ranger-paimon-security.xml", tmp_path / "ranger-policymgr-ssl.xml"
    said = {
        "service.name": "lake",
        "policy.rest.url": "https://one.example:6182, https://two.example:6182/",
        "policy.cache.dir": str(tmp_path / "cache"),
        "policy.pollIntervalMs": "5000",
        "policy.rest.ssl.config.file": str(tls),
    }
    security.write_text(xml({f"ranger.plugin.paimon.{key}": value for key, value in said.items()}))
    tls.write_text(xml({"xasecure.policymgr.clientssl.truststore": "/etc/ca.pem"}))
    found = AdminSettings.from_files(security)
    assert found.urls == ("https://one.example:6182", "https://two.example:6182")
    assert (found.service, found.poll_seconds, str(found.ca)) == ("lake", 5.0, "/etc/ca.pem")
    security.write_text("<configuration><property>")
    with pytest.raises(OptionError, match="cannot be read"):
        AdminSettings.from_files(security)


def xml(values: dict[str, str]) -> str:
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    return f"<configuration>{''.join(each)}</configuration>"
