"""Tables of other engines whose options say where files lie, or what rows mean."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError
from lockgate.framework.store import Catalog, SimpleStats, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.pushdown import col

MakeTable = Callable[..., Table]


def with_option(catalog: Catalog, table: Table, key: str, value: str) -> Table:
    """Give a table an option that is refused when it is declared here."""
    path = Path(table.location) / "schema" / "schema-0"
    schema = json.loads(path.read_text())
    schema["options"][key] = value
    path.write_text(json.dumps(schema))
    return catalog.load_table("db.t")


def test_rows_that_say_their_kind_themselves(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(pa.table({"id": [1], "v": ["+I"]}))
    table = with_option(catalog, table, "rowkind.field", "v")
    table.append(pa.table({"id": [1, 2], "v": ["-D", "+U"]}))
    assert table.read().to_pylist() == [{"id": 2, "v": "+U"}]


@pytest.mark.parametrize("scheme", ["file:", "file://", ""])
def test_files_outside_the_table(make_table: MakeTable, tmp_path: Path, scheme: str) -> None:
    make_table()
    outer = Catalog(tmp_path / "warehouse", options={"external-roots": f"/other, {scheme}{tmp_path}/outside"})
    table = outer.load_table("db.t")
    rows = pa.table({"id": [1], "v": ["a"]})
    messages = table.write(rows)
    file = messages[0].added[0]
    outside = tmp_path / "outside" / "bucket-0" / file.file_name
    outside.parent.mkdir(parents=True)
    shutil.move(table.paths.data_file((), 0, file), outside)
    table.commit([replace(messages[0], added=(replace(file, external_path=f"{scheme}{outside}"),))])
    assert table.read().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("keys", [("id",), ()])
def test_partitions_that_others_gave_another_number_of_buckets(
    catalog: Catalog, make_table: MakeTable, keys: tuple[str, ...]
) -> None:
    """Paimon's `rescale` rewrites a partition and leaves the option `bucket` as it was."""
    options = {"bucket": "2"} if keys else {"bucket": "2", "bucket__key": "id"}
    table = make_table(primary_keys=keys, **options)
    rows = pa.table({"id": list(range(20)), "v": ["old"] * 20})
    table.append(rows)
    catalog.alter_table("db.t", [SetOption("bucket", "4")])
    rescaled = catalog.load_table("db.t").write(rows)
    catalog.alter_table("db.t", [SetOption("bucket", "2")])
    for schema in ("schema-1", "schema-2"):
        (Path(table.location) / "schema" / schema).unlink()
    moved = [
        replace(message, added=tuple(replace(file, schema_id=0) for file in message.added))
        for message in rescaled
    ]
    table = Catalog(catalog.warehouse).load_table("db.t")
    table.commit(moved, overwrite={})
    with pytest.raises(CommitConflictError, match=r"has 4 buckets.*written for 2.*'bucket' to 4"):
        table.append(rows.slice(3, 1))
    assert table.read().num_rows == 20
    catalog.alter_table("db.t", [SetOption("bucket", "4")])
    changed = rows.slice(3, 1).set_column(1, "v", pa.array(["new"]))
    catalog.load_table("db.t").append(changed)
    assert catalog.load_table("db.t").read().num_rows == (20 if keys else 21)


@pytest.mark.parametrize("named", ["value_stats_cols", "write_cols"])
def test_files_with_ids_of_rows(make_table: MakeTable, named: str) -> None:
    """Paimon adds these columns, with statistics, to files that it rewrites in tables with row tracking."""
    table = make_table()
    table.append(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    (message,) = table.write(pa.table({"id": [3, 4], "v": ["c", "d"]}))
    (file,) = message.added
    low, high, nulls = file.value_stats.min, file.value_stats.max, file.value_stats.null_counts
    stats = SimpleStats((*low, 0, 1), (*high, 1, 1), (*nulls, 0, 0))
    columns = {"value_stats_cols": None, named: ("id", "v", "_ROW_ID", "_SEQUENCE_NUMBER")}
    changed = replace(file, value_stats=stats, **columns)
    table.commit([replace(message, added=(changed,))])
    assert table.read(predicate=col("id") == 4)["v"].to_pylist() == ["d"]
    assert table.read(predicate=col("v") == "a")["id"].to_pylist() == [1]
    assert table.read().num_rows == 4
