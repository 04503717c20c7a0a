"""Texts of columns: a member of a struct and a column with a dot in its name have different texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from lockgate.framework.lineage.model.names import column_path, column_text

VECTORS = json.loads((Path(__file__).parents[3] / "fixtures" / "lineage_columns.json").read_text())


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["text"])
def test_a_column_has_one_text(case: dict[str, Any]) -> None:
    assert column_text(case["path"]) == case["text"]
    assert list(column_path(case["text"])) == case["path"]


@settings(max_examples=examples(100))
@given(st.lists(st.text("ab.`* /é"), min_size=1, max_size=4))
def test_every_path_round_trips(path: list[str]) -> None:
    assert column_path(column_text(path)) == tuple(path)


@pytest.mark.parametrize("text", ["a.", ".a", "a`b", "`a", "`a`b", ""])
def test_another_text_is_one_part(text: str) -> None:
    assert column_path(text) == (text,)
