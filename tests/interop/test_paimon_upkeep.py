"""What one engine does to keep a table in shape leaves it whole for the other."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from both_engines import Both
from exact_rows import Rows, exact_rows, in_order

pytestmark = pytest.mark.interop

KEY_TABLE = "CREATE TABLE {t} (id INT, v STRING) TBLPROPERTIES ('primary-key'='id', 'bucket'='1')"
APPEND_TABLE = "CREATE TABLE {t} (id INT, v STRING)"


def call(both: Both, procedure: str, **arguments: object) -> None:
    both.lake.call(procedure, table=both.name, **arguments)


def test_compactions_of_a_key_table_in_turn(both: Both) -> None:
    both.sql(KEY_TABLE)
    both.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    both.sql("INSERT INTO {t} VALUES (2, 'b2'), (4, 'd')")
    both.sql("DELETE FROM {t} WHERE id = 3")
    both.theirs.compact()
    rows: Rows = [[1, "a"], [2, "b2"], [4, "d"]]
    both.agree(rows)
    assert [(file["level"], file["rows"]) for file in both.theirs.files()] == [(5, 3)]
    both.theirs.write([[1, "a2"], [5, "e"]], options={"write-only": "true"})
    both.sql("DELETE FROM {t} WHERE id = 2")
    call(both, "compact")
    both.agree([[1, "a2"], [4, "d"], [5, "e"]])
    assert len(both.theirs.files()) == 1
    # Paimon's writer compacts on its own when runs pile up; ours in between.
    for number in range(8):
        both.theirs.write([[number, f"theirs {number}"]])
        both.sql(f"INSERT INTO {{t}} VALUES ({number + 4}, 'ours {number}')")
    rows = [[number, f"theirs {number}"] for number in range(5)]
    rows += [[number, f"theirs {number}"] for number in range(5, 8)]
    rows += [[number + 4, f"ours {number}"] for number in range(4, 8)]
    both.agree(rows)
    call(both, "compact", compact_strategy="minor")
    both.agree(rows)
    both.theirs.compact()
    both.agree(rows)


def test_compactions_of_an_append_table_in_turn(both: Both) -> None:
    both.sql(APPEND_TABLE)
    rows: Rows = []
    for number in range(6):
        both.sql(f"INSERT INTO {{t}} VALUES ({number}, 'ours')")
        both.theirs.write([[number, "theirs"]])
        rows += [[number, "ours"], [number, "theirs"]]
    both.theirs.compact({"compaction.min.file-num": "2"})
    both.agree(rows)
    assert len(both.theirs.files()) == 1
    both.theirs.write([[7, "theirs"]])
    both.sql("DELETE FROM {t} WHERE id = 0")
    call(both, "compact")
    both.agree([*rows[2:], [7, "theirs"]])
    assert len(both.theirs.files()) == 1


@pytest.mark.parametrize("by", ["Paimon", "Lockgate"])
def test_expiry_spares_what_the_other_engine_holds(both: Both, by: str) -> None:
    both.sql(KEY_TABLE)
    for number in range(6):
        if number % 2:
            both.theirs.write([[number % 2, f"at {number}"]])
        else:
            both.sql(f"INSERT INTO {{t}} VALUES ({number % 2}, 'at {number}')")
    both.theirs.refer("create_tag", name="theirs", snapshot=2)
    both.ours.create_tag("ours", 3)
    both.theirs.refer("create_branch", name="b", tag="theirs")
    call(both, "compact")
    both.theirs.compact()
    if by == "Paimon":
        assert both.theirs.expire(1) > 0
    else:
        call(both, "expire_snapshots", retain_max=1, retain_min=1)
    rows = both.agree([[0, "at 4"], [1, "at 5"]])
    assert len(both.ours.snapshots()) == 1
    tagged: Rows = [[0, "at 2"], [1, "at 1"]]
    assert both.theirs.read(options={"scan.tag-name": "ours"}).rows == tagged
    assert both.spark_rows(rest="VERSION AS OF 'theirs'") == [[0, "at 0"], [1, "at 1"]]
    assert both.python_rows(tag="ours") == tagged
    branch = both.lake.catalog.load_table(f"{both.name}$branch_b").read()
    assert in_order(exact_rows(branch)) == [[0, "at 0"], [1, "at 1"]]
    call(both, "delete_tag", tag="ours")
    both.theirs.refer("delete_tag", name="theirs")
    assert both.agree() == rows


def test_tags_and_time_travel(both: Both) -> None:
    both.sql(APPEND_TABLE)
    both.sql("INSERT INTO {t} VALUES (1, 'a')")
    time.sleep(0.01)
    both.theirs.write([[2, "b"]])
    both.ours.create_tag("one", 1)
    both.theirs.refer("create_tag", name="two", snapshot=2)
    both.theirs.refer("rename_tag", name="one", to="first")
    both.ours.rename_tag("two", "second")
    both.sql("INSERT INTO {t} VALUES (3, 'c')")
    assert [tag.name for tag in both.ours.tags()] == ["first", "second"]
    assert both.spark_rows("id", "VERSION AS OF 'first'") == [[1]]
    assert both.theirs.read(["id"], options={"scan.tag-name": "second"}).rows == [[1], [2]]
    assert both.theirs.read(["id"], options={"scan.snapshot-id": "2"}).rows == [[1], [2]]
    assert both.spark_rows("id", "VERSION AS OF 2") == [[1], [2]]
    between = both.ours.snapshots()[1].time_millis - 1
    assert both.theirs.read(["id"], options={"scan.timestamp-millis": str(between)}).rows == [[1]]
    moment = f"timestamp_millis({between})"
    assert both.spark_rows("id", f"TIMESTAMP AS OF {moment}") == [[1]]
    both.theirs.refer("rollback", snapshot=2)
    both.agree([[1, "a"], [2, "b"]])
    both.ours.rollback(1)
    both.agree([[1, "a"]])


@pytest.mark.parametrize("forward_by", ["Paimon", "Lockgate"])
def test_branches_are_shared(both: Both, forward_by: str) -> None:
    both.sql(KEY_TABLE)
    both.sql("INSERT INTO {t} VALUES (1, 'main'), (2, 'main')")
    both.ours.create_tag("start", 1)
    if forward_by == "Paimon":
        both.ours.create_branch("dev", tag="start")
    else:
        both.theirs.refer("create_branch", name="dev", tag="start")
    dev = Both(both.lake, f"{both.name}$branch_dev", both.theirs.of_branch("dev"))
    dev.theirs.write([[2, "theirs"], [3, "theirs"]])
    dev.ours.append(dev.ours.read(limit=1))
    database, table = both.name.split(".")
    both.lake.sql(f"INSERT INTO lake.{database}.`{table}$branch_dev` VALUES (4, 'ours')")
    rows: Rows = [[1, "main"], [2, "theirs"], [3, "theirs"], [4, "ours"]]
    assert dev.theirs.read().rows == rows
    assert dev.python_rows() == rows
    both.agree([[1, "main"], [2, "main"]])
    if forward_by == "Paimon":
        both.theirs.refer("fast_forward", name="dev")
    else:
        both.ours.fast_forward("dev")
    both.agree(rows)
    both.theirs.refer("delete_branch", name="dev")
    assert both.ours.branches() == []
    both.agree(rows)


def test_orphan_cleaning_by_paimon_spares_our_files(both: Both) -> None:
    both.sql(KEY_TABLE)
    both.sql("INSERT INTO {t} VALUES (1, 'a')")
    both.ours.create_tag("one", 1)
    both.ours.create_branch("b", tag="one")
    both.ours.record_consumer("reader", 1)
    both.theirs.write([[2, "b"]])
    folder = next(Path(both.ours.location).glob("bucket-*"))
    orphan = folder / "data-11111111-2222-3333-4444-555555555555-0.orc"
    orphan.write_bytes(b"left behind")
    assert both.theirs.orphans(int(time.time() * 1000) + 3_600_000) == 1
    assert not orphan.exists()
    both.agree([[1, "a"], [2, "b"]])
    assert both.ours.consumers() == {"reader": 1}
    assert both.lake.catalog.load_table(f"{both.name}$branch_b").read().num_rows == 1


def test_options_of_other_engines_do_not_stand_in_the_way(both: Both) -> None:
    options = {
        "write-only": "true",
        "write-buffer-size": "16 mb",
        "num-sorted-run.compaction-trigger": "3",
        "compaction.min.file-num": "4",
        "snapshot.num-retained.max": "50",
        "file-index.bloom-filter.columns": "v",
        "sink.parallelism": "2",
        "scan.parallelism": "2",
        "bucket": "2",
        "consumer.expiration-time": "1 d",
    }
    both.theirs.create([("id", "INT"), ("v", "STRING")], primary_keys=["id"], options=options)
    both.theirs.write([[1, "a"], [2, "b"]])
    both.sql("INSERT INTO {t} VALUES (2, 'c'), (3, 'd')")
    both.agree([[1, "a"], [2, "c"], [3, "d"]])
    assert both.spark_rows("id", "WHERE v = 'c'") == [[2]]
