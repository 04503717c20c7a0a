"""Answers in SQL for plugins that only make decisions: after a refusal, one question per column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lockgate.framework.access import AccessRequest, Decision, SqlDecision, as_sql

Decide = Callable[[AccessRequest], Decision]


def decided_by_columns(request: AccessRequest, types: Mapping[str, str], decide: Decide) -> SqlDecision:
    """Return what `decide` says of a relation with columns of these types, in SQL."""
    decision = decide(request)
    if decision.allowed:
        return as_sql(decision, types)
    denied, allowed = dict[str, tuple[str, ...]](), list[str]()
    for column in sorted(request.columns or ()):
        alone = decide(replace(request, columns=frozenset({column})))
        if alone.allowed:
            allowed.append(column)
        else:
            denied[column] = alone.apply_for
    rest = decide(replace(request, columns=frozenset(allowed))) if allowed else decision
    if not rest.allowed:
        return SqlDecision(apply_for=decision.apply_for)
    found = as_sql(rest, types)
    return replace(found, denied={**found.denied, **denied})
