"""Key tables with deletion vectors: each write is followed by the compaction that shows its rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate import procedures
from lockgate.errors import CommitConflictError, KeyMissingError, OptionError, UnsupportedError
from lockgate.framework.keys import create_key_file
from lockgate.framework.store import Catalog, CommitKind, Schema, Table
from lockgate.framework.store.commit.commit import commit_messages
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.scan.readable_files import stored_entries
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.store.write import new_rows
from lockgate.pushdown import Aggregate, Function, col

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.int32())])
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "warehouse")
    catalog.create_namespace("db")
    return catalog


def make(
    catalog: Catalog, options: Mapping[str, str] | None = None, *, keys: tuple[str, ...] = ("id",)
) -> Table:
    given = {"bucket": "1", **VECTORS, **(options or {})}
    parts = ("p",) if "p" in keys else ()
    return catalog.create_table(
        "db.t", Schema.from_arrow(COLUMNS, primary_keys=keys, partition_keys=parts, options=given)
    )


def rows(*ids: int, v: str = "a") -> pa.Table:
    return pa.table([list(ids), [v] * len(ids), [each % 2 for each in ids]], schema=COLUMNS)


def seen(table: Table, **options: Any) -> dict[int, str]:
    found = table.read(**options)
    mapped = dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert len(mapped) == found.num_rows, "a key shows twice"
    return mapped


def levels(table: Table) -> list[tuple[int, int, int]]:
    """Level, rows and rows left of each file."""
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    entries = stored_entries(table, snapshot)
    return sorted((each.file.level, each.file.row_count, each.live_rows) for each in entries)


def clean(table: Table) -> int:
    """Remove all orphans; the number of all files that nothing refers to."""
    found = remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)
    return found.data_files + found.other_files + found.young_files


def names(table: Table) -> set[str]:
    return {each.file.file_name for each in table.manifests.live_files(table.latest_snapshot())}


@pytest.mark.parametrize("bitmap64", ["true", "false"])
@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_a_write_marks_older_rows_and_writes_no_row_again(
    catalog: Catalog, bucket: str, bitmap64: str
) -> None:
    table = make(catalog, {"bucket": bucket, "deletion-vectors.bitmap64": bitmap64})
    written = table.append(rows(*range(1000)))
    before = names(table)
    assert seen(table) == dict.fromkeys(range(1000), "a")
    table.append(rows(3, 5, 2000, v="b"))
    expected = {**dict.fromkeys(range(1000), "a"), **dict.fromkeys((3, 5, 2000), "b")}
    assert seen(table) == expected
    assert before <= names(table)
    counted = table.aggregate([Aggregate(Function.COUNT)]).rows
    assert counted is not None
    assert counted.column(0).to_pylist() == [1001]
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds == [CommitKind.APPEND, CommitKind.COMPACT] * 2
    assert seen(table, snapshot_id=written.id) == {}
    table.delete(rows(5, 6).select(["id"]))
    table.delete(col("id") == 2000)
    del expected[5], expected[6], expected[2000]
    assert seen(table) == expected
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert seen(table) == expected
    assert {level for level, _, _ in levels(table)} == {5}
    assert all(count == left for _, count, left in levels(table))


def test_files_without_common_keys_move_as_they_are(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(1, 2))
    first = names(table)
    table.append(rows(10, 11))
    assert first < names(table)
    assert levels(table) == [(5, 2, 2), (5, 2, 2)]


def test_small_levels_are_taken_in(catalog: Catalog) -> None:
    table = make(catalog, {"num-levels": "3"})
    table.append(rows(*range(5000)))
    for number in range(20):
        table.append(rows(number, number + 1, v=f"v{number}"))
        assert seen(table)[number] == f"v{number}"
    assert max(level for level, _, _ in levels(table)) == 2
    assert len(levels(table)) <= 3


def test_overwrites_and_partitions(catalog: Catalog) -> None:
    table = make(catalog, keys=("id", "p"))
    table.append(rows(1, 2, 3, 4))
    table.append(rows(1, 2, v="b"))
    table.overwrite(rows(7, 1, v="c"), {"p": 1})
    assert seen(table) == {1: "c", 7: "c", 2: "b", 4: "a"}
    table.overwrite(rows(8))
    assert seen(table) == {8: "a"}
    snapshot = table.latest_snapshot()
    assert snapshot is not None
    assert snapshot.index_manifest is None


def test_history_can_go(catalog: Catalog) -> None:
    table = make(catalog, keys=("id",))
    table.append(rows(*range(20)))
    table.append(rows(1, v="b"))
    table.create_tag("second")
    table.append(rows(2, v="c"))
    expire_snapshots(table, retain_max=1, retain_min=1, older_than_millis=now_millis() + 1000)
    assert clean(table) == 0
    assert seen(table) == {**dict.fromkeys(range(20), "a"), 1: "b", 2: "c"}
    assert seen(table, tag="second") == {**dict.fromkeys(range(20), "a"), 1: "b"}
    table.rollback(tag="second")
    table.append(rows(3, v="d"))
    assert seen(table) == {**dict.fromkeys(range(20), "a"), 1: "b", 3: "d"}


def test_a_write_only_table_waits_for_compact(catalog: Catalog) -> None:
    table = make(catalog, {"write-only": "true"})
    table.append(rows(1, 2))
    table.append(rows(2, v="b"))
    assert seen(table) == {}
    with pytest.raises(CommitConflictError, match="no query shows before"):
        table.commit(table.write(rows(1, v="c")), base_snapshot_id=2)
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert seen(table) == {1: "a", 2: "b"}


def test_a_statement_never_misses_rows_that_were_not_shown(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would put what it computed from older rows in the place of newer ones."""
    table = make(catalog)
    table.append(rows(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(new_rows, "show_new_rows", lambda table: None)
        basis = table.append(rows(1, v="b"))
    new_rows.show_new_rows(table)
    assert seen(table) == {1: "b", 2: "a"}
    with pytest.raises(CommitConflictError, match="no query shows before"):
        table.commit(table.write(rows(1, v="from a")), base_snapshot_id=basis.id)
    latest = table.latest_snapshot()
    assert latest is not None
    table.commit(table.write(rows(2, v="c")), base_snapshot_id=latest.id)
    assert seen(table) == {1: "b", 2: "c"}


def test_rows_of_a_killed_writer_are_shown_by_the_next(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog)
    table.append(rows(1, 2))
    with monkeypatch.context() as patch:
        patch.setattr(new_rows, "show_new_rows", lambda table: None)
        table.append(rows(1, 3, v="b"))
    assert seen(table) == {1: "a", 2: "a"}
    table.append(rows(3, v="c"))
    assert seen(table) == {1: "b", 2: "a", 3: "c"}


def test_a_compaction_in_between_is_waited_for(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, {"commit.min-retry-wait": "0 ms"})
    table.append(rows(*range(10)))
    other = catalog.load_table("db.t")
    real, calls = commit_messages, list[int]()

    def commit(*arguments: Any, **named: Any) -> Any:
        if not calls:
            calls.append(1)
            with monkeypatch.context() as patch:
                patch.setattr(new_rows, "commit_messages", real)
                procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
        return real(*arguments, **named)

    monkeypatch.setattr(new_rows, "commit_messages", commit)
    other.append(rows(1, v="b"))
    assert calls
    assert seen(table) == {**dict.fromkeys(range(10), "a"), 1: "b"}
    assert clean(table) == 0, "the first try left files"


def test_a_failure_says_where_the_rows_are(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(catalog, {"commit.max-retries": "1", "commit.min-retry-wait": "0 ms"})
    table.append(rows(1, 2))

    def refuse(*arguments: Any, **named: Any) -> Any:
        raise CommitConflictError("no")

    with monkeypatch.context() as patch:
        patch.setattr(new_rows, "commit_messages", refuse)
        with pytest.raises(CommitConflictError, match=r"the rows are in db\.t, but no query shows them yet"):
            table.append(rows(2, v="b"))
    assert seen(table) == {1: "a", 2: "a"}
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    assert seen(table) == {1: "a", 2: "b"}


def test_masks_are_never_written_as_values(tmp_path: Path) -> None:
    keys = create_key_file(tmp_path / "keys.json", ["k"])
    catalog = Catalog(tmp_path / "secret", keys=keys)
    catalog.create_namespace("db")
    table = make(catalog, {"orc.encrypt": "k:v", "sequence.field": "p"})
    table.append(rows(1, 2, 3))
    stranger = Catalog(tmp_path / "secret").load_table("db.t")
    with pytest.raises(KeyMissingError):
        stranger.append(rows(1, v="b"))
    table.append(rows(1, v="b"))
    assert seen(table) == {1: "b", 2: "a", 3: "a"}


def test_what_vectors_are_not_possible_with(catalog: Catalog) -> None:
    for key, value in (("merge-engine", "first-row"), ("changelog-producer", "full-compaction")):
        with pytest.raises(OptionError, match=f"not possible with .* '{value}'"):
            make(catalog, {key: value})


def test_the_option_waits_for_a_compaction(catalog: Catalog) -> None:
    table = make(catalog, {"deletion-vectors.enabled": "false"})
    table.append(rows(1, 2))
    table.append(rows(2, v="b"))
    switch = [SetOption("deletion-vectors.enabled", "true")]
    with pytest.raises(UnsupportedError, match="would show twice, or not at all; run CALL"):
        catalog.alter_table("db.t", switch)
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t")
    table = catalog.alter_table("db.t", switch)
    table.append(rows(1, 5, v="c"))
    assert seen(table) == {1: "c", 2: "b", 5: "c"}
    with pytest.raises(UnsupportedError, match="other engines would show deleted rows"):
        catalog.alter_table("db.t", [SetOption("deletion-vectors.enabled", "false")])
