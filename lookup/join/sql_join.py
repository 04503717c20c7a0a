"""The lookup join in SQL: `JOIN lake.db.dim FOR SYSTEM_TIME AS OF o.proc_time AS d ON ...`.

The connector finds the joins of a statement and takes their conditions apart; this module decides what
`lookup_join` makes of each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from lockgate.errors import InputError, UnsupportedError
from lockgate.framework.plugins import BridgeContext
from lockgate.lookup.spec.lookup_options import hint_options
from lockgate.pushdown import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Comparison,
    Not,
    Op,
    Or,
    Predicate,
    all_of,
    from_json,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockgate.framework.store import Table

# They mean something else in Spark.
_NOT_SPARKS = frozenset({Op.RLIKE, Op.MATCH})


class TableCondition(TypedDict):
    """A condition on the table alone, and the table's columns in it."""

    condition: Any
    columns: list[str]


class SqlJoin(TypedDict):
    """A lookup join of a statement.

    `handle` is the name of the stream, a DataFrame of the JVM. `table` has its catalog, its databases and its
    name; `alias` is how the statement calls it. `how` is Spark's word for the join. `keys` has the columns of
    the stream by the table's columns that they equal, `columns` names what the statement uses of the table.
    Each of `others` names the columns of a condition that only joined rows can meet.
    """

    handle: str
    table: list[str]
    alias: str
    how: str
    keys: dict[str, str]
    columns: list[str]
    conditions: list[TableCondition]
    others: list[str]
    options: dict[str, str]


class SqlJoinAnswer(TypedDict):
    """The names of the table's columns in the join, and the conditions that its rows still have to meet."""

    columns: dict[str, str]
    kept: list[int]


def join_of_statement(context: BridgeContext, request: SqlJoin) -> SqlJoinAnswer:
    """Plan a lookup join of a statement: the operation `lookup.join`.

    Raises InputError and UnsupportedError for what a lookup cannot do, with what to write instead,
    OptionError for an unknown option of a hint, and what `lookup_join` raises.
    """
    from lockgate.lookup.join.join import dimension_of, lookup_join

    _check_kind(request)
    name = ".".join(request["table"])
    table = dimension_of(context.spark, name)
    _check_keys(request, table)
    cached, kept = _divided(request["conditions"])
    others = [*request["others"], *(", ".join(request["conditions"][number]["columns"]) for number in kept)]
    _check_others(request, table, others)
    stream = _offered(context, request["handle"])
    used = [*request["columns"], *(each for n in kept for each in request["conditions"][n]["columns"])]
    names = _names(used or list(request["keys"])[:1], stream.columns)
    joined = lookup_join(
        stream,
        name,
        on={ours: theirs for theirs, ours in request["keys"].items()},
        how=request["how"],
        select={new: column for column, new in names.items()},
        where=all_of(*cached) if cached else None,
        options=hint_options(request["options"]),
    )
    _frames(context).answer(request["handle"], joined._jdf)
    return {"columns": names, "kept": kept}


def _divided(conditions: Iterable[TableCondition]) -> tuple[list[Predicate], list[int]]:
    """Return the conditions that the cache's rows meet, and the numbers of those that it cannot ask."""
    cached: list[Predicate] = []
    kept: list[int] = []
    for number, each in enumerate(conditions):
        predicate = from_json(each["condition"])
        if predicate is None or not _is_sparks(predicate):
            kept.append(number)
        else:
            cached.append(predicate)
    return cached, kept


def _is_sparks(predicate: Predicate) -> bool:
    match predicate:
        case And(children) | Or(children):
            return all(map(_is_sparks, children))
        case Not(child):
            return _is_sparks(child)
        case Comparison():
            return predicate.op not in _NOT_SPARKS
        case AlwaysTrue() | AlwaysFalse():
            return True
    return False


def _names(columns: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Return a name for each of the table's columns that no column of the stream has."""
    others = {name.lower() for name in taken}
    names: dict[str, str] = {}
    for column in dict.fromkeys(columns):
        name, number = f"dim_{column}", 1
        while name.lower() in others:
            number += 1
            name = f"dim_{column}_{number}"
        others.add(name.lower())
        names[column] = name
    return names


# --- the JVM's DataFrames -----------------------------------------------------------------------------


def _frames(context: BridgeContext) -> Any:
    return context.spark._jvm.io.lockgate.spark.rules.joins.JoinFrames


def _offered(context: BridgeContext, handle: str) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(_frames(context).find(handle), context.spark)


# --- what a lookup cannot do --------------------------------------------------------------------------


def _check_kind(request: SqlJoin) -> None:
    how, alias = request["how"], request["alias"]
    if how in ("inner", "left"):
        return
    instead = {
        "right": f"{alias} LEFT JOIN the stream, without the clause",
        "full": "a FULL JOIN without the clause",
        "left semi": f"JOIN, or LEFT JOIN with WHERE {alias}.<key> IS NOT NULL",
        "left anti": f"LEFT JOIN with WHERE {alias}.<key> IS NULL",
    }
    raise InputError(
        f"FOR SYSTEM_TIME AS OF does not go with {how.upper()} JOIN: a lookup asks {alias} for each row of "
        f"the stream, and keeps rows of the stream only; write {instead.get(how, 'JOIN or LEFT JOIN')}"
    )


def _check_keys(request: SqlJoin, table: Table) -> None:
    if request["keys"]:
        return
    alias = request["alias"]
    keys = table.schema.primary_keys or table.schema.field_names[:1]
    example = " AND ".join(f"o.k{number} = {alias}.{key}" for number, key in enumerate(keys, 1))
    also = (
        f" (its primary key is {', '.join(table.schema.primary_keys)})" if table.schema.primary_keys else ""
    )
    raise InputError(
        f"the condition after ON has no equality of a column of {alias}{also} with the stream, by which a "
        f"lookup finds rows: write ON {example}, where o is the stream"
    )


def _check_others(request: SqlJoin, table: Table, others: list[str]) -> None:
    if not others or request["how"] == "inner" or set(request["keys"]) == set(table.schema.primary_keys):
        return
    missing = [key for key in table.schema.primary_keys if key not in request["keys"]]
    why = f"the equalities leave out {', '.join(missing)} of its primary key" if missing else "it has no key"
    raise UnsupportedError(
        f"a LEFT lookup join that may find several rows of {request['alias']} ({why}) cannot ask them for "
        f"the condition on {others[0]}: a cache answers comparisons of one column with constants only. Write "
        "JOIN, or join by the primary key"
    )
