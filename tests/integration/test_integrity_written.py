"""Tags that Spark's tasks write: every way of writing, checked by Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.orc
import pytest
from tagged_tables import assert_verified

import lockgate
from lockgate.errors import PlaintextWarning
from lockgate.framework.keys import MemoryKeyProvider
from lockgate.framework.orc import verify_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockgate import Lake


Named = Callable[[str], str]


OTHER_CODECS = [pytest.param(each, marks=pytest.mark.long) for each in ("zlib", "snappy", "lz4")]


@pytest.mark.parametrize("codec", ["none", "zstd", *OTHER_CODECS])
def test_python_verifies_what_spark_wrote(lake: Lake, spark: SparkSession, table: Named, codec: str) -> None:
    name = table("written")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING, salary DOUBLE, city STRING, nothing STRING) "
        f"TBLPROPERTIES ('orc.compress' = '{codec}', 'orc.encrypt' = 'pii:ssn;other:salary')"
    )
    # Streams of more than one granule, and of no byte.
    spark.sql(
        f"INSERT INTO {name} SELECT id, concat('s', id * 7919, sha(string(id))), id * 1.5D, "
        "concat('c', id % 9), null FROM range(0, 60000, 1, 1)"
    )
    (path,) = assert_verified(lake, name)
    assert verify_file(str(path), keys=lake.catalog.keys).tags > 24
    assert spark.sql(f"SELECT count(ssn), sum(salary), count(nothing) FROM {name}").first() == (
        60000,
        sum(number * 1.5 for number in range(60000)),
        0,
    )
    # Ranges within streams, found by the row index.
    assert spark.sql(
        f"SELECT id, city FROM {name} WHERE ssn = concat('s', 40000 * 7919, sha('40000'))"
    ).collect() == [(40000, "c4")]


@pytest.mark.long
def test_every_way_of_writing_makes_tags(
    lake: Lake, spark: SparkSession, table: Named, tmp_path: Path
) -> None:
    keyed, appended, copied, streamed = table("keyed"), table("appended"), table("copied"), table("streamed")
    options = "'orc.encrypt' = 'pii:ssn'"
    for name, more in ((keyed, ", 'primary-key' = 'id', 'bucket' = '2'"), (appended, ""), (streamed, "")):
        spark.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ({options}{more})")
    spark.sql(f"INSERT INTO {keyed} SELECT id, concat('s', id) FROM range(1000)")
    spark.sql(f"UPDATE {keyed} SET ssn = 'changed' WHERE id % 100 = 7")
    spark.sql(f"DELETE FROM {keyed} WHERE ssn = 's8'")
    spark.sql(
        f"MERGE INTO {keyed} AS t USING (SELECT id, 'merged' AS ssn FROM range(995, 1005)) AS s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET ssn = s.ssn WHEN NOT MATCHED THEN INSERT *"
    )
    spark.table(keyed).writeTo(appended).append()
    spark.sql(f"CREATE TABLE {copied} TBLPROPERTIES ({options}) AS SELECT * FROM {appended}")
    with pytest.warns(PlaintextWarning, match="ssn"):
        spark.table(appended).write.json(str(tmp_path / "rows"))
    rows = spark.readStream.schema("id BIGINT, ssn STRING").json(str(tmp_path / "rows"))
    stream = rows.writeStream.option("checkpointLocation", str(tmp_path / "point"))
    stream.trigger(availableNow=True).toTable(streamed).awaitTermination()
    # Files of one bucket merge by key: their readers are open at the same time.
    counts = (
        "SELECT count(*), count_if(ssn = 'changed'), count_if(ssn = 'merged'), count(DISTINCT id) FROM {}"
    )
    for name in (keyed, appended, copied, streamed):
        assert_verified(lake, name)
        assert spark.sql(counts.format(name)).first() == (1004, 10, 10, 1004), name
    lake.call("compact", table=keyed.removeprefix("lake."))
    assert_verified(lake, keyed)
    assert spark.sql(counts.format(keyed)).first() == (1004, 10, 10, 1004)


@pytest.mark.long
def test_stripes_are_tagged_as_they_are_written(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("stripes")
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ("
        "'orc.encrypt' = 'pii:ssn', 'orc.compress' = 'none', 'target-file-size' = '8 mb')"
    )
    spark.sql(f"INSERT INTO {name} SELECT id, repeat(sha2(string(id), 512), 2) FROM range(0, 60000, 1, 1)")
    files = assert_verified(lake, name)
    assert verify_file(files[0], keys=lake.catalog.keys).stripes > 1
    assert spark.sql(f"SELECT count(DISTINCT ssn) FROM {name}").first() == (60000,)


@pytest.mark.long
def test_thousands_of_streams(lake: Lake, spark: SparkSession, table: Named) -> None:
    name = table("wide")
    columns = [f"c{number}" for number in range(300)]
    names = ",".join(columns)
    spark.sql(
        f"CREATE TABLE {name} ({', '.join(f'{column} STRING' for column in columns)}) "
        f"TBLPROPERTIES ('orc.encrypt' = 'pii:{names}', 'orc.mask' = 'sha256:{names}')"
    )
    values = ", ".join(f"string(id + {number})" for number in range(300))
    spark.sql(f"INSERT INTO {name} SELECT {values} FROM range(0, 20, 1, 1)")
    (path,) = assert_verified(lake, name)
    assert verify_file(str(path), keys=lake.catalog.keys).tags > 1800
    assert spark.sql(f"SELECT sum(c0), sum(c299) FROM {name}").first() == (190, 190 + 20 * 299)


def test_a_key_name_beyond_ascii(lake: Lake, lake_folder: Path, table: Named) -> None:
    keys = MemoryKeyProvider({"clé@0": bytes(range(32))})
    other = lockgate.connect(str(lake_folder / "warehouse"), spark=lake.spark, catalog="accented", keys=keys)
    name = table("accent").replace("lake.", "accented.", 1)
    other.sql(f"CREATE TABLE {name} (id BIGINT, ssn STRING) TBLPROPERTIES ('orc.encrypt' = 'clé:ssn')")
    other.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    opened = other.catalog.load_table(name.removeprefix("accented."))
    (path,) = Path(opened.location).rglob("data-*.orc")
    assert verify_file(str(path), keys=keys).status == "verified"
    opened.append(pa.table({"id": [2], "ssn": ["y"]}))
    assert sorted(map(tuple, other.sql(f"SELECT * FROM {name}").collect())) == [(1, "x"), (2, "y")]
