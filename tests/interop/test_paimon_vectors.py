"""Paimon reads, compacts and expires what is deleted here by deletion vectors, and the other way round."""

from __future__ import annotations

import pytest
from both_engines import Both

from lockgate.pushdown import col

pytestmark = pytest.mark.interop

LAYOUTS = {
    "plain": "TBLPROPERTIES ({0})",
    "64 bits": "TBLPROPERTIES ({0}, 'deletion-vectors.bitmap64' = 'true')",
    "partitioned": "PARTITIONED BY (p) TBLPROPERTIES ({0})",
    "buckets": "TBLPROPERTIES ({0}, 'bucket' = '2', 'bucket-key' = 'id')",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_deletions_are_the_same_for_both(both: Both, layout: str) -> None:
    properties = LAYOUTS[layout].format("'deletion-vectors.enabled' = 'true'")
    both.sql(f"CREATE TABLE {{t}} (id BIGINT, p INT, v STRING) {properties}")
    for first in (0, 500):
        both.sql(
            "INSERT INTO {t} SELECT id, int(id % 3), concat('v', id) "
            f"FROM range({first}, {first + 500}, 1, 1)"
        )
    both.sql("DELETE FROM {t} WHERE id % 10 = 3")
    assert len(both.agree()) == 900
    both.ours.delete(col("id").isin([1, 501, 700]))
    assert len(both.agree()) == 897
    both.sql("UPDATE {t} SET v = 'changed' WHERE id BETWEEN 100 AND 119")
    rows = both.agree()
    assert sum(row[2] == "changed" for row in rows) == 18
    both.theirs.compact()
    assert both.agree() == rows
    both.sql("DELETE FROM {t} WHERE id >= 900")
    rows = both.agree()
    both.theirs.expire(1)
    both.lake.call("expire_snapshots", table=both.name, retain_max=1)
    assert both.agree() == rows
    both.lake.call("compact", table=both.name)
    assert both.agree() == rows
