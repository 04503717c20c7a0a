"""Tags by SQL: made, read after their snapshot has expired, deleted; and orphans cleaned up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from lockgate import Lake

Named = Callable[[str], str]


def test_a_tag_from_creation_to_deletion(lake: Lake, database: str, table: Named) -> None:
    name = table("t")
    lake.sql(f"CREATE TABLE {name} (id BIGINT, name STRING)")
    lake.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    lake.sql(f"INSERT OVERWRITE {name} VALUES (3, 'c')")
    (made,) = lake.sql(
        f"CALL lake.sys.create_tag('{database}.t', tag => 'first', snapshot => 1, time_retained => '1 d')"
    ).collect()
    assert (made.snapshot_id, made.rows) == (1, 2)
    lake.call("expire_snapshots", table=f"{database}.t", retain_max=1)
    old = f"SELECT id FROM {name} VERSION AS OF 'first' ORDER BY id"
    assert [row.id for row in lake.sql(old).collect()] == [1, 2]
    assert [row.id for row in lake.sql(f"SELECT id FROM {name}").collect()] == [3]
    (cleaned,) = lake.sql(f"CALL lake.sys.remove_orphan_files('{database}.t')").collect()
    assert (cleaned.deleted_data_files_count, cleaned.deleted_bytes) == (0, 0)
    (gone,) = lake.sql(f"CALL lake.sys.delete_tag('{database}.t', 'first')").collect()
    assert gone.deleted_tags_count == 1
    assert gone.deleted_data_files_count >= 1
    with pytest.raises(AnalysisException, match="no tag 'first'"):
        lake.sql(old).collect()
    assert [row.id for row in lake.sql(f"SELECT id FROM {name}").collect()] == [3]
    with pytest.raises(AnalysisException, match="in the future"):
        lake.sql(
            f"CALL lake.sys.remove_orphan_files('{database}.t', current_timestamp() + INTERVAL 1 DAY)"
        ).collect()
