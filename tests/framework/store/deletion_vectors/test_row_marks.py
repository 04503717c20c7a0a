"""DELETE in append tables by deletion vectors: no file is rewritten, and nobody's deletion is lost."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples

from lockgate.errors import CommitConflictError, UnsupportedError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import RemoveOption, SetOption
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.metadata.snapshot import CommitKind, Snapshot
from lockgate.framework.store.scan.readable_files import visible_entries
from lockgate.procedures.builtin.compact.compact import Compact
from lockgate.procedures.procedure import ProcedureContext
from lockgate.pushdown import Aggregate, Function, col

COLUMNS = pa.schema([("id", pa.int64()), ("p", pa.int32()), ("v", pa.string())])


def make(catalog: Catalog, name: str = "t", *, partitioned: bool = False, **options: str) -> Table:
    given = {"deletion-vectors.enabled": "true", **options}
    keys = ["p"] if partitioned else []
    return catalog.create_table(f"db.{name}", Schema.from_arrow(COLUMNS, partition_keys=keys, options=given))


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "p": [each % 3 for each in ids], "v": [f"v{each}" for each in ids]}, COLUMNS
    )


def ids(table: Table, **options: Any) -> list[int]:
    return sorted(table.read(**options)["id"].to_pylist())


def files(table: Table) -> set[str]:
    return {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}


def newest(table: Table) -> Snapshot:
    found = table.latest_snapshot()
    assert found is not None
    return found


def compact(catalog: Catalog, name: str = "t", strategy: str = "full") -> dict[str, Any]:
    context = ProcedureContext(catalog, report=lambda line: None)
    arguments = {each.name: each.default for each in Compact.parameters}
    (row,) = Compact().call(context, **{**arguments, "table": f"db.{name}", "compact_strategy": strategy})
    return dict(zip((name for name, _ in Compact.result), row, strict=True))


@pytest.mark.parametrize(
    "options", [{}, {"bucket": "2", "bucket-key": "id"}, {"deletion-vectors.bitmap64": "true"}]
)
def test_rows_are_deleted_where_they_lie(catalog: Catalog, options: dict[str, str]) -> None:
    table = make(catalog, **options)
    table.append(rows(*range(10)))
    table.append(rows(20, 21))
    before = files(table)
    table.delete(col("id").isin([2, 5]))
    table.delete((col("v") == "v7") | (col("id") == 20))
    assert ids(table) == [0, 1, 3, 4, 6, 8, 9, 21]
    assert files(table) == before
    assert newest(table).commit_kind is CommitKind.OVERWRITE
    assert ids(table, snapshot_id=3) == [0, 1, 3, 4, 6, 7, 8, 9, 20, 21]
    assert table.aggregate([Aggregate(Function.COUNT)]).rows.column(0).to_pylist() == [8]
    table.append(rows(2))
    assert ids(table) == [0, 1, 2, 3, 4, 6, 8, 9, 21]


def test_a_file_without_rows_goes(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete(col("id") == 1)
    table.delete(col("id") == 2)
    assert ids(table) == [3]
    assert len(files(table)) == 1
    assert newest(table).index_manifest is None


def test_nothing_to_delete_is_no_commit(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(1, 2))
    assert table.delete(col("id") == 7).id == 1


def test_untouched_index_files_stay(catalog: Catalog) -> None:
    table = make(catalog, partitioned=True)
    table.append(rows(*range(12)))
    table.delete(col("id") == 0)
    index = Path(table.location) / "index"
    (first,) = index.iterdir()
    table.delete(col("id") == 1)
    assert len(list(index.iterdir())) == 2
    table.delete(col("id") == 3)
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert first not in list(index.iterdir())
    assert len(list(index.iterdir())) == 2
    assert ids(table) == [2, *range(4, 12)]


def test_many_vectors_are_divided_among_files(catalog: Catalog) -> None:
    table = make(catalog, **{"deletion-vector.index-file.target-size": "100 b"})
    for number in range(8):
        table.append(rows(number, number + 100))
    table.delete(col("id") >= 100)
    sizes = [path.stat().st_size for path in (Path(table.location) / "index").iterdir()]
    assert len(sizes) > 1
    assert max(sizes) <= 100
    assert ids(table) == list(range(8))


def test_compaction_applies_and_drops_vectors(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(*range(100, 200)))
    table.delete(col("id") == 150)
    assert compact(catalog, strategy="minor")["snapshot_id"] is None, "1 % is left alone"
    table.delete(col("id") < 125)
    assert compact(catalog, strategy="minor")["files_rewritten"] == 1
    assert newest(table).index_manifest is None
    table.append(rows(*range(10)))
    table.delete(col("id") == 3)
    result = compact(catalog)
    assert (result["rows_before"], result["rows_after"]) == (83, 83)
    assert ids(table) == [0, 1, 2, *range(4, 10), *range(125, 150), *range(151, 200)]
    assert newest(table).index_manifest is None


def test_deletions_of_one_file_by_two_are_both_kept(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(*range(10)))
    other = catalog.load_table("db.t")
    first, second = ({"marked": found(table, 1)}, {"marked": found(other, 2)})
    table.commit([], base_snapshot_id=1, **first)
    other.commit([], base_snapshot_id=1, **second)
    assert ids(table) == [0, *range(3, 10)]


def found(table: Table, number: int) -> Any:
    from lockgate.framework.store.write.row_operations import find_rows

    return find_rows(table, col("id") == number, newest(table))[0]


def test_the_same_row_is_changed_once(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(*range(10)))
    marked = found(table, 1)
    table.delete(col("id") < 3)
    with pytest.raises(CommitConflictError, match="changed the same rows"):
        table.commit([], base_snapshot_id=1, marked=marked)
    assert ids(table) == list(range(3, 10))


def test_a_deletion_of_a_file_that_was_rewritten_is_refused(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(*range(5)))
    table.append(rows(*range(5, 10)))
    marked = found(table, 1)
    compact(catalog)
    with pytest.raises(CommitConflictError, match="is gone"):
        table.commit([], base_snapshot_id=2, marked=marked)
    assert ids(table) == list(range(10))


def test_4588_a_rewrite_of_a_file_of_which_rows_were_deleted_is_refused(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are deleted while a compaction rewrites their file do not come back."""
    table = make(catalog)
    table.append(rows(*range(5)))
    table.append(rows(*range(5, 10)))
    table.delete(col("id") == 9)
    from lockgate.framework.store.maintenance import table_compaction as module

    def late(*args: Any) -> Any:
        made = rewrite(*args)
        catalog.load_table("db.t").delete(col("id") == 3)
        return made

    rewrite = module._rewrite_all
    monkeypatch.setattr(module, "_rewrite_all", late)
    with pytest.raises(CommitConflictError, match="another commit deleted rows"):
        compact(catalog)
    assert ids(table) == [0, 1, 2, 4, 5, 6, 7, 8]


