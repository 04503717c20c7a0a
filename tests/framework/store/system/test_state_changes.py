"""The audit log and the read-optimized table between two tags: what differs, with its kind."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tracked_rows import tracked_table

from lockgate import procedures
from lockgate.errors import ColumnNotFoundError, InputError, UnsupportedError
from lockgate.framework.store import Catalog, Table
from lockgate.framework.store.maintenance.snapshot_expiry import expire_snapshots
from lockgate.framework.store.scan.read_request import ReadRequest
from lockgate.framework.store.scan.snapshot_selection import Between, selection_of
from lockgate.pushdown import SortKey, col

MakeTable = Callable[..., Table]


def rows(*given: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [each[0] for each in given], "v": [each[1] for each in given]})


def compact(catalog: Catalog) -> None:
    procedures.call(procedures.ProcedureContext(catalog), "compact", table="db.t", compact_strategy="full")


def logged(table: Table, after: int, upto: int, **wishes: object) -> list[tuple[object, ...]]:
    request = ReadRequest(between=Between(after, upto, states="diff"), **wishes)  # type: ignore[arg-type]  # keywords of several types
    return [tuple(row.values()) for row in table.system("audit_log", request).to_pylist()]


@pytest.mark.parametrize("options", [{}, {"deletion__vectors_enabled": "true"}], ids=["merged", "vectors"])
def test_the_log_leads_from_one_state_of_a_key_table_to_another(
    catalog: Catalog, make_table: MakeTable, options: dict[str, str]
) -> None:
    table, chosen = make_table(primary_keys=("id",), bucket="2", **options), random.Random(3)
    states: list[dict[int, str]] = [{}]
    for turn in range(12):
        written = {key: chosen.choice("ab") for key in chosen.sample(range(12), 4)}
        if turn % 5 == 4:
            compact(catalog)
        elif turn % 4 == 3:
            table.overwrite(rows(*written.items()))
        elif turn % 3 == 2:
            table.delete(pa.table({"id": list(written)}))
        else:
            table.append(rows(*written.items()))
        for number in range(len(states), table.snapshots()[-1].id + 1):
            shown = table.read(snapshot_id=number).to_pylist()
            states.append({row["id"]: row["v"] for row in shown})
    for after in range(len(states)):
        for upto in range(after, len(states)):
            state = dict(states[after])
            log = logged(table, after, upto)
            assert len({row[1] for row in log}) == len(log), "each key once"
            for kind, key, value in log:
                assert isinstance(key, int)
                if kind == "-D":
                    state.pop(key, None)
                else:
                    assert state.get(key) != value, "what has not changed is not shown"
                    state[key] = str(value)
            assert state == states[upto], (after, upto)


def test_rows_of_a_table_without_a_key_come_and_go(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table()
    table.append(rows((1, "a"), (1, "a"), (2, "b")))
    table.append(rows((3, "c")))
    compact(catalog)
    table.overwrite(rows((1, "a"), (3, "c"), (3, "c")))
    newest = table.snapshots()[-1].id
    expected = Counter([("+I", 3, "c"), ("-D", 1, "a"), ("-D", 2, "b")])
    assert Counter(logged(table, 2, newest)) == expected
    assert logged(table, 2, 3) == [], "a compaction changes no row"
    assert Counter(logged(table, 0, newest)) == Counter([("+I", 1, "a"), ("+I", 3, "c"), ("+I", 3, "c")])


def test_kinds_are_those_of_the_later_state(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(rows((1, "a"), (2, "a"), (3, "a"), (4, "a")))
    kinds = pa.array([2, 3, 2], pa.int8())
    table.commit(table.write(rows((1, "b"), (2, "gone"), (4, "a")), kinds=kinds))
    # The -D has the values that it was written with; a row that is the same again is not shown.
    assert sorted(logged(table, 1, 2)) == [("+U", 1, "b"), ("-D", 2, "gone")]


def test_between_tags(catalog: Catalog, make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(rows((1, "a"), (2, "a"), (3, "a")))
    compact(catalog)
    table.create_tag("monday")
    table.append(rows((1, "b"), (4, "b")))
    table.delete(rows((3, "a")))
    compact(catalog)
    table.append(rows((5, "late")))
    table.create_tag("tuesday")
    expire_snapshots(table, retain_max=1, retain_min=1)
    between = selection_of(table, {"incremental-between": "monday,tuesday"}).between
    request = ReadRequest(between=between)
    log = [("+I", 1, "b"), ("+I", 4, "b"), ("+I", 5, "late"), ("-D", 3, "a")]
    assert sorted(logged(table, 2, 6)) == log
    with pytest.raises(UnsupportedError, match=r"\$binlog of table db\.t is not defined between two states"):
        table.system("binlog", request)
    # What no compaction has read is not in the read-optimized table, nor are deletions.
    assert sorted(row["id"] for row in table.system("ro", request).to_pylist()) == [1, 4]
    # Another engine gives the table the option.
    path = Path(table.location) / "schema" / f"schema-{table.schema.id}"
    schema = json.loads(path.read_text())
    schema["options"]["incremental-between"] = "monday,tuesday"
    path.write_text(json.dumps(schema))
    table = catalog.load_table("db.t")
    assert sorted(tuple(row.values()) for row in table.system("audit_log").to_pylist()) == log
    assert table.system("ro").num_rows == 2
    with pytest.raises(UnsupportedError, match=r"\$binlog"):
        table.system("binlog")
    with pytest.raises(InputError, match=r"\$files shows one: name it"):
        table.system("files")


def test_columns_filters_and_limits_hold_for_what_is_shown(make_table: MakeTable) -> None:
    table = make_table(primary_keys=("id",), bucket="1")
    table.append(rows((1, "a"), (2, "a")))
    table.append(rows((1, "b"), (3, "b")))
    # The row of key 1 is no new one because its former value is filtered out.
    assert logged(table, 1, 2, predicate=col("v") == "a") == []
    assert sorted(logged(table, 1, 2, predicate=col("v") == "b", columns=("id",))) == [("+I", 1), ("+I", 3)]
    assert len(logged(table, 1, 2, limit=1)) == 1
    assert logged(table, 1, 2, columns=()) == [("+I",), ("+I",)]
    with pytest.raises(ColumnNotFoundError):
        logged(table, 1, 2, columns=("w",))
    with pytest.raises(InputError, match="no order"):
        logged(table, 1, 2, order=(SortKey(("id",)),))


def test_rows_with_ids_are_refused(catalog: Catalog) -> None:
    tracked_table(catalog, "orc", "db.tracked")
    table = catalog.load_table("db.tracked")
    with pytest.raises(UnsupportedError, match="no list of files"):
        table.system("row_tracking", ReadRequest(between=Between(0, 0, states="diff")))
