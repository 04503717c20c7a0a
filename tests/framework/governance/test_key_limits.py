"""Limits of keys: what `check_keys` names is what executors of a scan under the same policies get."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.access import Mask, SqlDecision
from lockgate.framework.access.masked_sql import NULL, mask_sql
from lockgate.framework.governance.key_limits import Limit, column_keys, limits, order_of
from lockgate.framework.governance.policy_principals import PolicyPrincipal, Rights
from lockgate.framework.governance.sql_masks import ORC_MASKS
from lockgate.framework.store import Schema
from lockgate.framework.store.confidential.withheld_keys import key_uses, needed_columns, withheld_keys
from lockgate.framework.store.schema.schema import TableSchema

TYPES = {"id": "BIGINT", "a": "STRING", "b": "STRING", "n": "BIGINT", "v": "BIGINT", "d": "DOUBLE"}
ARROW = {"BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}
OTHER = "MASK_SHOW_LAST_4"


def schema(encrypted: Mapping[str, str], masks: Mapping[str, str], *, keyed: bool = False) -> TableSchema:
    """A table whose columns are encrypted with keys and stored with masks; if `keyed`, `v` orders rows."""
    options = {}
    if encrypted:
        options["orc.encrypt"] = ";".join(f"{key}:{column}" for column, key in encrypted.items())
    stored = {column: mask for column, mask in masks.items() if column in encrypted}
    if stored:
        options["orc.mask"] = ";".join(f"{mask}:{column}" for column, mask in stored.items())
    if keyed:
        options["sequence.field"] = "v"
    columns = pa.schema([pa.field(name, ARROW[kind], name not in "av") for name, kind in TYPES.items()])
    fields = Schema.from_arrow(columns).fields
    primary = ("id",) if keyed else ()
    return TableSchema(0, tuple(fields), len(fields), primary_keys=primary, options=options)


def rights(denied: frozenset[str], masks: Mapping[str, str], row_filter: str | None = None) -> Rights:
    readable = frozenset(TYPES) - denied
    shown = {column: mask for column, mask in masks.items() if column in readable}
    return Rights(
        PolicyPrincipal("user", "ann"),
        readable,
        frozenset(shown),
        row_filter,
        tuple(shown.values()),
        whole_masks=shown,
    )


def found(table: TableSchema, whose: Rights) -> set[Limit]:
    return set(limits(column_keys(table), whose, order_of(table)))


def given_keys(table: TableSchema, whose: Rights, masks: Mapping[str, str]) -> set[str]:
    """The keys that executors get for a query of all columns that is asked under these rights."""
    texts = {
        column: (mask_sql(Mask(ORC_MASKS[name]), column, TYPES[column]) if name in ORC_MASKS else None)
        or (NULL if name in ORC_MASKS else f"right({column}, 4)")
        for column, name in masks.items()
        if column in whose.readable
    }
    denied = dict.fromkeys(TYPES.keys() - whose.readable, ("a grant",))
    decision = SqlDecision(denied=denied, masks=texts, row_filter=whose.row_filter)
    uses = key_uses(table, ())
    needed = needed_columns(decision, TYPES, uses, table if table.has_primary_key else None)
    return {use.key for use in uses} - withheld_keys(uses, needed)


@pytest.mark.parametrize(
    ("column", "stored", "mask", "reason"),
    [
        ("a", "nullify", "MASK_NULL", None),
        ("a", "redact", "MASK", None),
        ("n", "nullify", "MASK_NULL", None),
        ("a", "sha256", "MASK_HASH", "mask"),  # a hash of a stored hash is another value
        ("n", "redact", "MASK", "mask"),  # redacted, some numbers are too large for their type
        ("a", "nullify", "MASK", "mask"),
        ("a", "redact", "MASK_NULL", "mask"),
        ("a", "redact", OTHER, "mask"),
    ],
)
def test_masks_that_need_the_key_are_named(column: str, stored: str, mask: str, reason: str | None) -> None:
    hidden = {column: mask}
    table = schema({column: "k"}, {column: stored})
    expected = set() if reason is None else {Limit(column, "k", reason)}
    assert found(table, rights(frozenset(), hidden)) == expected
    assert given_keys(table, rights(frozenset(), hidden), hidden) == (set() if reason is None else {"k"})
    keyed = schema({column: "k"}, {column: stored}, keyed=True)
    assert found(keyed, rights(frozenset(), hidden)) == {Limit(column, "k", reason or "merged rows")}
    assert given_keys(keyed, rights(frozenset(), hidden), hidden) == {"k"}


def test_columns_that_order_merged_rows_are_named() -> None:
    table = schema({"v": "k", "a": "k", "n": "other"}, {}, keyed=True)
    denied = rights(frozenset({"v", "a", "n"}), {})
    assert found(table, denied) == {Limit("v", "k", "merged rows"), Limit("a", "k", "same key as v")}
    assert given_keys(table, denied, {}) == {"k"}
    assert found(schema({"v": "k", "a": "k"}, {}), rights(frozenset({"v", "a"}), {})) == set()


COLUMNS = st.sampled_from([name for name in TYPES if name != "id"])


@settings(max_examples=examples(300))
@given(
    encrypted=st.dictionaries(COLUMNS, st.sampled_from(["k", "l", "m"])),
    stored=st.dictionaries(COLUMNS, st.sampled_from(["nullify", "redact", "sha256"])),
    denied=st.frozensets(COLUMNS),
    masks=st.dictionaries(COLUMNS, st.sampled_from([*ORC_MASKS, OTHER])),
    filtered=st.one_of(st.none(), COLUMNS),
    keyed=st.booleans(),
)
def test_what_is_named_is_what_executors_get(
    encrypted: dict[str, str],
    stored: dict[str, str],
    denied: frozenset[str],
    masks: dict[str, str],
    filtered: str | None,
    keyed: bool,
) -> None:
    """A hidden column is named if, and only if, executors get its key, or it has none."""
    table = schema(encrypted, stored, keyed=keyed)
    whose = rights(denied, masks, None if filtered is None else f"{filtered} IS NOT NULL")
    named = {limit.column for limit in found(table, whose)} - {""}
    given_now = given_keys(table, whose, masks)
    hidden = {column for column in TYPES if column in denied or column in masks}
    assert named == {column for column in hidden if column not in encrypted or encrypted[column] in given_now}
