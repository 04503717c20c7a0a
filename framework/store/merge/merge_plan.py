"""The merge plan: how the rows of one key become one row, as data that Python and the connector interpret.

Source: Paimon's merge functions (`DeduplicateMergeFunction`, `FirstRowMergeFunction`,
`PartialUpdateMergeFunction`, `AggregateMergeFunction`) and its field aggregators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from lockgate.errors import InputError, UnsupportedError, nearest

KEY_PREFIX = "_KEY_"
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"

DEDUPLICATE = "deduplicate"
FIRST_ROW = "first-row"
PARTIAL_UPDATE = "partial-update"
AGGREGATION = "aggregation"
ENGINES = (DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, AGGREGATION)

# Functions that take back what a row with -U or -D says.
RETRACTABLE = frozenset(
    {"last_value", "last_non_null_value", "sum", "product", "collect", "merge_map", "nested_update"}
)
FUNCTIONS = RETRACTABLE | {
    *("first_value", "first_non_null_value", "max", "min", "bool_and", "bool_or", "listagg"),
    *("merge_map_with_keytime", "nested_partial_update"),
}
# Those that plans name and options do not: a key's own columns, columns of a group without a function, and
# the columns that order a group.
LAST = "last"
SET = "set"
SEQUENCE = "sequence"
_OF_ENGINES = {
    DEDUPLICATE: frozenset({LAST}),
    FIRST_ROW: frozenset({LAST}),
    PARTIAL_UPDATE: FUNCTIONS | {LAST, SET, SEQUENCE},
    AGGREGATION: FUNCTIONS | {LAST},
}


class RowKind(IntEnum):
    """Kinds of rows, by what one does to its key."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


@dataclass(frozen=True)
class ColumnMerge:
    """The merge of one column: how its values become one.

    `function` is one of `FUNCTIONS`, "last" (the newest row's value), "set" (of the newest row of its group)
    or "sequence" (a column that orders a group). `group` is the number of its group in the plan. The others
    are options of functions: `distinct` (collect, listagg), `delimiter` (listagg), `nested_key`, `null_keys`
    (merge, ignore or error), `nested_sequence`, `limit` (nested_update), `time_field`
    (merge_map_with_keytime; None: the last field).
    """

    name: str
    function: str = LAST
    group: int | None = None
    ignore_retract: bool = False
    distinct: bool = False
    delimiter: str = ","
    nested_key: tuple[str, ...] = ()
    null_keys: str = "merge"
    nested_sequence: tuple[str, ...] = ()
    limit: int | None = None
    time_field: str | None = None

    @property
    def takes_retracts(self) -> bool:
        """Say whether a row with -U or -D may reach the column."""
        of_plan = self.function in (LAST, SET, SEQUENCE)
        return of_plan or self.ignore_retract or self.function in RETRACTABLE

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a plan's column; options that are not set are left out."""
        found: dict[str, Any] = {"name": self.name, "function": self.function}
        for each in fields(self)[2:]:
            value = getattr(self, each.name)
            if value != each.default:
                found[each.name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> ColumnMerge:
        """Read what `to_json` wrote; InputError for what it would not write."""
        names = {each.name for each in fields(cls)}
        for name in json:
            if name not in names:
                raise InputError(f"a column of a merge plan has no {name!r}{nearest(name, names)}")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in json.items()
        }
        return cls(**values)


@dataclass(frozen=True)
class SequenceGroup:
    """Columns that say which row is newest for the columns of one group.

    They are compared one after the other, nulls first; a row in which all are null does not touch the group.
    With `removes`, a -D that is newest in the group removes the whole row.
    """

    columns: tuple[str, ...]
    removes: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON of a plan's group."""
        return {"columns": list(self.columns), "removes": self.removes}


@dataclass(frozen=True)
class MergePlan:
    """The merge of rows with one key into one row.

    `key`, `sequence` and `kind` name columns of the files: rows are equal by `key`, newer by `sequence`, and
    retract by `kind` 1 (-U) and 3 (-D). The columns of `sequence` are compared one after the other: the
    larger value is newer, for those that `descending` names too the smaller one, and a null is the oldest in
    any case. NaN is larger than all numbers, -0.0 equals 0.0, texts and bytes compare by bytes.

    `engine` says what the rows of a key, from old to new, become: the newest of them ("deduplicate"), the
    oldest ("first-row"), or a row put together of all, column by column as `columns` say ("partial-update",
    "aggregation"). A row that is alone with its key stays as it is, whatever the engine. With
    `ignore_delete`, rows that retract are passed over (not by "aggregation"); with `remove_on_delete`, a -D
    removes the row and the next one begins with the values of the deletion.
    """

    key: tuple[str, ...]
    columns: tuple[ColumnMerge, ...]
    sequence: tuple[str, ...] = (SEQUENCE_NUMBER,)
    kind: str = VALUE_KIND
    engine: str = DEDUPLICATE
    descending: tuple[str, ...] = ()
    groups: tuple[SequenceGroup, ...] = ()
    ignore_delete: bool = False
    remove_on_delete: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnsupportedError(
                f"merge engine {self.engine!r} is not supported{nearest(self.engine, ENGINES)}; supported: "
                f"{', '.join(ENGINES)}"
            )
        for column in self.columns:
            if column.function not in _OF_ENGINES[self.engine]:
                raise UnsupportedError(
                    f"column {column.name!r}: merge function {column.function!r} is not supported by engine "
                    f"{self.engine!r}; supported: {', '.join(sorted(_OF_ENGINES[self.engine]))}"
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

    @property
    def picks_rows(self) -> bool:
        """Say whether what is left of a key is one of its rows; else it is put together of several."""
        return self.engine in (DEDUPLICATE, FIRST_ROW)

    @property
    def reads_all_rows(self) -> bool:
        """Say whether older rows of a key say something that its newest row does not."""
        return self.engine != DEDUPLICATE or self.ignore_delete

    def companions(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that must be merged along with `names`: those that order their groups."""
        wanted = set(names)
        of_columns = {column.group for column in self.columns if column.name in wanted}
        chosen = [group for number, group in enumerate(self.groups) if group.removes or number in of_columns]
        every = dict.fromkeys(name for group in chosen for name in group.columns)
        return tuple(name for name in every if name not in wanted)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON the connector interprets; what other engines need is left out where it is off."""
        plan: dict[str, Any] = {
            "engine": self.engine,
            "key": list(self.key),
            "sequence": list(self.sequence),
            "descending": list(self.descending),
            "kind": self.kind,
            "columns": [column.to_json() for column in self.columns],
        }
        if self.groups:
            plan["groups"] = [group.to_json() for group in self.groups]
        plan |= {name: True for name in ("ignore_delete", "remove_on_delete") if getattr(self, name)}
        return plan

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
                columns=tuple(ColumnMerge.from_json(column) for column in json["columns"]),
                groups=tuple(
                    SequenceGroup(tuple(group["columns"]), group["removes"])
                    for group in json.get("groups", ())
                ),
                ignore_delete=json.get("ignore_delete", False),
                remove_on_delete=json.get("remove_on_delete", False),
            )
        except KeyError as missing:
            raise InputError(f"a merge plan lacks {missing}") from None
