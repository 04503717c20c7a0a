"""The bar of a load: shown where somebody looks on, after the first second, and wiped away."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.store.schema.schema import Schema
from lockgate.framework.store.tables.catalog import Catalog
from lockgate.lookup.driver import bar
from lockgate.lookup.driver.bar import LoadBar
from lockgate.lookup.driver.lookup_tables import make_spec
from lockgate.lookup.driver.service import Lookup


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook(io.StringIO):
    pass


Notebook.__module__ = "ipykernel.iostream"


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_bar_grows_and_is_wiped_away(monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO]) -> None:
    monkeypatch.setattr(bar, "_FIRST_SECONDS", 0.0)
    stream = kind()
    with contextlib.closing(LoadBar("loading db.t", stream)) as shown:
        shown.show(None, None)
        assert stream.getvalue() == ""
        shown.show(7, 0)
        assert stream.getvalue() == "\rloading db.t: 7 rows"
        shown.show(500, 1000)
        half = f"loading db.t [{'#' * 15}{'.' * 15}]  50% of 1000 rows"
        assert stream.getvalue().endswith(f"\r{half}")
        # A manifest may count rows that replace each other: more than all is all.
        shown.show(2000, 1000)
    assert f"[{'#' * 30}] 100%" in stream.getvalue()
    assert stream.getvalue().endswith("\r" + " " * len(half) + "\r")


def test_nothing_is_shown_in_the_first_second_or_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    early, file = Terminal(), io.StringIO()
    with contextlib.closing(LoadBar("loading", early)) as shown:
        shown.show(1, 2)
    monkeypatch.setattr(bar, "_FIRST_SECONDS", 0.0)
    with contextlib.closing(LoadBar("loading", file)) as shown:
        shown.show(1, 2)
    assert (early.getvalue(), file.getvalue()) == ("", "")


def test_a_batch_that_waits_for_a_load_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bar, "_FIRST_SECONDS", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    catalog = Catalog(str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    table = catalog.create_table("db.dim", Schema.from_arrow(schema))
    ids = pa.array(range(200_000))
    table.append(pa.table([ids, ids.cast(pa.string())], schema=schema))
    options = {"lookup.cache-dir": str(tmp_path / "cache"), "lookup.cache": "full"}
    with contextlib.closing(Lookup(catalog, table, make_spec(table, "id", options=options))) as lookup:
        assert lookup.pin("query", 0) == 1
        shown = terminal.getvalue()
        drawn = re.findall(r"\rloading db\.dim \[[#.]{30}\] +(\d+)% of 200000 rows", shown)
        assert drawn
        assert [int(percent) for percent in drawn] == sorted(int(percent) for percent in drawn)
        assert shown.endswith(" \r"), "it was wiped away"
        # A refresh is no load: nothing is drawn for it.
        table.append(pa.table({"id": [1], "text": ["x"]}, schema=schema))
        assert lookup.wait_for(2, timeout=30) == 2
        assert terminal.getvalue() == shown
