"""Decisions in SQL: their combination, and the conversion of Python's decisions."""

from __future__ import annotations

from typing import Any

import pytest

from lockgate.errors import InputError, PluginError
from lockgate.framework.access import (
    AccessRequest,
    Action,
    Decision,
    Mask,
    Principal,
    SqlDecision,
    Target,
    as_sql,
    combined_sql,
)
from lockgate.framework.plugins import PluginManager, hookimpl
from lockgate.pushdown import col
from lockgate.pushdown.sql import to_sql

TYPES = {"id": "BIGINT", "name": "STRING", "pay": "DOUBLE"}
REQUEST = AccessRequest(Principal("ann"), Action.SELECT, Target("table", "db.t"), frozenset(TYPES))


def test_refusals_and_filters_accumulate_and_two_masks_become_null() -> None:
    one = SqlDecision(row_filter="a = 1", masks={"name": "'x'", "pay": "0"}, ask=("ask hr",))
    other = SqlDecision(row_filter="b = 2 OR c", masks={"name": "'x'", "pay": "1"}, denied={"id": ("id",)})
    found = combined_sql([one, other])
    assert found.row_filter == "(a = 1) AND (b = 2 OR c)"
    assert found.masks == {"name": "'x'", "pay": "NULL"}
    assert found.denied == {"id": ("id",)}
    assert found.ask == ("ask hr",)
    assert not combined_sql([]).is_restricted


def test_repr_shows_no_filter_and_no_mask() -> None:
    assert "secret" not in repr(SqlDecision(row_filter="a = 'secret'", masks={"a": "'secret'"}))


def test_a_denied_column_names_missing_grants() -> None:
    with pytest.raises(InputError, match="name grants to apply for"):
        SqlDecision(denied={"id": ()})


def test_a_predicate_becomes_spark_sql() -> None:
    predicate = (col("a b") == "it's \\") | ~(col("n").isin([1, 2.5]) & col("s").starts_with("%"))
    assert to_sql(predicate) == (
        r"((`a b` = 'it\'s \\') OR (NOT ((`n` IN (1, 2.5D)) AND startswith(`s`, '%'))))"
    )
    assert to_sql(col("x") == float("nan")) == "(`x` = CAST('nan' AS DOUBLE))"


def test_a_mask_without_sql_denies_its_column() -> None:
    decision = Decision(masks={"name": Mask("of-a-plugin"), "pay": Mask("sha256")})
    found = as_sql(decision, TYPES)
    assert set(found.denied) == {"name"}
    assert found.masks == {"pay": "NULL"}


class Columns:
    """A plugin without SQL: it denies one column and hides rows."""

    @hookimpl
    def lockgate_authorize(self, request: AccessRequest) -> Decision:
        if "pay" in (request.columns or ()):
            return Decision.denied("role hr")
        return Decision(row_filter=col("id") == 1)


def test_a_plugin_without_sql_decides_each_column() -> None:
    manager = PluginManager()
    manager.register(Columns(), "columns")
    found = manager.authorize_sql(REQUEST, TYPES)
    assert found.denied == {"pay": ("role hr",)}
    assert found.row_filter == "((`id` = 1))"


def test_a_plugin_with_sql_gets_no_other_request() -> None:
    class Both(Columns):
        @hookimpl
        def lockgate_authorize_sql(self, request: Any, types: Any) -> SqlDecision:
            return SqlDecision(masks={"pay": "0"})

    manager = PluginManager()
    manager.register(Both(), "both")
    assert manager.authorize_sql(REQUEST, TYPES) == SqlDecision(masks={"pay": "0"})


def test_a_plugin_with_sql_only_is_refused() -> None:
    class Alone:
        @hookimpl
        def lockgate_authorize_sql(self, request: Any) -> None:
            return None

    with pytest.raises(PluginError, match="lockgate_authorize"):
        PluginManager().register(Alone(), "alone")
