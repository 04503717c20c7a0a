"""Columns of types that this version does not know: they are shown, left as they are, and refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opaque_tables import TYPES, opaque_table
from zoo import unpack

from lockgate.errors import LockgateError, UnsupportedFormatError, UnsupportedTypeError
from lockgate.framework.store import (
    AddColumn,
    Between,
    Catalog,
    ChangeType,
    DropColumn,
    ReadRequest,
    RenameColumn,
    Schema,
    SetOption,
    Table,
)
from lockgate.framework.store.scan.read import read_table
from lockgate.framework.types import BYTES, STRING, array, parse_column, to_spark_json, type_to_json
from lockgate.procedures import ProcedureContext, call, procedure_registry
from lockgate.pushdown import col

MakeOpaque = Callable[..., Table]


@pytest.fixture
def make(tmp_path: Path) -> MakeOpaque:
    def made(name: str, **parts: Any) -> Table:
        catalog = Catalog(tmp_path)
        catalog.create_namespace("db")
        return opaque_table(catalog, "db.t", name, **parts)

    return made


def bytes_below(table: Table) -> dict[str, bytes]:
    root = Path(table.location)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_spelled_and_written_back_as_it_was(name: str) -> None:
    kind, _, text = TYPES[name]
    for suffix in ("", " NOT NULL"):
        given = kind + suffix if isinstance(kind, str) else {**kind, "type": kind["type"] + suffix}
        field = parse_column({"id": 1, "name": "v", "type": given})
        assert (field.type.is_opaque, field.type.nullable, str(field.type)) == (
            True,
            not suffix,
            text + suffix,
        )
        assert type_to_json(field.type) == given
    assert to_spark_json([field], opaque=True)["fields"][0]["metadata"] == {"lockgate.opaque": text}


@pytest.mark.parametrize("given", ["", " ", 7, None, {}, {"type": 3}, []])
def test_what_names_no_type_is_refused(given: Any) -> None:
    with pytest.raises(UnsupportedTypeError, match="column 'v'"):
        parse_column({"id": 1, "name": "v", "type": given})


@pytest.mark.parametrize("file_format", ["orc", "parquet"])
@pytest.mark.parametrize("name", TYPES)
def test_other_columns_are_read_and_filtered(make: MakeOpaque, name: str, file_format: str) -> None:
    table = make(name, file_format=file_format)
    assert table.read(columns=["n", "id"]).sort_by("id").to_pydict() == {
        "n": ["n1", "n2", "n3"],
        "id": [1, 2, 3],
    }
    assert table.read(columns=["id"], predicate=col("n") == "n3").to_pydict() == {"id": [3]}
    changes = table.changes(ReadRequest(columns=("id",), between=Between(1, 2)))
    assert [row["id"] for change in changes for row in pa.table(change.rows).to_pylist()] == [3]


@pytest.mark.parametrize("name", TYPES)
def test_the_column_is_refused_by_name(make: MakeOpaque, name: str) -> None:
    table = make(name)
    for read in (
        table.read,
        lambda: table.read(columns=["v"]),
        lambda: table.read(columns=["id"], predicate=col("v").is_null()),
        lambda: table.scan(ReadRequest(columns=("id", "v"))),
        lambda: list(table.changes(ReadRequest(between=Between(0, 2)))),
        lambda: table.system("audit_log"),
    ):
        with pytest.raises(UnsupportedTypeError, match=r"'v' .*these can be: id, n"):
            read()


WRITES: dict[str, Callable[[Table, ProcedureContext], object]] = {
    "append": lambda table, _: table.append(pa.table({"id": [4], "n": ["n"]})),
    "delete": lambda table, _: table.delete(col("n").is_null()),
    "compact": lambda _, context: call(context, "compact", "db.t", compact_strategy="full"),
    "overwrite": lambda table, _: table.overwrite(pa.table({"id": [4], "n": ["n"]})),
}


@pytest.mark.parametrize("keys", [[], ["id"]])
@pytest.mark.parametrize("write", WRITES)
def test_whatever_writes_rows_is_refused_and_changes_nothing(
    make: MakeOpaque, keys: list[str], write: str, tmp_path: Path
) -> None:
    options = {"bucket": "1"} if keys else {"deletion-vectors.enabled": "true"}
    table = make("variant", primary_keys=keys, options=options)
    before = bytes_below(table)
    with pytest.raises(UnsupportedFormatError, match="column 'v' of type VARIANT cannot be written"):
        WRITES[write](table, ProcedureContext(Catalog(tmp_path)))
    assert bytes_below(table) == before


def test_rows_are_not_sorted(make: MakeOpaque, tmp_path: Path) -> None:
    table = make("multiset")
    before = bytes_below(table)
    with pytest.raises(
        UnsupportedFormatError, match=r"column 'v' of type MULTISET<STRING> cannot be written"
    ):
        call(ProcedureContext(Catalog(tmp_path)), "compact", "db.t", order_strategy="order", order_by="id")
    assert bytes_below(table) == before


def test_the_schema_changes_around_it(make: MakeOpaque, tmp_path: Path) -> None:
    table = make("multiset")
    catalog = Catalog(tmp_path)
    catalog.alter_table("db.t", [AddColumn(("m",), STRING), RenameColumn(("v",), "w")])
    table = catalog.load_table("db.t")
    assert table.schema.to_json()["fields"][1]["type"] == TYPES["multiset"][0]
    assert table.read(columns=["id", "m"]).num_rows == 3
    with pytest.raises(LockgateError, match="'w'"):
        catalog.alter_table("db.t", [ChangeType(("w",), BYTES)])
    with pytest.raises(UnsupportedTypeError, match="'x'"):
        catalog.alter_table("db.t", [AddColumn(("x",), array(table.schema.field("w").type))])
    with pytest.raises(UnsupportedTypeError, match="'w'"):
        catalog.create_table("db.copy", Schema(table.schema.fields))
    catalog.alter_table("db.t", [DropColumn(("w",))])
    table = catalog.load_table("db.t")
    table.append(pa.table({"id": [4], "n": ["n4"], "m": ["m"]}))
    assert table.read().num_rows == 4


def test_maintenance_of_metadata_carries_it(make: MakeOpaque, tmp_path: Path) -> None:
    table = make("blob")
    context = ProcedureContext(Catalog(tmp_path))
    files = {name: data for name, data in bytes_below(table).items() if name.startswith("bucket")}
    table.create_tag("one", 1)
    table.create_branch("b", tag="one")
    call(context, "expire_snapshots", "db.t", retain_max=1)
    call(context, "remove_orphan_files", "db.t", older_than="2000-01-01")
    Catalog(tmp_path).alter_table("db.t", [SetOption("file-index.bloom-filter.columns", "n")])
    assert {name: data for name, data in bytes_below(table).items() if name.startswith("bucket")} == files
    assert Catalog(tmp_path).load_table("db.t$branch_b").read(columns=["id"]).num_rows == 2
    before = bytes_below(table)
    with pytest.raises(UnsupportedFormatError, match="column 'v' of type BLOB"):
        call(context, "clone", "db.t", "db.copy")
    assert bytes_below(table) == before
    assert not Catalog(tmp_path).table_exists("db.copy")


def procedures_of_one_table() -> list[str]:
    """Return the procedures that need a table at most with a condition, and do not delete what is named."""
    deleting = {"drop_partition", "purge_files"}
    required = {
        name: {each.name for each in procedure_registry.find(name).parameters if each.required}
        for name in {*procedure_registry.names()} - deleting
    }
    return sorted(name for name, needed in required.items() if {"table"} <= needed <= {"table", "where"})


@pytest.mark.parametrize("name", procedures_of_one_table())
def test_each_procedure_leaves_data_files_as_they_are(make: MakeOpaque, tmp_path: Path, name: str) -> None:
    required = {each.name for each in procedure_registry.find(name).parameters if each.required}
    options = {"file-index.bloom-filter.columns": "n", "deletion-vectors.enabled": "true"}
    table = make("blob", options=options)
    before = bytes_below(table)
    arguments = {"where": "id = 1"} if "where" in required else {}
    try:
        call(ProcedureContext(Catalog(tmp_path)), name, "db.t", **arguments)
    except LockgateError:
        assert bytes_below(table) == before
    else:
        after = bytes_below(table)
        files = {path for path in before if path.endswith(".orc")}
        assert {path: after[path] for path in files} == {path: before[path] for path in files}
        assert {path for path in after if path.endswith(".orc")} == files


def test_a_key_of_such_a_type_is_refused(make: MakeOpaque, tmp_path: Path) -> None:
    table = make("later", primary_keys=["id"], options={"bucket": "1"})
    file = next(Path(table.location, "schema").iterdir())
    file.write_text(file.read_text().replace("BIGINT NOT NULL", "LATER NOT NULL"))
    with pytest.raises(UnsupportedFormatError, match="'id', which is a key, has the type LATER NOT NULL"):
        Catalog(tmp_path).load_table("db.t")


def test_a_column_that_had_such_a_type_is_refused_where_files_hold_it(make: MakeOpaque) -> None:
    """Other engines may change a type that this version does not know into one that it does."""
    table = make("later")
    file = Path(table.location, "schema", "schema-0")
    content = json.loads(file.read_text())
    content["id"], content["fields"][1]["type"] = 1, "BIGINT"
    Path(table.location, "schema", "schema-1").write_text(json.dumps(content))
    table = Catalog(Path(table.location).parents[1]).load_table("db.t")
    assert not table.schema.field("v").type.is_opaque
    with pytest.raises(UnsupportedTypeError, match="'v'"):
        read_table(table, table.scan(ReadRequest(columns=("v",))))


def test_a_table_of_paimons_own(tmp_path: Path) -> None:
    table = Catalog(unpack(tmp_path)).load_table("zoo.variant")
    assert table.read(columns=["k"]).num_rows == 0
    with pytest.raises(UnsupportedTypeError, match="'v' of type VARIANT"):
        table.read()
