"""pypaimon on tables with sequence fields, branches and rollbacks made here, and the other way round."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lockgate.framework.store import Catalog, Schema

pytestmark = pytest.mark.interop

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("at", pa.int64())])


def make_rows(*rows: tuple[int, str, int | None]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def state(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["v"]) for row in rows.to_pylist())


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_sequence_fields(catalog: Catalog, referee: Any, order: str) -> None:
    options = {"bucket": "1", "sequence.field": "at", "sequence.field.sort-order": order}
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, primary_keys=["id"], options=options))
    table.append(make_rows((1, "five", 5), (2, "null", None), (3, "one", 1)))
    referee.write("db.t", make_rows((1, "four", 4), (2, "seven", 7), (3, "one again", 1)))
    table.append(make_rows((3, "null", None), (1, "six", 6)))
    winner = "six" if order == "ascending" else "four"
    assert state(table.read()) == [(1, winner), (2, "seven"), (3, "one again")]
    assert state(referee.read("db.t")) == state(table.read())


def test_branches_of_ours(catalog: Catalog, referee: Any) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
    table.append(make_rows((1, "a", 1)))
    table.create_tag("first")
    table.create_branch("dev", tag="first")
    dev = catalog.load_table("db.t$branch_dev")
    dev.append(make_rows((2, "b", 1)))
    assert state(referee.read("db.t$branch_dev")) == [(1, "a"), (2, "b")]
    referee.write("db.t$branch_dev", make_rows((3, "c", 1)))
    assert state(dev.read()) == [(1, "a"), (2, "b"), (3, "c")]
    assert state(referee.read("db.t")) == [(1, "a")]
    assert table.fast_forward("dev") == 2
    assert state(referee.read("db.t")) == state(table.read()) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_table_that_was_rolled_back(catalog: Catalog, referee: Any) -> None:
    table = catalog.create_table("db.t", Schema.from_arrow(SCHEMA))
    for number in (1, 2, 3):
        table.append(make_rows((number, "a", 1)))
    table.rollback(1)
    assert state(referee.read("db.t")) == [(1, "a")]
    referee.write("db.t", make_rows((9, "b", 1)))
    assert state(table.read()) == [(1, "a"), (9, "b")]
    assert [snapshot.id for snapshot in table.snapshots()] == [1, 2]
