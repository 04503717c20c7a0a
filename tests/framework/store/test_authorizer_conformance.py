"""The suite for authorizers passes for one that is consistent, and fails for others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lockgate.framework.access import AccessRequest, Action, Decision, Mask, Principal, SqlDecision, Target
from lockgate.plugins import AuthorizerConformance
from lockgate.pushdown import col

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


class InSql(Suite):
    """Bob may not read `pay` in queries of Spark either."""

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], records: bool
    ) -> SqlDecision | None:
        denied = request.principal.user == "bob" and "pay" in types
        return SqlDecision(denied={"pay": ("role hr",)}) if denied else None


class TestConsistentInSql(InSql):
    """All tests of the suite pass."""


class Open(InSql):
    """Refuses nothing in SQL."""

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], records: bool
    ) -> SqlDecision | None:
        return None


class Unmasked(Open):
    """Masks `pay` in Python alone."""

    def authorize(self, request: AccessRequest) -> Decision | None:
        return Decision(masks={"pay": Mask("nullify")})


class Unfiltered(Open):
    """Hides rows in Python alone."""

    def authorize(self, request: AccessRequest) -> Decision | None:
        return Decision(row_filter=col("dept") == "x")


class Previewed(InSql):
    """Answers a preview in another way."""

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], records: bool
    ) -> SqlDecision | None:
        return super().authorize_sql(request, types, records) if records else None


class WithoutQueries(InSql):
    """Has no request that Spark may ask."""

    def requests(self) -> list[AccessRequest]:
        return [replace(each, action=Action.INSERT) for each in super().requests()]


@pytest.mark.parametrize(
    ("wrong", "test"),
    [
        (Silent, "test_it_decides_something"),
        (Fickle, "test_it_answers_decisions"),
        (Odd, "test_fewer_columns_are_never_refused_where_more_are_allowed"),
        (Open, "test_queries_of_spark_see_no_more_than_python_does"),
        (Unmasked, "test_queries_of_spark_see_no_more_than_python_does"),
        (Unfiltered, "test_queries_of_spark_see_no_more_than_python_does"),
        (Previewed, "test_it_answers_decisions_in_sql"),
        (WithoutQueries, "test_it_answers_decisions_in_sql"),
    ],
)
def test_the_suite_finds_authorizers_that_are_wrong(wrong: type[Suite], test: str) -> None:
    with pytest.raises(AssertionError):
        getattr(wrong(), test)()
