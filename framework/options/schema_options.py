"""The options of a table that say how its schema follows that of new data."""

from __future__ import annotations

from lockgate.framework.options.option import Option, one_of

REFUSE_TYPE_CHANGE, KEEP_HISTORY = "refuse", "history"

ON_TYPE_CHANGE = Option(
    "schema.on-type-change",
    one_of(REFUSE_TYPE_CHANGE, KEEP_HISTORY),
    REFUSE_TYPE_CHANGE,
    "action of `merge_schema` where old values do not fit a new type: refuse, or history (rename the column)",
)
