"""Random histories of a table with bounds of its manifests: what is read is full scan then filter."""

from __future__ import annotations

import datetime
import random
import tempfile
from pathlib import Path

import pyarrow as pa
from bounded_table import OPTIONS, START, check, make, plan, rows
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_table import call

from lockgate.framework.index.database.bounds import FILE_KIND
from lockgate.framework.index.database.index_segments import KIND, segment_entries
from lockgate.framework.index.database.maintenance import BuildIndex, DropIndex, MergeIndex
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.ddl.schema_changes import (
    AddColumn,
    ChangeType,
    DropColumn,
    RemoveOption,
    SetOption,
)
from lockgate.framework.store.manifests.index_manifest import index_path
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.scan import plan_scan
from lockgate.framework.types import parse_type
from lockgate.procedures import ProcedureContext
from lockgate.procedures import call as call_procedure
from lockgate.pushdown import Predicate, all_of, any_of, col

VALUES = {
    "at": st.integers(-5, 80).map(lambda hours: START + datetime.timedelta(hours=hours)),
    "size": st.one_of(st.none(), st.integers(-3, 80)),
    "name": st.one_of(st.none(), st.integers(-3, 80).map(lambda n: f"name-{n:04}"), st.just("")),
    "day": st.one_of(st.none(), st.integers(-1, 4)),
}
LEAVES = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.one_of(
        VALUES[name].map(lambda value: col(name) == value),
        VALUES[name].map(lambda value: col(name).eq_null_safe(value)),
        VALUES[name].map(lambda value: col(name) != value),
        VALUES[name].map(lambda value: col(name) < value),
        VALUES[name].map(lambda value: col(name) >= value),
        st.lists(VALUES[name], max_size=4).map(lambda values: col(name).isin(values)),
        st.sampled_from([col(name).is_null(), col(name).is_not_null()]),
    )
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda each: all_of(*each)),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: any_of(*each)),
        inner.map(lambda each: ~each),
    ),
    max_leaves=4,
)
STEPS = (
    *("append", "append", "overwrite", "partition", "foreign", "rollback", "delete", "compact", "order"),
    *("build", "merge", "drop", "merge manifests", "again", "wider", "tag", "nulls", "damage"),
)


def step(catalog: Catalog, table: Table, name: str, number: int, rng: random.Random) -> Table:  # noqa: C901 - one branch for each kind of change
    context = ProcedureContext(catalog)
    new = fitting(table, rows(number))
    if name == "append":
        table.append(new)
    elif name == "overwrite":
        table.overwrite(new)
    elif name == "partition" and table.schema.partition_keys:
        table.overwrite(new, partition={"day": number % 3})
    elif name == "foreign":
        plain = catalog.alter_table("db.t", [SetOption("index.write.enabled", "false")])
        plain.append(new)
        return catalog.alter_table("db.t", [RemoveOption("index.write.enabled")])
    elif name == "rollback" and table.latest_snapshot() is not None:
        table.rollback(snapshot_id=rng.choice([each.id for each in table.snapshots()]))
    elif name == "delete" and table.schema.has_vectors:
        table.delete(col("size") < rng.randrange(60))
    elif name == "compact":
        call_procedure(context, "compact", table="db.t")
    elif name == "order":
        call_procedure(context, "compact", "db.t", order_strategy="order", order_by="name")
    elif name == "build":
        call(BuildIndex(), catalog)
    elif name == "merge":
        call(MergeIndex(), catalog)
    elif name == "drop":
        call(DropIndex(), catalog)
    elif name == "merge manifests":
        call_procedure(context, "compact_manifest", table="db.t")
    elif name == "again":
        return catalog.alter_table("db.t", [DropColumn(("size",)), AddColumn(("size",), parse_type("INT"))])
    elif name == "wider" and table.schema.field("size").type.kind.name == "INT":
        return catalog.alter_table("db.t", [ChangeType(("size",), parse_type("BIGINT"))])
    elif name == "tag" and table.latest_snapshot() is not None:
        table.create_tag(f"tag-{number}")
        table.overwrite(new)
        call_procedure(context, "rollback_to_as_latest", "db.t", tag=f"tag-{number}")
    elif name == "nulls":
        days = pa.array([1, 1, None], pa.int32())
        empty = {each.name: pa.nulls(3, each.type) for each in table.schema.arrow_schema}
        table.append(pa.table({**empty, "day": days}, schema=table.schema.arrow_schema))
    elif name == "damage" and (snapshot := table.latest_snapshot()) is not None:
        for kind in (FILE_KIND, KIND):
            for entry in segment_entries(table, snapshot.index_manifest, kind):
                file = Path(index_path(table, entry))
                if rng.random() < 0.3:
                    file.write_bytes(file.read_bytes()[:-1])
    return table


def fitting(table: Table, data: pa.Table) -> pa.Table:
    return data.select(table.schema.field_names).cast(table.schema.arrow_schema)


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(st.sampled_from(STEPS), max_size=8), st.lists(PREDICATES, min_size=4, max_size=8), st.integers()
)
def test_what_is_read_is_full_scan_then_filter(
    steps: list[str], predicates: list[Predicate], seed: int
) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        catalog = Catalog(folder)
        catalog.create_namespace("db")
        options = {**OPTIONS, "manifest.merge-min-count": str(rng.choice([2, 3, 100]))}
        if rng.random() < 0.5:
            options["deletion-vectors.enabled"] = "true"
        if rng.random() < 0.5:
            options["index.values.columns"] = "size,name"
        table = make(catalog, options, **({"partition_keys": ["day"]} if rng.random() < 0.5 else {}))
        for number, name in enumerate(["append", "append", *steps]):
            table = step(catalog, table, name, number, rng)
        for predicate in predicates:
            check(table, predicate)
            total = plan(table, predicate).report.total
            whole = plan_scan(table, ReadRequest()).report.total
            assert (total.files, total.rows, total.bytes) == (whole.files, whole.rows, whole.bytes)
