"""`merge_schema`: new columns, wider types, and columns of history whose old values stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.errors import InputError, LockgateError, UnsupportedError
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.procedures import ProcedureResult
from lockgate.pushdown import col

pytestmark = pytest.mark.usefixtures("without_lineage")

Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("id", pa.int64()), ("port", pa.int32()), ("host", pa.string())])


@pytest.fixture
def table(catalog: Catalog) -> Table:
    options = {"index.values.columns": "port"}
    made = catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=options))
    made.append(pa.table({"id": [1, 2], "port": [80, 443], "host": ["a", "b"]}, schema=SCHEMA))
    return made


def test_columns_are_added_and_types_widened(catalog: Catalog, table: Table, run: Run) -> None:
    columns = "id INT, port bigint, `user name` STRING, price DECIMAL(10, 2)"
    planned = run("merge_schema", table="db.t", columns=columns, dry_run=True).to_dicts()
    assert catalog.load_table("db.t").schema.id == table.schema.id
    assert run("merge_schema", table="db.t", columns=columns).to_dicts() == planned
    assert [(row["column"], row["change"], row["old_type"]) for row in planned] == [
        ("port", "widened", "INT"),
        ("user name", "added", None),
        ("price", "added", None),
    ]
    after = catalog.load_table("db.t")
    assert after.schema.id == table.schema.id + 1
    assert after.read(predicate=col("port") == 443, columns=["id", "port", "user name"]).to_pylist() == [
        {"id": 2, "port": 443, "user name": None}
    ]
    assert run("merge_schema", table="db.t", columns=columns).to_dicts() == []


def test_not_null_is_dropped_for_data_that_may_be_null(catalog: Catalog, run: Run) -> None:
    not_null = [pa.field(name, pa.int32(), nullable=False) for name in ("id", "a", "b", "c", "d")]
    schema = pa.schema(not_null)
    table = catalog.create_table(
        "db.n", Schema.from_arrow(schema, primary_keys=["id"], options={"bucket": "1"})
    )
    table.append(pa.table({name: pa.array([1], pa.int32()) for name in schema.names}, schema=schema))
    columns = "id INT, a INT, b BIGINT, c INT NOT NULL, d STRING"
    planned = run("merge_schema", table="db.n", columns=columns, on_type_change="history").to_dicts()
    assert [(row["column"], row["change"], row["type"], row["old_type"]) for row in planned] == [
        ("a", "nullable", "INT", "INT NOT NULL"),
        ("b", "widened", "BIGINT", "INT"),
        ("d", "history", "STRING", "INT"),
    ]
    table = catalog.load_table("db.n")
    assert [field.name for field in table.schema.fields if not field.type.nullable] == ["id", "c"]
    table.append(pa.table({"id": pa.array([2], pa.int32()), "c": pa.array([3], pa.int32())}))
    assert sorted(table.read(columns=["id", "b"])["b"].to_pylist(), key=str) == [1, None]


def test_old_values_become_a_column_of_history(catalog: Catalog, table: Table, run: Run) -> None:
    with pytest.raises(UnsupportedError, match=r"'port' \(INT\) are not all of type STRING"):
        run("merge_schema", table="db.t", columns="port STRING")
    (row,) = run("merge_schema", table="db.t", columns="port STRING", on_type_change="history").to_dicts()
    assert (row["change"], row["history_column"]) == ("history", f"port_v{table.schema.id}")
    after = catalog.load_table("db.t")
    assert after.schema.field_names == ("id", f"port_v{table.schema.id}", "port", "host")
    after.append(pa.table({"id": [3], "port": ["https"], "host": ["c"]}))
    assert after.read(columns=["id", "port", row["history_column"]]).to_pylist() == [
        {"id": 1, "port": None, row["history_column"]: 80},
        {"id": 2, "port": None, row["history_column"]: 443},
        {"id": 3, "port": "https", row["history_column"]: None},
    ]
    # The index finds old values under their new name, and takes none of them for new ones.
    assert after.read(predicate=col(row["history_column"]) == 80)["id"].to_pylist() == [1]
    assert after.read(predicate=col("port") == "https")["id"].to_pylist() == [3]
    # Once more: another version.
    (again,) = run("merge_schema", table="db.t", columns="port DATE", on_type_change="HISTORY").to_dicts()
    assert again["history_column"] == f"port_v{after.schema.id}"


def test_the_option_of_the_table_decides(catalog: Catalog, run: Run) -> None:
    options = {"schema.on-type-change": "history"}
    catalog.create_table("db.t", Schema.from_arrow(SCHEMA, options=options))
    assert run("merge_schema", table="db.t", columns="port STRING").to_dicts()[0]["change"] == "history"
    with pytest.raises(UnsupportedError):
        run("merge_schema", table="db.t", columns="host INT", on_type_change="refuse")


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("id", "columns are written"),
        ("id INT,", "columns are written"),
        ("id INT, id BIGINT", "'id' is named twice"),
        ("tags ARRAY<STRING>", "'tags': .* cannot be parsed"),
        ("HOST STRING", "differs from the column 'host' in case only"),
        ("a b c", "cannot be parsed"),
    ],
)
def test_what_is_no_list_of_columns_is_refused(table: Table, run: Run, columns: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        run("merge_schema", table=str(table.identifier), columns=columns)


def test_keys_and_secrets_do_not_become_history(catalog: Catalog, run: Run, tmp_path: Path) -> None:
    catalog.create_table("db.k", Schema.from_arrow(SCHEMA, primary_keys=["id"], options={"bucket": "1"}))
    with pytest.raises(UnsupportedError, match="'id' finds or orders"):
        run("merge_schema", table="db.k", columns="id STRING", on_type_change="history")
    with pytest.raises(InputError, match="on_type_change cannot be 'histroy'; did you mean 'history'"):
        run("merge_schema", table="db.k", columns="id STRING", on_type_change="histroy")
    create_key_file(tmp_path / "keys.json", ["k"])
    secret = Catalog(tmp_path / "secret", keys=f"file:{tmp_path / 'keys.json'}")
    secret.create_namespace("db")
    secret.create_table("db.t", Schema.from_arrow(SCHEMA, options={"orc.encrypt": "k:host"}))
    with pytest.raises(UnsupportedError, match="'host' is encrypted"):
        run("merge_schema", table="db.t", columns="host DATE", on_type_change="history", within=secret)
    with pytest.raises(LockgateError):
        run("merge_schema", table="db.nowhere", columns="id INT")
