"""The merge: what becomes of the rows of one key in several files.

How rows merge is written once, as a `MergePlan`; this module interprets it on Arrow tables, the connector's
`RowMerge` interprets the same plan on pages of columns, from which it picks rows without copying them, and
both pass the fixtures in `tests/fixtures/merge`.

Source: Paimon's specification, page "DataFile", and `DeduplicateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.options import table_options as known
from lockgate.framework.store.rows.grouping import Codes, group_codes, last_of_each
from lockgate.framework.store.rows.row_order import by_sequence
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_readable

KEY_PREFIX = "_KEY_"
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"


class RowKind(IntEnum):
    """What a row does to its key."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


@dataclass(frozen=True)
class MergePlan:
    """How the rows of one key become one row.

    `key`, `sequence` and `kind` name columns of the files: rows are equal by `key`, newer by `sequence`, and
    vanish by `kind` 1 (-U) and 3 (-D). The columns of `sequence` are compared one after the other: the larger
    value is newer, for those that `descending` names too the smaller one, and a null is the oldest in any
    case. NaN is larger than all numbers, -0.0 equals 0.0, texts and bytes compare by bytes. `columns` gives
    for each value column the function that makes its value: "last", the newest row's.
    """

    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    sequence: tuple[str, ...] = (SEQUENCE_NUMBER,)
    kind: str = VALUE_KIND
    engine: str = "deduplicate"
    descending: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.engine != "deduplicate":
            raise UnsupportedError(f"merge engine {self.engine!r} is not supported; supported: deduplicate")
        for name, function in self.columns:
            if function != "last":
                raise UnsupportedError(
                    f"column {name!r}: merge function {function!r} is not supported; supported: last"
                )
        if not self.key or not self.sequence:
            raise InputError("a merge plan needs key and sequence columns")
        others = [name for name in self.descending if name not in self.sequence]
        if others:
            raise InputError(f"descending columns {', '.join(others)} are not among the sequence columns")

    @property
    def system_columns(self) -> tuple[str, ...]:
        """The columns that rows are merged by; columns of `sequence.field` are value columns too."""
        return (*self.key, *self.sequence, self.kind)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON the connector interprets."""
        return {
            "engine": self.engine,
            "key": list(self.key),
            "sequence": list(self.sequence),
            "descending": list(self.descending),
            "kind": self.kind,
            "columns": [{"name": name, "function": function} for name, function in self.columns],
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> MergePlan:
        """Read what `to_json` wrote; InputError if a part is missing."""
        try:
            return cls(
                engine=json["engine"],
                key=tuple(json["key"]),
                sequence=tuple(json["sequence"]),
                descending=tuple(json["descending"]),
                kind=json["kind"],
                columns=tuple((column["name"], column["function"]) for column in json["columns"]),
            )
        except KeyError as missing:
            raise InputError(f"a merge plan lacks {missing}") from None


def merge_plan(schema: TableSchema) -> MergePlan | None:
    """Return the merge plan of a table, None for one without a primary key.

    Raises UnsupportedError for merge engines and options whose meaning is not implemented: merging them as
    something else would return wrong rows.
    """
    if not schema.has_primary_key:
        return None
    check_readable(schema)
    fields = schema.sequence_fields
    reason = why_no_sequence(schema)
    if reason:
        raise UnsupportedError(f"option {known.SEQUENCE_FIELD.key!r}: {reason}")
    descending = schema.table_options.get_option(known.SEQUENCE_ORDER) == "descending"
    return MergePlan(
        engine=schema.table_options.get_option(known.MERGE_ENGINE),
        key=tuple(KEY_PREFIX + name for name in schema.trimmed_primary_keys),
        sequence=(*fields, SEQUENCE_NUMBER),
        descending=fields if descending else (),
        columns=tuple((name, "last") for name in schema.field_names),
    )


def why_no_sequence(schema: TableSchema) -> str | None:
    """Say why rows cannot be ordered by the columns of `sequence.field`; None if they can."""
    for name in schema.sequence_fields:
        if name not in schema.field_names:
            return f"there is no column {name!r}{nearest(name, schema.field_names)}"
        kind = schema.field(name).type
        if kind.is_nested:
            return f"values of column {name!r} of type {kind} have no order"
    return None


def merge_tables(
    plan: MergePlan, tables: Sequence[pa.Table], *, ordered: bool = False, keep_deletes: bool = False
) -> pa.Table:
    """Merge tables, given in commit order, to one row a key.

    The row with the highest sequence wins, on equal sequences the later one; a key whose winner is a deletion
    vanishes, unless `keep_deletes`. All columns of the inputs are kept. With `ordered`, the rows are sorted
    by key, as data files need them; else their order is unspecified.
    """
    table = pa.concat_tables(tables)
    codes, count = group_codes([table[name] for name in plan.key], table.num_rows)
    winners = last_of_each(codes, count, _by_age(plan, tables, codes, count))
    if not keep_deletes:
        winners = winners[_living(table[plan.kind], winners)]
    merged = table.take(pa.array(winners)) if len(winners) < table.num_rows else table
    return sort_by_key(merged, plan.key) if ordered else merged


def sort_by_key(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort by key columns: numbers by value, text and bytes by their bytes."""
    if len(key) == 1:
        return table.take(pc.sort_indices(table[key[0]].combine_chunks()))
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in key]))


def _by_age(plan: MergePlan, tables: Sequence[pa.Table], codes: Codes, count: int) -> Codes | None:
    """Return the positions of all rows so that of each key's the newest is last; None if they are so."""
    if len(plan.sequence) > 1 or plan.descending:
        every = pa.concat_tables(tables).select(list(dict.fromkeys(plan.sequence)))
        return by_sequence(every, plan.sequence, plan.descending, codes, count)
    parts = [_numbers(table[plan.sequence[0]]) for table in tables]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    spans = [(part.min(), part.max(), place) for place, part in enumerate(parts) if len(part)]
    spans.sort()
    apart = all(before[1] < after[0] for before, after in pairwise(spans))
    if not apart:
        return np.argsort(np.concatenate(parts), kind="stable").astype(np.int64)
    # Files of different commits: whole files are older or newer, and mostly no key comes twice in one.
    order = []
    for _, _, place in spans:
        positions = np.arange(starts[place], starts[place + 1], dtype=np.int64)
        if _has_repeats(codes[positions[0] : positions[-1] + 1], count):
            positions = positions[np.argsort(parts[place], kind="stable")]
        order.append(positions)
    return np.concatenate(order) if order else None


def _has_repeats(codes: Codes, count: int) -> bool:
    seen = np.full(count, -1, dtype=np.int64)
    places = np.arange(len(codes), dtype=np.int64)
    seen[codes] = places
    return bool((seen[codes] != places).any())


def _living(kinds: pa.ChunkedArray, winners: Any) -> Any:
    values = _numbers(kinds)[winners]
    return (values != RowKind.DELETE) & (values != RowKind.UPDATE_BEFORE)


def _numbers(column: pa.ChunkedArray) -> Any:
    if column.null_count:
        raise InputError("sequence numbers and kinds of rows cannot be null")
    return column.to_numpy()
