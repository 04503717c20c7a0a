"""Texts of CHAR(n) and VARCHAR(n): filled up, or refused, so that keys are those of other writers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lockgate.errors import InputError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.write.write import write_files
from lockgate.framework.types import BIGINT, DataField, Kind, sized
from lockgate.pushdown import Comparison, Op


@pytest.fixture
def codes(catalog: Catalog) -> Table:
    """A key table with the columns (code CHAR(4), name VARCHAR(3), id BIGINT), the first of them the key."""
    fields = (
        DataField(0, "code", sized(Kind.CHAR, 4)),
        DataField(1, "name", sized(Kind.VARCHAR, 3)),
        DataField(2, "id", BIGINT),
    )
    return catalog.create_table("db.t", Schema(fields, primary_keys=("code",), options={"bucket": "4"}))


def _rows(*rows: tuple[str | None, str | None, int]) -> pa.Table:
    code, name, ids = zip(*rows, strict=True)
    return pa.table({"code": pa.array(code), "name": pa.array(name), "id": pa.array(ids, pa.int64())})


def _found(table: Table) -> list[tuple[str, str | None, int]]:
    rows = table.read().to_pylist()
    return sorted((row["code"], row["name"], row["id"]) for row in rows)


def test_keys_are_filled_up(codes: Table) -> None:
    codes.append(_rows(("a", "x", 1), ("é", None, 2), ("a   ", "y ", 3), ("abcd    ", "abc  ", 4)))
    assert _found(codes) == [("a   ", "y ", 3), ("abcd", "abc", 4), ("é   ", None, 2)]
    codes.append(_rows(("a ", "new", 5)))
    codes.delete(pa.table({"code": ["é"]}))
    assert _found(codes) == [("a   ", "new", 5), ("abcd", "abc", 4)]


@pytest.mark.parametrize("row", [("abcde", "x", 1), ("abcd", "wxyz", 1)])
def test_texts_that_are_too_long(codes: Table, row: tuple[str, str, int]) -> None:
    with pytest.raises(
        InputError, match=r"column '(code|name)' is a .*CHAR\(\d\).*: a text has \d characters"
    ):
        codes.append(_rows(row))
    assert codes.latest_snapshot() is None


def test_keys_of_another_writer_are_deleted_as_they_are(codes: Table) -> None:
    codes.commit(write_files(codes, _rows(("a", "x", 1), ("b", "too long", 2)), stored=True))
    assert _found(codes) == [("a", "x", 1), ("b", "too long", 2)]
    codes.delete(Comparison(Op.EQ, ("id",), (pa.scalar(2),)))
    assert _found(codes) == [("a", "x", 1)]
