"""What a table shows with the keys at hand and under a decision."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.framework.access import Decision, Mask, Sight
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.confidential.column_visibility import column_marks, visibility

SCHEMA = pa.schema([("id", pa.int64()), ("ssn", pa.string()), ("pay", pa.int64())])
OPTIONS = {"orc.encrypt": "pii:ssn;finance:pay", "orc.mask": "redact:ssn"}


def people(folder: Path, *held: str) -> Table:
    """Return a table of people, loaded with some of its keys."""
    keys = {"pii@0": b"p" * 16, "finance@0": b"f" * 16}
    catalog = Catalog(folder / "lake", keys=MemoryKeyProvider(keys))
    catalog.create_namespace("db")
    catalog.create_table("db.people", Schema.from_arrow(SCHEMA, options=OPTIONS))
    held_keys = {name: key for name, key in keys.items() if name.split("@")[0] in held}
    return Catalog(folder / "lake", keys=MemoryKeyProvider(held_keys) if held_keys else None).load_table(
        "db.people"
    )


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return people(tmp_path, "pii")


def test_keys_and_decisions_count_together(table: Table) -> None:
    seen = visibility(table, Decision(masks={"id": Mask("nullify")}))
    assert [seen.column(name).sight for name in SCHEMA.names] == [
        Sight.MASKED_BY_POLICY,
        Sight.CLEAR,
        Sight.MASKED_BY_KEY,
    ]
    assert list(column_marks(table, seen)) == ["ssn"]


def test_columns_outside_a_grant_are_denied(table: Table) -> None:
    seen = visibility(table, readable=["id"])
    assert [seen.column(name).sight for name in ("ssn", "pay")] == [Sight.DENIED, Sight.DENIED]


def test_a_table_without_keys_shows_masks(tmp_path: Path) -> None:
    blind = people(tmp_path)
    assert visibility(blind).missing_keys() == {"ssn": "pii", "pay": "finance"}
    assert column_marks(blind, visibility(blind)) == {}
