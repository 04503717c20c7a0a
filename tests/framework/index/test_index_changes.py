"""The index database under everything that changes a table, and under random histories of changes."""

from __future__ import annotations

import random
import tempfile

from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_table import HOSTS, OPTIONS, call, check, fill, kept, make, rows, segments

from lockgate.framework.index.database.index_segments import opened
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, DropColumn, RemoveOption, SetOption
from lockgate.framework.types import parse_type
from lockgate.procedures import ProcedureContext
from lockgate.procedures import call as call_procedure
from lockgate.pushdown import Predicate, all_of, any_of, col


def covered(table: Table) -> set[str]:
    """The files that segments know."""
    found = [opened(table, entry) for entry in segments(table)]
    return {name for each in found if each is not None for name in each.files.names}


def live(table: Table) -> set[str]:
    return {entry.file.file_name for entry in table.manifests.live_files(table.latest_snapshot())}


def compact(catalog: Catalog) -> None:
    call_procedure(ProcedureContext(catalog), "compact", table="db.t")


def test_a_compaction_indexes_what_it_writes(catalog: Catalog) -> None:
    table = make(catalog, partition_keys=["day"])
    fill(table, 6)
    compact(catalog)
    assert live(table) <= covered(table)
    assert kept(table, col("host") == "host-4") == 1
    assert kept(table, col("host") == "host-9") == 0
    assert kept(table, col("host") == "host-4", snapshot_id=6) == 1
    call(MergeIndex(), catalog)
    assert covered(table) == live(table)
    check(table, col("host") == "host-4")


def test_deletion_vectors_do_not_change_segments(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "deletion-vectors.enabled": "true"})
    fill(table, 3)
    before = covered(table)
    table.delete(col("host") == "host-1")
    assert covered(table) == before
    assert table.read(predicate=col("host") == "host-1").num_rows == 0
    assert kept(table, col("host") == "host-2") == 1
    check(table, col("host").isin(["a", "host-1", "host-2"]))
    table.delete(col("id") >= 0)
    call(MergeIndex(), catalog)
    assert table.read().num_rows == 0
    assert not live(table) or covered(table) == live(table)


def test_deletions_of_keys(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "bucket": "1"}, primary_keys=["id"])
    fill(table, 3)
    table.delete(col("host") == "host-1")
    check(table, col("host") == "host-1")
    compact(catalog)
    assert table.read(predicate=col("host") == "host-1").num_rows == 0
    assert kept(table, col("host") == "host-1") == 0
    assert kept(table, col("host") == "host-2") == 1
    check(table, col("host") == "m")


def test_branches_have_the_segments_of_their_snapshots(catalog: Catalog) -> None:
    table = make(catalog, {**OPTIONS, "index.merge-at": "4"})
    fill(table, 2)
    table.create_branch("b", 2)
    branch = catalog.load_table("db.t$branch_b")
    branch.append(rows(2))
    table.append(rows(3))
    for line, own, other in ((branch, 2, 3), (table, 3, 2)):
        assert kept(line, col("host") == "host-1") == 1
        assert kept(line, col("host") == f"host-{own}") == 1
        assert kept(line, col("host") == f"host-{other}") == 0
    # The merge drops files that this line does not have; the branch keeps its own segments.
    table.append(rows(4))
    table.append(rows(5))
    assert len(segments(table)) < 5
    assert kept(branch, col("host") == "host-2") == 1
    table.rollback(2)
    for number in range(6, 10):
        branch.append(rows(number))
    table.fast_forward("b")
    table = catalog.load_table("db.t")
    assert kept(table, col("host") == "host-2") == 1
    assert kept(table, col("host") == "host-4") == 0
    check(table, col("host") == "a")


def test_rollbacks_restore_segments(catalog: Catalog) -> None:
    table = make(catalog)
    fill(table, 4)
    names = [entry.file_name for entry in segments(table)]
    call(MergeIndex(), catalog)
    table.rollback(2)
    assert [entry.file_name for entry in segments(table)] == names[:2]
    assert kept(table, col("host") == "host-1") == 1
    assert kept(table, col("host") == "host-3") == 0
    table.append(rows(7))
    assert kept(table, col("host") == "host-7") == 1
    check(table, col("host") == "a")


def test_a_restored_snapshot_is_read_until_its_files_are_indexed(catalog: Catalog) -> None:
    """Restored files have new names, which no segment knows."""
    table = make(catalog)
    fill(table, 3)
    table.create_tag("old")
    table.overwrite(rows(8))
    call_procedure(ProcedureContext(catalog), "rollback_to_as_latest", "db.t", tag="old")
    check(table, col("host") == "host-1")
    call(BuildIndex(), catalog)
    assert kept(table, col("host") == "host-1") == 1
    check(table, col("host") == "a")


