"""Manifests that name files elsewhere are refused by Spark's roads too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lockgate.framework.store.metadata.trust import ExternalRoots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


def test_a_file_elsewhere(
    spark: SparkSession, lake: Lake, table: Callable[[str], str], tmp_path: Path
) -> None:
    name = table("t")
    spark.sql(f"CREATE TABLE {name} (id INT, p INT) PARTITIONED BY (p)")
    opened = lake.catalog.load_table(name.partition(".")[2])
    # As somebody would write it who may write to the table's folder.
    writer = opened.sibling(opened.identifier, opened.schema)
    writer.paths.external = ExternalRoots(("/",))
    rows = pa.table({"id": pa.array([1], pa.int32()), "p": pa.array([1], pa.int32())})
    (message,) = writer.write(rows)
    file = message.added[0]
    precious = tmp_path / file.file_name
    precious.write_bytes(Path(writer.paths.data_file((1,), 0, file)).read_bytes())
    writer.commit(
        [dataclasses.replace(message, added=(dataclasses.replace(file, external_path=str(precious)),))]
    )
    for statement in (
        f"SELECT * FROM {name}",
        f"DELETE FROM {name} WHERE id = 1",
        f"DELETE FROM {name} WHERE p = 1",
        f"UPDATE {name} SET id = 2",
        f"ALTER TABLE {name} DROP PARTITION (p = 1)",
        f"CALL lake.sys.compact(table => '{name}')",
    ):
        with pytest.raises(Exception, match=r"external-roots"):
            spark.sql(statement).collect()
    writer.overwrite(rows)
    with pytest.raises(Exception, match=r"external-roots"):
        spark.sql(f"CALL lake.sys.expire_snapshots(table => '{name}', retain_max => 1)").collect()
    assert precious.exists()
