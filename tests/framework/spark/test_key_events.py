"""Anyone who asks for a local key leaves an event, with the key or without it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from lockgate.errors import AccessDeniedError, NotFoundError
from lockgate.framework.access import AccessRequest, Principal, SqlDecision, Target
from lockgate.framework.keys import KeyMetadata, MemoryKeyProvider
from lockgate.framework.plugins import Event, KeyUnwrapped, hookimpl, plugins
from lockgate.framework.spark.context import open_catalogs
from lockgate.framework.spark.context.open_catalogs import KeyScopes
from lockgate.framework.spark.enforcement.scan_grants import ScanRights
from lockgate.framework.spark.operations import key_operations


@pytest.fixture
def events() -> Iterator[list[Event]]:
    seen: list[Event] = []

    @hookimpl
    def lockgate_event(event: Event) -> None:
        seen.append(event)

    assert plugins().events.flush(), "events of tests before this one"
    plugins().register(SimpleNamespace(lockgate_event=lockgate_event), "observer")
    yield seen
    plugins().unregister("observer")


def test_unwrapped_keys_are_observed(events: list[Event]) -> None:
    owner = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    key = owner.current_key("pii")
    local = owner.create_local_key(key)
    scopes = KeyScopes()
    context: Any = SimpleNamespace(dispatcher=SimpleNamespace(scopes=scopes))

    def ask(provider: MemoryKeyProvider, asked: KeyMetadata) -> dict[str, Any]:
        request = {
            "scope": scopes.register(provider, Principal("ada")),
            "name": asked.name,
            "version": asked.version,
            "algorithm": asked.algorithm.name,
            "encrypted": base64.b64encode(local.encrypted).decode(),
        }
        answer: Any = key_operations.OPERATIONS["keys.unwrap"](context, request)
        return dict(answer)

    assert "plain" in ask(owner, key)
    assert ask(MemoryKeyProvider({"other@0": b"0123456789abcdef"}), key) == {"plain": None}
    assert plugins().events.flush()
    granted, denied = events
    assert isinstance(granted, KeyUnwrapped)
    assert isinstance(denied, KeyUnwrapped)
    assert (granted.key, granted.version, granted.granted) == ("pii", 0, True)
    assert denied.granted is False
    assert (granted.user, denied.user) == ("ada", "ada"), "the one whose plan names the keys"
    assert local.plain not in repr(events).encode()


def test_plans_of_two_users_have_two_handles() -> None:
    scopes = KeyScopes()
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    ada, bob = (scopes.register(keys, Principal(name)) for name in ("ada", "bob"))
    assert ada != bob
    assert scopes.register(keys, Principal("ada")) == ada
    assert scopes.provider(ada) is scopes.provider(bob) is keys
    assert scopes.principal(f"{bob}!strict").user == "bob"


def test_a_plan_gets_no_key_of_a_column_that_is_denied() -> None:
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef", "other@0": b"fedcba9876543210"})
    scopes = KeyScopes()
    scope = scopes.register(keys, Principal("ada"), frozenset({"pii"}))
    assert scope != scopes.register(keys, Principal("ada"))
    context: Any = SimpleNamespace(dispatcher=SimpleNamespace(scopes=scopes))

    def ask(name: str) -> Any:
        key = keys.current_key(name)
        request = {
            "scope": scope,
            "name": name,
            "version": key.version,
            "algorithm": key.algorithm.name,
            "encrypted": base64.b64encode(keys.create_local_key(key).encrypted).decode(),
        }
        return key_operations.OPERATIONS["keys.unwrap"](context, request)

    assert ask("pii") == {"plain": None}
    assert "plain" in ask("other")
    assert key_operations.OPERATIONS["keys.names"](context, {"scope": scope}) == ["other"]


def test_a_key_is_asked_about_again_and_not_given_once_policies_hide_more(events: list[Event]) -> None:
    keys = MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    key = keys.current_key("pii")
    scopes, ada = KeyScopes(), Principal("ada")
    target = Target("table", "db.people")
    rights = ScanRights(target, {"ssn": "STRING"}, SqlDecision(), {"pii": frozenset({"ssn"})})
    scope = scopes.register(keys, ada, rights=rights)
    assert scope != scopes.register(
        keys, ada, rights=replace(rights, decision=SqlDecision(masks={"id": "1"}))
    )
    assert scope == scopes.register(keys, ada, rights=replace(rights))
    context: Any = SimpleNamespace(dispatcher=SimpleNamespace(scopes=scopes))
    request = {
        "scope": scope,
        "name": "pii",
        "version": key.version,
        "algorithm": key.algorithm.name,
        "encrypted": base64.b64encode(keys.create_local_key(key).encrypted).decode(),
    }
    asked: list[AccessRequest] = []
    said = [SqlDecision()]

    @hookimpl
    def lockgate_authorize_sql(request: AccessRequest, types: Any, records: bool) -> SqlDecision:
        asked.append(request)
        return said[-1]

    @hookimpl
    def lockgate_authorize(request: AccessRequest) -> None:
        return None

    both = {"lockgate_authorize_sql": lockgate_authorize_sql, "lockgate_authorize": lockgate_authorize}
    plugins().register(SimpleNamespace(**both), "decider")
    try:
        unwrap = key_operations.OPERATIONS["keys.unwrap"]
        assert unwrap(context, request) != {"plain": None}
        assert (asked[0].principal, asked[0].target, asked[0].columns) == (ada, target, frozenset({"ssn"}))
        for decision in (
            SqlDecision(denied={"ssn": ("a role",)}),
            SqlDecision(masks={"ssn": "NULL"}),
            SqlDecision(row_filter="id > 1"),
            SqlDecision(apply_for=("everything",)),
        ):
            said.append(decision)
            with pytest.raises(AccessDeniedError, match="policies that have changed: run the query again"):
                unwrap(context, request)
        said.append(SqlDecision(denied={"pay": ("a role",)}))
        assert unwrap(context, request) != {"plain": None}, "nothing under this key is hidden"
    finally:
        plugins().unregister("decider")
    assert plugins().events.flush()
    own = [each for each in events if isinstance(each, KeyUnwrapped) and each.key.startswith("pii")]
    assert [each.granted for each in own] == [True, *[False] * 4, True]


def test_the_oldest_plans_get_no_more_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_catalogs, "_MOST_PLANS", 2)
    scopes, keys = KeyScopes(), MemoryKeyProvider({"pii@0": b"0123456789abcdef"})
    handles = [scopes.register(keys, Principal(name)) for name in ("ada", "bob")]
    scopes.register(keys, Principal("ada"))  # used again, so not the oldest
    scopes.register(keys, Principal("cal"))
    assert scopes.principal(handles[0]).user == "ada"
    with pytest.raises(NotFoundError, match="connect again"):
        scopes.principal(handles[1])
