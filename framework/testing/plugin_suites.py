"""Suites for authors of plugins of the store: subclass one in your tests, and pytest runs it."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockgate.framework.access import (
    ALLOWED,
    AccessRequest,
    Action,
    Caller,
    Decision,
    Principal,
    SqlDecision,
)
from lockgate.framework.plugins import CandidateFile, FilePruner, IndexKind, hookimpl, named_as_today, plugins
from lockgate.framework.store import Table, TableHandle
from lockgate.framework.types import DataType, to_arrow
from lockgate.pushdown import AlwaysTrue, Comparison, Predicate, Step, describe, to_arrow_expression


class PrunerConformance:
    """Tests for pruners: a pruned scan finds the rows that a full scan and a filter find.

    Implement `pruner`, `table` and `predicates`.
    """

    def pruner(self) -> FilePruner:
        """Return the pruner."""
        raise NotImplementedError

    def table(self) -> Table:
        """Return a table of several files; one with a primary key shows most."""
        raise NotImplementedError

    def predicates(self) -> Sequence[Predicate]:
        """Return filters of the table; the pruner skips a file for at least one of them."""
        raise NotImplementedError

    def test_it_has_a_name_of_its_own(self) -> None:
        """The name is accepted, and it is the line in the report of a scan."""
        predicate = self.predicates()[0]
        with _pruning(self.pruner()) as pruner:
            steps = self.table().scan(predicate=predicate).report.steps
        assert [step.name for step in steps].count(pruner.name) == 1

    def test_a_pruned_scan_finds_what_a_full_scan_finds(self) -> None:
        """No matching row is lost, and no replaced row comes back."""
        table = self.table()
        every = table.read()
        for predicate in self.predicates():
            wanted = every.filter(to_arrow_expression(predicate, every.schema))
            with _pruning(self.pruner()):
                found = table.read(predicate=predicate)
            assert _rows(found) == _rows(wanted), f"rows that match {describe(predicate)} differ"

    def test_it_leaves_something_out(self) -> None:
        """For at least one filter it skips a file that metadata alone would keep."""
        with _pruning(self.pruner()) as pruner:
            left_out = [
                step.before.files - step.after.files
                for predicate in self.predicates()
                for step in _steps(self.table(), predicate, pruner.name)
            ]
        assert max(left_out, default=0) > 0, "no file was left out: give a filter that the pruner can use"

    def test_files_are_judged_each_by_itself(self) -> None:
        """The answer for a file does not depend on the other files of the call."""
        asked = _Recorded(self.pruner())
        with _pruning(asked):
            for predicate in self.predicates():
                self.table().scan(predicate=predicate)
        for predicate, files, answers in asked.calls:
            assert len(answers) == len(files)
            for file, answer in zip(files, answers, strict=True):
                assert list(asked.pruner.keeps(predicate, [file])) == [answer], file.path


class IndexKindConformance:
    """Tests for kinds of the index database: no value that meets a comparison is missed.

    Implement `kind`, `data_type`, `values` and `predicates`.
    """

    def kind(self) -> IndexKind:
        """Return the kind."""
        raise NotImplementedError

    def data_type(self) -> DataType:
        """Return a type that the kind accepts."""
        raise NotImplementedError

    def values(self) -> Sequence[Any]:
        """Return values of the type, odd ones too."""
        raise NotImplementedError

    def predicates(self) -> Sequence[Comparison]:
        """Return comparisons of a column `c`; some of the values, but not all, must meet at least one."""
        raise NotImplementedError

    def test_it_accepts_the_type(self) -> None:
        """The kind accepts the type of the tests."""
        assert self.kind().accepts(self.data_type())

    def test_keys_are_numbers_below_2_to_40(self) -> None:
        """Keys fit into segments."""
        found = self._keys(self.values())
        assert found.dtype == np.uint64
        assert not len(found) or int(found.max()) < 2**40

    def test_a_value_has_the_keys_that_a_comparison_asks_for(self) -> None:
        """A value that meets a comparison has one of its keys, or with `every` all of them."""
        for predicate in self.predicates():
            asked = named_as_today(self.kind(), "lookup_keys").lookup_keys(predicate, self.data_type())
            for value in self.values() if asked is not None else ():
                assert asked is not None
                if self._meets(value, predicate):
                    assert asked.are_in(self._keys([value])), f"{value!r} and {describe(predicate)}"

    def test_it_tells_values_apart(self) -> None:
        """At least one comparison excludes at least one value."""
        left_out = False
        for predicate in self.predicates():
            asked = named_as_today(self.kind(), "lookup_keys").lookup_keys(predicate, self.data_type())
            for value in self.values() if asked is not None else ():
                assert asked is not None
                left_out |= not asked.are_in(self._keys([value]))
        assert left_out, "no value is left out: give comparisons that the kind can use"

    def _keys(self, values: Sequence[Any]) -> npt.NDArray[np.uint64]:
        return self.kind().keys(pa.array(values, to_arrow(self.data_type())), self.data_type())

    def _meets(self, value: Any, predicate: Comparison) -> bool:
        rows = pa.table({"c": pa.array([value], to_arrow(self.data_type()))})
        return bool(rows.filter(to_arrow_expression(predicate, rows.schema)).num_rows)


class AuthorizerConformance:
    """Tests for authorizers: they repeat their answers, and a refusal names the grants to apply for.

    Implement `authorize` and `requests`, and `authorize_sql` if the plugin has `lockgate_authorize_sql`.
    """

    def authorize(self, request: AccessRequest) -> Decision | None:
        """Answer as the plugin's `lockgate_authorize` does."""
        raise NotImplementedError

    def authorize_sql(
        self, request: AccessRequest, types: Mapping[str, str], records: bool
    ) -> SqlDecision | None:
        """Answer as the plugin's `lockgate_authorize_sql` does; without one, its tests ask nothing."""
        raise NotImplementedError

    def types(self, request: AccessRequest) -> Mapping[str, str]:
        """Return Spark's types of the columns of a request, by default STRING."""
        return dict.fromkeys(request.columns or (), "string")

    def requests(self) -> Sequence[AccessRequest]:
        """Return requests of several kinds, one of which is denied or restricted."""
        raise NotImplementedError

    def test_it_answers_decisions(self) -> None:
        """Each answer is a Decision or None, and the same for a repeated question."""
        for request in self.requests():
            answer = self.authorize(request)
            assert answer is None or isinstance(answer, Decision), request
            assert self.authorize(request) == answer, f"{request} is answered in two ways"

    def test_it_decides_something(self) -> None:
        """At least one request is denied or restricted."""
        answers = [self.authorize(request) for request in self.requests()]
        assert any(answer and (not answer.allowed or answer.is_restricted) for answer in answers)

    def test_fewer_columns_are_never_refused_where_more_are_allowed(self) -> None:
        """A user who may read columns together may read each one alone."""
        for request in self.requests():
            answer = self.authorize(request)
            if request.columns and (answer is None or answer.allowed):
                for column in sorted(request.columns):
                    alone = self.authorize(replace(request, columns=frozenset({column})))
                    assert alone is None or alone.allowed, f"{request}, but column {column} alone is denied"

    def test_it_answers_decisions_in_sql(self) -> None:
        """Each answer about a query is a SqlDecision or None, the same when repeated and for a preview."""
        for request in self._queries():
            answer = self.authorize_sql(request, self.types(request), records=True)
            assert answer is None or isinstance(answer, SqlDecision), request
            for records in (True, False):
                again = self.authorize_sql(request, self.types(request), records=records)
                assert again == answer, f"{request} is answered in two ways"

    def test_queries_of_spark_see_no_more_than_python_does(self) -> None:
        """What the answer in SQL leaves open, `authorize` allows, with no other rows or values hidden."""
        for request in self._queries():
            answer = self.authorize_sql(request, self.types(request), records=False) or SqlDecision()
            left = (request.columns or frozenset()) - set(answer.denied)
            if answer.apply_for or not left:
                continue
            decision = self.authorize(replace(request, columns=left)) or ALLOWED
            assert decision.allowed, f"{request} is refused in Python, but not in SQL"
            unmasked = set(decision.masked(left)) - set(answer.masks)
            assert not unmasked, f"{request}: {sorted(unmasked)} has a mask in Python, but none in SQL"
            hides = not isinstance(decision.row_filter, AlwaysTrue)
            assert not hides or answer.row_filter, f"{request} has hidden rows in Python, but none in SQL"

    def _queries(self) -> list[AccessRequest]:
        """Return the requests that Spark may ask in SQL; none if the plugin does not answer in it."""
        if type(self).authorize_sql is AuthorizerConformance.authorize_sql:
            return []
        found = [each for each in self.requests() if each.action is Action.SELECT and each.columns]
        assert found, "give a request to SELECT columns, which authorize_sql can answer"
        return found


