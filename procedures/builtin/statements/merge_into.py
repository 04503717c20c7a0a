"""`merge_into`: SQL's MERGE with the arguments of Paimon's procedure for Flink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from lockgate.errors import InputError
from lockgate.framework.store import Table
from lockgate.procedures.builtin.statements.row_counts import RowCounts
from lockgate.procedures.procedure import ProcedureContext
from lockgate.procedures.typed_procedure import TypedProcedure

_EVERYTHING = "*"
_CONDITIONS = (
    "merge_condition",
    "matched_upsert_condition",
    "matched_delete_condition",
    "not_matched_insert_condition",
    "not_matched_by_source_upsert_condition",
    "not_matched_by_source_delete_condition",
)
_TEMPORARY_VIEWS = ("CreateViewCommand", "CreateTempViewUsing")
_PIECE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|[^;]""", re.DOTALL)


@dataclass(frozen=True)
class _Merge:
    """A MERGE statement, and the query that counts what it would do."""

    statement: str
    count: str
    clauses: tuple[int, int, int]


@dataclass(frozen=True)
class _Arguments:
    target_table: Annotated[str, "the table to change"]
    target_alias: Annotated[str | None, "how conditions call it (default: its own name)"] = None
    source_sqls: Annotated[
        str | None, "`CREATE TEMPORARY VIEW` statements to run first, separated by `;`"
    ] = None
    source_table: Annotated[str | None, "the table or view with the new rows (default: must be given)"] = None
    merge_condition: Annotated[str | None, "when two rows match: `t.id = s.id` (default: must be given)"] = (
        None
    )
    matched_upsert_condition: Annotated[str | None, "matched rows to update (default: all)"] = None
    matched_upsert_setting: Annotated[str | None, "their new values: `price = s.price, size = 1`, or `*`"] = (
        None
    )
    not_matched_insert_condition: Annotated[
        str | None, "other rows of the source to insert (default: all)"
    ] = None
    not_matched_insert_values: Annotated[
        str | None, "values of all columns of the table, in their order, or `*`"
    ] = None
    matched_delete_condition: Annotated[str | None, "matched rows to delete; `true` for all"] = None
    not_matched_by_source_upsert_condition: Annotated[
        str | None, "rows of the table without a match to update (default: all)"
    ] = None
    not_matched_by_source_upsert_setting: Annotated[str | None, "their new values: `size = 0`"] = None
    not_matched_by_source_delete_condition: Annotated[
        str | None, "rows of the table without a match to delete"
    ] = None
    dry_run: Annotated[bool, "only count, by a query"] = False


@dataclass(frozen=True)
class _Row:
    inserted_rows: Annotated[
        int | None, "rows that the statement changed; NULL where Spark's plan does not count them"
    ]
    updated_rows: int | None
    deleted_rows: int | None


class MergeInto(TypedProcedure[_Arguments, _Row]):
    """Insert, update and delete rows of a table by those of another one, as MERGE does.

    The statement that the arguments write is checked and run as any other of the caller's. Prefer MERGE; this
    procedure serves calls that were written for Flink. Of two clauses for the same row the deleting one
    counts. Source: Paimon's `MergeIntoProcedure` for Flink.
    """

    name = "merge_into"
    right = None  # the statement asks for those it needs
    needs_all_rows = False

    def run(self, context: ProcedureContext, arguments: _Arguments) -> list[_Row]:
        """Merge; InputError for an argument that is no condition, setting or list of values."""
        spark = context.require_spark("merge_into")
        table = context.table(arguments.target_table)
        given = {name: value.strip() for name, value in vars(arguments).items() if isinstance(value, str)}
        given = {name: value for name, value in given.items() if value}
        for name in ("source_table", "merge_condition"):
            if name not in given:
                raise InputError(f"merge_into needs the argument {name!r}")
        for name in _CONDITIONS:
            if name in given:
                _check_condition(spark, name, given[name])
        views = _checked_views(spark, given.get("source_sqls", ""))
        merge = _written(context, spark, table, given)
        _check_statement(spark, merge)
        for view in views:
            spark.sql(view)
        if arguments.dry_run:
            return [_Row(*(int(value or 0) for value in spark.sql(merge.count).collect()[0]))]
        return [_Row(*RowCounts.of(spark.sql(merge.statement)))]


def _written(context: ProcedureContext, spark: Any, table: Table, given: Mapping[str, str]) -> _Merge:
    """Return the statement that the arguments write; InputError if they ask for nothing."""
    target = ".".join(map(_quoted, (context.catalog_name, table.identifier.namespace, table.identifier.name)))
    own = _quoted(given.get("target_alias", table.identifier.table).strip("`"))
    source, other = _source(context, spark, given["source_table"])
    matched, unmatched, by_source = _matched(given), _unmatched(given, table), _unmatched_by_source(given)
    if not (matched or unmatched or by_source):
        raise InputError(
            "merge_into has nothing to do: give matched_upsert_setting, not_matched_insert_values, "
            "matched_delete_condition, or one of not_matched_by_source_*"
        )
    clauses = "\n".join([*matched, *unmatched, *by_source])
    on = f"ON {_enclosed(given['merge_condition'])}"
    statement = f"MERGE INTO {target} AS {own}\nUSING {source} AS {other}\n{on}\n{clauses}"
    pairs = (
        f"(SELECT *, true AS `#target` FROM {target}) AS {own} FULL OUTER JOIN "  # noqa: S608 - the caller's own SQL, which Spark runs by the caller's rights
        f"(SELECT *, true AS `#source` FROM {source}) AS {other}\n{on}"
    )
    return _Merge(statement, _count(given, pairs), (len(matched), len(unmatched), len(by_source)))


