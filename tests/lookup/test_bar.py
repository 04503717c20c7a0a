"""The bar of a load: shown where somebody looks on, after the first second, and wiped away."""

from __future__ import annotations

import contextlib
import io

import pytest

from lockgate.lookup import bar
from lockgate.lookup.bar import LoadBar


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