class PrincipalConformance:
    """Tests for plugins that know groups and roles: they repeat their answers, whatever the session.

    Implement `principal` and `callers`.
    """

    def principal(self, caller: Caller) -> Principal | None:
        """Answer as the plugin's `lockgate_principal` does."""
        raise NotImplementedError

    def callers(self) -> Sequence[Caller]:
        """Return several callers, one of whom the plugin knows."""
        raise NotImplementedError

    def test_it_answers_principals(self) -> None:
        """Each answer is a Principal or None, and the same for a repeated question."""
        for caller in self.callers():
            answer = self.principal(caller)
            assert answer is None or isinstance(answer, Principal), caller
            assert self.principal(caller) == answer, f"{caller} is answered in two ways"

    def test_it_knows_somebody(self) -> None:
        """At least one caller gets groups, roles or attributes."""
        answers = [self.principal(caller) for caller in self.callers()]
        assert any(answer and (answer.groups or answer.roles or answer.attributes) for answer in answers)

    def test_a_session_gives_no_rights(self) -> None:
        """A user is the same in every session: the name of a session says nothing about its user."""
        for caller in self.callers():
            answers = [self.principal(replace(caller, session=name)) for name in (None, "a", "b")]
            assert answers == [answers[0]] * 3, f"{caller} depends on the session"


class _Recorded:
    """A pruner that writes down what it is asked."""

    def __init__(self, pruner: FilePruner) -> None:
        self.pruner = pruner
        self.name = pruner.name
        self.calls: list[tuple[Predicate, Sequence[CandidateFile], list[bool]]] = []

    def keeps(self, predicate: Predicate, files: Sequence[CandidateFile]) -> list[bool]:
        answers = list(self.pruner.keeps(predicate, files))
        self.calls.append((predicate, files, answers))
        return answers


@contextlib.contextmanager
def _pruning(pruner: FilePruner) -> Iterator[FilePruner]:
    """Let scans of this process ask `pruner`."""

    @hookimpl
    def lockgate_pruners(table: TableHandle) -> list[FilePruner]:
        return [pruner]

    name = f"{pruner.name} under test"
    plugins().register(types.SimpleNamespace(lockgate_pruners=lockgate_pruners), name)
    try:
        yield pruner
    finally:
        plugins().unregister(name)


def _steps(table: Table, predicate: Predicate, name: str) -> list[Step]:
    return [step for step in table.scan(predicate=predicate).report.steps if step.name == name]


def _rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.to_pylist())
