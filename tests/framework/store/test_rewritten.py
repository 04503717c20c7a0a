"""Files that are rewritten by somebody who loaded the table before it was altered."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lockgate.errors import CommitConflictError
from lockgate.framework.store import Catalog, CommitMessage, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn
from lockgate.framework.types import BIGINT

MakeTable = Callable[..., Table]


def _rewriting(table: Table, snapshot_id: int) -> list[CommitMessage]:
    """Rewrite all rows of a snapshot, as a compaction does, by the columns that `table` knows."""
    rows = table.read(snapshot_id=snapshot_id).select(table.schema.field_names)
    live = table.manifests.live_files(table.snapshot(snapshot_id))
    gone = [
        CommitMessage(entry.partition, entry.bucket, entry.total_buckets, deleted=(entry.file,))
        for entry in live
    ]
    return [*table.write(rows), *gone]


@pytest.mark.parametrize("primary_keys", [(), ("id",)])
def test_new_columns_are_not_lost(
    catalog: Catalog, make_table: MakeTable, primary_keys: tuple[str, ...]
) -> None:
    early = make_table(primary_keys=primary_keys, bucket="1" if primary_keys else "-1")
    early.append(pa.table({"id": [1], "v": ["a"]}))
    catalog.alter_table("db.t", [AddColumn(("x",), BIGINT)])
    # A file that was written before the change holds nothing that its rewriter does not know.
    early.commit(_rewriting(early, 1), kind="COMPACT")
    catalog.load_table("db.t").append(pa.table({"id": [2], "v": ["b"], "x": [42]}))
    with pytest.raises(CommitConflictError, match="written after the table was altered"):
        early.commit(_rewriting(early, 3), kind="COMPACT")
    late = catalog.load_table("db.t")
    late.commit(_rewriting(late, 3), kind="COMPACT")
    found = catalog.load_table("db.t").read().to_pylist()
    assert sorted((row["id"], row["x"]) for row in found) == [(1, None), (2, 42)]


def test_files_that_are_only_deleted(catalog: Catalog, make_table: MakeTable) -> None:
    early = make_table()
    catalog.alter_table("db.t", [AddColumn(("x",), BIGINT)])
    catalog.load_table("db.t").append(pa.table({"id": [2], "v": ["b"], "x": [42]}))
    early.overwrite(pa.table({"id": [3], "v": ["c"]}))
    assert catalog.load_table("db.t").read().to_pylist() == [{"id": 3, "v": "c", "x": None}]
