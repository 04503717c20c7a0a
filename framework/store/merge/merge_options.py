"""The merge plan of a table, from its options, and what they may say.

Source: Paimon's `CoreOptions`, `SchemaValidation` and the factories of its merge functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lockgate.errors import OptionError, UnsupportedError, nearest
from lockgate.framework import options as table_options
from lockgate.framework.options import MERGE_COLUMN_OPTIONS, Option, T, parse_names
from lockgate.framework.store.merge.merge_functions import FUNCTIONS, LAST, SEQUENCE, SET
from lockgate.framework.store.merge.merge_plan import (
    AGGREGATION,
    DEDUPLICATE,
    ENGINES,
    FIRST_ROW,
    KEY_PREFIX,
    PARTIAL_UPDATE,
    SEQUENCE_NUMBER,
    ColumnMerge,
    MergePlan,
    SequenceGroup,
)
from lockgate.framework.store.schema.schema import TableSchema
from lockgate.framework.store.schema.unsupported_features import check_readable
from lockgate.framework.types import DataType, Kind


def merge_plan(schema: TableSchema) -> MergePlan | None:
    """Return the merge plan of a table, None for one without a primary key.

    Raises UnsupportedError for merge engines, functions and options whose meaning is not implemented: merging
    them as something else would return wrong rows. Raises OptionError for options that contradict each other
    or the columns.
    """
    if not schema.has_primary_key:
        return None
    check_readable(schema)
    reason = why_no_sequence(schema)
    if reason:
        raise UnsupportedError(f"option {table_options.SEQUENCE_FIELD.key!r}: {reason}")
    options = schema.table_options
    engine = options.get_option(table_options.MERGE_ENGINE)
    if engine not in ENGINES:
        raise UnsupportedError(
            f"option {table_options.MERGE_ENGINE.key!r} = {engine!r} is not supported"
            f"{nearest(engine, ENGINES)}; supported: {', '.join(ENGINES)}"
        )
    descending = options.get_option(table_options.SEQUENCE_ORDER) == "descending"
    groups = _groups(schema) if engine == PARTIAL_UPDATE else {}
    return MergePlan(
        engine=engine,
        key=tuple(KEY_PREFIX + name for name in schema.trimmed_primary_keys),
        sequence=(*schema.sequence_fields, SEQUENCE_NUMBER),
        descending=schema.sequence_fields if descending else (),
        columns=tuple(_column(schema, engine, name, groups) for name in schema.field_names),
        groups=_ordering(schema, groups),
        ignore_delete=engine != AGGREGATION and ignores_deletes(schema),
        remove_on_delete=_removes(schema, engine, groups),
    )


def why_no_sequence(schema: TableSchema) -> str | None:
    """Say why rows cannot be ordered by the columns of `sequence.field`; None if they can."""
    if schema.sequence_fields and schema.table_options.get_option(table_options.MERGE_ENGINE) == FIRST_ROW:
        return "merge engine 'first-row' keeps the row that came first and orders them by nothing else"
    return next((why for name in schema.sequence_fields if (why := _why_no_order(schema, name))), None)


def _why_no_order(schema: TableSchema, name: str) -> str | None:
    if name not in schema.field_names:
        return f"there is no column {name!r}{nearest(name, schema.field_names)}"
    data_type = schema.field(name).type
    return f"values of column {name!r} of type {data_type} have no order" if data_type.is_nested else None


def ignores_deletes(schema: TableSchema) -> bool:
    """Say whether rows of kind -U and -D are passed over, by `ignore-delete` or one of its older names."""
    return any(schema.table_options.get_option(option) for option in table_options.IGNORE_DELETES)


def check_merge(schema: TableSchema) -> None:
    """Check the options of merging when a table is created or altered; raises OptionError."""
    if not schema.has_primary_key:
        if schema.table_options.get_option(table_options.MERGE_ENGINE) != DEDUPLICATE:
            raise OptionError(
                f"option {table_options.MERGE_ENGINE.key!r} needs a primary key: nothing else is merged"
            )
        return
    _check_columns_of_options(schema)
    _check_kind_field(schema)
    try:
        merge_plan(schema)
    except UnsupportedError as error:
        raise OptionError(str(error)) from None


def ordering_columns(schema: TableSchema) -> frozenset[str]:
    """Return the columns whose values decide about others: those that order groups, and `rowkind.field`."""
    plan = merge_plan(schema)
    groups = plan.groups if plan else ()
    kind = schema.table_options.get_option(table_options.ROWKIND_FIELD)
    return frozenset(name for group in groups for name in group.columns) | ({kind} if kind else set())


def _check_kind_field(schema: TableSchema) -> None:
    name = schema.table_options.get_option(table_options.ROWKIND_FIELD)
    if not name:
        return
    if name not in schema.field_names:
        raise OptionError(
            f"option {table_options.ROWKIND_FIELD.key!r}: there is no column {name!r}"
            f"{nearest(name, schema.field_names)}"
        )
    data_type = schema.field(name).type
    if not data_type.is_string:
        raise OptionError(
            f"option {table_options.ROWKIND_FIELD.key!r}: column {name!r} is a {data_type}, not a STRING"
        )


def _check_columns_of_options(schema: TableSchema) -> None:
    """Refuse options of columns that are not there; a misspelt one would be passed over in silence."""
    for key in schema.options:
        names = [found[1] for option in MERGE_COLUMN_OPTIONS if (found := option.match(key))]
        if names and names[0] not in schema.field_names:
            raise OptionError(
                f"option {key!r}: there is no column {names[0]!r}{nearest(names[0], schema.field_names)}"
            )


# --- groups ------------------------------------------------------------------------------------------


def _groups(schema: TableSchema) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that each sequence group protects, by those that order it."""
    groups = {}
    seen: dict[str, str] = {}
    for key, value in sorted(schema.options.items()):
        found = table_options.SEQUENCE_GROUP.match(key)
        if found is None:
            continue
        ordering, protected = parse_names(found[1]), parse_names(value)
        for name in (*ordering, *protected):
            _check_member(schema, key, name)
            if seen.setdefault(name, key) != key:
                raise OptionError(f"option {key!r}: column {name!r} is in group {seen[name]!r} already")
        for name in ordering:
            if schema.field(name).type.is_nested:
                raise OptionError(f"option {key!r}: {_why_no_order(schema, name)}")
        groups[ordering] = protected
    return groups


