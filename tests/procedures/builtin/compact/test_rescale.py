"""`rescale`: the rows stay, in other buckets; nothing is lost to writers at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.errors import CommitConflictError, InputError, KeyMissingError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import SetOption
from lockgate.framework.store.maintenance import bucket_rescale as rescale_module
from lockgate.procedures import ProcedureContext, ProcedureResult, call
from lockgate.pushdown import Comparison, Op

pytestmark = pytest.mark.usefixtures("without_lineage")
Run = Callable[..., ProcedureResult]
SCHEMA = pa.schema([("p", pa.string()), ("id", pa.int64()), ("v", pa.string())])


def make(catalog: Catalog, *, keyed: bool = True, name: str = "db.t", **options: str) -> Table:
    given = {"bucket": "2", **({} if keyed else {"bucket-key": "id"}), **options}
    keys = ["p", "id"] if keyed else []
    schema = Schema.from_arrow(SCHEMA, partition_keys=["p"], primary_keys=keys, options=given)
    table = catalog.create_table(name, schema)
    for version in ("old", "new"):
        table.append(rows("ab", range(20), version))
    return table


def rows(partitions: str, ids: Any, version: str) -> pa.Table:
    found = [{"p": p, "id": number, "v": f"{version}{number}"} for p in partitions for number in ids]
    return pa.Table.from_pylist(found, SCHEMA)


def content(table: Table) -> list[Any]:
    return sorted(tuple(row.values()) for row in table.read().to_pylist())


def places(table: Table) -> set[tuple[Any, ...]]:
    live = table.manifests.live_files(table.latest_snapshot())
    return {(each.partition[0], each.total_buckets, each.bucket) for each in live}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("count", [1, 5])
def test_rows_get_other_buckets(catalog: Catalog, run: Run, keyed: bool, count: int) -> None:
    table = make(catalog, keyed=keyed)
    before = content(table)
    dry = run("rescale", "db.t", bucket_num=count, dry_run=True).to_dicts()[0]
    assert content(table) == before
    done = run("rescale", table="db.t", bucketNum=count).to_dicts()[0]
    assert done == {**dry, "files_written": 2 * count, "snapshot_id": 3}
    assert done["rescaled_partitions_count"] == 2
    assert done["files_rewritten"] == 8
    assert done["rows"] == 80
    table = catalog.load_table("db.t")
    assert content(table) == before
    assert places(table) == {(p, count, bucket) for p in "ab" for bucket in range(count)}
    assert table.schema.options["bucket"] == str(count)
    # Where a query looks for a key, it finds it.
    for number in range(20):
        found = table.read(predicate=Comparison(Op.EQ, ("id",), (pa.scalar(number),)))
        assert found.num_rows == (2 if keyed else 4)
    table.append(rows("ac", [1, 77], "later"))
    assert len(content(table)) == (43 if keyed else 84)
    assert run("rescale", "db.t", count)["snapshot_id"] is None
    assert run("rescale", "db.t")["rescaled_partitions_count"] == 0


def test_one_partition_after_the_other(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    before = content(table)
    catalog.alter_table("db.t", [SetOption("bucket", "3")])
    with pytest.raises(CommitConflictError, match="overwrite the partition"):
        catalog.load_table("db.t").append(rows("a", [1], "x"))
    assert run("rescale", "db.t", partitions="p=a")["rescaled_partitions_count"] == 1
    table = catalog.load_table("db.t")
    assert {(p, count) for p, count, _ in places(table)} == {("a", 3), ("b", 2)}
    assert content(table) == before
    table.append(rows("a", [1], "x"))
    assert run("rescale", "db.t")["rescaled_partitions_count"] == 1
    assert {count for _, count, _ in places(table)} == {3}
    assert len(content(table)) == len(before)


def test_deleted_rows_stay_deleted(catalog: Catalog, run: Run) -> None:
    for keyed, name in ((True, "db.keyed"), (False, "db.marked")):
        options = {} if keyed else {"deletion-vectors.enabled": "true"}
        table = make(catalog, keyed=keyed, name=name, **options)
        table.delete(Comparison(Op.LT, ("id",), (pa.scalar(5),)))
        before = content(table)
        run("rescale", name, 3)
        assert content(catalog.load_table(name)) == before
        assert len(before) == (30 if keyed else 60)


def test_a_write_at_the_same_time_is_not_lost(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog)
    write = rescale_module._write

    def late(*given: Any) -> None:
        write(*given)
        monkeypatch.setattr(rescale_module, "_write", write)
        table.append(rows("b", [99], "late"))

    monkeypatch.setattr(rescale_module, "_write", late)
    with pytest.raises(CommitConflictError):
        run("rescale", "db.t", 4)
    assert catalog.load_table("db.t").schema.options["bucket"] == "2"
    assert len(content(table)) == 41
    run("remove_orphan_files", "db.t")
    assert run("rescale", "db.t", 4)["rows"] == 81
    assert len(content(catalog.load_table("db.t"))) == 41


def test_killed_before_the_option_follows_it_is_called_again(
    catalog: Catalog, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(catalog)
    before = content(table)
    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "alter_table", lambda *given, **named: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            run("rescale", "db.t", 4)
    assert content(table) == before
    with pytest.raises(CommitConflictError, match="'bucket' to 4"):
        table.append(rows("a", [1], "x"))
    assert run("rescale", "db.t", 4)["snapshot_id"] is None
    assert catalog.load_table("db.t").schema.options["bucket"] == "4"


def test_a_key_is_needed_before_anything_changes(
    catalog: Catalog, keyless: Catalog, run: Run, digest: Callable[[Any], str]
) -> None:
    table = make(catalog, **{"orc.encrypt": "pii:v"})
    before = digest(table.location)
    with pytest.raises(KeyMissingError):
        run("rescale", "db.t", 3, within=keyless)
    assert digest(table.location) == before
    run("rescale", "db.t", 3)
    assert b"new7" not in b"".join(path.read_bytes() for path in _data(table))


def _data(table: Table) -> list[Path]:
    return list(Path(table.location).rglob("data-*"))


def test_what_cannot_be_rescaled_is_refused(catalog: Catalog, run: Run) -> None:
    make(catalog)
    with pytest.raises(InputError, match="bucket_num must be 1 or more"):
        run("rescale", "db.t", 0)
    make(catalog, name="db.dynamic", bucket="-1")
    with pytest.raises(InputError, match="fixed number of buckets"):
        run("rescale", "db.dynamic", 3)
    make(catalog, name="db.lookup", **{"changelog-producer": "lookup"})
    with pytest.raises(InputError, match="call compact first"):
        run("rescale", "db.lookup", 3)
    run("compact", "db.lookup")
    before = content(catalog.load_table("db.lookup"))
    run("rescale", "db.lookup", 3)
    table = catalog.load_table("db.lookup")
    assert content(table) == before
    run("compact", "db.lookup")
    newest = table.latest_snapshot()
    assert newest is not None
    assert not newest.changelog_record_count


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=1, max_size=12), max_size=4),
    st.integers(1, 6),
    st.sampled_from(["deduplicate", "partial-update", "first-row"]),
)
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history(catalog_of: Callable[[], Catalog], writes: Any, count: int, engine: str) -> None:
    catalog = catalog_of()
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    options = {"bucket": "2", "merge-engine": engine}
    table = catalog.create_table("db.t", Schema.from_arrow(schema, primary_keys=["id"], options=options))
    for write in writes:
        ids, values = zip(*write, strict=True)
        table.append(pa.table({"id": ids, "v": [value or None for value in values]}, schema=schema))
    call(ProcedureContext(catalog), "compact", "db.t")
    before = content(table)
    call(ProcedureContext(catalog), "rescale", "db.t", count)
    assert content(catalog.load_table("db.t")) == before


@pytest.fixture
def catalog_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Catalog]:
    def make_it() -> Catalog:
        made = Catalog(tmp_path_factory.mktemp("any") / "warehouse")
        made.create_namespace("db")
        return made

    return make_it


def test_a_condition_chooses_partitions(catalog: Catalog, run: Run) -> None:
    table = make(catalog)
    before = content(table)
    assert run("rescale", "db.t", bucket_num=3, where="p > 'a'")["rescaled_partitions_count"] == 1
    assert {(p, total) for p, total, _ in places(table)} == {("a", 2), ("b", 3)}
    assert content(table) == before
    assert catalog.load_table("db.t").schema.options["bucket"] == "2"
    with pytest.raises(InputError, match="'id' is not a partition column"):
        run("rescale", "db.t", bucket_num=3, where="id > 1")
