"""The suite for plugins that know groups passes for one that is consistent, and fails for others."""

from __future__ import annotations

import pytest

from lockgate.framework.access import Caller, Principal
from lockgate.plugins import PrincipalConformance


class Suite(PrincipalConformance):
    """Ada is of the group hr."""

    def principal(self, caller: Caller) -> Principal | None:
        return Principal("ada", groups=frozenset({"hr"})) if caller.user == "ada" else None

    def callers(self) -> list[Caller]:
        return [Caller("ada"), Caller("bob", door="spark", session="s")]


class TestConsistent(Suite):
    """All tests of the suite pass."""


class Silent(Suite):
    """Knows nobody."""

    def principal(self, caller: Caller) -> Principal | None:
        return Principal(caller.user)


class Fickle(Suite):
    """Knows a caller the second time."""

    count = 0

    def principal(self, caller: Caller) -> Principal | None:
        self.count += 1
        return Principal(caller.user, groups=frozenset({"hr"} if self.count % 2 else ()))


class Trusting(Suite):
    """Knows a session by its name."""

    def principal(self, caller: Caller) -> Principal | None:
        return Principal(caller.user, roles=frozenset({"admin"} if caller.session == "a" else ()))


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (Silent, "test_it_knows_somebody"),
        (Fickle, "test_it_answers_principals"),
        (Trusting, "test_a_session_gives_no_rights"),
    ],
)
def test_the_suite_finds_plugins_that_are_wrong(wrong: type[Suite], test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(wrong(), test)()
