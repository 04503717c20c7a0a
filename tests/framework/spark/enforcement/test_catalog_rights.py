"""Which session may open which catalog with which keys, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import KeyDeniedError, NotFoundError, OptionError
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.spark.bridge.dispatcher import Dispatcher
from lockgate.framework.spark.bridge.protocol import Question
from lockgate.framework.spark.context.open_catalogs import KeyScopes
from lockgate.framework.spark.context.operation_context import OperationContext

KEY = bytes(range(16))


@pytest.fixture(autouse=True)
def no_session_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark session is attached here, whose options could be asked for."""
    monkeypatch.setattr(OperationContext, "session_conf", lambda self, key: "")


def ask(dispatcher: Dispatcher, session: str | None, options: dict[str, str], **start: Any) -> str:
    """Open the catalog `x` as the session of a name does; returns its handle."""
    request = {"catalog": "x", "options": options, "started": None, "fixed": False, **start}
    question = Question("catalog.open", request, "ada", None, session)
    return str(dispatcher._answer(question)["handle"])  # type: ignore[index]  # the answer is an object of JSON


def test_handles_are_unguessable_and_differ_by_use() -> None:
    scopes = KeyScopes()
    one, two = MemoryKeyProvider({"pii@0": KEY}), MemoryKeyProvider({"pii@0": KEY})
    in_conf, in_plan = scopes.conf_of(one), scopes.register(one)
    assert scopes.conf_of(one) == in_conf != scopes.conf_of(two)
    assert scopes.register(one) == in_plan != scopes.register(two)
    assert in_conf != f"session:{in_plan}", "what a plan shows opens no catalog"
    for handle in (in_conf.removeprefix("session:"), in_plan):
        assert len(bytes.fromhex(handle.removeprefix("keys-"))) >= 16
    with pytest.raises(NotFoundError, match="not known"):
        scopes.provider(in_conf.removeprefix("session:"))
    with pytest.raises(NotFoundError, match="not known"):
        scopes.of_spec(f"session:{in_plan}")


def test_plans_without_keys_share_a_handle() -> None:
    """Each migration without keys asks for one, and a process keeps all that it gave."""
    scopes = KeyScopes()
    assert len({scopes.register(scopes.of_spec(None)) for _ in range(5)}) == 1


def test_keys_are_for_the_session_that_they_were_given_to(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    conf = dispatcher.scopes.conf_of(MemoryKeyProvider({"pii@0": KEY}))
    options = {"warehouse": str(tmp_path), "keys": conf}
    dispatcher.scopes.grant(conf, "a")
    handle = ask(dispatcher, "a", options)
    # Also when the catalog is open already, with the very same confs.
    for other in ("b", "", None):
        with pytest.raises(KeyDeniedError, match=r"x\.keys names keys given to another session"):
            ask(dispatcher, other, options)
    dispatcher.scopes.grant(conf, "b")
    assert ask(dispatcher, "b", options) == handle
    with pytest.raises(KeyDeniedError):
        ask(dispatcher, "a", {**options, "keys": "session:keys-1"})
    with pytest.raises(KeyDeniedError):
        ask(dispatcher, "a", {**options, "keys": "session:"})


def test_the_first_session_claims_what_was_configured(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    conf = dispatcher.scopes.conf_of(MemoryKeyProvider({"pii@0": KEY}))
    options = {"warehouse": str(tmp_path), "keys": conf}
    dispatcher.scopes.claim(conf, "a")
    dispatcher.scopes.claim(conf, "b")
    dispatcher.scopes.claim("file:/keys.json", "b")
    dispatcher.scopes.claim("session:keys-1", "b")
    assert ask(dispatcher, "a", options)
    with pytest.raises(KeyDeniedError):
        ask(dispatcher, "b", options)


def test_what_the_application_started_with_is_for_all_sessions(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    conf = dispatcher.scopes.conf_of(MemoryKeyProvider({"pii@0": KEY}))
    options = {"warehouse": str(tmp_path), "keys": conf}
    assert ask(dispatcher, "b", options, started=options)
    with pytest.raises(KeyDeniedError):
        ask(dispatcher, "b", options, started={"warehouse": str(tmp_path)})


def test_fixed_catalogs_are_as_the_application_started(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    started = {"warehouse": str(tmp_path), "fs.s3.region": "eu"}
    assert ask(dispatcher, "a", started, started=started, fixed=True)
    for changed in (
        {**started, "warehouse": "/elsewhere"},
        {**started, "keys": "file:/keys.json"},
        {"warehouse": str(tmp_path)},
        {**started, "fs.s3.endpoint": "http://elsewhere"},
    ):
        with pytest.raises(OptionError, match=r"fixed-catalogs=true, so a session cannot set spark\.sql"):
            ask(dispatcher, "a", changed, started=started, fixed=True)
    with pytest.raises(OptionError, match="none of those that the application started with"):
        ask(dispatcher, "a", started, fixed=True)


def test_catalogs_have_handles_that_nobody_can_guess(tmp_path: Path) -> None:
    dispatcher = Dispatcher()
    handle = ask(dispatcher, "a", {"warehouse": str(tmp_path)})
    assert len(bytes.fromhex(handle.removeprefix("x#"))) >= 16
    with pytest.raises(NotFoundError) as unknown:
        dispatcher.catalogs.get("x")
    assert handle not in str(unknown.value)
