"""Predicates as the reader needs them: an Arrow expression, and the columns it looks at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def expression_of(predicate: Any, schema: pa.Schema) -> pc.Expression:
    """The Arrow expression that filters rows of `schema` by `predicate`."""
    if isinstance(predicate, pc.Expression):
        return predicate
    from lockgate.pushdown import to_arrow_expression

    return to_arrow_expression(predicate, schema)


def columns_of(predicate: Any) -> list[str] | None:
    """The top-level columns that `predicate` looks at; None for an Arrow expression, which does not say."""
    if isinstance(predicate, pc.Expression):
        return None
    names: list[str] = []
    pending = [predicate]
    while pending:
        part = pending.pop()
        if hasattr(part, "field"):
            names.append(part.field[0])
        pending.extend(getattr(part, "children", ()))
        child = getattr(part, "child", None)
        if child is not None:
            pending.append(child)
    return names
