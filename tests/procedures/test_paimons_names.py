"""Procedures of Paimon's Spark connector: those that are here take its arguments, in both spellings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockgate.procedures import procedure_registry

PAIMONS: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "paimon" / "procedures.json").read_text()
)["procedures"]
# Kinds of objects that are not here, indexes of its own, a copy by its newer name, and repairs.
ABSENT = {
    *("alter_function", "create_function", "drop_function", "alter_view_dialect"),
    *("create_global_index", "drop_global_index", "copy", "repair", "remove_unexisting_files"),
}
# Where it runs, which is always the driver here.
UNKNOWN = {("remove_orphan_files", "mode")}


def test_all_others_are_here() -> None:
    assert set(PAIMONS) - set(procedure_registry.names()) == ABSENT


@pytest.mark.parametrize("name", sorted(set(PAIMONS) - ABSENT))
def test_arguments_have_paimons_names(name: str) -> None:
    here = {
        spelling for each in procedure_registry.find(name).parameters for spelling in (each.name, each.alias)
    }
    assert {each for each in PAIMONS[name] if (name, each) not in UNKNOWN} <= here
