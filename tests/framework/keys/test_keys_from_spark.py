"""Every scheme works as `keys=` of a session: the connector's requests to the driver, without Spark."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from messages import request as asked

from lockgate.errors import InputError, KeyDeniedError, KeyMissingError
from lockgate.framework.keys import EnvelopeKeyProvider, create_key_file, provider_from
from lockgate.framework.keys.hadoop.jceks import PASSWORD_VARIABLE
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.spark.context.open_catalogs import strict
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.confidential.column_visibility import visibility
from lockgate.framework.store.ddl.alter import RemoveOption, SetOption

STORE = Path(__file__).parents[2] / "fixtures" / "keys" / "kms.jceks"
SCHEMES = ["file", "path", "jceks", "kms", "envelope-file", "envelope-kms", "envelope-aws"]


@pytest.fixture
def spec(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A key specification of each scheme."""
    create_key_file(tmp_path / "keys.json", ["pii", "fin"])
    monkeypatch.setenv(PASSWORD_VARIABLE, "correct-horse")
    scheme = request.param
    if scheme == "jceks":
        pytest.importorskip("jks")
        yield f"jceks:{shutil.copy(STORE, tmp_path)}"
    elif scheme.endswith("kms"):
        kms = request.getfixturevalue("kms").spec()
        yield f"envelope:fin@{kms}" if scheme.startswith("envelope") else kms
    elif scheme == "envelope-aws":
        key, place = request.getfixturevalue("aws_key"), request.getfixturevalue("aws")
        yield f"envelope:aws-kms:{key}?region=eu-central-1&endpoint={place}"
    else:
        file = tmp_path / "keys.json"
        yield {"file": f"file:{file}", "path": str(file), "envelope-file": f"envelope:fin@file:{file}"}[
            scheme
        ]


def people(catalog: Catalog) -> Any:
    """A table with a column under the key pii; it stores the keys if its provider is an envelope."""
    options = {"orc.encrypt": "pii:ssn"}
    if isinstance(catalog.keys, EnvelopeKeyProvider):
        options["orc.keys.wrapped"] = catalog.keys.create("pii")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("ssn", pa.string())])
    return catalog.create_table("db.people", Schema.from_arrow(schema, options=options))


@pytest.mark.parametrize("spec", SCHEMES, indirect=True)
def test_requests_of_executors(spec: str, tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    catalog = dispatcher.catalogs.get(
        dispatcher.catalogs.open("lake", {"warehouse": str(tmp_path / "lake"), "keys": spec}).handle
    )
    table = people(catalog)
    scope = dispatcher.scopes.register(table.keys)
    assert dispatcher.scopes.register(catalog.load_table("db.people").keys) == scope, "one handle a table"
    made: Any = dispatcher.answer("keys.create", asked("keys.create", {"scope": scope, "name": "pii"}))
    request = {**{key: made[key] for key in ("name", "version", "algorithm", "encrypted")}, "scope": scope}
    assert dispatcher.answer("keys.unwrap", request) == {"plain": made["plain"]}
    assert dispatcher.answer("keys.unwrap", {**request, "scope": strict(scope)}) == {"plain": made["plain"]}
    assert dispatcher.answer("keys.unwrap", {**request, "name": "absent"}) == {"plain": None}
    with pytest.raises(KeyMissingError, match="decides what is written"):
        dispatcher.answer("keys.unwrap", {**request, "name": "absent", "scope": strict(scope)})
    with pytest.raises(KeyMissingError):  # the provider has the key, but not this version
        dispatcher.answer("keys.unwrap", {**request, "version": 99})
    assert visibility(table).missing_keys() == {}
    table.append(pa.table({"id": [1], "ssn": ["123"]}))
    assert Catalog(tmp_path / "lake", keys=spec).load_table("db.people").read(strict=True)[
        "ssn"
    ].to_pylist() == ["123"]


@pytest.mark.parametrize("spec", SCHEMES, indirect=True)
def test_equal_specifications_share_a_handle(spec: str) -> None:
    """Two requests for a session return the same one, with the same confs."""
    from lockgate.framework.spark.session.session import catalog_confs

    confs = catalog_confs("/lake", "lake", spec)
    assert catalog_confs("/lake", "lake", spec) == confs
    shown = confs["spark.sql.catalog.lake.keys"]
    if spec.startswith(("file:", "/")):
        assert shown == spec.removeprefix("file:")
    else:
        assert shown.startswith("session:keys-")


def test_a_denied_key_is_shown_as_a_mask(kms: Any, tmp_path: Path) -> None:
    """Queries treat the key as missing; a rewrite reports that it is denied."""
    kms.state.closed.add("bob")
    for user, masked in (("alice", {}), ("bob", {"ssn": "pii"})):
        dispatcher = Dispatcher()
        catalog = Catalog(tmp_path / user, keys=provider_from(kms.spec(user)))
        table = people(catalog)
        assert visibility(table).missing_keys() == masked
        scope = dispatcher.scopes.register(table.keys)
        encrypted = base64.b64encode(os.urandom(16)).decode()
        request = {
            "scope": scope,
            "name": "pii",
            "version": 2,
            "algorithm": "AES_CTR_128",
            "encrypted": encrypted,
        }
        answer: Any = dispatcher.answer("keys.unwrap", request)
        assert answer == {"plain": None} if masked else len(base64.b64decode(answer["plain"])) == 16
    with pytest.raises(KeyDeniedError, match="decides what is written"):
        dispatcher.answer("keys.unwrap", {**request, "scope": strict(scope)})


def test_altering_a_table_keeps_wrapped_keys(tmp_path: Path) -> None:
    create_key_file(tmp_path / "root.json", ["root"])
    catalog = Catalog(tmp_path / "lake", keys=f"envelope:{tmp_path / 'root.json'}")
    assert isinstance(catalog.keys, EnvelopeKeyProvider)
    table = people(catalog)
    text = table.options["orc.keys.wrapped"]
    rolled = catalog.alter_table("db.people", [SetOption("orc.keys.wrapped", catalog.keys.roll(text, "pii"))])
    assert rolled.keys is not None
    assert rolled.keys.current_key("pii").version == 1
    for change in (SetOption("orc.keys.wrapped", text), RemoveOption("orc.keys.wrapped")):
        with pytest.raises(InputError, match="lacks pii@"):
            catalog.alter_table("db.people", [change])
    assert catalog.load_table("db.people").schema.id == 1
