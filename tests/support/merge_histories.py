"""Random rows of a few keys and the plans of all engines, for the merges of both languages."""

from __future__ import annotations

from random import Random
from typing import Any

from merge_model import Row, merged

from lockgate.framework.store.merge.merge_plan import ColumnMerge, MergePlan, SequenceGroup

COLUMNS = {
    "_KEY_k": "integer",
    "_SEQUENCE_NUMBER": "long",
    "_VALUE_KIND": "byte",
    "k": "integer",
    "a": "integer",
    "b": "string",
    "c": "long",
    "d": "boolean",
    "g": "integer",
    "h": "integer",
}
_KEY = ColumnMerge("k")


def _plan(engine: str, functions: dict[str, Any], **more: Any) -> MergePlan:
    columns = [_KEY]
    for name in "abcdgh":
        chosen = functions.get(
            name, "last" if engine in ("deduplicate", "first-row") else "last_non_null_value"
        )
        columns.append(chosen if isinstance(chosen, ColumnMerge) else ColumnMerge(name, chosen))
    return MergePlan(("_KEY_k",), tuple(columns), engine=engine, **more)


def _grouped(functions: dict[str, str], *, removes: bool = False) -> MergePlan:
    """Groups: g orders a and b, h and then c orders d."""
    of = {"a": 0, "b": 0, "g": 0, "d": 1, "h": 1, "c": 1}
    order = {"g": "sequence", "h": "sequence", "c": "sequence"}
    columns = {
        name: ColumnMerge(name, order.get(name, functions.get(name, "set")), group)
        for name, group in of.items()
    }
    return _plan(
        "partial-update", columns, groups=(SequenceGroup(("g",), removes), SequenceGroup(("h", "c")))
    )


def _ignoring(name: str, function: str) -> ColumnMerge:
    return ColumnMerge(name, function, ignore_retract=True)


# Each plan with the kinds of rows that it takes.
ALL = (0, 0, 0, 1, 2, 3)
ADDS = (0, 0, 2)
PLANS: dict[str, tuple[MergePlan, tuple[int, ...]]] = {
    "deduplicate": (_plan("deduplicate", {}), ALL),
    "deduplicate ignoring": (_plan("deduplicate", {}, ignore_delete=True), ALL),
    "first-row": (_plan("first-row", {}), ADDS),
    "first-row ignoring": (_plan("first-row", {}, ignore_delete=True), ALL),
    "partial": (_plan("partial-update", {}), ADDS),
    "partial ignoring": (_plan("partial-update", {}, ignore_delete=True), ALL),
    "partial removing": (_plan("partial-update", {}, remove_on_delete=True), ALL),
    "groups": (_grouped({}), ALL),
    "groups removing": (_grouped({}, removes=True), ALL),
    "groups with functions": (_grouped({"a": "sum", "b": "last_non_null_value", "d": "last_value"}), ALL),
    "groups that only add": (_grouped({"a": "first_value", "b": "listagg", "d": "bool_or"}), ADDS),
    "groups that add more": (_grouped({"a": "max", "b": "first_non_null_value", "d": "bool_and"}), ADDS),
    "sums": (_plan("aggregation", {"a": "sum", "b": "last_value", "c": "sum"}), ALL),
    "sums removing": (_plan("aggregation", {"a": "sum", "c": "sum"}, remove_on_delete=True), ALL),
    "others": (
        _plan("aggregation", {"a": "max", "b": "listagg", "c": "min", "d": "bool_and", "g": "first_value"}),
        ADDS,
    ),
    "ignoring retracts": (
        _plan(
            "aggregation",
            {
                "a": _ignoring("a", "first_non_null_value"),
                "b": _ignoring("b", "listagg"),
                "c": _ignoring("c", "max"),
                "d": _ignoring("d", "bool_or"),
            },
        ),
        ALL,
    ),
}


def history(random: Random, kinds: tuple[int, ...]) -> list[list[Row]]:
    """Return some inputs of rows sorted by key; sequence numbers rise in each key, but not over inputs."""
    numbers = random.sample(range(100), 40)
    inputs = []
    for _ in range(random.randint(1, 4)):
        keys = sorted(random.choices(range(4), k=random.randint(0, 6)))
        rows = [_row(random, key, numbers.pop(), kinds) for key in keys]
        inputs.append(sorted(rows, key=lambda row: (row["k"], row["_SEQUENCE_NUMBER"])))
    return inputs


def _row(random: Random, key: int, number: int, kinds: tuple[int, ...]) -> Row:
    def some(values: list[Any]) -> Any:
        return None if random.random() < 0.3 else random.choice(values)

    return {
        "_KEY_k": key,
        "_SEQUENCE_NUMBER": number,
        "_VALUE_KIND": random.choice(kinds),
        "k": key,
        "a": some([-3, 0, 7, 100]),
        "b": some(["", " ", "x", "zé"]),
        "c": some([-(2**40), 0, 5]),
        "d": some([True, False]),
        "g": some([1, 2, 3]),
        "h": some([1, 2]),
    }


def expected(plan: MergePlan, inputs: list[list[Row]]) -> list[list[Any]]:
    """Return the value columns of the rows that are left, by the plain model."""
    every = sorted((row for rows in inputs for row in rows), key=lambda row: row["_SEQUENCE_NUMBER"])
    left = [merged(plan, [row for row in every if row["k"] == key]) for key in {row["k"] for row in every}]
    names = list(COLUMNS)[3:]
    return sorted([row[name] for name in names] for row in left if row is not None)
