"""Tables that encrypt columns, replaced by statements that do not say so."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pyarrow as pa
import pytest

from lockgate.errors import InputError, PlaintextError, PlaintextWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, SetOption
from lockgate.framework.types import STRING

OPTION = "encryption.on-plaintext"
ROWS = pa.table({"id": [1, 1], "ssn": ["known-secret", "other-secret"]})


@pytest.fixture
def catalog(tmp_path: Any) -> Catalog:
    made = Catalog(str(tmp_path), keys=MemoryKeyProvider({"pii@0": bytes(range(16))}))
    made.create_namespace("db")
    return made


@pytest.fixture
def people(catalog: Catalog) -> Catalog:
    """A key table with an encrypted column."""
    options = {
        "bucket": "3",
        "orc.encrypt": "pii:ssn",
        "orc.mask": "sha256:ssn",
        "lineage.on-plaintext": "refuse",
        "merge-engine": "first-row",
    }
    catalog.create_table("db.t", Schema.from_arrow(ROWS.schema, primary_keys=["id"], options=options))
    return catalog


def options_of(catalog: Catalog, schema: pa.Schema = ROWS.schema, **layout: Any) -> dict[str, str]:
    return dict(catalog.replace_table("db.t", Schema.from_arrow(schema, **layout)).schema.options)


@pytest.mark.parametrize("keeps_layout", [True, False])
def test_no_value_lands_in_the_clear(people: Catalog, keeps_layout: bool, tmp_path: Any) -> None:
    made = people.replace_table("db.t", Schema.from_arrow(ROWS.schema), keeps_layout=keeps_layout)
    made.hold(made.write(ROWS))
    made.publish()
    table = people.load_table("db.t")
    kept = {"orc.encrypt", "orc.mask", "orc.integrity", "lineage.on-plaintext"}
    assert kept <= table.schema.options.keys()
    assert table.schema.primary_keys == (("id",) if keeps_layout else ())
    assert (table.schema.bucket_count, table.schema.options.get("merge-engine")) == (
        (3, "first-row") if keeps_layout else (-1, None)
    )
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"known-secret" in each for each in files)


def test_a_column_of_another_case_is_the_same(people: Catalog) -> None:
    found = options_of(people, pa.schema([("id", pa.int64()), ("SSN", pa.string())]))
    assert (found["orc.encrypt"], found["orc.mask"]) == ("pii:SSN", "sha256:SSN")


def test_a_column_of_another_type_is_encrypted_without_its_mask(people: Catalog) -> None:
    found = options_of(people, pa.schema([("ssn", pa.int64())]))
    assert (found["orc.encrypt"], "orc.mask" in found) == ("pii:ssn", False)


def test_what_cannot_be_encrypted_is_refused(people: Catalog) -> None:
    for layout in ({"partition_keys": ["ssn"]}, {"options": {"file.format": "parquet"}}):
        with pytest.raises(PlaintextError, match="it cannot be encrypted as before"):
            options_of(people, **layout)


def test_the_choice_of_the_table_comes_first(people: Catalog) -> None:
    schema = Schema.from_arrow(ROWS.schema)
    with pytest.warns(PlaintextWarning, match="add 'pii:ssn' to 'orc.encrypt' of the new table"):
        made = people.replace_table("db.t", schema, on_plaintext="warn")
    assert "orc.encrypt" not in made.schema.options
    with pytest.raises(PlaintextError, match=f"refused by '{OPTION}'"):
        people.replace_table("db.t", schema, on_plaintext="refuse")
    people.alter_table("db.t", [SetOption(OPTION, "refuse")])
    for given in (schema, dataclasses.replace(schema, options={OPTION: "warn"})):
        with pytest.raises(PlaintextError, match=f"refused by '{OPTION}'"):
            people.replace_table("db.t", given, on_plaintext="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = options_of(people, options={"orc.encrypt": "pii:ssn"})
        assert (said["orc.encrypt"], said[OPTION]) == ("pii:ssn", "refuse")
        assert "orc.encrypt" not in options_of(people, pa.schema([("id", pa.int64())]))


def test_a_kept_layout_needs_its_key(people: Catalog) -> None:
    with pytest.raises(InputError, match="no column 'id', which is part of the table's primary key"):
        people.replace_table("db.t", Schema.from_arrow(ROWS.schema.remove(0)), keeps_layout=True)


def test_a_column_that_one_statement_drops_and_adds(people: Catalog) -> None:
    changes: list[Any] = [DropColumn(("ssn",)), AddColumn(("ssn",), STRING)]
    with pytest.warns(PlaintextWarning, match="once had a column 'ssn' that was encrypted"):
        people.alter_table("db.t", changes)
    people.alter_table("db.t", [SetOption("orc.encrypt", "pii:ssn")])
    with pytest.raises(PlaintextError, match="once had a column 'ssn'"):
        people.alter_table("db.t", changes, on_plaintext="refuse")
