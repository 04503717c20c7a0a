"""Everything that changes a table, a table to begin with, and what may be seen when it breaks off."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from faults import Contents, check_between, contents

from lockgate.errors import AlreadyExistsError, NotFoundError
from lockgate.framework.store import Catalog, Schema, Table
from lockgate.framework.store.ddl.schema_changes import AddColumn, RenameColumn, SetOption
from lockgate.framework.store.history.reachable_files import NeededFiles
from lockgate.framework.store.maintenance.orphans import remove_orphan_files
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.schema.schema import now_millis
from lockgate.framework.types import STRING
from lockgate.procedures import ProcedureContext, call
from lockgate.pushdown import col

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])


def rows(*ids: int, v: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "v": [v] * len(ids)}, schema=COLUMNS)


def create(catalog: Catalog, *primary_keys: str, **more: str) -> Table:
    options = {"bucket": "2"} if primary_keys else {}
    options |= {name.replace("__", ".").replace("_", "-"): value for name, value in more.items()}
    # Retries without waiting.
    options |= {"commit.min-retry-wait": "0 ms", "commit.max-retry-wait": "0 ms", "file.compression": "none"}
    return catalog.create_table(
        "db.t", Schema.from_arrow(COLUMNS, primary_keys=primary_keys, options=options)
    )


# --- tables to begin with ------------------------------------------------------------------------


def plain(catalog: Catalog) -> None:
    """Two schemas, four snapshots, of which the second is tagged; a branch from the tag, with one more."""
    table = create(catalog)
    table.append(rows(1, 2))
    table = catalog.alter_table("db.t", [RenameColumn(("v",), "w"), AddColumn(("more",), STRING)])
    table.append(pa.table({"id": [3], "w": ["b"], "more": ["m"]}))
    table.create_tag("second")
    table.create_branch("b", tag="second")
    catalog.load_table("db.t$branch_b").append(pa.table({"id": [30]}))
    table.overwrite(pa.table({"id": [4, 5]}))
    table.append(pa.table({"id": [6]}))


def keyed(catalog: Catalog) -> None:
    """Three runs that overlap."""
    table = create(catalog, "id")
    table.append(rows(1, 2, 3))
    table.append(rows(2, 3, 4, v="b"))
    table.delete(rows(4).select(["id"]))


def dynamic(catalog: Catalog) -> None:
    """Keys in two buckets."""
    create(catalog, "id", bucket="-1", **{"dynamic-bucket.target-row-num": "2"}).append(rows(1, 2, 3))


def marked(catalog: Catalog) -> None:
    """Rows in two files, of which vectors delete one each."""
    table = create(catalog, deletion_vectors__enabled="true")
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    table.delete((col("id") == 1) | (col("id") == 4))


def marked_keys(catalog: Catalog) -> None:
    """Keys of which some rows are marked, and two levels."""
    table = create(catalog, "id", deletion_vectors__enabled="true")
    table.append(rows(1, 2, 3, 4, 5, 6))
    table.append(rows(2, 7, v="b"))


def recorded(catalog: Catalog) -> None:
    """Two writes with changelogs, which may outlive their snapshots."""
    table = create(catalog, "id", changelog_producer="input", changelog__num_retained__max="10")
    table.append(rows(1, 2, 3))
    table.append(rows(2, 4, v="b"))


def looked_up(catalog: Catalog) -> None:
    """Runs whose changes a compaction is to record."""
    table = create(catalog, "id", changelog_producer="lookup")
    table.append(rows(1, 2, 3))
    call(ProcedureContext(catalog), "compact", "db.t")
    table.append(rows(2, 4, v="b"))


def unindexed(catalog: Catalog) -> None:
    """Two files that are to get indexes."""
    table = create(catalog, file_index__in_manifest_threshold="1 B")
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    catalog.alter_table("db.t", [SetOption("file-index.bloom-filter.columns", "v")])


def landed(catalog: Catalog) -> None:
    """A table, and a folder with files of its columns."""
    create(catalog).append(rows(1, 2))
    for number in range(2):
        path = Path(catalog.warehouse) / "landed" / f"{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(rows(10 + number, 20 + number), path)


def littered(catalog: Catalog) -> None:
    """`plain`, with files that nothing refers to."""
    plain(catalog)
    table = catalog.load_table("db.t")
    table.write(pa.table({"id": [99]}))
    table.manifests.write_list([])
    table.file_system.write_new(f"{table.location}/snapshot/.lockgate-snapshot-9.0.tmp", b"{")


def forward(catalog: Catalog) -> None:
    """A branch that is ahead of its table by two snapshots and a schema."""
    table = create(catalog)
    first = table.append(rows(1))
    table.create_branch("b", first.id)
    branch = catalog.alter_table("db.t$branch_b", [AddColumn(("more",), STRING)])
    branch.append(rows(2))
    branch.append(rows(3))
    branch.create_tag("ahead")


def nothing(catalog: Catalog) -> None:
    """No table."""


# --- what is done with them ----------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """`done` is called on what `start` made. `again`: to repeat it does no more than once; `table`: the
    one that it changes or makes.
    """

    start: Callable[[Catalog], None]
    done: Callable[[Catalog], Any]
    again: bool = True
    table: str = "db.t"


def on_table(work: Callable[[Table], Any]) -> Callable[[Catalog], Any]:
    return lambda catalog: work(catalog.load_table("db.t"))


def on_branch(work: Callable[[Table], Any]) -> Callable[[Catalog], Any]:
    return lambda catalog: work(catalog.load_table("db.t$branch_b"))


def clean(table: Table) -> None:
    remove_orphan_files(table, older_than_millis=now_millis(), allow_recent=True)


def calling(name: str, *arguments: Any, **named: Any) -> Callable[[Catalog], Any]:
    return lambda catalog: call(ProcedureContext(catalog), name, *arguments, **named)


def migrate(name: str, target: str) -> Callable[[Catalog], Any]:
    def done(catalog: Catalog) -> Any:
        folder = str(Path(catalog.warehouse) / "landed")
        if name == "migrate_file":
            return call(ProcedureContext(catalog), name, "parquet", folder, target, parallelism=1)
        return call(ProcedureContext(catalog), name, "parquet", folder, target_table=target, parallelism=1)

    return done


def roll_back(table: Table) -> None:
    table.rollback(2)


WORK = {
    "append": Work(plain, on_table(lambda table: table.append(pa.table({"id": [7]}))), again=False),
    "append to a branch": Work(
        plain, on_branch(lambda table: table.append(pa.table({"id": [7]}))), again=False
    ),
    "commit of a stream": Work(
        plain,
        on_table(lambda table: table.commit(table.write(pa.table({"id": [7]})), user="s", identifier=1)),
    ),
    "overwrite": Work(plain, on_table(lambda table: table.overwrite(pa.table({"id": [8]}))), again=False),
    "upsert": Work(keyed, on_table(lambda table: table.append(rows(1, 5, v="c"))), again=False),
    "upsert to dynamic buckets": Work(
        dynamic, on_table(lambda table: table.append(rows(1, 5, 6, v="c"))), again=False
    ),
    "delete": Work(keyed, on_table(lambda table: table.delete(rows(2).select(["id"]))), again=False),
    "compact": Work(keyed, lambda catalog: call(ProcedureContext(catalog), "compact", table="db.t")),
    "expire": Work(plain, on_table(lambda table: expire_snapshots(table, retain_max=1, retain_min=1))),
    "expire a branch": Work(
        plain, on_branch(lambda table: expire_snapshots(table, retain_max=1, retain_min=1))
    ),
    "remove orphans": Work(littered, on_table(clean)),
    "create tag": Work(plain, on_table(lambda table: table.create_tag("new", 1))),
    "replace tag": Work(plain, on_table(lambda table: table.replace_tag("second"))),
    "rename tag": Work(plain, on_table(lambda table: table.rename_tag("second", "other"))),
    "delete tag": Work(plain, on_table(lambda table: table.delete_tag("second"))),
    "create branch": Work(plain, on_table(lambda table: table.create_branch("c", tag="second"))),
    "delete branch": Work(plain, on_table(lambda table: table.delete_branch("b"))),
    "rename branch": Work(plain, on_table(lambda table: table.rename_branch("b", "c"))),
    "fast forward": Work(forward, on_table(lambda table: table.fast_forward("b"))),
    "rollback": Work(plain, on_table(roll_back)),
    "rollback as latest": Work(
        plain,
        lambda catalog: call(ProcedureContext(catalog), "rollback_to_as_latest", "db.t", tag="second"),
        again=False,
    ),
    "alter": Work(
        plain,
        lambda catalog: catalog.alter_table("db.t", [RenameColumn(("w",), "x"), AddColumn(("y",), STRING)]),
    ),
    "create table": Work(nothing, create),
    "drop table": Work(plain, lambda catalog: catalog.drop_table("db.t")),
    "delete by vectors": Work(marked, on_table(lambda table: table.delete(col("id") == 2)), again=False),
    "upsert with vectors": Work(
        marked_keys, on_table(lambda table: table.append(rows(1, 2, 8, v="c"))), again=False
    ),
    "compact vectors": Work(marked, calling("compact", "db.t")),
    "write a changelog": Work(recorded, on_table(lambda table: table.append(rows(1, v="c"))), again=False),
    "expire to changelogs": Work(
        recorded, on_table(lambda table: expire_snapshots(table, retain_max=1, retain_min=1))
    ),
    "compact to a changelog": Work(looked_up, calling("compact", "db.t")),
    "rewrite file index": Work(unindexed, calling("rewrite_file_index", "db.t")),
    "purge": Work(plain, calling("purge_files", "db.t", confirm=True), again=False),
    "clone": Work(marked, calling("clone", "db.t", "db.u", parallelism=1), table="db.u"),
    "migrate table": Work(landed, migrate("migrate_table", "db.u"), table="db.u"),
    "migrate file": Work(landed, migrate("migrate_file", "db.t"), again=False),
    "rename table": Work(plain, lambda catalog: catalog.rename_table("db.t", "db.u")),
}

# What is seen between their steps is the old or new state, maybe elsewhere: under both names, or under
# a number that is given again.
STEPWISE = {"fast forward", "rename branch", "rollback"}
# Files of older states go before their snapshots, so that a second call finds them: the newest state counts.
NEWEST = {"purge"}


# --- what is seen afterwards ---------------------------------------------------------------------


def check_state(name: str, catalog: Catalog, before: Contents, after: Contents) -> None:
    if name in NEWEST:
        newest = str(sorted(catalog.load_table("db.t").read().to_pylist(), key=repr))
        assert newest in [state["", "newest", ""] for state in (before, after)]
        return
    found = contents(catalog, WORK[name].table)
    if WORK[name].table != "db.t":
        # It is not there, empty, or whole.
        is_empty = found.get(("", "newest", "")) == "[]" and ("", "snapshot", 1) not in found
        assert not found or is_empty or found == after
    elif name not in STEPWISE:
        check_between(found, before, after)
    else:
        allowed = [ids_in(value) for state in (before, after) for value in state.values()]
        assert all(ids_in(value) in allowed for value in found.values())


def ids_in(value: str) -> list[str]:
    """The ids of some rows, which may have gained a column."""
    return re.findall(r"'id': (\d+)", value)


def repeat(work: Work, catalog: Catalog, after: Contents) -> None:
    """Anyone who comes next can work; what was done in part is finished."""
    try:
        work.done(catalog)
    except AlreadyExistsError as error:
        if "remains of a branch" in str(error):
            catalog.load_table("db.t").delete_branch("c")
            work.done(catalog)
        if "give another target_table" in str(error) and contents(catalog, work.table) != after:
            catalog.drop_table(work.table)
            work.done(catalog)
    except NotFoundError:
        pass
    if work.again:
        assert contents(catalog, work.table) == after


def check_no_orphans(catalog: Catalog) -> None:
    """`remove_orphan_files` leaves what is referred to, and nothing else."""
    if not catalog.table_exists("db.t"):
        return
    table = catalog.load_table("db.t")
    older = now_millis()
    while now_millis() == older:
        time.sleep(0.001)
    clean(table)
    needed = NeededFiles(table)
    for folder in ("bucket-0", "bucket-1", "manifest", "snapshot", "schema", "tag"):
        for info in table.file_system.list(f"{table.location}/{folder}"):
            # An object store tells the time of a file in whole seconds.
            young = info.modified_millis + 1000 > older and not info.modified_millis % 1000
            if folder.startswith(("bucket", "manifest")):
                assert info.name in needed or young
            assert not info.name.startswith(".lockgate-") or young
