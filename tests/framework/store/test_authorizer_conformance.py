"""The suite for authorizers passes for one that is consistent, and fails for others."""

from __future__ import annotations

import pytest

from lockgate.framework.access import AccessRequest, Action, Decision, Principal, Target
from lockgate.plugins import AuthorizerConformance

PEOPLE = Target("table", "hr.people")


def asked(user: str, *columns: str) -> AccessRequest:
    return AccessRequest(Principal(user), Action.SELECT, PEOPLE, frozenset(columns))


class Suite(AuthorizerConformance):
    """Bob may not read `pay`."""

    def authorize(self, request: AccessRequest) -> Decision | None:
        denied = request.principal.user == "bob" and "pay" in (request.columns or ())
        return Decision.denied("role hr") if denied else None

    def requests(self) -> list[AccessRequest]:
        return [asked("ada", "pay", "name"), asked("bob", "pay"), asked("bob", "name")]


class TestConsistent(Suite):
    """All tests of the suite pass."""


class Silent(Suite):
    """Decides nothing."""

    def authorize(self, request: AccessRequest) -> Decision | None:
        return None


class Fickle(Suite):
    """Decides by the number of questions."""

    count = 0

    def authorize(self, request: AccessRequest) -> Decision | None:
        self.count += 1
        return Decision.denied("luck") if self.count % 2 else None


class Odd(Suite):
    """Allows two columns and neither of them alone."""

    def authorize(self, request: AccessRequest) -> Decision | None:
        return Decision.denied("more") if len(request.columns or ()) == 1 else None


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (Silent, "test_it_decides_something"),
        (Fickle, "test_it_answers_decisions"),
        (Odd, "test_fewer_columns_are_never_refused_where_more_are_allowed"),
    ],
)
def test_the_suite_finds_authorizers_that_are_wrong(wrong: type[Suite], test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(wrong(), test)()
