"""Checks: what a statement needs, and which grants are missing. They run nothing and leave no record."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lockgate.errors import AccessDeniedError, InputError, LockgateError
from lockgate.framework.access import Action, Caller, SqlDecision, Target
from lockgate.framework.governance.points.point import Point
from lockgate.framework.plugins import acting_as, authorize, current_principal
from lockgate.framework.spark import (
    OperationContext,
    actions_of,
    check_nodes,
    decision_about,
    dispatcher,
    inspect_sql,
    java_class,
    target_of,
)
from lockgate.framework.store import grant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate.framework.store import Catalog


STRICT, BYTEQUERY = RULES = ("strict", "bytequery")


@dataclass(frozen=True)
class PointAnswer:
    """An answer about one point of a statement.

    `granted_by` names the policies that grant it, `hidden` what others hide of it ("rows", "values of column
    x"), and `missing` the grants that are missing.
    """

    point: Point
    granted_by: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """An answer about one statement and one user; `allowed` if nothing is missing.

    `points` are what the statement reads: one for each column, or one for the table if it needs only the
    table's rows. `missing` names the grants that are missing, `ask` says where to apply for them. `hidden`
    maps tables to what policies hide from the user: "rows", or "values of column x". `answers` has each point
    once, `of_statement` what is missing for other things than reading, and `sql` the statement.
    """

    user: str
    points: tuple[Point, ...] = ()
    missing: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    hidden: Mapping[str, tuple[str, ...]] | None = None
    answers: tuple[PointAnswer, ...] = ()
    of_statement: tuple[str, ...] = ()
    # Not shown, since it may hold values of encrypted columns.
    sql: str = field(default="", repr=False)

    @property
    def allowed(self) -> bool:
        """Return whether the statement may run."""
        return not self.missing

    def page(self) -> str:
        """Return a page for a browser, as HTML: the statement, its points, their grants, what is missing."""
        from lockgate.framework.governance.points.check_page import page

        return page(self)

    def __str__(self) -> str:
        lines = [f"user {self.user} {'may' if self.allowed else 'may not'} run this statement"]
        lines += [f"  reads {point.text()}" for point in self.points]
        for table, parts in (self.hidden or {}).items():
            lines.append(f"  does not see {', '.join(parts)} of {table}")
        lines += [f"  lacks {each}" for each in self.missing]
        return "\n".join([*lines, *(f"  {each}" for each in self.ask)])


def check(
    spark: SparkSession,
    catalogs: Mapping[str, Catalog],
    sql: str,
    user: str | None = None,
    rule: str = STRICT,
) -> Check:
    """Return what the statement `sql` needs and what `user` lacks for it, by default the current user.

    `catalogs` are the warehouses by Spark's names of them. `rule` is `strict`, by which Spark's queries are
    governed, or `bytequery`, which counts only columns that results come from or that are compared with
    columns. Raises InputError for another rule and for a CALL, which Spark runs while it analyses it, and
    Spark's own errors for a statement that cannot be analysed.
    """
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r} for points: give one of {', '.join(RULES)}")
    if inspect_sql(sql, spark=spark).kind == "CALL":
        raise InputError("a CALL cannot be checked: Spark runs it while it analyses it")
    needs = json.loads(
        java_class(spark, "io.lockgate.spark.enforcement.RequiredColumns").of(
            spark._jsparkSession, sql, rule == BYTEQUERY
        )
    )
    with contextlib.nullcontext() if user is None else acting_as(Caller(user)):
        return replace(_checked(OperationContext(dispatcher(), {}), catalogs, needs), sql=sql)


def _checked(context: OperationContext, catalogs: Mapping[str, Catalog], needs: Mapping[str, Any]) -> Check:
    answers: dict[Point, PointAnswer] = {}
    missing: list[str] = []
    ask: list[str] = []
    hidden: dict[str, tuple[str, ...]] = {}
    for used in needs["used"]:
        relation = used["relation"]
        found = decision_about(context, relation)
        target = target_of(context, relation)
        for point in _points(target, used):
            answers.setdefault(point, _answer(point, found))
        missing += found.apply_for
        missing += [text for column in used["columns"] for text in found.denied.get(column, ())]
        ask += found.ask
        if parts := _hidden(found, used["columns"]):
            hidden[str(target)] = parts
    of_statement = tuple(dict.fromkeys(_of_statement(context, catalogs, needs["nodes"])))
    missing += of_statement
    return Check(
        current_principal().user,
        tuple(answers),
        tuple(dict.fromkeys(missing)),
        tuple(dict.fromkeys(ask)) if missing else (),
        hidden,
        tuple(answers.values()),
        of_statement,
    )


def _answer(point: Point, found: SqlDecision) -> PointAnswer:
    """Return what a decision says of a point; a table as a whole takes any readable column."""
    columns = found.granted_by if point.column is None else [point.column]
    return PointAnswer(
        point,
        tuple(dict.fromkeys(text for each in columns for text in found.granted_by.get(each, ()))),
        _hidden(found, [point.column] if point.column else []),
        (*found.apply_for, *found.denied.get(point.column or "", ())),
    )


def _points(target: Target, used: Mapping[str, Any]) -> list[Point]:
    if target.kind != "table":
        return []
    database, _, table = target.name.rpartition(".")
    rows = {column: frozenset(values) for column, values in used["rows"].items()}
    return [Point(database, table, column, rows) for column in used["columns"] or [None]]


def _hidden(found: SqlDecision, columns: Iterable[str]) -> tuple[str, ...]:
    masked = tuple(f"values of column {column}" for column in columns if column in found.masks)
    return (*(("rows",) if found.row_filter is not None else ()), *masked)


def _of_statement(
    context: OperationContext, catalogs: Mapping[str, Catalog], nodes: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    every: list[Any] = list(nodes)
    try:
        check_nodes(context, every)
    except AccessDeniedError as error:
        yield from error.apply_for
    for node in every:
        for action, named in actions_of(node):
            if named["ours"] and action is not Action.SELECT:
                yield from _of_table(catalogs, action, named)


def _of_table(catalogs: Mapping[str, Catalog], action: Action, named: Mapping[str, Any]) -> tuple[str, ...]:
    # A table that is written to is named with its catalog, others next to it.
    names = [str(each) for each in (named["catalog"], *named["name"].split(".")) if each]
    database, table = (names[-1], "") if named["kind"] == "database" else (names[-2], names[-1])
    try:
        _authorize(catalogs.get(names[0]), action, database, table)
    except AccessDeniedError as error:
        return error.apply_for
    return ()


def _authorize(catalog: Catalog | None, action: Action, database: str, table: str) -> None:
    if not table:
        authorize(action, Target("database", database))
        return
    try:
        found = None if catalog is None else catalog.load_table(f"{database}.{table}")
    except AccessDeniedError:
        raise
    except LockgateError:  # it is to be made, or Spark says better what is wrong
        found = None
    if found is None:
        authorize(action, Target("table", f"{database}.{table}"))
    else:
        grant(found, action)