def _check_member(schema: TableSchema, key: str, name: str) -> None:
    if name not in schema.field_names:
        raise OptionError(f"option {key!r}: there is no column {name!r}{nearest(name, schema.field_names)}")
    if name in schema.primary_keys:
        raise OptionError(
            f"option {key!r}: column {name!r} is part of the primary key, which no group orders"
        )


def _ordering(schema: TableSchema, groups: Mapping[tuple[str, ...], Any]) -> tuple[SequenceGroup, ...]:
    option = table_options.PARTIAL_UPDATE_REMOVE_ON_GROUP
    removing = schema.table_options.get_option(option) if groups else ()
    ordering = [name for group in groups for name in group]
    for name in removing:
        if name not in ordering:
            raise OptionError(
                f"option {option.key!r}: {name!r} orders no sequence group{nearest(name, ordering)}"
            )
    if removing and ignores_deletes(schema):
        raise OptionError(
            f"options {option.key!r} and {table_options.IGNORE_DELETE.key!r} contradict each other"
        )
    return tuple(SequenceGroup(group, any(name in group for name in removing)) for group in groups)


def _removes(schema: TableSchema, engine: str, groups: Mapping[tuple[str, ...], Any]) -> bool:
    option = {
        PARTIAL_UPDATE: table_options.PARTIAL_UPDATE_REMOVE_ON_DELETE,
        AGGREGATION: table_options.AGGREGATION_REMOVE_ON_DELETE,
    }.get(engine)
    if option is None or not schema.table_options.get_option(option):
        return False
    if engine == PARTIAL_UPDATE and (groups or ignores_deletes(schema)):
        other = "a sequence group" if groups else table_options.IGNORE_DELETE.key
        raise OptionError(f"option {option.key!r} and {other!r} contradict each other")
    return True


# --- columns -----------------------------------------------------------------------------------------


