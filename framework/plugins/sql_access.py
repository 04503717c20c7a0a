"""SQL decisions of plugins without SQL: if they refuse a query, one more request per column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lockgate.framework.access import AccessRequest, Decision, SqlDecision, as_sql

Decide = Callable[[AccessRequest], Decision]


def decide_by_columns(request: AccessRequest, types: Mapping[str, str], decide: Decide) -> SqlDecision:
    """Return the decision of `decide` about a relation with columns of these types, in SQL."""
    decision = decide(request)
    if decision.allowed:
        return as_sql(decision, types)
    denied, allowed = dict[str, tuple[str, ...]](), list[str]()
    for column in sorted(request.columns or ()):
        column_decision = decide(replace(request, columns=frozenset({column})))
        if column_decision.allowed:
            allowed.append(column)
        else:
            denied[column] = column_decision.apply_for
    rest = decide(replace(request, columns=frozenset(allowed))) if allowed else decision
    if not rest.allowed:
        return SqlDecision(apply_for=decision.apply_for)
    sql_decision = as_sql(rest, types)
    return replace(sql_decision, denied={**sql_decision.denied, **denied})
