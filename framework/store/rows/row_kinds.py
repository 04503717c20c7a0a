"""Kinds of rows for a key table: written, ignored or refused.

A retraction that the table's engine does not support would make the table unreadable, so it is refused before
it is stored. Source: Paimon's `RowKindGenerator` and `RowKindFilter`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework import options as table_options
from lockgate.framework.store.merge.merge_options import ignores_deletes, merge_plan
from lockgate.framework.store.merge.merge_plan import (
    AGGREGATION,
    DEDUPLICATE,
    FIRST_ROW,
    PARTIAL_UPDATE,
    MergePlan,
    RowKind,
)
from lockgate.framework.store.schema.schema import TableSchema

TEXTS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
_RETRACTS = (RowKind.UPDATE_BEFORE, RowKind.DELETE)


class KindsJson(TypedDict):
    """The rows that are admitted by their kinds; `column` holds the kind, null: rows are insertions."""

    column: str | None
    dropped: list[int]
    refused: dict[str, str]


@dataclass(frozen=True)
class KindPolicy:
    """Treatment of rows by their kind; kinds that are neither dropped nor refused are written.

    `column` holds the kind of each row as a text, None if rows come with their kinds; `refused` says why.
    """

    column: str | None
    dropped: frozenset[RowKind]
    refused: Mapping[RowKind, str]

    def to_json(self) -> KindsJson:
        """Return the JSON by which the connector admits rows."""
        return {
            "column": self.column,
            "dropped": sorted(map(int, self.dropped)),
            "refused": {str(int(kind)): reason for kind, reason in self.refused.items()},
        }

    def admitted(self, rows: pa.Table, kinds: pa.Array | None) -> tuple[pa.Table, pa.Array | None]:
        """Return the rows to be written and their kinds; InputError for one that the table cannot take."""
        if kinds is None:
            if self.column is None:
                return rows, None
            kinds = _kinds_of(rows[self.column], self.column)
        values = kinds.to_numpy(zero_copy_only=False)
        for kind, reason in self.refused.items():
            if (values == int(kind)).any():
                raise InputError(reason)
        dropped = np.isin(values, [int(kind) for kind in self.dropped])
        if not dropped.any():
            return rows, kinds
        kept = pa.array(~dropped)
        return rows.filter(kept), kinds.filter(kept)


def _kinds_of(column: pa.ChunkedArray, name: str) -> pa.Array:
    places = pc.index_in(column, pa.array(list(TEXTS)))
    if places.null_count:
        wrong = column.filter(places.is_null())[0].as_py()
        raise InputError(
            f"column {name!r} says the kind of each row by +I, -U, +U or -D, not by {_shown(wrong)}"
        )
    numbers = pa.array([int(kind) for kind in TEXTS.values()], pa.int8())
    found = numbers.take(places.combine_chunks() if isinstance(places, pa.ChunkedArray) else places)
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _shown(text: str | None) -> str:
    """Say what stands there without telling a value that may be meant for another column."""
    return "a null" if text is None else f"a text of {len(text)} characters"


def kind_policy(schema: TableSchema) -> KindPolicy:
    """Return what becomes of rows that are written to a table; for one without a key, all are written."""
    plan = merge_plan(schema)
    if plan is None:
        return KindPolicy(None, frozenset(), {})
    options = schema.table_options
    dropped = set(_RETRACTS) if ignores_deletes(schema) else set()
    if options.get_option(table_options.IGNORE_UPDATE_BEFORE):
        dropped.add(RowKind.UPDATE_BEFORE)
    reasons = ((kind, _why_refused(plan, kind)) for kind in _RETRACTS if kind not in dropped)
    refused = {kind: reason for kind, reason in reasons if reason}
    return KindPolicy(options.get_option(table_options.ROWKIND_FIELD) or None, frozenset(dropped), refused)


def _why_refused(plan: MergePlan, kind: RowKind) -> str | None:
    sign = {number: text for text, number in TEXTS.items()}[kind]
    if plan.engine == FIRST_ROW:
        return (
            f"merge engine {plan.engine!r} takes no row of kind {sign}: option 'ignore-delete' = 'true' has "
            "such rows passed over"
        )
    if plan.engine == PARTIAL_UPDATE and not plan.groups and not plan.remove_on_delete:
        return (
            f"merge engine {plan.engine!r} takes no row of kind {sign} without sequence groups: set option "
            "'partial-update.remove-record-on-delete' = 'true' to have such rows remove theirs, or "
            "'ignore-delete' = 'true' to have them passed over"
        )
    if plan.picks_rows or (plan.remove_on_delete and (plan.engine != AGGREGATION or kind is RowKind.DELETE)):
        return None
    stuck = [column for column in plan.columns if not column.takes_retracts]
    if not stuck:
        return None
    named = ", ".join(f"{column.name} ({column.function})" for column in stuck)
    return (
        f"a row of kind {sign} cannot be taken back from columns {named}: set option "
        f"'fields.{stuck[0].name}.ignore-retract' = 'true', and so on, to leave them as they are"
    )


def why_no_statement(schema: TableSchema) -> dict[str, str]:
    """Say why statements that change rows one by one would not do what they say; empty if they do.

    DELETE writes a row of kind -D, UPDATE and MERGE the new row of a key: only an engine that makes these the
    row of the key does what they say.
    """
    plan = merge_plan(schema)
    if plan is None or (plan.engine == DEDUPLICATE and not plan.ignore_delete):
        return {}
    engine = f"merge engine {plan.engine!r}"
    merged = f"{engine} merges a row that is written with those that are there; INSERT what is to be merged"
    reasons = {}
    if plan.engine != DEDUPLICATE:
        reasons = {
            "UPDATE": f"UPDATE is not supported: {merged}",
            "MERGE": f"MERGE is not supported: {merged}",
        }
    elif plan.ignore_delete:
        reasons["MERGE"] = "MERGE is not supported: the table passes over deletions ('ignore-delete')"
    if plan.ignore_delete or ignores_deletes(schema):
        reasons["DELETE"] = "DELETE is not supported: the table passes over deletions ('ignore-delete')"
    elif not plan.remove_on_delete:
        reasons["DELETE"] = (
            f"DELETE is not supported: with {engine} a deletion does not remove the row; option "
            "'remove-record-on-delete' of partial-update and aggregation has it do so"
        )
    return reasons


def check_deletable(schema: TableSchema) -> None:
    """Raise UnsupportedError if a row of kind -D does not delete the row of its key."""
    reason = why_no_statement(schema).get("DELETE")
    if reason:
        raise UnsupportedError(reason)
