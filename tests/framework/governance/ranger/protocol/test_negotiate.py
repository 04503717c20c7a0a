"""Handshakes by Negotiate with the admin; `tests/interop/test_kerberos.py` has one with real tickets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import ranger_admin
from ranger_admin import Negotiating, StandIn
from ranger_world import allow, allowed, service

from lockgate.errors import OptionError, StorageError
from lockgate.framework.governance.ranger.protocol.admin_settings import AdminError, AdminSettings
from lockgate.framework.governance.ranger.protocol.kerberos import Negotiation
from lockgate.framework.governance.ranger.protocol.policy_source import AdminPolicies


class Handshake:
    """The client's side: a numbered token for each leg; it wants the proof of the service."""

    begun: ClassVar[list[Handshake]] = []

    def __init__(self, host: str) -> None:
        self.host, self.legs, self.is_closed, self.challenges = host, 0, False, list[bytes | None]()
        Handshake.begun.append(self)

    def step(self, challenge: bytes | None) -> bytes | None:
        self.challenges.append(challenge)
        if challenge == b"proof":
            return None
        if challenge is not None and not challenge.startswith(b"reply to token-"):
            raise StorageError("the service did not prove its identity")
        self.legs += 1
        return b"token-%d" % self.legs

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def admin() -> Iterator[StandIn]:
    Handshake.begun = []
    with ranger_admin.running() as found:
        found.has["plugins"] = service(allow("lake.db.t.*", users=["ann"]), policyVersion=1)
        yield found


@pytest.fixture
def policies(admin: StandIn, tmp_path: Path) -> Callable[[], AdminPolicies]:
    settings = AdminSettings((admin.url,), "lake", tmp_path / "cache", authentication=Handshake)
    return lambda: AdminPolicies(settings, poll=False)


@pytest.mark.parametrize("legs", [1, 2, 4])
def test_a_handshake_of_several_legs(
    admin: StandIn, policies: Callable[[], AdminPolicies], legs: int
) -> None:
    admin.negotiates = Negotiating(legs)
    found = policies()
    found.refresh()
    assert allowed(found.engine(), "lake.db.t.c")
    assert admin.negotiates.seen[:legs] == [b"token-%d" % leg for leg in range(1, legs + 1)]
    assert all("/secure/" in path for path, _ in admin.asked)
    first = Handshake.begun[0]
    assert (first.host, first.challenges[-1]) == ("127.0.0.1", b"proof")
    assert all(each.is_closed for each in Handshake.begun)


def test_a_service_that_cannot_prove_itself(admin: StandIn, policies: Callable[[], AdminPolicies]) -> None:
    admin.negotiates = Negotiating(1, proof=b"an impostor's")
    with pytest.raises(AdminError, match="did not prove its identity"):
        policies().refresh()
    assert all(each.is_closed for each in Handshake.begun)


def test_a_handshake_without_end(admin: StandIn, policies: Callable[[], AdminPolicies]) -> None:
    admin.negotiates = Negotiating(1_000)
    with pytest.raises(AdminError, match="does not end"):
        policies().refresh()
    assert len(admin.negotiates.seen) < 10


def test_a_refusal_without_a_challenge(admin: StandIn, policies: Callable[[], AdminPolicies]) -> None:
    admin.broken = 401
    with pytest.raises(AdminError, match="status 401"):
        policies().refresh()


def test_tokens_are_not_logged(
    admin: StandIn, policies: Callable[[], AdminPolicies], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    admin.negotiates = Negotiating(3, proof=b"an impostor's")
    with pytest.raises(AdminError) as failed:
        policies().refresh()
    assert "token" not in caplog.text + str(failed.value)


def test_the_option_names_kerberos(tmp_path: Path) -> None:
    prefix = "ranger.plugin.paimon."
    said = {
        f"{prefix}service.name": "lake",
        f"{prefix}policy.rest.url": "https://ranger.example",
        f"{prefix}policy.cache.dir": str(tmp_path),
        f"{prefix}policy.rest.client.authentication": "Kerberos",
    }
    assert AdminSettings.from_options(said).authentication is Negotiation
    for basic in ("", "basic", "simple"):
        said[f"{prefix}policy.rest.client.authentication"] = basic
        assert AdminSettings.from_options(said).authentication is None
    said[f"{prefix}policy.rest.client.authentication"] = "ntlm"
    with pytest.raises(OptionError, match="must be kerberos or basic"):
        AdminSettings.from_options(said)


def test_kerberos_without_a_ticket_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{tmp_path}/none")
    try:
        negotiation = Negotiation("ranger.example")
    except OptionError as absent:
        pytest.skip(str(absent))
    with pytest.raises(StorageError, match=r"no Kerberos for HTTP@ranger\.example: .*run kinit"):
        negotiation.step(None)
    negotiation.close()
    negotiation.close()