def _column(
    schema: TableSchema, engine: str, name: str, groups: Mapping[tuple[str, ...], tuple[str, ...]]
) -> ColumnMerge:
    if engine in (DEDUPLICATE, FIRST_ROW) or name in schema.primary_keys:
        return ColumnMerge(name, LAST)
    number = _group_of(name, groups)
    if any(name in ordering for ordering in groups):
        return ColumnMerge(name, SEQUENCE, number)
    if engine == AGGREGATION and name in schema.sequence_fields:
        return ColumnMerge(name, "last_value")
    chosen = _chosen(schema, name)
    if chosen is None:
        return ColumnMerge(name, "last_non_null_value" if number is None else SET, number)
    if engine == PARTIAL_UPDATE and number is None and chosen != "last_non_null_value":
        raise OptionError(
            f"column {name!r}: merge engine {engine!r} takes function {chosen!r} in a sequence group only: "
            f"set option 'fields.<column>.sequence-group' = '{name}'"
        )
    return _with_options(schema, ColumnMerge(name, chosen, number))


def _group_of(name: str, groups: Mapping[tuple[str, ...], tuple[str, ...]]) -> int | None:
    return next(
        (number for number, (order, inside) in enumerate(groups.items()) if name in (*order, *inside)), None
    )


def _chosen(schema: TableSchema, name: str) -> str | None:
    key = f"fields.{name}.aggregate-function"
    default = schema.table_options.get_option(table_options.FIELDS_DEFAULT_FUNCTION) or None
    chosen = schema.options.get(key, default)
    if chosen is None or chosen in FUNCTIONS:
        return chosen
    raise OptionError(
        f"column {name!r}: there is no merge function {chosen!r}{nearest(chosen, FUNCTIONS)}; there are "
        f"{', '.join(sorted(FUNCTIONS))}"
    )


def _with_options(schema: TableSchema, column: ColumnMerge) -> ColumnMerge:
    data_type = schema.field(column.name).type
    takes = FUNCTIONS[column.function].takes
    if not takes.contains(data_type):
        raise OptionError(
            f"column {column.name!r} of type {data_type}: {column.function!r} takes {takes.name} only"
        )

    def of_column(option: Option[T]) -> T:
        return schema.table_options.get_option(option.of_column(column.name))

    found = ColumnMerge(
        name=column.name,
        function=column.function,
        group=column.group,
        ignore_retract=of_column(table_options.IGNORE_RETRACT),
        distinct=of_column(table_options.DISTINCT) and column.function in ("collect", "listagg"),
        delimiter=of_column(table_options.DELIMITER) or ",",
        nested_key=of_column(table_options.NESTED_KEY),
        null_keys=of_column(table_options.NULL_KEYS),
        nested_sequence=of_column(table_options.NESTED_SEQUENCE),
        limit=of_column(table_options.COUNT_LIMIT),
        time_field=of_column(table_options.TIME_FIELD),
    )
    _check_nested(found, data_type)
    if found.ignore_retract and schema.table_options.get_option(table_options.AGGREGATION_REMOVE_ON_DELETE):
        raise OptionError(
            f"options {table_options.AGGREGATION_REMOVE_ON_DELETE.key!r} and "
            f"'fields.{column.name}.ignore-retract' contradict each other"
        )
    return found


def _check_nested(column: ColumnMerge, data_type: DataType) -> None:
    for what, name in _nested_names(column, data_type):
        inner = data_type.value_type() if data_type.kind is Kind.MAP else data_type.element_type()
        fields = [field.name for field in inner.fields]
        if name not in fields:
            raise OptionError(
                f"option 'fields.{column.name}.{what}': there is no field {name!r}{nearest(name, fields)}"
            )
    if column.function == "nested_partial_update" and not column.nested_key:
        raise OptionError(
            f"column {column.name!r}: {column.function!r} needs 'fields.{column.name}.nested-key'"
        )
    if column.nested_sequence and not column.nested_key:
        raise OptionError(
            f"option 'fields.{column.name}.nested-sequence-field' needs 'fields.{column.name}.nested-key'"
        )


def _nested_names(column: ColumnMerge, data_type: DataType) -> Iterator[tuple[str, str]]:
    if column.function in ("nested_update", "nested_partial_update"):
        yield from (("nested-key", name) for name in column.nested_key)
        yield from (("nested-sequence-field", name) for name in column.nested_sequence)
    elif column.function == "merge_map_with_keytime" and column.time_field:
        yield "ts-field", column.time_field
