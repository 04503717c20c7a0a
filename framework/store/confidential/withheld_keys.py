"""Keys that a scan under policies does without, because it needs no value that they open.

A denied column needs none. Nor does a masked one whose files store the mask of the policy: a reader without
the key finds it there. The mask of the policy is still put on, for files from before the column was
encrypted, so only masks that change nothing when they are put on twice count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lockgate.framework.access import Mask, SqlDecision, columns_named, mask_sql
from lockgate.framework.options import ORC_ENCRYPT, ORC_MASK
from lockgate.framework.orc import parse_encrypt, parse_mask, split
from lockgate.framework.store.schema.schema import TableSchema

# Redacted, some numbers are too large for their type: null in SQL, and something else in files.
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_NULLIFY = "nullify"
_OF_ORDER = re.compile(r"sequence\.|rowkind\.|.*sequence-group|.*sequence-field|.*ts-field")


@dataclass(frozen=True)
class KeyUse:
    """A use of a key in files: for a column of the query, which may have had another name, and its mask.

    `column` is None for a column that was dropped. `mask` is None unless the whole column has one mask.
    """

    key: str
    column: str | None
    mask: str | None

    def is_found_in_files(self, kind: str) -> bool:
        """Say whether files show its mask for values of a type: it is idempotent, mask(mask(x)) = mask(x)."""
        return _is_idempotent(self.mask, kind)


def key_uses(read: TableSchema, files: Iterable[TableSchema]) -> set[KeyUse]:
    """Return the uses of keys in files of these schemas; columns have the names that `read` has."""
    names = {field.id: field.name for field in read.fields}
    return {use for schema in (read, *files) for use in _uses_of(schema, names)}


def _uses_of(schema: TableSchema, names: Mapping[int, str]) -> Iterator[KeyUse]:
    options = schema.table_options
    ids = {field.name: field.id for field in schema.fields}
    masks = parse_mask(options.get_option(ORC_MASK))
    for path, key in parse_encrypt(options.get_option(ORC_ENCRYPT)).items():
        top = path if path in ids else split(path)[0]
        parts = [each for each in masks if each != top and split(each)[0] == top]
        mask = masks.get(top)
        whole = path == top and not parts and not (mask and mask.parameters)
        stored = mask.name if mask else _NULLIFY
        yield KeyUse(key, names.get(ids.get(top, -1)), stored if whole else None)


def needed_columns(
    decision: SqlDecision,
    types: Mapping[str, str],
    uses: Iterable[KeyUse],
    merged: TableSchema | None = None,
) -> frozenset[str]:
    """Return the columns whose stored values a scan under a decision needs.

    `types` are the SQL types of the table's columns. `merged` is the schema if rows of one key are merged:
    then masks cannot take the place of values, and the columns that order rows are needed too.
    """
    texts = {name: text for name, text in decision.masks.items() if name not in decision.denied}
    stored: dict[str, set[str | None]] = {}
    for use in uses:
        if use.column is not None:
            stored.setdefault(use.column, set()).add(use.mask)
    shown_by_files = {
        name
        for name, text in texts.items()
        if merged is None and _is_stored(text, name, types.get(name, ""), stored.get(name, set()))
    }
    others = [text for name, text in texts.items() if name not in shown_by_files]
    named = columns_named([*others, decision.row_filter or ""], types)
    shown = types.keys() - decision.denied.keys() - shown_by_files
    return frozenset(shown | named | (sort_columns(merged) if merged else frozenset()))


def _is_stored(text: str, column: str, kind: str, masks: set[str | None]) -> bool:
    """Tell whether the mask of a policy is the one that all files have in place of a column's values."""
    if len(masks) != 1:
        return False
    name = next(iter(masks))
    return name is not None and _is_idempotent(name, kind) and mask_sql(Mask(name), column, kind) == text


def _is_idempotent(mask: str | None, kind: str) -> bool:
    return mask == "nullify" or (mask == "redact" and kind.upper() not in _INTEGERS)


def sort_columns(schema: TableSchema) -> frozenset[str]:
    """Return the columns that say which row of a key counts, keys included."""
    texts = [text for pair in schema.options.items() if _OF_ORDER.match(pair[0]) for text in pair]
    return frozenset(schema.primary_keys) | columns_named(texts, schema.field_names)


def withheld_keys(uses: Iterable[KeyUse], needed: frozenset[str]) -> frozenset[str]:
    """Return the keys under which no needed column is."""
    every = list(uses)
    return frozenset(use.key for use in every) - {use.key for use in every if use.column in needed}
