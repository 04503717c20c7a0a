"""Ranger's own client of its admin accepts the stand-in of the tests, and its jar loads our definition.

So what other tests show with the stand-in holds for what Ranger's client understands. Needs mvn and Java; the
jars come by Maven the first time.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, allowed

from lockgate.framework.governance.ranger.protocol.admin_settings import AdminSettings
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies
from lockgate.framework.store import Catalog, Schema
from lockgate.governance import GrantChange, PolicyApi, PolicyFiles, service_definition

pytestmark = pytest.mark.interop

RANGERS = Path(__file__).resolve().parents[1] / "fixtures" / "ranger" / "policyengine"
SAID = dict[str, Any]


class Client:
    """Ranger's client, in a process of its own."""

    def __init__(self, class_path: str, folder: Path) -> None:
        self._log = (folder / "log").open("w")
        self._process = subprocess.Popen(
            ["java", "-cp", class_path, "RangerClientReferee"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def ask(self, do: str, **more: Any) -> SAID:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        process.stdin.flush()
        answer: SAID = json.loads(process.stdout.readline())
        return answer

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait(30)
        self._log.close()


@pytest.fixture(scope="module")
def confs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the plugin's XML files, which is on its class path."""
    return tmp_path_factory.mktemp("confs")


@pytest.fixture(scope="module")
def client(ranger_classes: str, confs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    found = Client(f"{confs}:{ranger_classes}", tmp_path_factory.mktemp("client"))
    yield found
    found.close()


@pytest.fixture
def admin() -> Iterator[StandIn]:
    """A stand-in that answers with bodies of Ranger's own resources."""
    with ranger_admin.running() as found:
        found.has["plugins"] = body("hbase-test-policies.json")
        found.has["tags"] = {**body("hbaseTags.json"), "tagVersion": 4}
        found.has["roles"] = {"serviceName": "lake", "roleVersion": 6, "rangerRoles": []}
        found.has["xusers"] = {"userStoreVersion": 2, "userGroupMapping": {"ann": ["staff"]}}
        yield found


def body(name: str) -> SAID:
    found: SAID = json.loads((RANGERS / name).read_text())
    return found


def test_rangers_client_takes_all_downloads(admin: StandIn, client: Client, tmp_path: Path) -> None:
    at = {"url": admin.url, "service": "lake"}
    theirs = client.ask("policies", version=-1, **at)
    assert theirs["version"] == 7141
    assert theirs["policies"] == len(admin.has["plugins"]["policies"])
    assert theirs["definition"] == "hbase"
    assert client.ask("roles", version=-1, **at) == {"roles": 0}
    assert client.ask("tags", version=-1, **at) == {"tags": len(admin.has["tags"]["tags"])}
    assert client.ask("users", version=-1, **at) == {"groups": {"ann": ["staff"]}}
    asked = dict(admin.asked)
    ours = AdminPolicies(AdminSettings((admin.url,), "lake", tmp_path / "cache"), poll=False)
    admin.asked.clear()
    ours.refresh()
    assert ours.version == 7141
    # Both clients ask the same paths with the same parameters.
    for path, parameters in admin.asked:
        assert set(parameters) <= {*asked[path], "clusterName"}, path


def test_unchanged_downloads(admin: StandIn, client: Client) -> None:
    at = {"url": admin.url, "service": "lake"}
    asked = (("policies", 7141), ("roles", 6), ("tags", 4))
    assert [client.ask(what, version=version, **at).get("error") for what, version in asked] == [None] * 3
    assert client.ask("policies", version=7141, **at) == {}
    # This version of Ranger's client takes 204 for unchanged, then fails as it looks for words to log.
    admin.unchanged = 204
    assert "204 No Content" in client.ask("policies", version=7141, **at)["error"]


def test_a_service_that_is_gone(admin: StandIn, client: Client) -> None:
    assert "gone" in client.ask("policies", version=-1, url=admin.url, service="other")
    del admin.has["plugins"]
    assert client.ask("policies", version=-1, url=admin.url, service="lake") == {}


def test_rangers_client_takes_deltas(admin: StandIn, client: Client) -> None:
    policy = deepcopy(admin.has["plugins"]["policies"][0])
    admin.has["plugins"]["policyVersion"] = 7142
    delta = {"changeType": 1, "policy": {**policy, "serviceType": "hbase"}, "policiesVersion": 7142}
    admin.deltas[7141] = {
        "serviceName": "lake",
        "policyVersion": 7142,
        "policyDeltas": [delta],
        "serviceDef": admin.has["plugins"]["serviceDef"],
    }
    theirs = client.ask("policies", version=7141, url=admin.url, service="lake")
    assert (theirs["version"], theirs["deltas"], theirs.get("policies")) == (7142, 1, None)


def test_rangers_client_grants_as_ours(admin: StandIn, client: Client, tmp_path: Path) -> None:
    change = GrantChange("ann", {"database": ("db",), "table": ("t",)}, ("select",), users=("bob",))
    api = PolicyApi(AdminSettings((admin.url,), "lake", tmp_path / "cache"))
    for word, send in (("grant", api.grant), ("revoke", api.revoke)):
        send(change)
        path, ours = admin.changes[-1]
        answer = client.ask(word, url=admin.url, service="lake", request=ours)
        assert answer == {}
        again, theirs = admin.changes[-1]
        assert again == path
        # Ranger's client adds what has a default, and leaves out what is empty.
        assert {key: value for key, value in ours.items() if value} == {
            key: value for key, value in theirs.items() if value and key in ours
        }


def test_rangers_plugin_polls_the_stand_in_and_we_read_its_cache(
    admin: StandIn, client: Client, confs: Path, tmp_path: Path
) -> None:
    prefix, cache = "ranger.plugin.paimon.", tmp_path / "cache"
    cache.mkdir(mode=0o700)
    policies = [{**allow("lake.db.t.*", users=["ann"]), "id": 1, "name": "p", "service": "lake"}]
    admin.has["plugins"] = {
        "serviceName": "lake",
        "serviceId": 1,
        "policyVersion": 9,
        "policies": policies,
        "serviceDef": {**service_definition(), "id": 42},
    }
    del admin.has["tags"]
    write(
        confs / "ranger-paimon-security.xml",
        {
            f"{prefix}service.name": "lake",
            f"{prefix}policy.source.impl": "org.apache.ranger.admin.client.RangerAdminRESTClient",
            f"{prefix}policy.rest.url": admin.url,
            f"{prefix}policy.cache.dir": str(cache),
        },
    )
    write(confs / "ranger-paimon-audit.xml", {"xasecure.audit.is.enabled": "false"})
    write(confs / "ranger-paimon-policymgr-ssl.xml", {})
    levels = {"catalog": "lake", "database": "db", "table": "t", "column": "c"}
    assert client.ask("plugin", service="lake", user="ann", resource=levels) == {
        "allowed": True,
        "version": 9,
    }
    assert client.ask("plugin", service="lake", user="bob", resource=levels) == {
        "allowed": False,
        "version": 9,
    }
    engine = PolicyFiles(cache / "lockgate_lake.json").engine()
    assert (engine.version, engine.service.id) == (9, 42)
    assert allowed(engine, "lake.db.t.c", user="ann")
    assert not allowed(engine, "lake.db.t.c", user="bob")
    ours = AdminPolicies(AdminSettings.from_files(confs / "ranger-paimon-security.xml"), poll=False)
    ours.refresh()
    assert allowed(ours.engine(), "lake.db.t.c", user="ann")


def test_ranger_takes_our_definition(client: Client) -> None:
    found = client.ask("definition", definition=service_definition())
    assert found == {"valid": True, "hierarchies": 6}


def test_the_jar_suggests_names_of_a_warehouse(client: Client, tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"))
    for database in ("hr", "Sales"):
        catalog.create_namespace(database)
    for name in ("hr.people", "hr.places", "Sales.orders"):
        schema = Schema.from_arrow(pa.schema([("id", pa.int64()), (f"of_{name[-3:]}", pa.string())]))
        catalog.create_table(name, schema)
    configs = {"warehouse": str(tmp_path / "warehouse"), "catalog": "lake"}

    def suggested(level: str, start: str = "", **chosen: list[str]) -> Any:
        lookup = {"resourceName": level, "userInput": start, "resources": chosen}
        return client.ask("service", configs=configs, lookup=lookup)["found"]

    assert suggested("catalog") == ["lake"]
    assert suggested("database") == ["Sales", "hr"]
    assert suggested("database", "s") == ["Sales"]
    assert suggested("table", "p", database=["HR"]) == ["people", "places"]
    assert suggested("table", database=["*"]) == ["orders", "people", "places"]
    assert suggested("column", database=["hr"], table=["people"]) == ["id", "of_ple"]
    assert suggested("column", database=["*"], table=["*"]) == ["id", "of_ers", "of_ple", "of_ces"]
    # Names do not lead out of the warehouse.
    (tmp_path / "secret.db" / "t" / "schema").mkdir(parents=True)
    (tmp_path / "secret.db" / "t" / "schema" / "schema-0").write_text('{"fields": [{"name": "hidden"}]}')
    assert suggested("table", database=["../secret"]) == []
    assert suggested("column", database=["../secret"], table=["t"]) == []
    assert suggested("path") == []


def test_the_jar_tests_a_configuration(client: Client, tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    good = client.ask("service", configs={"warehouse": f"file://{tmp_path}/warehouse"})["valid"]
    assert good["connectivityStatus"] is True
    assert client.ask("service", configs={})["valid"]["connectivityStatus"] is True
    for wrong in (str(tmp_path / "absent"), "nowhere://host/x"):
        bad = client.ask("service", configs={"warehouse": wrong})["valid"]
        assert (bad["connectivityStatus"], bad["fieldName"]) == (False, "warehouse")
        assert "cannot be listed" in bad["message"]


def write(path: Path, values: dict[str, str]) -> None:
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in values.items())
    path.write_text(f"<configuration>{''.join(each)}</configuration>")
