"""The merge plan: how the rows of one key become one row, as data that Python and the connector interpret.

Source: Paimon's merge functions (`DeduplicateMergeFunction`, `FirstRowMergeFunction`,
`PartialUpdateMergeFunction`, `AggregateMergeFunction`) and its field aggregators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypedDict, cast

from lockgate.errors import InputError, UnsupportedError, nearest
from lockgate.framework.store.merge.merge_functions import FUNCTIONS, LAST, SEQUENCE, SET, function_of

KEY_PREFIX = "_KEY_"
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"

DEDUPLICATE = "deduplicate"
FIRST_ROW = "first-row"
PARTIAL_UPDATE = "partial-update"
AGGREGATION = "aggregation"
ENGINES = (DEDUPLICATE, FIRST_ROW, PARTIAL_UPDATE, AGGREGATION)


class ColumnMergeJson(TypedDict):
    """A `ColumnMerge` in JSON; each key is there, null where the column has nothing of the kind."""

    name: str
    function: str
    group: int | None
    ignore_retract: bool
    distinct: bool
    delimiter: str
    nested_key: list[str]
    null_keys: str
    nested_sequence: list[str]
    limit: int | None
    time_field: str | None


class SequenceGroupJson(TypedDict):
    """A `SequenceGroup` in JSON."""

    columns: list[str]
    removes: bool


class MergePlanJson(TypedDict):
    """A `MergePlan` in JSON, and whether the deletions among the rows that are left are kept."""

    engine: str
    key: list[str]
    sequence: list[str]
    descending: list[str]
    kind: str
    columns: list[ColumnMergeJson]
    groups: list[SequenceGroupJson]
    ignore_delete: bool
    remove_on_delete: bool
    keep_deletes: bool


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
        return self.ignore_retract or self.function == SEQUENCE or function_of(self.function).retracts

    def to_json(self) -> ColumnMergeJson:
        """Return the JSON of a plan's column."""
        return {
            "name": self.name,
            "function": self.function,
            "group": self.group,
            "ignore_retract": self.ignore_retract,
            "distinct": self.distinct,
            "delimiter": self.delimiter,
            "nested_key": list(self.nested_key),
            "null_keys": self.null_keys,
            "nested_sequence": list(self.nested_sequence),
            "limit": self.limit,
            "time_field": self.time_field,
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> ColumnMerge:
        """Read what `to_json` wrote; InputError for anything else."""
        _check_keys("a column of a merge plan", json, ColumnMergeJson)
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

    def to_json(self) -> SequenceGroupJson:
        """Return the JSON of a plan's group."""
        return {"columns": list(self.columns), "removes": self.removes}

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> SequenceGroup:
        """Read what `to_json` wrote; InputError for anything else."""
        _check_keys("a group of a merge plan", json, SequenceGroupJson)
        return cls(tuple(json["columns"]), json["removes"])


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
        functions = {LAST} if self.picks_rows else {LAST, *FUNCTIONS}
        functions |= {SET, SEQUENCE} if self.engine == PARTIAL_UPDATE else set()
        for column in self.columns:
            if column.function not in functions:
                raise UnsupportedError(
                    f"column {column.name!r}: merge function {column.function!r} is not supported by engine "
                    f"{self.engine!r}; supported: {', '.join(sorted(functions))}"
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

    def to_json(self, *, keep_deletes: bool = False) -> MergePlanJson:
        """Return the JSON that the connector reads; `keep_deletes`: keys that end as a deletion keep it."""
        return {
            "engine": self.engine,
            "key": list(self.key),
            "sequence": list(self.sequence),
            "descending": list(self.descending),
            "kind": self.kind,
            "columns": [column.to_json() for column in self.columns],
            "groups": [group.to_json() for group in self.groups],
            "ignore_delete": self.ignore_delete,
            "remove_on_delete": self.remove_on_delete,
            "keep_deletes": keep_deletes,
        }

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> MergePlan:
        """Read what `to_json` wrote, except for `keep_deletes`; InputError for anything else."""
        _check_keys("a merge plan", json, MergePlanJson)
        plan = cast(MergePlanJson, json)
        return cls(
            engine=plan["engine"],
            key=tuple(plan["key"]),
            sequence=tuple(plan["sequence"]),
            descending=tuple(plan["descending"]),
            kind=plan["kind"],
            columns=tuple(ColumnMerge.from_json(column) for column in plan["columns"]),
            groups=tuple(SequenceGroup.from_json(group) for group in plan["groups"]),
            ignore_delete=plan["ignore_delete"],
            remove_on_delete=plan["remove_on_delete"],
        )


def _check_keys(what: str, json: Mapping[str, Any], declared: type) -> None:
    """Refuse JSON that lacks a key, which no default may hide, or has one that nobody reads."""
    names = tuple(declared.__annotations__)
    for name in json:
        if name not in names:
            raise InputError(f"{what} has no {name!r}{nearest(name, names)}")
    for name in names:
        if name not in json:
            raise InputError(f"{what} lacks {name!r}")
