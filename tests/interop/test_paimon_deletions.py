"""Paimon merges the rows that delete here: its compactions keep them, with their values, in lower levels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from both_engines import Both

from lockgate.framework.orc import EncryptedOrcFile
from lockgate.pushdown import col

pytestmark = pytest.mark.interop

COLUMNS = (
    "id BIGINT NOT NULL, n INT NOT NULL, dt STRING NOT NULL, price DECIMAL(9, 2) NOT NULL, "
    "at TIMESTAMP NOT NULL, tags ARRAY<STRING> NOT NULL, place STRUCT<x: INT, y: STRING> NOT NULL, "
    "flag BOOLEAN NOT NULL, bytes BINARY NOT NULL, note STRING, q INT"
)
# A deletion by each way: what to do, the ids that go, and whether it has read their rows.
WAYS: dict[str, tuple[Callable[[Both], Any], range, bool]] = {
    "Python, by key": (
        lambda both: both.ours.delete(pa.table({"id": [10, 11], "n": pa.array([10, 11], pa.int32())})),
        range(10, 12),
        False,
    ),
    "Python, by condition": (
        lambda both: both.ours.delete((col("id") >= 20) & (col("id") < 22)),
        range(20, 22),
        True,
    ),
    "DELETE": (lambda both: both.sql("DELETE FROM {t} WHERE id IN (30, 31)"), range(30, 32), True),
    "DELETE with a subquery": (
        lambda both: both.sql("DELETE FROM {t} WHERE id IN (SELECT id + 40 FROM range(2))"),
        range(40, 42),
        True,
    ),
    "MERGE": (
        lambda both: both.sql(
            "MERGE INTO {t} t USING (SELECT id + 50 AS id FROM range(2)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id = 60 THEN DELETE"
        ),
        range(50, 52),
        True,
    ),
}
CHANGES = {
    "UPDATE": "UPDATE {t} SET note = 'updated', price = 0 WHERE id IN (70, 71)",
    "MERGE": (
        "MERGE INTO {t} t USING (SELECT id + 80 AS id FROM range(2)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET note = 'merged', dt = 'merged'"
    ),
}


def fill(both: Both, options: str) -> None:
    both.sql(f"CREATE TABLE {{t}} ({COLUMNS}) TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1'{options})")
    both.sql(
        "INSERT INTO {t} SELECT id, int(id), sha2(string(id), 256), CAST(id AS DECIMAL(9, 2)), "
        "timestamp_seconds(id), array(concat('t', id)), named_struct('x', int(id), 'y', 'here'), true, "
        "CAST('b' AS BINARY), concat('note ', id), 1 FROM range(0, 5000, 1, 1)"
    )
    both.lake.call("compact", table=both.name)


def touch(both: Both, number: int) -> None:
    """Let Paimon write a row, after which it compacts the small files of the bucket."""
    found = [row for row in both.theirs.read(where=["=", "id", number]).rows if row[0] == number]
    assert len(found) == 1
    both.theirs.write(found, options={"num-sorted-run.compaction-trigger": "2"})


def deletions(both: Both) -> dict[int, dict[str, Any]]:
    """The rows that delete, by id."""
    table, found = both.ours, {}
    for split in table.scan().splits:
        for path in split.paths:
            with EncryptedOrcFile((table.file_system, path), keys=table.keys) as file:
                found |= {row["id"]: row for row in file.read().to_pylist() if row["_VALUE_KIND"] == 3}
    return found


@pytest.mark.parametrize("options", ["", ", 'sequence.field' = 'n'"], ids=["plain", "sequence"])
def test_paimon_compacts_every_change_of_rows(both: Both, options: str) -> None:
    fill(both, options)
    rows = {row[0]: row for row in both.agree()}
    for number, (way, (delete, gone, is_read)) in enumerate(WAYS.items()):
        before = both.ours.read(predicate=(col("id") >= gone[0]) & (col("id") <= gone[-1])).to_pylist()
        delete(both)
        ids = [*gone, 60] if way == "MERGE" else list(gone)
        rows = {at: row for at, row in rows.items() if at not in ids}
        both.agree(list(rows.values()))
        touch(both, 1000 + number)
        both.agree(list(rows.values()))
        held = deletions(both)
        assert set(ids) <= set(held), f"{way}: Paimon's compaction has kept the deletions"
        for row in before if is_read else ():
            found = held[row["id"]]
            names = [name for name in row if way != "MERGE" or name not in ("note", "q")]
            assert {name: found[name] for name in names} == {name: row[name] for name in names}, way
    levels = {file["level"] for file in both.theirs.files() if file["deleted"] > 0}
    assert levels - {0, 5}, "a compaction into a lower level is what stopped"
    for number, statement in enumerate(CHANGES.values()):
        both.sql(statement)
        touch(both, 2000 + number)
    kept = both.agree()
    assert {row[0] for row in kept} == set(rows)
    both.theirs.compact()
    assert both.agree() == kept
    assert not deletions(both)


def test_paimons_own_deletions_hold_the_row_that_it_is_given(both: Both) -> None:
    """What is written here is modelled on it."""
    columns = [("id", "INT NOT NULL"), ("v", "STRING NOT NULL"), ("n", "INT")]
    both.theirs.create(columns, primary_keys=["id"], options={"bucket": "1", "write-only": "true"})
    both.theirs.write([[1, "a", 5], [2, "b", 6]])
    both.theirs.write([[1, "a", 5]], kind="-D")
    (row,) = deletions(both).values()
    assert (row["id"], row["v"], row["n"]) == (1, "a", 5)


def test_values_of_deletions_are_encrypted_and_ours_to_merge(both: Both) -> None:
    fill(both, ", 'orc.encrypt' = 'pii:dt,note'")
    both.sql("DELETE FROM {t} WHERE id < 3")
    both.ours.delete(pa.table({"id": [7]}))
    held = deletions(both)
    assert held[1]["note"] == "note 1"
    assert held[7]["dt"] == ""
    assert both.ours.read(columns=["id"]).num_rows == 4996
    both.lake.call("compact", table=both.name)
    assert both.python_rows() == both.spark_rows()
