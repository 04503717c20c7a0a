"""The options of a table that say how rows of one key are merged, as Paimon names them.

Those of a column are checked with its type and function where the table is made.
"""

from __future__ import annotations

from typing import Any

from lockgate.framework.options.option import (
    Change,
    Option,
    one_of,
    parse_bool,
    parse_names,
    parse_whole,
)

_NO_NAMES: tuple[str, ...] = ()
_NO_TEXT: str | None = None
_NO_NUMBER: int | None = None

MERGE_ENGINE = Option(
    "merge-engine",
    str.lower,
    "deduplicate",
    "way of merging rows with the same key",
    change=Change.WITHOUT_ROWS,
)
IGNORE_DELETE = Option(
    "ignore-delete",
    parse_bool,
    False,
    "true: writers skip rows of kind -D and -U, and readers those of other writers",
)
# Names of older releases, which say the same.
IGNORE_DELETES = (
    IGNORE_DELETE,
    *(
        Option(f"{engine}.ignore-delete", parse_bool, False, "older name of `ignore-delete`")
        for engine in ("first-row", "deduplicate", "partial-update")
    ),
)
IGNORE_UPDATE_BEFORE = Option("ignore-update-before", parse_bool, False, "true: do not write rows of kind -U")
ROWKIND_FIELD = Option(
    "rowkind.field",
    str,
    "",
    "column whose text (`+I`, `-U`, `+U`, `-D`) is the kind of each written row; it is stored, too",
)
PARTIAL_UPDATE_REMOVE_ON_DELETE = Option(
    "partial-update.remove-record-on-delete",
    parse_bool,
    False,
    "partial-update: -D removes the row, -U is ignored; not with sequence groups",
)
PARTIAL_UPDATE_REMOVE_ON_GROUP = Option(
    "partial-update.remove-record-on-sequence-group",
    parse_names,
    _NO_NAMES,
    "partial-update: columns that order sequence groups; a newest deletion in such a group removes the row",
)
AGGREGATION_REMOVE_ON_DELETE = Option(
    "aggregation.remove-record-on-delete", parse_bool, False, "aggregation: a deletion removes the row"
)
FIELDS_DEFAULT_FUNCTION = Option(
    "fields.default-aggregate-function", str, "", "merge function of columns without one of their own"
)
SEQUENCE_FIELD = Option(
    "sequence.field",
    parse_names,
    _NO_NAMES,
    "columns that order the rows of a key, comma-separated; default: the row written last is newest",
    change=Change.WITHOUT_ROWS,
)
SEQUENCE_ORDER = Option(
    "sequence.field.sort-order",
    one_of("ascending", "descending"),
    "ascending",
    "descending: the smallest value is the newest",
    change=Change.WITHOUT_ROWS,
)
MERGE_FUNCTION = Option(
    "fields.<column>.aggregate-function", str, _NO_TEXT, "merge function of a column: see Functions"
)
IGNORE_RETRACT = Option(
    "fields.<column>.ignore-retract", parse_bool, False, "rows of kind -D and -U do not change the column"
)
DISTINCT = Option(
    "fields.<column>.distinct", parse_bool, False, "`collect` and `listagg` keep one of equal values"
)
DELIMITER = Option("fields.<column>.list-agg-delimiter", str, ",", "text between the values of `listagg`")
NESTED_KEY = Option(
    "fields.<column>.nested-key", parse_names, _NO_NAMES, "fields that are the key of the rows in the column"
)
NULL_KEYS = Option(
    "fields.<column>.nested-key-null-strategy",
    one_of("merge", "ignore", "error"),
    "merge",
    "rows with a null in that key: merged as others, left out, or refused",
)
NESTED_SEQUENCE = Option(
    "fields.<column>.nested-sequence-field",
    parse_names,
    _NO_NAMES,
    "fields by which the newest of the rows with one such key is chosen",
)
COUNT_LIMIT = Option(
    "fields.<column>.count-limit", parse_whole, _NO_NUMBER, "most rows that `nested_update` keeps"
)
TIME_FIELD = Option(
    "fields.<column>.ts-field",
    str,
    _NO_TEXT,
    "field with the time of `merge_map_with_keytime`; default: last",
)
SEQUENCE_GROUP = Option(
    "fields.<column>.sequence-group",
    parse_names,
    _NO_NAMES,
    "columns whose values come from the row with the greatest values in the named columns (`a,b`)",
)
# Options that exist once for each column; the key of a group may name several columns instead.
MERGE_COLUMN_OPTIONS: tuple[Option[Any], ...] = (
    *(MERGE_FUNCTION, IGNORE_RETRACT, DISTINCT, DELIMITER, NESTED_KEY, NULL_KEYS, NESTED_SEQUENCE),
    *(COUNT_LIMIT, TIME_FIELD),
)
