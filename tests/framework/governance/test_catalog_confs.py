"""Policies by the confs of a catalog, as an application starts with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import ranger_admin
from ranger_admin import StandIn
from ranger_world import allow, service

from lockgate.errors import AccessDeniedError, OptionError, PluginError
from lockgate.framework.governance import catalog_confs
from lockgate.framework.governance.ranger.service_definition import service_definition
from lockgate.framework.plugins import plugins
from lockgate.framework.store import Catalog, Schema
from lockgate.plugins import Principal

LAKE = "spark.sql.catalog.lake."
RANGER = f"{LAKE}ranger.plugin.paimon."
AUDIT = f"{LAKE}xasecure.audit.destination."


@pytest.fixture
def admin() -> Iterator[StandIn]:
    with ranger_admin.running() as found:
        found.has["plugins"] = {
            **service(allow("lake.db.people.*", users=["ann"]), policyVersion=1),
            "serviceDef": service_definition(),
        }
        yield found
    plugins().before_attach({})


@pytest.fixture
def confs(admin: StandIn, tmp_path: Path) -> dict[str, str]:
    return {
        "spark.app.name": "test",
        LAKE[:-1]: "io.lockgate.spark.LockgateCatalog",
        f"{LAKE}warehouse": str(tmp_path / "warehouse"),
        f"{RANGER}service.name": "lake",
        f"{RANGER}policy.rest.url": admin.url,
        f"{RANGER}policy.cache.dir": str(tmp_path / "cache"),
    }


def people(folder: Path, user: str | None = None) -> pa.Table:
    principal = None if user is None else Principal(user, frozenset())
    return Catalog(str(folder / "warehouse"), principal=principal).load_table("db.people").read()


@pytest.fixture
def table(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    made = catalog.create_table("db.people", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    made.append(pa.table({"id": [1]}))


def test_confs_of_a_catalog_govern_its_tables(table: None, confs: dict[str, str], tmp_path: Path) -> None:
    assert not plugins().decides_access()
    plugins().before_attach(confs)
    assert plugins().decides_access()
    assert people(tmp_path, "ann").num_rows == 1
    with pytest.raises(AccessDeniedError, match="service paimon"):
        people(tmp_path, "bob")
    plugins().before_attach({})
    assert not plugins().decides_access()
    assert people(tmp_path, "bob").num_rows == 1


def test_the_same_confs_again_change_nothing(confs: dict[str, str], admin: StandIn) -> None:
    plugins().before_attach(confs)
    first = catalog_confs._registered["lake"]
    plugins().before_attach(dict(confs))
    assert catalog_confs._registered["lake"] is first
    plugins().before_attach({**confs, f"{RANGER}policy.pollIntervalMs": "5000"})
    assert catalog_confs._registered["lake"] is not first


def test_files_and_confs_go_together(
    table: None, confs: dict[str, str], admin: StandIn, tmp_path: Path
) -> None:
    """The password is in a file, which a conf names."""
    admin.user = "lock:gate-of-ranger"
    said = {
        "ranger.plugin.paimon.policy.rest.client.username": "lock",
        "ranger.plugin.paimon.policy.rest.client.password": "gate-of-ranger",
        "ranger.plugin.paimon.service.name": "another",
    }
    path = tmp_path / "ranger-paimon-security.xml"
    each = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in said.items())
    path.write_text(f"<configuration>{''.join(each)}</configuration>")
    plugins().before_attach({**confs, f"{RANGER}config.files": str(path)})
    assert people(tmp_path, "ann").num_rows == 1


def test_audit_and_requests_by_confs(table: None, confs: dict[str, str], tmp_path: Path) -> None:
    more = {
        f"{AUDIT}file": "true",
        f"{AUDIT}file.dir": str(tmp_path),
        f"{RANGER}apply.at": "the data office",
        f"{RANGER}requests.dir": str(tmp_path / "requests"),
        f"{RANGER}governs.others": "false",
    }
    plugins().before_attach({**confs, **more})
    with pytest.raises(AccessDeniedError, match=r"the data office.*sys\.request_access"):
        people(tmp_path, "bob")
    plugins().before_attach({})
    lines = (tmp_path / "lockgate_audit.log").read_text().splitlines()
    assert [(line["reqUser"], line["result"]) for line in map(json.loads, lines)] == [("bob", 0)]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (f"{RANGER}policy.rest.client.password", "gate-of-ranger", "would show a password to sessions"),
        (f"{LAKE}xasecure.audit.destination.solr.password", "gate-of-ranger", "would show a password"),
        (f"{RANGER}policy.rest.ur", "x", r"no option of policies.*policy\.rest\.url"),
        (f"{RANGER}governs.others", "perhaps", "must be true or false"),
        (f"{RANGER}policy.rest.url", "ranger", "not an address"),
        (f"{RANGER}policy.cache.dir", "", "is missing"),
        (f"{RANGER}config.files", "/nowhere/x.xml", "cannot be read"),
        (f"{LAKE}warehouse", "", "has no warehouse"),
    ],
)
def test_unusable_confs_prevent_the_session(confs: dict[str, str], key: str, value: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as refused:
        plugins().before_attach({**confs, key: value})
    assert "gate-of-ranger" not in str(refused.value)
    assert not plugins().decides_access()


def test_an_admin_that_is_down_allows_nothing(
    table: None, confs: dict[str, str], admin: StandIn, tmp_path: Path
) -> None:
    admin.broken = 500
    plugins().before_attach(confs)
    with pytest.raises(PluginError, match="no policies of service 'lake'"):
        people(tmp_path, "ann")