def test_a_deletion_in_the_same_index_file_is_no_conflict(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog, partitioned=False, **{"target-file-size": "1 b"})
    for number in range(3):
        table.append(rows(*range(10 * number, 10 * number + 5)))
    table.delete(col("id").isin([0, 10, 20]))
    entries = visible_entries(table, newest(table))
    table.delete(col("id") == 21)
    from lockgate.framework.store.commit.message import CommitMessage

    table.commit([CommitMessage.replacing([entries[0]])], kind="OVERWRITE", base_snapshot_id=4)
    assert ids(table) == [11, 12, 13, 14, 22, 23, 24]


def test_an_overwrite_takes_vectors_along(catalog: Catalog) -> None:
    table = make(catalog, partitioned=True)
    table.append(rows(*range(12)))
    table.delete(col("id").isin([0, 1, 2]))
    table.overwrite(rows(30), {"p": 0})
    assert ids(table) == [4, 5, 7, 8, 10, 11, 30]
    assert {entry.partition for entry in visible_entries(table, newest(table)) if entry.vector} == {
        (1,),
        (2,),
    }


def test_overwriting_what_others_deleted_from_is_refused(catalog: Catalog) -> None:
    table = make(catalog, partitioned=True)
    table.append(rows(*range(12)))
    messages = table.write(rows(30), overwrite={"p": 0})
    table.delete(col("id") == 3)
    with pytest.raises(CommitConflictError, match="deleted rows"):
        table.commit(messages, overwrite={"p": 0}, base_snapshot_id=1)


