"""Tables whose values were once in the clear, and the ways by which they came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, RemoveOption, RenameColumn, SetOption
from lockgate.framework.store.handle import TableContext
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext, call

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("ssn", pa.string()), ("v", pa.int32())])
SECRET = "666-55-"
ENCRYPT = SetOption("orc.encrypt", "pii:ssn")


def make(catalog: Catalog, keys: Sequence[str] = (), **options: str) -> Table:
    bucket = {"bucket": "2"} if keys else {}
    texts = {"metadata.stats-mode": "full", "file.compression": "none", **bucket, **options}
    return catalog.create_table("db.t", Schema.from_arrow(COLUMNS, primary_keys=keys, options=texts))


def people(*ids: int, secret: str = SECRET) -> pa.Table:
    return pa.table(
        {"id": list(ids), "ssn": [f"{secret}{each:04}" for each in ids], "v": list(ids)}, schema=COLUMNS
    )


def unencrypted(table: Table) -> Table:
    """The table for a writer that ignores `orc.encrypt`."""
    options = {key: value for key, value in table.schema.options.items() if not key.startswith("orc.")}
    return Table(
        table.identifier,
        table.location,
        replace(table.schema, options=options),
        TableContext(table.file_system),
    )


def content(table: Table) -> list[dict[str, Any]]:
    return sorted(table.read(strict=True).to_pylist(), key=repr)


# --- the roads by which values come in -----------------------------------------------------------


def written_before(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys)
    for number in range(4):
        table.append(people(number))
    catalog.alter_table("db.t", [ENCRYPT])


def foreign_writer(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys, **{"orc.encrypt": "pii:ssn"})
    table.append(people(1))
    unencrypted(table).append(people(2, 3))
    table.append(people(4))


def overwritten(catalog: Catalog, keys: Sequence[str]) -> None:
    written_before(catalog, keys)
    catalog.load_table("db.t").overwrite(people(8, 9))


def deleted(catalog: Catalog, keys: Sequence[str]) -> None:
    written_before(catalog, keys)
    table = catalog.load_table("db.t")
    if keys:
        table.delete(pa.table({"id": pa.array([1, 2], pa.int64())}))
    table.append(people(20))


def compacted_in_the_clear(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys)
    for number in range(3):
        table.append(people(number))
    call(ProcedureContext(catalog), "compact", table="db.t")
    catalog.alter_table("db.t", [ENCRYPT])


def rolled_back(catalog: Catalog, keys: Sequence[str]) -> None:
    written_before(catalog, keys)
    table = catalog.load_table("db.t")
    table.append(people(7))
    table.rollback(3)


def renamed(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys)
    table.append(people(1))
    catalog.alter_table("db.t", [RenameColumn(("ssn",), "number"), AddColumn(("more",), STRING)])
    catalog.alter_table("db.t", [SetOption("orc.encrypt", "pii:number")])
    catalog.load_table("db.t").append(pa.table({"id": [2], "number": [f"{SECRET}2"]}))
    catalog.alter_table("db.t", [RenameColumn(("number",), "again")])


def moved_to_another_key(catalog: Catalog, keys: Sequence[str]) -> None:
    foreign_writer(catalog, keys)
    catalog.alter_table("db.t", [SetOption("orc.encrypt", "other:ssn")])


def encryption_taken_back_once(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys, **{"orc.encrypt": "pii:ssn"})
    table.append(people(1))
    table = catalog.alter_table("db.t", [RemoveOption("orc.encrypt")])
    table.append(people(2))
    catalog.alter_table("db.t", [ENCRYPT])


def bounds_cut_short(catalog: Catalog, keys: Sequence[str]) -> None:
    table = make(catalog, keys, **{"metadata.stats-mode": "truncate(7)"})
    table.append(people(1))
    table.append(people(2))
    catalog.alter_table("db.t", [ENCRYPT])


ROADS = [
    written_before,
    foreign_writer,
    overwritten,
    deleted,
    compacted_in_the_clear,
    rolled_back,
    renamed,
    moved_to_another_key,
    encryption_taken_back_once,
    bounds_cut_short,
]
