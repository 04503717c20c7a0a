"""Rows read from encrypted columns and written elsewhere in the clear, from Python."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from plain_search import found_in

from lockgate.errors import PlaintextError, PlaintextWarning
from lockgate.keys import KeyProvider, MemoryKeyProvider
from lockgate.orc import EncryptedOrcFile, OrcWriter, write_table
from lockgate.tables import Catalog, Schema, Table

SECRET = "999-11-"
ROWS = pa.table(
    {"id": pa.array([1, 2], pa.int32()), "ssn": [f"{SECRET}1", f"{SECRET}2"], "city": ["Riga", "Oslo"]}
)
TOLD = r"ssn \(from ssn of db\.people\).*'pii:ssn'"


@pytest.fixture
def keys() -> KeyProvider:
    return MemoryKeyProvider({"pii": bytes(16), "other": bytes(range(16))})


@pytest.fixture
def catalog(tmp_path: Path, keys: KeyProvider) -> Catalog:
    catalog = Catalog(str(tmp_path / "warehouse"), keys=keys)
    catalog.create_namespace("db")
    return catalog


def make(
    catalog: Catalog, name: str, options: dict[str, str] | None = None, key: tuple[str, ...] = ()
) -> Table:
    given = {"file.compression": "none", **(options or {})}
    return catalog.create_table(f"db.{name}", Schema.from_arrow(ROWS.schema, primary_keys=key, options=given))


@pytest.fixture
def people(catalog: Catalog) -> Table:
    table = make(catalog, "people", {"orc.encrypt": "pii:ssn"})
    table.append(ROWS)
    return table


# What a user may do between reading and writing, all of which Arrow hands the marks through.
WAYS: dict[str, Callable[[Table], object]] = {
    "read": lambda table: table.read(),
    "columns": lambda table: table.read(columns=["ssn", "id"]),
    "batch": lambda table: table.read().to_batches()[0],
    "batches": lambda table: table.read_batches(),
    "reader": lambda table: table.read().to_reader(),
    "filtered": lambda table: table.read().filter(pa.array([True, False])),
    "sorted and cut": lambda table: table.read().sort_by("id").slice(0, 1),
    "put together": lambda table: pa.concat_tables([table.read(), table.read()]),
    "more columns": lambda table: (
        table.read().drop_columns("city").append_column("city", pa.array(["a", "b"]))
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_gets_them(catalog: Catalog, people: Table, way: str) -> None:
    plain = make(catalog, "plain")
    with pytest.warns(PlaintextWarning, match=rf"db\.plain gets values .* in the clear: {TOLD}") as seen:
        plain.append(WAYS[way](people))  # type: ignore[arg-type]  # each way gives another type of data
    assert len(seen) == 1
    assert "999-11" in str(plain.read())


@pytest.mark.parametrize("way", ["read", "batches", "reader"])
def test_refused_by_the_table_or_its_warehouse(
    catalog: Catalog, people: Table, tmp_path: Path, keys: KeyProvider, way: str
) -> None:
    guarded = Catalog(str(tmp_path / "warehouse"), keys=keys, options={"encryption.on-plaintext": "refuse"})
    own = make(catalog, "own", {"encryption.on-plaintext": "refuse"})
    make(catalog, "plain")
    for table in (own, guarded.load_table("db.plain")):
        with pytest.raises(PlaintextError, match=rf"{TOLD}.*refused by 'encryption.on-plaintext'"):
            table.append(WAYS[way](people))  # type: ignore[arg-type]  # each way gives another type of data
        with pytest.raises(PlaintextError):
            table.overwrite(WAYS[way](people))  # type: ignore[arg-type]  # each way gives another type of data
        assert table.latest_snapshot() is None
        assert found_in(table.location, SECRET) == {}


def test_nothing_is_said_where_they_stay_encrypted_or_stay_away(catalog: Catalog, people: Table) -> None:
    copy, plain = make(catalog, "copy", {"orc.encrypt": "other:ssn"}), make(catalog, "plain")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        people.append(people.read())
        copy.append(people.read())
        plain.append(people.read(columns=["id", "city"]))
    assert found_in(copy.location, SECRET) == {}


def test_rows_changed_within_a_table_say_nothing(catalog: Catalog) -> None:
    table = make(catalog, "keyed", {"orc.encrypt": "pii:ssn", "bucket": "1"}, key=("id",))
    table.append(ROWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.append(table.read())
        table.delete(table.read(columns=["id"]))
    assert table.read().num_rows == 0


def test_masks_are_refused_and_not_taken_for_values(catalog: Catalog, people: Table, tmp_path: Path) -> None:
    blind = Catalog(str(tmp_path / "warehouse")).load_table("db.people")
    with pytest.warns(match="masks"):
        rows = blind.read()
    assert list(rows.schema.field("ssn").metadata) == [b"lockgate.masked"]


class TestFiles:
    def test_of_rows_from_a_table(self, people: Table, tmp_path: Path, keys: KeyProvider) -> None:
        rows = people.read()
        with pytest.warns(PlaintextWarning, match=rf"out\.orc gets values .*{TOLD}"):
            write_table(rows, tmp_path / "out.orc")
        with pytest.warns(PlaintextWarning, match="the file gets"), OrcWriter(io.BytesIO(), rows.schema):
            pass
        with pytest.raises(PlaintextError, match="ssn"):
            write_table(rows, tmp_path / "no.orc", on_plaintext="refuse")
        assert not (tmp_path / "no.orc").exists()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_table(rows, tmp_path / "sealed.orc", encrypt="other:ssn", keys=keys, on_plaintext="refuse")
            write_table(rows.select(["id"]), tmp_path / "ids.orc")
            # What the mark says is about these rows, and stays with them.
            assert not EncryptedOrcFile(tmp_path / "out.orc").schema.field("ssn").metadata

    def test_of_rows_from_a_file(self, catalog: Catalog, tmp_path: Path, keys: KeyProvider) -> None:
        path = tmp_path / "people.orc"
        write_table(ROWS, path, encrypt="pii:ssn", keys=keys)
        with EncryptedOrcFile(path, keys=keys) as file:
            rows, batch = file.read(), next(file.iter_batches())
            assert rows.schema.equals(file.schema, check_metadata=True)
        for each in (rows, pa.Table.from_batches([batch])):
            with pytest.warns(PlaintextWarning, match=r"ssn \(from ssn of .*people\.orc\).*'pii:ssn'"):
                write_table(each, tmp_path / "out.orc")
        with pytest.warns(PlaintextWarning, match=r"db\.plain gets"):
            make(catalog, "plain").append(rows)

    def test_parts_of_structs(self, tmp_path: Path, keys: KeyProvider) -> None:
        nested = pa.table({"a": [{"zip": SECRET, "city": "Riga"}]})
        write_table(nested, tmp_path / "in.orc", encrypt="pii:a.zip", keys=keys)
        with EncryptedOrcFile(tmp_path / "in.orc", keys=keys) as file:
            rows = file.read()
        with pytest.warns(PlaintextWarning, match="a \\(from a of"):
            write_table(rows, tmp_path / "out.orc")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write_table(rows, tmp_path / "out.orc", encrypt="pii:a.zip", keys=keys)