VALUES = {
    "id": st.integers(-3, 1010),
    "host": st.sampled_from([*HOSTS, *(f"host-{n}" for n in range(8)), "", None]),
    "size": st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan"), None]),
    "day": st.integers(-1, 4),
}
LEAVES = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.one_of(
        VALUES[name].map(lambda value: col(name) == value),
        VALUES[name].map(lambda value: col(name).eq_null_safe(value)),
        VALUES[name].map(lambda value: col(name) != value),
        VALUES[name].map(lambda value: col(name) < value),
        st.lists(VALUES[name], max_size=4).map(lambda values: col(name).isin(values)),
        st.sampled_from([col(name).is_null(), col(name).is_not_null()]),
    )
)
TEXTS = st.sampled_from(["host", "st-", "HOST-1", "a", "ost-2", "", "zz", "host 3", "h_st", "h%t-0"])
PATTERNS = st.one_of(
    TEXTS.map(lambda text: col("host").contains(text)),
    TEXTS.map(lambda text: col("host").starts_with(text)),
    TEXTS.map(lambda text: col("host").like(f"%{text}%")),
    TEXTS.map(lambda text: col("host").ilike(f"{text}%")),
    TEXTS.map(lambda text: col("host").rlike(f"(?i){text}|ost-[45]$")),
    TEXTS.map(lambda text: col("host").match(text)),
)
PREDICATES = st.recursive(
    st.one_of(LEAVES, PATTERNS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: all_of(*each)),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: any_of(*each)),
        inner.map(lambda each: ~each),
    ),
    max_leaves=5,
)
STEPS = (
    *("append", "overwrite", "merge", "build", "foreign", "rollback", "drop"),
    *("compact", "delete", "branch", "restore", "order", "again", "merge schema"),
)


def step(catalog: Catalog, table: Table, name: str, number: int, rng: random.Random) -> Table:  # noqa: C901 - one branch for each kind of change
    """Change a table; `foreign` adds a file that no segment covers, as other engines do."""
    if name == "append":
        table.append(rows(number, rng.choice([1, 30])))
    elif name == "overwrite":
        table.overwrite(rows(number), partition={"day": number % 3} if rng.random() < 0.7 else None)
    elif name == "foreign":
        plain = catalog.alter_table("db.t", [SetOption("index.write.enabled", "false")])
        plain.append(rows(number))
        return catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    elif name == "merge":
        call(MergeIndex(), catalog)
    elif name == "build":
        call(BuildIndex(), catalog)
    elif name == "rollback" and table.latest_snapshot() is not None:
        table.rollback(snapshot_id=rng.choice([each.id for each in table.snapshots()]))
    elif name == "drop":
        call(DropIndex(), catalog, columns=rng.choice([None, ["size"]]))
    elif name == "compact":
        compact(catalog)
    elif name == "order":
        order = {"order_strategy": "zorder", "order_by": "host,size"}
        keyed = {} if table.schema.has_primary_key else order
        call_procedure(ProcedureContext(catalog), "compact", "db.t", **keyed)
    elif name == "again":
        # A new column of the old one's name: its values, and what indexes know of them, are not those of old.
        path = ("size",)
        return catalog.alter_table("db.t", [DropColumn(path), AddColumn(path, parse_type("DOUBLE"))])
    elif name == "merge schema":
        wanted = {"columns": "size DOUBLE, extra BIGINT", "on_type_change": "history"}
        call_procedure(ProcedureContext(catalog), "merge_schema", "db.t", **wanted)
        return catalog.load_table("db.t")
    elif name == "delete":
        table.delete(col("host") == rng.choice(HOSTS))
    elif name == "branch":
        return branched(catalog, table, number)
    elif name == "restore" and table.latest_snapshot() is not None:
        table.create_tag(f"tag-{number}")
        table.overwrite(rows(number))
        call_procedure(ProcedureContext(catalog), "rollback_to_as_latest", "db.t", tag=f"tag-{number}")
    return table


def branched(catalog: Catalog, table: Table, number: int) -> Table:
    """Both lines go on, and then the table takes over its branch."""
    latest = table.latest_snapshot()
    if latest is None:
        return table
    name = f"b{number}"
    table.create_branch(name, latest.id)
    table.append(rows(number))
    branch = catalog.load_table(f"db.t$branch_{name}")
    branch.append(rows(number + 20))
    check(branch, col("host") == f"host-{number + 20}")
    check(table, col("host") == f"host-{number}")
    table.rollback(latest.id)
    table.fast_forward(name)
    return catalog.load_table("db.t")


@settings(max_examples=examples(6), deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), max_size=6), st.lists(PREDICATES, min_size=3, max_size=6), st.integers()
)
def test_an_indexed_scan_equals_a_full_scan_after_any_changes(
    steps: list[str], predicates: list[Predicate], seed: int
) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        keyed = {} if rng.random() < 0.7 else {"primary_keys": ["id", "day"]}
        options = {
            **OPTIONS,
            "index.block-rows": "8",
            "index.merge-at": "3",
            "index.ngrams.columns": "host",
            "index.words.columns": "host",
            **({"bucket": "1"} if keyed else {"deletion-vectors.enabled": "true"}),
        }
        table = make(catalog, options, partition_keys=["day"], **keyed)
        for number, name in enumerate(["append", "append", *steps]):
            table = step(catalog, table, name, number, rng)
        for predicate in predicates:
            check(table, predicate)
