"""Identities and decisions from plugins; any failure refuses."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import AccessDeniedError, PluginError
from lockgate.framework.access import (
    ALLOWED,
    AccessRequest,
    Action,
    Caller,
    Decision,
    Mask,
    Principal,
    Target,
)
from lockgate.framework.plugins import (
    Denied,
    Event,
    acting_as,
    authorize,
    current_principal,
    hookimpl,
    plugins,
)
from lockgate.framework.store import Catalog, Schema

PEOPLE = Target("table", "hr.people")
Add = Callable[..., None]


def test_everything_is_refused_if_a_decision_is_required_and_no_plugin_decides(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", Schema.from_arrow(pa.schema([("id", pa.int64())])))
    plugins().require_decisions(True)
    try:
        for call in (table.read, lambda: catalog.drop_table("db.t")):
            with pytest.raises(AccessDeniedError, match=r"no plugin decides about access.*RangerAuthorizer"):
                call()
        assert catalog.system("tables").num_rows == 0
    finally:
        plugins().require_decisions(False)
    assert table.read().num_rows == 0


@pytest.fixture
def add() -> Iterator[Add]:
    """Register plugins with these hook functions, for one test."""
    names: list[str] = []

    def register(name: str, marks: dict[str, Any] | None = None, **hooks: Callable[..., Any]) -> None:
        marked = {hook: hookimpl(**(marks or {}))(function) for hook, function in hooks.items()}
        plugins().register(types.SimpleNamespace(**marked), name)
        names.append(name)

    yield register
    for name in names:
        plugins().unregister(name)


def test_the_default_principal_is_the_user_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    assert current_principal().user != "somebody-else"
    assert current_principal().groups == frozenset()


def test_acting_as_ends_with_its_block() -> None:
    own = current_principal()
    with acting_as(Principal("ada", roles=frozenset({"analyst"}))):
        assert current_principal() == Principal("ada", roles=frozenset({"analyst"}))
        with acting_as(Caller("bob")):
            assert current_principal() == Principal("bob")
        assert current_principal().user == "ada"
    assert current_principal() == own


def test_the_first_plugin_with_an_answer_gives_the_identity(add: Add) -> None:
    asked = []

    def silent(caller: Caller) -> None:
        asked.append(caller)

    add("knows", lockgate_principal=lambda caller: Principal(caller.user, frozenset({"staff"})))
    add("late", {"trylast": True}, lockgate_principal=lambda caller: pytest.fail("asked too late"))
    add("silent", {"tryfirst": True}, lockgate_principal=silent)
    with acting_as(Caller("ada", "spark", "s1")):
        assert current_principal() == Principal("ada", frozenset({"staff"}))
    assert asked == [Caller("ada", "spark", "s1")]


def test_a_wrapper_sees_and_changes_the_identity(add: Add) -> None:
    def wrapper(caller: Caller) -> Any:
        found = yield
        return Principal(found.user, found.groups | {"wrapped"})

    add("inner", lockgate_principal=lambda caller: Principal(caller.user, frozenset({"staff"})))
    add("outer", {"wrapper": True}, lockgate_principal=wrapper)
    with acting_as(Caller("ada")):
        assert current_principal().groups == {"staff", "wrapped"}


def test_everything_is_allowed_without_a_plugin() -> None:
    assert authorize(Action.DROP, PEOPLE) is ALLOWED


def test_the_plugin_receives_principal_action_and_target(add: Add) -> None:
    asked: list[AccessRequest] = []

    def decide(request: AccessRequest) -> None:
        asked.append(request)

    add("decides", lockgate_authorize=decide)
    with acting_as(Principal("ada")):
        assert authorize(Action.SELECT, PEOPLE, ["name"]) == ALLOWED
    assert asked == [AccessRequest(Principal("ada"), Action.SELECT, PEOPLE, frozenset({"name"}))]


def test_a_refusal_names_user_target_and_missing_grants(add: Add) -> None:
    events: list[Event] = []
    add("one", lockgate_authorize=lambda request: Decision.denied("role hr"))
    add("two", lockgate_authorize=lambda request: ALLOWED)
    add("three", lockgate_authorize=lambda request: Decision.denied("the owner's consent"))
    add("watches", lockgate_event=lambda event: events.append(event))
    with acting_as(Principal("ada")), pytest.raises(AccessDeniedError) as refused:
        authorize(Action.SELECT, PEOPLE, ["salary", "name"])
    assert set(refused.value.apply_for) == {"role hr", "the owner's consent"}
    for text in ("SELECT", "table hr.people", "columns name, salary", "'ada'", "role hr"):
        assert text in str(refused.value)
    assert plugins().events.flush()
    (event,) = (each for each in events if isinstance(each, Denied))
    assert (event.user, event.action, event.columns) == ("ada", "SELECT", ("name", "salary"))


def test_masks_of_several_plugins_combine(add: Add) -> None:
    add("one", lockgate_authorize=lambda request: Decision(masks={"salary": Mask("redact")}))
    add("two", lockgate_authorize=lambda request: Decision(masks={"salary": Mask("sha256")}))
    assert authorize(Action.SELECT, PEOPLE).masks == {"salary": Mask("sha256")}


@pytest.mark.parametrize("answer", [True, "yes", Decision])
def test_an_answer_of_a_wrong_type_allows_nothing(add: Add, answer: object) -> None:
    add("odd", lockgate_authorize=lambda request: answer)
    with pytest.raises(PluginError, match=r"'odd'.*expected Decision"):
        authorize(Action.SELECT, PEOPLE)


def test_a_plugin_that_fails_allows_nothing(add: Add) -> None:
    def fail(request: AccessRequest) -> None:
        raise OSError("the policy server is away")

    add("allows", lockgate_authorize=lambda request: ALLOWED)
    add("fails", lockgate_authorize=fail)
    with pytest.raises(PluginError, match=r"'fails'.*the policy server is away"):
        authorize(Action.SELECT, PEOPLE)


def test_an_identity_of_a_wrong_type_is_refused(add: Add) -> None:
    add("odd", lockgate_principal=lambda caller: "ada")
    with pytest.raises(PluginError, match=r"'odd'.*expected Principal"):
        current_principal()
