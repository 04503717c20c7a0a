"""Key tables with deletion vectors: Paimon reads, changes and compacts what is written here, and back."""

from __future__ import annotations

from typing import Any

import pytest
from both_engines import Both

pytestmark = pytest.mark.interop

NAMES = [("id", "INT NOT NULL"), ("p", "INT NOT NULL"), ("v", "BIGINT"), ("s", "STRING")]
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS: dict[str, dict[str, Any]] = {
    "fixed": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "dynamic": {
        "primary_keys": ["id"],
        "options": {"bucket": "-1", "dynamic-bucket.target-row-num": "40"},
    },
    "partitioned": {
        "primary_keys": ["id", "p"],
        "partition_keys": ["p"],
        "options": {"bucket": "1", "deletion-vectors.bitmap64": "true", "file.format": "parquet"},
    },
    "lookup": {"primary_keys": ["id"], "options": {"bucket": "1", "changelog-producer": "lookup"}},
    "ordered": {"primary_keys": ["id"], "options": {"bucket": "1", "sequence.field": "v"}},
    "partial-update": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "merge-engine": "partial-update"},
    },
    "aggregation": {
        "primary_keys": ["id"],
        "options": {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    },
}
COMBINES = ("partial-update", "aggregation")


@pytest.mark.parametrize("kind", KINDS)
def test_both_sides_in_turn(both: Both, kind: str) -> None:
    options = {**KINDS[kind]["options"], **VECTORS}
    both.theirs.create(NAMES, **{**KINDS[kind], "options": options})
    state: dict[int, list[Any]] = {}

    def take(rows: list[list[Any]]) -> list[list[Any]]:
        for row in rows:
            old = state.get(row[0])
            if old is not None and kind == "aggregation":
                row = [*row[:2], old[2] + row[2], row[3]]
            if old is None or kind != "ordered" or row[2] >= old[2]:
                state[row[0]] = row
        return rows

    def by_spark(first: int, last: int, v: int) -> None:
        take([[number, number % 3, v, "spark"] for number in range(first, last)])
        both.sql(
            f"INSERT INTO {{t}} SELECT CAST(id AS INT), CAST(id % 3 AS INT), {v}, 'spark' "
            f"FROM range({first}, {last}, 1, 2)"
        )
        both.agree(list(state.values()))

    def by_paimon(first: int, last: int, v: int) -> None:
        both.theirs.write(take([[number, number % 3, v, "paimon"] for number in range(first, last)]))
        both.agree(list(state.values()))

    by_spark(0, 200, 5)
    by_paimon(150, 160, 7)
    by_spark(155, 165, 6)
    by_paimon(0, 10, 8)
    if kind not in COMBINES:
        for number in (3, 158, 199):
            state.pop(number)
        both.sql("DELETE FROM {t} WHERE id IN (3, 158, 199)")
        both.agree(list(state.values()))
        both.sql("UPDATE {t} SET s = 'changed', v = 100 WHERE id BETWEEN 20 AND 22")
        for number in (20, 21, 22):
            state[number] = [number, number % 3, 100, "changed"]
        both.agree(list(state.values()))
    by_spark(190, 210, 9)
    both.theirs.compact()
    both.agree(list(state.values()))
    by_spark(100, 110, 110)
    both.lake.call("compact", table=both.name)
    both.agree(list(state.values()))
    by_paimon(105, 115, 120)
    both.theirs.expire(1)
    both.lake.call("expire_snapshots", table=both.name, retain_max=1)
    by_spark(0, 4, 130)


def test_paimon_follows_the_changelog_of_each_write(both: Both) -> None:
    options = {"bucket": "1", "changelog-producer": "lookup", **VECTORS}
    both.sql(
        "CREATE TABLE {t} (id INT NOT NULL, v STRING) TBLPROPERTIES ('primary-key' = 'id', "
        + ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        + ")"
    )
    both.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')")
    both.sql("INSERT INTO {t} VALUES (2, 'b'), (3, 'b')")
    both.sql("DELETE FROM {t} WHERE id = 1")
    changes = both.theirs.follow(1)
    assert [change for change in changes if change[1] == 2] == [
        ["+I", 2, "a"],
        ["-U", 2, "a"],
        ["+U", 2, "b"],
    ]
    assert [change for change in changes if change[1] == 1] == [["+I", 1, "a"], ["-D", 1, "a"]]