def test_tables_without_the_option(catalog: Catalog) -> None:
    table = make(catalog, **{"deletion-vectors.enabled": "false"})
    table.append(rows(1))
    with pytest.raises(UnsupportedError, match=r"deletion-vectors\.enabled"):
        table.delete(col("id") == 1)


def test_the_option_can_be_switched_on_but_not_off(catalog: Catalog) -> None:
    table = make(catalog, **{"deletion-vectors.enabled": "false"})
    table.append(rows(1, 2, 3))
    table = catalog.alter_table("db.t", [SetOption("deletion-vectors.enabled", "true")])
    table.delete(col("id") == 2)
    assert ids(table) == [1, 3]
    for change in (SetOption("deletion-vectors.enabled", "false"), RemoveOption("deletion-vectors.enabled")):
        with pytest.raises(UnsupportedError, match="other engines would show"):
            catalog.alter_table("db.t", [change])


def test_rollback_tags_and_branches_know_vectors(catalog: Catalog) -> None:
    table = make(catalog)
    table.append(rows(*range(6)))
    table.delete(col("id") == 0)
    table.create_tag("one")
    table.create_branch("b", tag="one")
    branch = catalog.load_table("db.t$branch_b")
    branch.delete(col("id") == 5)
    table.delete(col("id") == 1)
    assert (ids(table), ids(branch)) == ([2, 3, 4, 5], [1, 2, 3, 4])
    table.rollback(tag="one")
    expire_snapshots(table, retain_max=1, retain_min=1)
    assert (ids(catalog.load_table("db.t")), ids(branch)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4])
    table.delete_tag("one")
    table.delete_branch("b")
    assert ids(catalog.load_table("db.t")) == [1, 2, 3, 4, 5]


def test_random_histories(catalog: Catalog) -> None:
    """Appends, deletions, compactions, overwrites and expiry, against a model of each snapshot."""
    for round_ in range(examples(3)):
        chosen = random.Random(round_)
        options = chosen.choice(
            [{}, {"bucket": "3", "bucket-key": "id"}, {"deletion-vectors.bitmap64": "true"}]
        )
        table = make(catalog, f"r{round_}", partitioned=chosen.random() < 0.5, **options)
        there: set[int] = set()
        states: dict[int, list[int]] = {}
        for step in range(11):
            what = chosen.choice(["append", "append", "delete", "delete", "delete", "compact", "overwrite"])
            if what == "append" or not there:
                new = set(range(step * 1000, step * 1000 + chosen.randrange(1, 60)))
                table.append(rows(*sorted(new)))
                there |= new
            elif what == "delete":
                gone = set(chosen.sample(sorted(there), chosen.randrange(1, 1 + len(there) // 2 + 1)))
                table.delete(col("id").isin(sorted(gone)))
                there -= gone
            elif what == "compact":
                compact(catalog, f"r{round_}", chosen.choice(["full", "minor"]))
            elif table.schema.partition_keys:
                part = chosen.randrange(3)
                new = {each for each in range(step * 999, step * 999 + 9) if each % 3 == part}
                table.overwrite(rows(*sorted(new)), {"p": part})
                there = {each for each in there if each % 3 != part} | new
            states[newest(table).id] = sorted(there)
            assert ids(table) == sorted(there), (round_, step, what)
            assert table.scan().row_count == len(there)
            limit = chosen.randrange(1, len(there) + 2) if there else 1
            assert table.read(limit=limit).num_rows == min(limit, len(there))
        for number, state in states.items():
            assert ids(table, snapshot_id=number) == state
        expire_snapshots(table, retain_max=2, retain_min=1)
        assert ids(table) == sorted(there)