def _matched(given: Mapping[str, str]) -> list[str]:
    clauses = []
    if "matched_delete_condition" in given:
        clauses.append(f"WHEN MATCHED AND {_enclosed(given['matched_delete_condition'])} THEN DELETE")
    if "matched_upsert_setting" in given:
        clauses.append(
            f"WHEN MATCHED{_also(given, 'matched_upsert_condition')} THEN {_update(given, 'matched')}"
        )
    return clauses


def _unmatched(given: Mapping[str, str], table: Table) -> list[str]:
    if "not_matched_insert_values" not in given:
        return []
    values = given["not_matched_insert_values"]
    columns = ", ".join(map(_quoted, table.schema.field_names))
    insert = "INSERT *" if values == _EVERYTHING else f"INSERT ({columns}) VALUES (\n{values}\n)"  # noqa: S608 - the caller's own SQL, which Spark runs by the caller's rights
    return [f"WHEN NOT MATCHED{_also(given, 'not_matched_insert_condition')} THEN {insert}"]


def _unmatched_by_source(given: Mapping[str, str]) -> list[str]:
    clauses, name = [], "not_matched_by_source"
    if f"{name}_delete_condition" in given:
        only = _enclosed(given[f"{name}_delete_condition"])
        clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {only} THEN DELETE")
    if f"{name}_upsert_setting" in given:
        also = _also(given, f"{name}_upsert_condition")
        clauses.append(f"WHEN NOT MATCHED BY SOURCE{also} THEN {_update(given, name)}")
    return clauses


def _update(given: Mapping[str, str], which: str) -> str:
    return f"UPDATE SET {given[f'{which}_upsert_setting']}\n"


def _also(given: Mapping[str, str], condition: str) -> str:
    return f" AND {_enclosed(given[condition])}" if condition in given else ""


def _enclosed(text: str) -> str:
    # A comment at its end reaches no further than its line.
    return f"(\n{text}\n)"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _source(context: ProcedureContext, spark: Any, name: str) -> tuple[str, str]:
    """Return a source's name in SQL and that by which conditions call it; InputError if it is no name."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        found = parser.parseMultipartIdentifier(name)
    except Exception:
        raise InputError(
            f"source_table {name!r} is not a name: write 'database.table', or make a view by source_sqls"
        ) from None
    parts = [found.apply(index) for index in range(found.size())]
    if len(parts) == 2 and context.catalog.table_exists(".".join(parts)):
        parts = [context.catalog_name, *parts]
    return ".".join(map(_quoted, parts)), _quoted(parts[-1])


def _count(given: Mapping[str, str], pairs: str) -> str:
    """Return the query for the numbers of inserted, updated and deleted rows, as MERGE picks clauses."""
    pair, lone = "`#target` AND `#source`", "`#target` AND `#source` IS NULL"

    def true(name: str, default: str) -> str:
        return f"coalesce({_enclosed(given[name])}, false)" if name in given else default

    deletes, updates = [], []
    for rows, which in ((pair, "matched"), (lone, "not_matched_by_source")):
        gone = true(f"{which}_delete_condition", "false")
        is_set = f"{which}_upsert_setting" in given
        changed = true(f"{which}_upsert_condition", "true") if is_set else "false"
        deletes.append(f"{rows} AND {gone}")
        updates.append(f"{rows} AND NOT {gone} AND {changed}")
    is_inserted = "not_matched_insert_values" in given
    new = true("not_matched_insert_condition", "true") if is_inserted else "false"
    inserts = f"`#target` IS NULL AND {new}"
    counts = (inserts, f"({updates[0]}) OR ({updates[1]})", f"({deletes[0]}) OR ({deletes[1]})")
    return f"SELECT {', '.join(f'count_if({each})' for each in counts)}\nFROM {pairs}"


# --- checks ---


def _check_condition(spark: Any, argument: str, text: str) -> None:
    try:
        spark._jsparkSession.sessionState().sqlParser().parseExpression(text)
    except Exception:
        raise InputError(f"merge_into: {argument} is not a condition: {text!r}") from None


def _check_statement(spark: Any, merge: _Merge) -> None:
    """Refuse settings and values that hold more than settings and values."""
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(merge.statement)
        found = (
            plan.matchedActions().size(),
            plan.notMatchedActions().size(),
            plan.notMatchedBySourceActions().size(),
        )
    except Exception:
        found = None
    if found != merge.clauses:
        raise InputError(
            "merge_into: the settings and values make no MERGE statement; write settings as 'column = value, "
            "column = value' and values as 'value, value'"
        )


def _checked_views(spark: Any, text: str) -> list[str]:
    """Return the statements of `source_sqls`; InputError if one is anything but a temporary view."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    statements = [each for each in map(str.strip, _divided(text)) if each]
    for statement in statements:
        try:
            kind = parser.parsePlan(statement).getClass().getSimpleName()
        except Exception:
            kind = ""
        if kind not in _TEMPORARY_VIEWS:
            raise InputError(
                f"source_sqls can only CREATE TEMPORARY VIEW, not: {statement.splitlines()[0][:80]!r}"
            )
    return statements


def _divided(text: str) -> list[str]:
    """Divide statements at semicolons outside of literals, names and comments."""
    statements = [""]
    for piece in _PIECE.findall(text):
        if piece == ";":
            statements.append("")
        else:
            statements[-1] += piece
    return statements
