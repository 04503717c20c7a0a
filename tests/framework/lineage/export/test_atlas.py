"""Entities and types for Apache Atlas, checked by Atlas's rules."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from lineage_edges import everything

from lockgate.framework.lineage import Dataset, Record, Run, Shape
from lockgate.framework.lineage.export import atlas
from lockgate.framework.lineage.warehouse_lineage import address_of, lineage_of
from lockgate.framework.store import Catalog

GIVEN = json.loads((Path(__file__).parents[3] / "fixtures" / "atlas_types.json").read_text())
OWN = {each["name"]: each for each in atlas.ATLAS_TYPES["entityDefs"]}
A, B = Dataset.table("hr", "a"), Dataset.table("h`r", "b.c", table_id="7")
SHAPES = [
    Shape("INSERT", A, (Dataset("file:/in", "file"),), (("x", 0, "x", 1), ("y", 0, "x", 2))),
    Shape("MERGE", A, (A, B), (("x", 0, "x", 1), ("x", 1, "n.m", 2)), rows=((1, "k", 512),)),
    Shape("STREAM", Dataset("sink", "sink"), (A,), cut=True, name="orders"),
    Shape("CALL", None, name="compact"),
    Shape("EXPORT", Dataset("hr.a", "file"), (A,), (("x", 0, "x", 8),)),
]


@pytest.fixture
def message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("LOCKGATE_LINEAGE_DIR", str(tmp_path / "index"))
    catalog = Catalog(str(tmp_path / "lake"))
    for number, shape in enumerate(SHAPES):
        run = Run(1000, 2000 + number, how="SELECT ?", who={"user": "ann"}, failed=number % 2)
        lineage_of(catalog).journal.add(Record(shape, run))
    with lineage_of(catalog).reading() as database:
        return atlas.entities(database, address_of(catalog), everything(database))


def supers(name: str) -> list[str]:
    """A type and all those above it."""
    found = OWN[name] if name in OWN else GIVEN["entities"][name]
    return [name, *(each for above in found["superTypes"] for each in supers(above))]


def attributes(name: str) -> dict[str, tuple[str, bool]]:
    """The attributes of a type, with those it inherits: their types, and whether they are required."""
    found: dict[str, tuple[str, bool]] = {}
    for each in supers(name):
        if each in OWN:
            found |= {
                one["name"]: (one["typeName"], not one["isOptional"]) for one in OWN[each]["attributeDefs"]
            }
        else:
            given = GIVEN["entities"][each]["attributes"].items()
            found |= {one: (kind, how == "required") for one, (kind, how) in given}
    return found


def entities(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [*message["entities"], *message["referredEntities"].values()]


def test_types_refer_to_existing_types() -> None:
    names = {*OWN, *GIVEN["entities"], *GIVEN["builtin"]}
    for name, each in OWN.items():
        assert re.fullmatch("[a-zA-Z][a-zA-Z0-9_ ]*", name)
        assert set(each["superTypes"]) <= set(GIVEN["entities"])
        inherited = {one for above in each["superTypes"] for one in attributes(above)}
        for one in each["attributeDefs"]:
            assert one["typeName"] in names
            assert one["name"] not in inherited
            assert one["cardinality"] in ("SINGLE", "LIST", "SET")
    for (process, inputs), (data, _) in GIVEN["relationships"].values():
        assert attributes(process)[inputs][0] == f"array<{data}>"
        assert process in supers("lockgate_process")
        assert process in supers("lockgate_column_lineage")


def fits(value: Any, kind: str, known: dict[str, str]) -> bool:
    """Return whether a value is one of a type; `known` has the types of the entities by their guids."""
    if kind.startswith("array<"):
        return isinstance(value, list) and all(fits(each, kind[6:-1], known) for each in value)
    if kind == "string":
        return isinstance(value, str)
    if kind in ("date", "long"):
        return type(value) is int
    return kind in supers(known[value["guid"]]) and known[value["guid"]] == value["typeName"]


def test_entities_fit_their_types(message: dict[str, Any]) -> None:
    known = {each["guid"]: each["typeName"] for each in entities(message)}
    for each in entities(message):
        allowed = attributes(each["typeName"])
        assert set(each["attributes"]) <= set(allowed)
        for name, (kind, is_required) in allowed.items():
            value = each["attributes"].get(name)
            assert fits(value, kind, known) if value is not None else not is_required, (name, value)


def test_a_message_contains_all_its_references(message: dict[str, Any]) -> None:
    """Atlas answers 404 for a guid that it does not have, unless the guid begins with `-` and is in the
    message; it tells entities apart by the type and `qualifiedName`."""
    found = entities(message)
    assert all(re.fullmatch(r"-\d+", each["guid"]) for each in found)
    names = [(each["typeName"], each["attributes"]["qualifiedName"]) for each in found]
    assert len({each["guid"] for each in found}) == len(found)
    assert len(set(names)) == len(names)
    assert all(key == each["guid"] for key, each in message["referredEntities"].items())


def test_inputs_and_outputs_of_a_statement(message: dict[str, Any]) -> None:
    known = {each["guid"]: each for each in entities(message)}

    def ends(entity: dict[str, Any], side: str) -> list[str]:
        names = [known[each["guid"]]["attributes"]["qualifiedName"] for each in entity["attributes"][side]]
        return sorted(name.rpartition("@")[0] for name in names)

    by_kind = {each["attributes"].get("operationType"): each for each in message["entities"]}
    assert (ends(by_kind["MERGE"], "inputs"), ends(by_kind["MERGE"], "outputs")) == (
        ["`h``r`.`b.c`", "hr.a"],
        ["hr.a"],
    )
    columns = [each for each in message["entities"] if each["typeName"] == "lockgate_column_lineage"]
    merged = {
        (*ends(each, "inputs"), *ends(each, "outputs"), each["attributes"]["dependencyType"])
        for each in columns
    }
    assert ("`h``r`.`b.c`.n.m", "hr.a.x", "hr.a.x", "EXPRESSION") in merged
    assert ("file:/in#x", "hr.a.x", "SIMPLE") in merged
    assert ("file:/in#x", "hr.a.y", "EXPRESSION") in merged
    queries = {each["attributes"]["query"]["guid"] for each in columns}
    assert {known[guid]["typeName"] for guid in queries} == {"lockgate_process"}
