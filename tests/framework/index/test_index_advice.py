"""Advice by the searches that ran: it begins with what they asked for, and what that would save."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from indexed_table import fill, make

from lockgate.framework.index.database import order_advice, searches
from lockgate.framework.index.database.advice import IndexAdvice
from lockgate.framework.index.database.searches import Searched, Searches
from lockgate.framework.plugins import ScanPlanned, plugins
from lockgate.framework.store import Catalog
from lockgate.procedures import ProcedureContext
from lockgate.pushdown import col


@pytest.fixture(autouse=True)
def no_searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without the searches of other tests."""
    plugins().events.flush()
    fresh = Searches()
    for module in (searches, order_advice):
        monkeypatch.setattr(module, "SEARCHES", fresh)
    monkeypatch.setattr("lockgate.framework.index.database.advice.SEARCHES", fresh)
    yield
    plugins().events.flush()


def advice(catalog: Catalog) -> list[dict[str, Any]]:
    given = {each.name: each.default for each in IndexAdvice.parameters} | {"table": "db.t", "files": 10}
    names = [name for name, _ in IndexAdvice.result]
    found = IndexAdvice().call(ProcedureContext(catalog), **given)
    return [dict(zip(names, row, strict=True)) for row in found]


def test_advice_lists_searched_columns_first(catalog: Catalog) -> None:
    table = make(catalog, {})
    fill(table, 10)
    assert {row["searches"] for row in advice(catalog)} == {0}
    size = sum(entry.file.file_size for entry in table.manifests.live_files(table.latest_snapshot()))
    for _ in range(3):
        table.read(predicate=(col("host") == "host-3") | col("host").is_null())
    table.read(predicate=col("host").contains("ost-3") & (col("size") < 100.0))
    found = advice(catalog)
    assert found[0]["column"] == "host"
    saved = [row["saved_bytes"] for row in found if row["is_advised"]]
    assert saved == sorted(saved, reverse=True)
    by_kind = {(row["kind"], row["column"]): row for row in found}
    values = by_kind["values", "host"]
    assert (values["searches"], values["searched_bytes"]) == (3, 3 * size)
    assert values["saved_bytes"] == pytest.approx(3 * size * values["pruned_share"], rel=1e-3)
    assert by_kind["ngrams", "host"]["searches"] == 4
    assert by_kind["words", "host"]["searches"] == 0
    assert by_kind["values", "size"]["searches"] == 0  # no index answers a range
    orders = [row for row in found if row["kind"] == "order"]
    assert [(row["column"], row["searches"]) for row in orders] == [("host", 3), ("size", 1)]
    assert {row["pruned_share"] for row in orders} == {round(1 - 10**-0.5, 6)}


def test_few_files_allow_few_sort_columns(catalog: Catalog) -> None:
    table = make(catalog, {"clustering.columns": "id"})
    fill(table, 8)
    for name, value in (("id", 1), ("host", "a"), ("size", 1.0), ("day", 1)):
        for _ in range({"id": 4, "host": 3, "size": 2, "day": 1}[name]):
            table.read(predicate=col(name) == value)
    orders = {row["column"]: row for row in advice(catalog) if row["kind"] == "order"}
    assert [name for name, row in orders.items() if row["is_advised"]] == ["host", "size", "id"]
    assert orders["day"]["reason"] == "searches by other columns read more"
    assert (orders["id"]["is_indexed"], orders["id"]["saved_bytes"]) == (True, 0)


def test_counts_are_kept_for_recently_searched_tables() -> None:
    found = Searches(most_tables=2)
    for table in ("a", "b", "a", "c"):
        scan = ScanPlanned(
            table=table, snapshot_id=1, columns=None, files=1, size=10, searched=(("x", "EQ"), ("x", "LT"))
        )
        found.note(scan)
    assert found.of("a", "x") == Searched(2, 20)
    assert found.of("a", "x", {"LT"}) == Searched(2, 20)
    assert found.of("a", "x", {"CONTAINS"}) == Searched()
    assert found.of("b", "x") == Searched()
